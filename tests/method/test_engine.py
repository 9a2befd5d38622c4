from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from scipy.sparse import csr_array
from threadpoolctl import threadpool_info, threadpool_limits

from tests.method.search.test_neighbors import awkward_rows
from tests.method.test_propagation import made_problem
from vecfill import InputError, LatentSemanticImputer
from vecfill.machine.blas import one_blas_thread
from vecfill.method import engine, graph
from vecfill.method.engine import fill, n_workers, parallel_map, row_blocks
from vecfill.method.graph import measured_neighbor_graphs
from vecfill.method.propagation import fill_unknown, propagate, propagate_by_iteration
from vecfill.method.search import approximate, neighbors
from vecfill.method.search.among import nearest_fitted
from vecfill.method.solve import system
from vecfill.method.weights import convex_weights, convex_weights_of_distances


class FarAway(Executor):
    """Runs everything at once, on pickled copies: what another machine would be given."""

    def __init__(self) -> None:
        self.n_tasks = 0

    def submit(self, fn, /, *args, **kwargs):
        self.n_tasks += 1
        future: Future = Future()
        try:
            fn, args, kwargs = pickle.loads(pickle.dumps((fn, args, kwargs)))
            future.set_result(pickle.loads(pickle.dumps(fn(*args, **kwargs))))
        except Exception as error:
            future.set_exception(error)
        return future


def add_one(block: slice, part: np.ndarray) -> int:
    part += 1
    return block.start


