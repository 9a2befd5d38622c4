"""Known rows hidden and imputed again: from where they are seen, and with which offset."""

from __future__ import annotations

import numpy as np

from vecfill.model.known import KnownRows
from vecfill.model.offset import Curve, OffsetRule
from vecfill.model.predictors import PAPER
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.folds import rarest_block
from vecfill.trust.prove.hidden import hide_and_impute

IS_KNOWN = np.arange(90) >= 20
"""Unknown rows come first, so that places among unseen rows are not those among hidden ones."""


def test_the_centre_is_the_mean_of_the_rows_that_a_fold_shows():
    rng = np.random.default_rng(0)
    domain = rng.normal(size=(90, 4))
    # What is hidden lies elsewhere, and so would a centre that had seen it.
    embedding = np.tanh(domain @ rng.normal(size=(4, 6))) + (np.arange(90) >= 70)[:, None]
    block = rarest_block(IS_KNOWN, np.arange(90.0), share=20 / 70)
    hidden = hide_and_impute(Space(domain), embedding, embedding[IS_KNOWN], PAPER, [block])
    seen_rows = KnownRows(embedding, block.is_seen)
    centre = embedding[block.is_seen].mean(axis=0)
    steps = PAPER.predict(Space(domain), seen_rows, Unknown(block.places)).vectors - centre
    truth = embedding[block.hidden] - centre
    lengths = np.linalg.norm(steps, axis=1) * np.linalg.norm(truth, axis=1)
    expected = (steps * truth).sum(axis=1) / lengths
    np.testing.assert_allclose(hidden.scores.centred_cosine, expected, atol=1e-4)


def test_the_offset_is_taken_out_of_what_is_seen_and_put_back_row_by_row():
    rarity = np.random.default_rng(0).permutation(90) / 10.0
    curve = Curve(np.array([0.0, 9.0]), np.array([[1.0, 0.0], [1.0, 9.0]]), np.ones(2))
    # Vectors are their offset and nothing else: without it nothing is left to impute.
    embedding, domain = curve.at(rarity), np.random.default_rng(1).normal(size=(90, 4))
    block = rarest_block(IS_KNOWN, rarity, share=0.3)
    hidden = hide_and_impute(
        Space(domain),
        embedding,
        embedding[IS_KNOWN],
        PAPER,
        [block],
        rule=OffsetRule(0.0, uses_own=True, curve=curve),
        rarity=rarity,
    )
    np.testing.assert_allclose(hidden.vectors, embedding[block.hidden], atol=1e-9)
