"""What the study of rare entities hides, and how it compares an answer with the truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def study():
    import rarity

    return rarity


def question(study, share=0.4, how="rarest", n_rows=60):
    rng = np.random.default_rng(0)
    domain = rng.normal(size=(n_rows, 3))
    embedding = (domain @ rng.normal(size=(3, 5)) + 1.0).astype(np.float32)
    rarity, is_known = rng.normal(size=n_rows), np.ones(n_rows, bool)
    is_hidden = study.hidden_rows(rarity, is_known, share, how)
    names = [f"town{i}" for i in range(n_rows)]
    return study.Question(names, domain, embedding, rarity, ~is_hidden, is_hidden)


def answer(study, vectors, *, bound=None, start=None):
    nothing = np.full(len(vectors), np.nan)
    bound = nothing if bound is None else bound
    start = np.zeros_like(vectors) if start is None else start
    return study.Answer(vectors, nothing, bound, start, "")


def test_the_rarest_are_hidden_and_no_unknown_row_is(study):
    rarity = np.array([5.0, 1.0, np.nan, 4.0, 2.0, 3.0])
    is_known = ~np.isnan(rarity)
    is_hidden = study.hidden_rows(rarity, is_known, 0.4, "rarest")
    assert np.flatnonzero(is_hidden).tolist() == [0, 3]
    assert not study.hidden_rows(rarity, is_known, 0.4, "random")[2]


@pytest.mark.parametrize("share", [0.2, 0.4])
def test_the_control_hides_as_many_as_the_study(study, share):
    rarity, is_known = np.arange(111.0), np.ones(111, bool)
    rarest = study.hidden_rows(rarity, is_known, share, "rarest")
    control = study.hidden_rows(rarity, is_known, share, "random")
    assert rarest.sum() == control.sum() == 111 - int((1 - share) * 111)
    assert (rarest != control).any()


def test_the_truth_as_an_answer_has_the_best_measures(study):
    asked = question(study)
    truth = asked.embedding[asked.is_hidden]
    found = study.measured(asked, answer(study, truth), 0.0)
    assert found.centred_cosine == pytest.approx(1.0)
    assert (found.mrr, found.hits_at_10, found.norm_ratio) == (1.0, 1.0, pytest.approx(1.0))


def test_ties_count_against_the_answer(study):
    pool = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    assert study.true_ranks(np.array([[1.0, 0.0]]), np.array([0]), pool).tolist() == [2]


def test_an_offset_shared_by_all_hidden_rows_shows_only_in_the_centred_cosine(study):
    asked = question(study)
    truth = asked.embedding[asked.is_hidden]
    found = study.measured(asked, answer(study, truth + 3.0), 0.0)
    assert found.own_mean_cosine == pytest.approx(1.0)
    assert found.centred_cosine < 0.99


def test_coverage_is_of_the_cosine_from_the_constant(study):
    asked = question(study)
    truth = asked.embedding[asked.is_hidden].astype(float)
    noisy = truth + np.random.default_rng(1).normal(size=truth.shape)
    centre = asked.embedding[asked.is_seen].mean(axis=0, dtype=float)
    bound = study.cosines(noisy - centre, truth - centre)
    # Equal to the cosine, so it holds; a little above it for a quarter of the rows.
    bound[: len(bound) // 4] += 1e-6
    start = np.repeat(centre[None], len(truth), axis=0)
    told = answer(study, noisy, bound=bound - 1e-9, start=start)
    found = study.measured(asked, told, 0.0)
    assert found.coverage == pytest.approx(1 - (len(bound) // 4) / len(bound))


def test_asking_gives_the_hidden_rows_in_their_order(study):
    asked = question(study)
    found = study.measured(asked, study.ask(asked), 0.0)
    assert found.n_seen + found.n_hidden == 60
    assert found.centred_cosine > 0.9
    assert 0.0 <= found.coverage <= 1.0


def test_no_hidden_vector_reaches_the_library(study):
    asked = question(study)
    changed = asked.embedding.copy()
    changed[asked.is_hidden] = 1e6
    other = study.Question(**{**vars(asked), "embedding": changed})
    assert np.array_equal(study.ask(asked).vectors, study.ask(other).vectors)


def test_film_vectors_have_the_geometry_of_the_scaled_ratings():
    from movies import item_vectors

    rng = np.random.default_rng(0)
    seen = rng.random((8, 30)) < 0.7
    seen[0], seen[:, 0] = True, True
    users, films = np.nonzero(seen)
    ratings = pd.DataFrame(
        {"userId": users, "movieId": films, "rating": rng.integers(1, 6, users.size) / 1.0}
    )
    vectors = item_vectors(ratings).to_numpy()
    matrix = np.zeros((8, 30))
    matrix[users, films] = ratings["rating"]
    scaled = matrix / np.sqrt(np.outer(matrix.sum(axis=1), matrix.sum(axis=0)))
    # Eight users give at most eight components, so that nothing is lost.
    assert vectors.shape == (30, 8)
    assert np.allclose(vectors @ vectors.T, scaled.T @ scaled)
    # The first component of a scaled matrix is known: the square roots of its column sums.
    first = np.abs(vectors[:, 0])
    assert np.allclose(first / first[0], np.sqrt(matrix.sum(axis=0) / matrix[:, 0].sum()))
