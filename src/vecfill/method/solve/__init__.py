"""Linear systems: the vectors of the unknown rows, and the weights of one row.

- `least_squares`: one row's weights on its neighbours, a small non-negative problem
- `factorisation`: a sparse factor that is kept, and a forecast of how much it would fill up
- `krylov`: iteration for a block of columns, with sweeps as the preconditioner
- `parts`: the parts of the unknown rows' equations: weights, right sides, and back again
- `system`: the equations of the unknown rows, solved by whichever of these is quickest
- `condensed`: known rows as mixes of known rows alone, which all folds share
- `lanes`: sixteen numbers that compiled code computes with at once
"""
