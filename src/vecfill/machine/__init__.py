"""What this computer wants: threads, compiled code, memory, and how far the work is.

`blas` keeps BLAS to one thread where ours are many; `compiled` is the door to Numba.
`memory` gives free memory back to the system.
`lengths` has lengths and directions of vectors, however large or small their numbers are.
`progress` shows how far a call is, in a notebook or a terminal, and times its stages.
"""
