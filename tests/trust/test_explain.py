from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.method.search.test_neighbors import KINDS, awkward_rows
from vecfill import InputError
from vecfill.method.solve import system as system_module
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, LatentSemantic
from vecfill.model.space import Space
from vecfill.trust.explain import Explanation, place_of


@given(
    kind=st.sampled_from(KINDS),
    n_known=st.integers(1, 30),
    ridge=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
)
def test_shares_are_a_distribution_and_reproduce_the_vectors(kind, n_known, ridge, seed):
    rng = np.random.default_rng(seed)
    domain, embedding = awkward_rows(kind, 45, 4, seed), rng.normal(size=(45, 6))
    is_known = np.zeros(45, bool)
    is_known[rng.permutation(45)[:n_known]] = True
    found = LatentSemantic(ridge=ridge).predict(Space(domain), KnownRows(embedding, is_known))
    shares = found.composition.mix.shares(np.arange(45 - n_known))
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ embedding[is_known], found.vectors, atol=1e-6)


@pytest.mark.parametrize("share", [0.3, 1.0])
def test_with_a_trend_shares_reproduce_what_the_trend_leaves_over(share):
    rng = np.random.default_rng(0)
    domain, embedding, is_known = (
        rng.normal(size=(60, 5)),
        rng.normal(size=(60, 4)),
        np.arange(60) < 40,
    )
    predictor = LatentSemantic(residual_share=share)
    found = predictor.predict(Space(domain), KnownRows(embedding, is_known))
    shares, trend = found.composition.mix.shares(np.arange(20)), found.composition.trend
    again = trend.values[~is_known] + share * shares @ trend.residuals
    np.testing.assert_allclose(again, found.vectors, atol=1e-6)


def test_iterated_and_factored_shares_agree(monkeypatch):
    space = Space(np.random.default_rng(0).normal(size=(200, 5)))
    given = KnownRows(np.zeros((200, 1)), np.arange(200) < 30)

    def shares():
        return PAPER.predict(space, given).composition.mix.shares([0, 5, 100])

    factored = shares()
    monkeypatch.setattr(system_module, "MOST_ROWS_FACTORED", 10)
    np.testing.assert_allclose(shares(), factored, atol=1e-7)


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("iron", "'iron' is known"),
        ("osmum", "'osmum' is not an entity of the table. Near it: osmium"),
        ("zzz", "'zzz' is not an entity of the table."),
    ],
)
def test_a_word_that_was_not_imputed_is_told_what_it_is(word, words):
    with pytest.raises(InputError, match=words):
        place_of(word, ["osmium", "radon"], ["iron"])


def test_an_explanation_escapes_names_in_html():
    told = Explanation("<b>", ("<script>",), np.array([1.0]), 0.0)
    assert "<script>" not in told._repr_html_()
