"""The same stages beyond one machine, and beyond memory.

Every stage is a set of pure tasks, files in and files out, which any `concurrent.futures.Executor`
can run. Read in this order:

- `pieces`: the files that tasks leave for each other, each with its hash
- `engines`, `dask`: who runs tasks
- `tasks`: a task, and the runner that retries, repairs and watches
- `layout`: how the work is cut
- `plan`: the work folder: plan, lock, how far the job is
- `dataset`, `ingest`: Parquet -> blocks of rows
- `alignment`: which entities are known, and their vectors
- `preparing`, `partition`, `graph`, `weighing`: rows in cells, neighbours, tree and weights
- `trend`, `solving`: vectors of the unknown rows
- `sampling`: what a sample of rows in memory shows: twins, leaks, whether there is a signal
- `methods`: these stages for one method, or for the best of a few as hidden rows judge them
- `emitting`, `job`: parts, output and manifest; the whole job
"""
