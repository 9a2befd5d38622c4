"""`impute` behind ``fit(X, Y)``."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import vecfill as vf
from vecfill.model.predictors import PAPER, KernelRidge

N_FITTED, N_KNOWN = 110, 80


def table(n_rows: int = 130) -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with gaps, categories and text, and vectors that they explain."""
    rng = np.random.default_rng(0)
    mass, kind = rng.normal(50, 10, n_rows), rng.integers(0, 3, n_rows)
    words = np.array(["river", "coast", "hill", "desert", "forest", "lake"])
    about = rng.integers(0, 6, (n_rows, 5))
    hints = np.array([[(row == word).sum() for word in range(6)] for row in about])
    latent = np.column_stack([(mass - 50) / 10, np.eye(3)[kind], hints])
    vectors = np.tanh(latent @ rng.normal(size=(10, 8)) / 2)
    mass[::9] = np.nan
    texts = [" ".join(words[row]) + f" number {place}" for place, row in enumerate(about)]
    kinds = np.array(["gas", "metal", "salt"])[kind]
    return pd.DataFrame({"mass": mass, "kind": kinds, "about": texts}), vectors


@pytest.fixture(scope="module")
def world():
    frame, vectors = table()
    known = np.where(np.arange(len(frame))[:, None] < N_KNOWN, vectors, np.nan)
    fitted = vf.AutoImputer().fit(frame[:N_FITTED], known[:N_FITTED])
    return frame, vectors, known, fitted


def test_it_gives_what_impute_gives(world):
    frame, _, known, fitted = world
    named = frame[:N_FITTED].set_axis([str(row) for row in range(N_FITTED)])
    words = {str(row): known[row] for row in range(N_KNOWN)}
    result = vf.impute(named, words)
    assert fitted.model_.predictor == result.to_model().predictor
    np.testing.assert_array_equal(fitted.embedding_[:N_KNOWN], known[:N_KNOWN])
    np.testing.assert_array_equal(fitted.embedding_[N_KNOWN:], result.embedding.vectors)
    np.testing.assert_array_equal(fitted.confidence_[N_KNOWN:], result.confidence.values)
    assert (fitted.confidence_[:N_KNOWN] == 1).all()
    new = frame[N_FITTED:].set_axis([f"new {row}" for row in range(len(frame) - N_FITTED)])
    added = result.to_model().add(new)
    np.testing.assert_array_equal(fitted.transform(frame[N_FITTED:]), added.embedding.vectors)
    sure = fitted.predict_confidence(frame[N_FITTED:])
    np.testing.assert_array_equal(sure, added.confidence.values)


def test_fitted_rows_keep_their_vectors_among_new_ones(world):
    frame, _, _, fitted = world
    both = frame.iloc[[3, N_FITTED + 1, N_KNOWN + 2]]
    found, sure = fitted.transform(both), fitted.predict_confidence(both)
    np.testing.assert_array_equal(found[[0, 2]], fitted.embedding_[[3, N_KNOWN + 2]])
    assert sure[0] == 1
    assert sure[1] < 1
    assert sure[2] == fitted.confidence_[N_KNOWN + 2]


def test_a_row_that_equals_several_fitted_ones_is_a_new_entity():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 3)), 2, axis=0)
    Y = X @ rng.normal(size=(3, 4)) + rng.normal(size=(60, 4))
    fitted = vf.AutoImputer(KernelRidge(), force=True).fit(X, Y)
    assert not (fitted.transform(X[:1]) == Y[:2]).all(axis=1).any()
    assert fitted.predict_confidence(X[:1])[0] < 1


def test_a_method_is_chosen_and_confidence_learnt_if_every_row_is_known(world):
    frame, vectors, _, _ = world
    fitted = vf.AutoImputer().fit(frame[:N_FITTED], vectors[:N_FITTED])
    np.testing.assert_array_equal(fitted.embedding_, vectors[:N_FITTED])
    assert fitted.model_.predictor != PAPER
    found, sure = (
        fitted.transform(frame[N_FITTED:]),
        fitted.predict_confidence(frame[N_FITTED:]),
    )
    centre = vectors[:N_FITTED].mean(axis=0)
    one, other = found - centre, vectors[N_FITTED:] - centre
    cosine = (one * other).sum(axis=1)
    cosine /= np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    assert cosine.mean() > 0.7
    assert sure.mean() == pytest.approx(cosine.mean(), abs=0.1)


def test_it_is_pickled_with_the_same_bits(world):
    frame, _, _, fitted = world
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(
        again.transform(frame[N_FITTED:]), fitted.transform(frame[N_FITTED:])
    )
    told, same = fitted.model_.explain("100"), again.model_.explain("100")
    assert told.shares.tobytes() == same.shares.tobytes()


def test_sparse_rows_are_taken_as_they_are():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6)) * (rng.random((90, 6)) < 0.6)
    Y = np.where(np.arange(90)[:, None] < 70, X @ rng.normal(size=(6, 4)), np.nan)
    fitted = vf.AutoImputer("paper").fit(csr_array(X), Y)
    np.testing.assert_allclose(fitted.transform(csr_array(X)), fitted.embedding_)
    assert fitted.transform(csr_array(X * 1.01)).shape == (90, 4)


def test_too_few_known_rows_leave_confidence_open():
    X = np.arange(6.0)[:, None]
    Y = np.where(X < 4, X, np.nan)
    fitted = vf.AutoImputer(force=True).fit(X, Y)
    np.testing.assert_array_equal(np.isnan(fitted.confidence_), X.ravel() >= 4)
    assert np.isnan(fitted.predict_confidence([[2.5]])).all()


def test_columns_that_say_nothing_are_refused_unless_forced():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 3)), rng.normal(size=(80, 5))
    for known in (Y, np.where(np.arange(80)[:, None] < 60, Y, np.nan)):
        with pytest.raises(vf.NoSignalError, match="force=True"):
            vf.AutoImputer().fit(X, known)
    assert vf.AutoImputer(force=True).fit(X, Y).transform(X[:2] + 1).shape == (2, 5)