def n_blas_threads(_: int) -> int:
    return max(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")


def refuse_three(item: int) -> int:
    if item == 3:
        raise ZeroDivisionError(item)
    return item


def every_stage(n_jobs) -> dict[str, np.ndarray]:
    """Run each stage on rows that send it down each of its ways."""
    found = {}
    rows = {
        "dense": awkward_rows("far clusters", 600, 6, 0),
        "without structure": awkward_rows("normal", 600, 12, 0).astype(np.float32),
        "sparse": csr_array(np.maximum(awkward_rows("normal", 200, 9, 0), 0.0)),
        "equal": awkward_rows("duplicates", 300, 4, 0),
    }
    for kind, domain in rows.items():
        for which in ("exact", "approximate"):
            (one,) = measured_neighbor_graphs(
                domain, min_degrees=(4,), neighbors=which, n_jobs=n_jobs
            )
            found[f"{kind}, {which}"] = one.graph.indices
        for form in ("simplex", "nnls"):
            weights = convex_weights(domain, one.graph, form=form, n_jobs=n_jobs)
            found[f"{kind}, {form}"] = weights.data
        near = nearest_fitted(domain[:40] * 1.1, domain, n_neighbors=3, n_jobs=n_jobs)
        found[f"{kind}, new rows"] = near.graph.indices
    distances = np.sqrt(((rows["equal"][:, None] - rows["equal"]) ** 2).sum(axis=2))
    found["distances"] = convex_weights_of_distances(distances, one.graph, n_jobs=n_jobs).data
    weights, embedding, is_known = made_problem("normal", 500, 60, 0)
    embedding = np.hstack([embedding] * 9)
    found["propagated"] = propagate(weights, embedding, is_known, n_jobs=n_jobs).vectors
    found["iterated"] = propagate_by_iteration(
        weights, embedding, is_known, rng=np.random.default_rng(0), n_jobs=n_jobs
    ).vectors
    fill_unknown(weights, embedding, is_known, n_jobs=n_jobs)
    found["filled"] = embedding
    return found


@pytest.mark.parametrize(
    ("with_cells", "most_factored", "pilot_iter"),
    [(False, 3000, 40), (True, 10, 1000), (True, 10, 2)],
    ids=["tiles, factored", "cells, sweeps", "cells, levels"],
)
def test_every_stage_gives_the_same_bits_far_away(
    monkeypatch, with_cells, most_factored, pilot_iter
):
    monkeypatch.setattr(graph, "CELLS_FROM", 2 if with_cells else 10_000)
    monkeypatch.setattr(neighbors, "WORTH_PAIRS", np.inf)
    monkeypatch.setattr(approximate, "FIRST_MET", 60)
    monkeypatch.setattr(system, "MOST_ROWS_FACTORED", most_factored)
    monkeypatch.setattr(system, "PILOT_ITER", pilot_iter)
    monkeypatch.setattr(system, "MOST_FILL", 0.0)
    far_away = FarAway()
    here, there, many = every_stage(1), every_stage(far_away), every_stage(5)
    assert far_away.n_tasks > 100
    for what, expected in here.items():
        np.testing.assert_array_equal(there[what], expected, err_msg=what)
        np.testing.assert_array_equal(many[what], expected, err_msg=what)


@pytest.mark.slow
def test_other_processes_and_a_pool_of_threads_give_the_same_bits():
    weights, embedding, is_known = made_problem("normal", 300, 60, 0)
    rows = awkward_rows("far clusters", 700, 6, 0)
    context = multiprocessing.get_context("spawn")
    found = []
    with ProcessPoolExecutor(2, mp_context=context) as processes, ThreadPoolExecutor(2) as threads:
        for workers in (1, processes, threads):
            (one,) = measured_neighbor_graphs(rows, min_degrees=(4,), n_jobs=workers)
            vectors = propagate(weights, embedding, is_known, n_jobs=workers).vectors
            found.append((one.graph.indices, vectors))
    for graph_indices, vectors in found[1:]:
        np.testing.assert_array_equal(graph_indices, found[0][0])
        np.testing.assert_array_equal(vectors, found[0][1])


@pytest.mark.parametrize("n_jobs", [1, 3, FarAway()])
@pytest.mark.parametrize("axis", [0, 1])
def test_blocks_are_filled_in_place_and_what_lies_between_them_is_left_alone(n_jobs, axis):
    outputs = [np.zeros((9, 9)), np.ones((9, 9), np.int32)]
    blocks = [slice(0, 2), slice(3, 4), slice(4, 8)]

    found = fill(outputs[:1], add_one, blocks, axis=axis, n_jobs=n_jobs)
    assert found == [0, 3, 4]
    assert np.moveaxis(outputs[0], axis, 0)[:, 0].tolist() == [1, 1, 0, 1, 1, 1, 1, 1, 0]
    assert (outputs[1] == 1).all()


def test_blocks_that_overlap_are_a_mistake_in_the_program():
    with pytest.raises(AssertionError, match="overlap"):
        fill([np.zeros(5)], add_one, [slice(0, 3), slice(2, 5)])


def read_only(item, part):
    assert not item.flags.writeable
    part[:] = item


def test_parts_that_arrive_read_only_are_copied(monkeypatch):
    output, item = np.zeros(3), np.arange(3.0)
    item.flags.writeable = False
    part = output.copy()
    part.flags.writeable = False
    _, (filled,) = engine._filled(read_only, (item, part))
    assert filled.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("n_jobs", [1, 2, FarAway()])
def test_blas_has_one_thread_in_every_block(n_jobs):
    assert parallel_map(n_blas_threads, range(3), n_jobs=n_jobs) == [1, 1, 1]


def test_blas_has_one_thread_until_the_last_who_asked_for_it_is_done():
    first, second = one_blas_thread(), one_blas_thread()
    with threadpool_limits(2, user_api="blas"):
        before = n_blas_threads(0)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert n_blas_threads(0) == 1
        second.__exit__(None, None, None)
        assert n_blas_threads(0) == before


@pytest.mark.parametrize("n_jobs", [1, 2, FarAway()])
def test_an_error_in_a_block_reaches_the_caller(n_jobs):
    with pytest.raises(ZeroDivisionError, match="3"):
        parallel_map(refuse_three, range(8), n_jobs=n_jobs)


def test_after_an_error_what_has_not_begun_never_begins(monkeypatch):
    begun, may_end = [], threading.Event()

    def work(item: int) -> None:
        begun.append(item)
        if item == 0:
            raise ZeroDivisionError
        may_end.wait(timeout=60)

    collect = engine._results

    def collect_and_let_go(futures):
        try:
            return collect(futures)
        finally:
            may_end.set()

    monkeypatch.setattr(engine, "_results", collect_and_let_go)
    with pytest.raises(ZeroDivisionError):
        parallel_map(work, range(50), n_jobs=2)
    # Two threads: one failed and took another item, the other has one of its own.
    assert len(begun) <= 3


@pytest.mark.parametrize("n_jobs", [2.5, 2.0, True, False, "a", "2", [2], np.float64(2)])
def test_a_number_of_jobs_that_is_not_whole_is_refused_in_words(n_jobs):
    with pytest.raises(InputError, match="is not a whole number"):
        n_workers(n_jobs)


def test_the_estimator_refuses_half_a_thread():
    X, Y = np.arange(6.0)[:, None], np.array([[0.0], [1.0], [np.nan]] * 2)
    with pytest.raises(InputError, match=r"n_jobs=2\.5 is not a whole number"):
        LatentSemanticImputer(min_degree=2, n_jobs=2.5).fit(X, Y)


def test_no_job_at_all_is_refused():
    with pytest.raises(InputError, match="n_jobs=0 means no thread at all"):
        n_workers(0)


@pytest.mark.parametrize(
    ("n_jobs", "expected"), [(1, 1), (9, 9), (np.int64(3), 3), (-1, 4), (-2, 3), (-9, 1), (None, 4)]
)
def test_jobs_are_counted_as_scikit_learn_counts_them(monkeypatch, n_jobs, expected):
    monkeypatch.setattr(engine, "_n_cores", lambda: 4)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert n_workers(n_jobs) == expected


@pytest.mark.parametrize(("limit", "expected"), [("1", 1), ("9", 4), ("0", 1), ("2,1", 4)])
def test_the_limit_of_numpy_is_ours_too(monkeypatch, limit, expected):
    monkeypatch.setattr(engine, "_n_cores", lambda: 4)
    monkeypatch.setenv("OMP_NUM_THREADS", limit)
    assert n_workers(None) == expected


@pytest.mark.parametrize(
    ("quota", "expected"), [(np.inf, 6), (2.0, 2), (1.5, 2), (0.1, 1), (64, 6)]
)
def test_a_container_uses_no_more_cores_than_it_may(monkeypatch, quota, expected):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    monkeypatch.setattr(engine, "_core_quota", lambda: quota)
    assert engine._n_cores() == expected


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, np.inf),
        ({"cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 2.0),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, np.inf),
        ({"cpu.max": "nonsense"}, np.inf),
        ({}, np.inf),
    ],
)
def test_the_quota_of_a_control_group_is_read(monkeypatch, tmp_path, files, expected):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    monkeypatch.setattr(engine, "CONTROL_GROUP", tmp_path)
    assert engine._core_quota.__wrapped__() == expected


def test_rows_are_cut_into_blocks_that_cover_them():
    assert [(b.start, b.stop) for b in row_blocks(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert row_blocks(0, 4) == []
    assert partial(row_blocks, 3)(9) == [slice(0, 3)]
