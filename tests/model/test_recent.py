from __future__ import annotations

import pickle

import numpy as np

from vecfill.model.kernels import Recent
from vecfill.model.known import KnownRows
from vecfill.model.predictors import KernelRidge, kernel_systems
from vecfill.model.space import Space


def asked(recent: Recent, keys: str) -> str:
    """Ask for arrays of 8 bytes each; return which had to be computed."""
    computed = []

    def compute() -> np.ndarray:
        computed.append(key)
        return np.zeros(1)

    for key in keys:
        recent.once(key, compute)
    return "".join(computed)


def test_what_was_asked_for_longest_ago_is_forgotten_first():
    recent = Recent(most_bytes=16)
    assert asked(recent, "abab") == "ab"
    assert asked(recent, "acab") == "cb"


def test_the_last_stays_however_large():
    recent = Recent(most_bytes=4)
    assert asked(recent, "aab") == "ab"


def test_what_is_kept_is_not_pickled():
    recent = Recent(most_bytes=80)
    asked(recent, "abc")
    again = pickle.loads(pickle.dumps(recent))
    assert again.most_bytes == 80
    assert asked(again, "a") == "a"


def test_the_same_known_rows_are_factorised_once(monkeypatch):
    made = []
    real = kernel_systems.cholesky
    monkeypatch.setattr(
        kernel_systems, "cholesky", lambda gram, **how: made.append(gram) or real(gram, **how)
    )
    rng = np.random.default_rng(0)
    rows, vectors = rng.normal(size=(60, 4)), rng.normal(size=(60, 3))
    is_known = rng.random(60) < 0.7
    space, ridge = Space(rows), KernelRidge(width=0.7, ridge=0.1)
    for values in (vectors, vectors[:, ::-1]):
        ridge.predict(space, KnownRows(values, is_known))
    assert len(made) == 1
    # Other rows, another strength, another kernel: another factor each.
    ridge.predict(space, KnownRows(vectors, ~is_known))
    KernelRidge(width=0.7, ridge=0.2).predict(space, KnownRows(vectors, is_known))
    KernelRidge(width=1.4, ridge=0.1).predict(space, KnownRows(vectors, is_known))
    KernelRidge(kernel="laplacian", width=0.7, ridge=0.1).predict(
        space, KnownRows(vectors, is_known)
    )
    KernelRidge("rank_normal", width=0.7, ridge=0.1).predict(space, KnownRows(vectors, is_known))
    assert len(made) == 6
