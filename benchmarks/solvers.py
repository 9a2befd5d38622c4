"""The system of the unknown rows by our solver and by others: ``python benchmarks/solvers.py``.

Each contender solves the same columns of the same system to a relative residual of 1e-8, on one
thread, in turns: first 16 columns, which includes whatever it builds for the system, then 16 more.
Real word vectors come from an npm package; PyAMG takes part if it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings
from collections.abc import Callable

import numpy as np
from scipy.sparse import csc_array, csr_array, eye_array
from scipy.sparse.linalg import LinearOperator, bicgstab, gmres, spilu

from data import real_rows, synthetic_rows
from vecfill.machine.blas import one_blas_thread
from vecfill.method.graph import spanning_neighbor_graph
from vecfill.method.solve.parts import split_weights
from vecfill.method.solve.system import UnknownSystem
from vecfill.method.weights import convex_weights

N_COLUMNS = 16
TOL = 1e-8
Solve = Callable[[np.ndarray], np.ndarray]
Contender = Callable[[csr_array, np.ndarray], Solve]
"""From all weights and which rows are known to a function that solves a block of columns."""


def ours(weights: csr_array, is_known: np.ndarray) -> Solve:
    system = UnknownSystem(weights, is_known)
    return lambda right: system.solve(right, tol=TOL, n_jobs=1).vectors


def matrix_of(weights: csr_array, is_known: np.ndarray) -> csr_array:
    _, on_unknown = split_weights(weights, is_known)
    return csr_array(eye_array(on_unknown.shape[0]) - on_unknown)


def column_by_column(solve_one: Solve) -> Solve:
    return lambda right: np.column_stack([solve_one(column) for column in right.T])


def by_scipy(method: Callable, *, with_ilu: bool) -> Contender:
    def build(weights: csr_array, is_known: np.ndarray) -> Solve:
        matrix = matrix_of(weights, is_known)
        precondition = None
        if with_ilu:
            factor = spilu(csc_array(matrix), drop_tol=1e-3, fill_factor=10)
            precondition = LinearOperator(matrix.shape, factor.solve)
        options = {"rtol": TOL, "maxiter": 3000, "M": precondition}
        return column_by_column(lambda right: method(matrix, right, **options)[0])

    return build


def by_pyamg(kind: str) -> Contender:
    def build(weights: csr_array, is_known: np.ndarray) -> Solve:
        import pyamg
        from scipy.sparse import csr_matrix

        matrix = csr_matrix(matrix_of(weights, is_known))
        make = {
            "smoothed aggregation": pyamg.smoothed_aggregation_solver,
            "Ruge-Stuben": pyamg.ruge_stuben_solver,
        }[kind]
        options = {"symmetry": "nonsymmetric"} if kind == "smoothed aggregation" else {}
        levels = make(matrix, **options)
        return column_by_column(
            lambda right: levels.solve(right, tol=TOL, accel="bicgstab", maxiter=500)
        )

    return build


def contenders() -> dict[str, Contender]:
    found = {
        "vecfill": ours,
        "SciPy bicgstab": by_scipy(bicgstab, with_ilu=False),
        "SciPy bicgstab + spilu": by_scipy(bicgstab, with_ilu=True),
        "SciPy gmres + spilu": by_scipy(gmres, with_ilu=True),
    }
    if importlib.util.find_spec("pyamg"):
        found["PyAMG, smoothed aggregation"] = by_pyamg("smoothed aggregation")
        found["PyAMG, Ruge-Stuben"] = by_pyamg("Ruge-Stuben")
    return found


@one_blas_thread()
def compare(name: str, rows: np.ndarray, share_known: float, repeats: int) -> None:
    weights = convex_weights(rows, spanning_neighbor_graph(rows, min_degree=8))
    is_known = np.random.default_rng(0).random(len(rows)) < share_known
    on_known, on_unknown = split_weights(weights, is_known)
    rng = np.random.default_rng(1)
    first, more = (on_known @ rng.normal(size=(on_known.shape[1], N_COLUMNS)) for _ in range(2))
    print(f"\n{name}: {on_unknown.shape[0]:,} unknown rows, {on_unknown.nnz:,} weights", flush=True)
    print(f"  {'CPU s for columns':30s}{'first 16':>10s}{'16 more':>10s}{'residual':>10s}")
    ours(weights, is_known)(first)  # compiled before it is timed
    times: dict[str, list[tuple[float, float, float]]] = {}
    for _ in range(repeats):
        for label, build in contenders().items():
            begun = time.process_time()
            solve = build(weights, is_known)
            solve(first)
            half = time.process_time()
            found = solve(more)
            ended = time.process_time()
            rest = np.linalg.norm(more - found + on_unknown @ found, axis=0)
            residual = float((rest / np.linalg.norm(more, axis=0)).max())
            times.setdefault(label, []).append((half - begun, ended - half, residual))
    for label, runs in times.items():
        first_s, more_s, residual = np.median(runs, axis=0)
        print(f"  {label:30s}{first_s:10.2f}{more_s:10.2f}{residual:10.0e}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    # Methods that stop at their limit warn; the residual is printed either way.
    warnings.simplefilter("ignore")
    words = real_rows(asked.rows)
    if words is None:
        print("\nreal vectors skipped: npm is not here or could not fetch the package")
    else:
        compare("word vectors, half known", words, 0.5, asked.repeats)
        compare("word vectors, 2 % known", words, 0.02, asked.repeats)
    synthetic = synthetic_rows(asked.rows, 100)
    compare("synthetic rows, half known", synthetic, 0.5, asked.repeats)
    compare("synthetic rows, 2 % known", synthetic, 0.02, asked.repeats)


if __name__ == "__main__":
    main()
