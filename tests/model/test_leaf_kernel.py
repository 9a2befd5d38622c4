"""A kernel of trees: shares, seeds, threads, and what it finds that a distance does not."""

from __future__ import annotations

import numpy as np
import pytest

from tests.model.test_kernel_ridge import made
from vecfill import InputError
from vecfill.model.known import KnownRows
from vecfill.model.predictors import LeafKernel, Nearest
from vecfill.model.predictors.forest import Forest
from vecfill.model.space import Space
from vecfill.model.wanted import New

OPTIONS = {"n_trees": 7, "n_tried": 2, "min_leaf": 3, "seed": 0}


def grown(**options):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 5))
    return rows, Forest.grown(rows, rows @ rng.normal(size=(5, 12)), **{**OPTIONS, **options})


def test_shares_are_never_negative_sum_to_one_and_make_the_vectors():
    domain, embedding, is_known = made()
    known_rows = KnownRows(embedding, is_known)
    prediction = LeafKernel(n_trees=9).predict(Space(domain), known_rows)
    shares = prediction.composition.mix.shares(np.arange(14))
    assert (shares >= 0).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_allclose(shares @ known_rows.known, prediction.vectors, atol=1e-6)


def test_any_number_of_threads_grows_the_same_trees_and_another_seed_others():
    alone, beside, other = (grown(**options)[1] for options in ({}, {"n_threads": 3}, {"seed": 1}))
    for name, array in vars(alone).items():
        np.testing.assert_array_equal(array, vars(beside)[name])
    assert alone.thresholds.tobytes() != other.thresholds.tobytes()


def test_every_known_row_reaches_the_leaf_that_it_was_grown_in_and_no_leaf_is_too_small():
    rows, forest = grown()
    _, sizes = np.unique(forest.leaves, return_counts=True)
    assert sizes.min() >= 3
    # A row's leaf holds the row itself, so it has a share in its own mean.
    assert (forest.shares(rows).toarray().diagonal() > 0).all()


def test_a_column_times_a_number_changes_nothing():
    rng = np.random.default_rng(0)
    rows, vectors = rng.normal(size=(60, 5)), rng.normal(size=(60, 12))
    scale = 2.0 ** np.array([-900, 900, 0, 3, -7])
    shares = [
        Forest.grown(some, vectors, **OPTIONS).shares(some).toarray()
        for some in (rows, rows * scale)
    ]
    np.testing.assert_array_equal(*shares)


def test_rows_of_which_one_column_counts_are_mixed_by_that_column():
    # Nine columns of noise: a distance hardly sees the one that counts.
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.permutation(200) % 2, rng.normal(size=(200, 9))])
    vectors = np.where(rows[:, :1] > 0, 1.0, -1.0) * np.ones((1, 6))
    known_rows = KnownRows(vectors, np.arange(200) < 150)
    near, trees = (
        float((predictor.predict(Space(rows), known_rows).vectors * vectors[150:]).mean())
        for predictor in (Nearest(n_neighbors=10), LeafKernel())
    )
    assert trees > near + 0.2


def test_hidden_rows_are_not_among_those_from_which_trees_grow():
    domain, embedding, is_known = made()
    space, blind = Space(domain), np.where(is_known[:, None], embedding, np.nan)
    # Whatever stands in the place of hidden vectors, nothing of it may be seen.
    results = [
        LeafKernel(n_trees=5).predict(space, KnownRows(some, is_known)).vectors
        for some in (blind, np.where(is_known[:, None], embedding, 99.0))
    ]
    np.testing.assert_array_equal(*results)


def test_rows_that_come_later_go_through_the_trees_that_were_kept():
    domain, embedding, is_known = made()
    space, known_rows = Space(domain), KnownRows(embedding, is_known)
    trees = LeafKernel(n_trees=5)
    stored = trees.kept(space, known_rows, lambda: embedding)
    again = KnownRows(embedding, is_known)
    trees.restore(space, again, stored)
    # Without the rows of the fit, so nothing can be grown again.
    later, rows = Space(domain), New(domain[:3] + 0.1)
    np.testing.assert_array_equal(
        trees.predict(later, again, rows).vectors, trees.predict(space, known_rows, rows).vectors
    )
    assert again.once(("forest", trees), lambda: None) is not None


def test_equal_rows_and_too_few_rows_have_one_leaf():
    for rows in (np.ones((20, 2)), np.arange(10.0).reshape(5, 2)):
        forest = Forest.grown(rows, rows, **OPTIONS)
        np.testing.assert_allclose(forest.shares(rows).toarray(), 1.0 / len(rows))


def test_distances_and_strange_settings_are_refused():
    with pytest.raises(InputError, match="needs domain vectors"):
        LeafKernel().fitted_to(Space(np.ones((9, 9)), is_distances=True))
    with pytest.raises(InputError, match="n_trees=0"):
        LeafKernel(n_trees=0)
