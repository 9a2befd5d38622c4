"""The same stages beyond one machine, and beyond memory.

Every stage is a set of pure tasks, files in and files out, which any `concurrent.futures.Executor`
can run. Read in this order:

- `pieces`: the files that tasks leave for each other, each with its hash
- `engines`, `dask`: who runs tasks
- `tasks`: a task, and the runner that retries, repairs and watches
- `layout`: how the work is cut
- `plan`: the work folder: plan, lock, how far the job is
- `dataset`, `ingest`, `embedding_file`: Parquet -> blocks of rows
- `alignment`: which entities are known, and their vectors
- `preparing`, `partition`, `neighbors`, `spanning`, `weighing`: the graph and its weights
- `trend`, `solving`: vectors of the unknown rows
- `judging`: hidden rows, for the choice of a method and for confidence
- `methods`: these stages for one method, or for the best of a few
- `emitting`, `publishing`, `job`: parts; output and manifest; the whole job
- `status`: how far a job is, as its work folder shows
"""
