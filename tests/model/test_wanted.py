"""A row is a row: one that comes later gets what it would get as a row of the fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from vecfill.model.known import KnownRows
from vecfill.model.predictors import (
    KernelRidge,
    LatentSemantic,
    LinearRidge,
    MatchingPursuit,
    Mean,
    Nearest,
    Sparsemax,
)
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import Member, SourcesSpace, extended
from vecfill.model.space import Space
from vecfill.model.stack import Stack
from vecfill.model.wanted import New, SourceRows, Unknown
from vecfill.trust.prove.signals import SIGNALS, mixed_values, signals

PREDICTORS = {
    "paper": LatentSemantic(min_degree=4),
    "prepared": LatentSemantic("rank_normal", min_degree=4, ridge=0.1),
    "trend": LatentSemantic("standardized", min_degree=4, residual_share=0.6),
    "trend alone": LatentSemantic(min_degree=4, residual_share=0.0),
    "kernel": KernelRidge("unit_rows", width=0.7, ridge=0.1),
    "linear kernel": KernelRidge(kernel="linear", ridge=1.0),
    "stack": Stack(
        (LatentSemantic(min_degree=4), KernelRidge(width=0.7, ridge=0.1), Nearest()),
        (0.5, 0.4, 0.2),
    ),
    "ridge": LinearRidge("standardized"),
    "nearest": Nearest(n_neighbors=3),
    "mean": Mean(),
    "pursuit": MatchingPursuit(n_atoms=3),
    "sparsemax": Sparsemax("unit_rows"),
}

N_KNOWN, N_FITTED, N_NEW = 25, 35, 4


def made(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(N_FITTED + N_NEW, 3))
    rows = np.exp(latent @ rng.normal(size=(3, 4)) / 3)
    return rows, np.tanh(latent @ rng.normal(size=(3, 5)))


def given_of(vectors: np.ndarray, n_rows: int) -> KnownRows:
    embedding = np.full((n_rows, vectors.shape[1]), np.nan)
    embedding[:N_KNOWN] = vectors[:N_KNOWN]
    return KnownRows(embedding, np.arange(n_rows) < N_KNOWN)


def check_same(later, fitted, given, wanted, own, places) -> None:
    """Compare a prediction of new rows with one of the same rows as rows of the fit."""
    np.testing.assert_allclose(later.vectors, fitted.vectors, atol=1e-6)
    every = np.arange(len(later.vectors))
    of_later, of_fitted = (each.composition.mix.shares(every) for each in (later, fitted))
    np.testing.assert_allclose(of_later, of_fitted, atol=1e-6)
    seen = signals(given, later, wanted)
    expected = signals(own, fitted, Unknown(places))
    for column, name in enumerate(SIGNALS):
        # What known rows carry is kept in half precision.
        np.testing.assert_allclose(
            seen[:, column], expected[:, column], rtol=5e-3, atol=5e-3, err_msg=name
        )


@pytest.mark.parametrize("name", PREDICTORS)
@settings(max_examples=4, deadline=None)
@over(seed=st.integers(0, 10**6))
def test_a_row_that_comes_later_is_what_it_would_be_as_a_row_of_the_fit(name, seed):
    (rows, vectors), predictor = made(seed), PREDICTORS[name]
    space = Space(rows[:N_FITTED])
    # A table goes the way that several sources go.
    later_rows = SourceRows(N_NEW, {0: rows[N_FITTED:]}, {0: np.arange(N_NEW)})
    given, wanted = given_of(vectors, N_FITTED), New(space.new_rows(later_rows))
    later = predictor.predict(space, given, wanted)
    wide = extended(space, later_rows, predictor)
    own, places = given_of(vectors, len(rows)), np.arange(N_FITTED - N_KNOWN, len(rows) - N_KNOWN)
    fitted = predictor.predict(wide, own, Unknown(places))
    check_same(later, fitted, given, wanted, own, places)


@settings(max_examples=8, deadline=None)
@over(seed=st.integers(0, 10**6))
def test_a_row_of_several_sources_is_what_it_would_be_as_a_row_of_the_fit(seed):
    rows, vectors = made(seed)
    halves, own_of = (rows[:, :2], rows[:, 2:]), (PREDICTORS["paper"], PREDICTORS["kernel"])
    # The first source lacks some known and unknown rows, and one of those that come later.
    described = [np.flatnonzero(np.arange(len(rows)) % 6 != 1), np.arange(len(rows))]
    described[0] = described[0][described[0] != N_FITTED + 1]
    weights = (((False, True), (0.0, 0.9)), ((True, True), (0.6, 0.5)))
    fused = Fused(("a", "b"), (0, 0), own_of, weights)

    members = [
        [Member(name, Space(half[places[places < N_FITTED]]), places[places < N_FITTED], N_FITTED)]
        for name, half, places in zip("ab", halves, described, strict=True)
    ]
    space = SourcesSpace(members)
    new = {number: places[places >= N_FITTED] for number, places in enumerate(described)}
    later_rows = SourceRows(
        N_NEW,
        {number: halves[number][places] for number, places in new.items()},
        {number: places - N_FITTED for number, places in new.items()},
    )
    wanted = New(space.new_rows(later_rows))
    given, own = given_of(vectors, N_FITTED), given_of(vectors, len(rows))
    places = np.arange(N_FITTED - N_KNOWN, len(rows) - N_KNOWN)
    later = fused.predict(space, given, wanted)
    fitted = fused.predict(extended(space, later_rows, fused), own, Unknown(places))
    check_same(later, fitted, given, wanted, own, places)
    for place in range(N_NEW):
        of_later, of_fitted = (each.composition.source_shares(place) for each in (later, fitted))
        assert of_later == pytest.approx(of_fitted, abs=1e-6)


@pytest.mark.parametrize("name", PREDICTORS)
def test_what_a_predictor_keeps_gives_the_same_bits(name):
    (rows, vectors), predictor = made(0), PREDICTORS[name]
    space, given = Space(rows[:N_FITTED]), given_of(vectors, N_FITTED)
    values = mixed_values(given)[0]
    kept = predictor.kept(space, given, lambda: values)
    later = predictor.predict(space, given, New(rows[N_FITTED:]))
    again = given_of(vectors, N_FITTED)
    predictor.restore(space, again, kept)
    restored = predictor.predict(space, again, New(rows[N_FITTED:]))
    assert restored.vectors.tobytes() == later.vectors.tobytes()
    one, other = (
        each.composition.mix.carried(lambda: values, tol=1e-6) for each in (restored, later)
    )
    assert one.tobytes() == other.tobytes()
