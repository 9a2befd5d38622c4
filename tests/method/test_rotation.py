"""A rotation between two sets of vectors, and the affine maps between it and least squares."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.method.rotation import Rotated, transposed


def made(n_rows: int = 60, n_features: int = 4, n_dims: int = 6, noise: float = 0.3):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n_rows, n_features)) + 1.0
    vectors = rows @ rng.normal(size=(n_features, n_dims)) + noise * rng.normal(
        size=(n_rows, n_dims)
    )
    return rows, vectors


@pytest.mark.parametrize("n_dims", [3, 4, 6])
def test_a_rotation_with_scale_and_shift_is_found_exactly(n_dims):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 3))
    turned = np.linalg.qr(rng.normal(size=(n_dims, n_dims)))[0][:3]
    vectors = 2.5 * rows @ turned + rng.normal(size=n_dims)
    np.testing.assert_allclose(Rotated(rows, vectors).rotation(rows), vectors, atol=1e-9)


def test_a_rotation_keeps_angles_between_steps():
    rows, vectors = made()
    slopes = Rotated(rows, vectors).rotation.slopes
    gram = slopes @ slopes.T
    np.testing.assert_allclose(gram, gram[0, 0] * np.eye(4), atol=1e-9)


def test_without_strength_the_map_is_least_squares():
    rows, vectors = made()
    design = np.column_stack([rows, np.ones(len(rows))])
    expected = design @ np.linalg.lstsq(design, vectors, rcond=None)[0]
    np.testing.assert_allclose(Rotated(rows, vectors).affine(0.0)(rows), expected, atol=1e-8)


def test_with_great_strength_the_map_is_the_rotation():
    rows, vectors = made()
    pair = Rotated(rows, vectors)
    np.testing.assert_allclose(pair.affine(1e9)(rows), pair.rotation(rows), atol=1e-6)
    assert pair.affine(np.inf) is pair.rotation


def test_what_is_left_over_is_that_of_a_fit_without_the_row():
    rows, vectors = made()
    pair = Rotated(rows, vectors)
    unit, rotation = pair.unit_of_strength, pair.rotation
    is_seen = np.arange(len(rows)) != 7
    # The same rotation: only the ridge is fitted again, with a mean of its own.
    missed = vectors - rotation(rows)
    centre, mean = rows[is_seen].mean(axis=0), missed[is_seen].mean(axis=0)
    steps = rows[is_seen] - centre
    slopes = np.linalg.solve(
        steps.T @ steps + 0.5 * unit * np.eye(4), steps.T @ (missed[is_seen] - mean)
    )
    residual = missed[7] - mean - (rows[7] - centre) @ slopes
    np.testing.assert_allclose(pair.residuals(0.5)[7], residual, rtol=1e-6)


def test_a_transposed_map_finds_what_the_map_would_find():
    rows, vectors = made()
    back = Rotated(vectors, rows).affine(0.3)
    turned = transposed(back, rows, vectors, is_centred=False)
    by_rows = rows @ (vectors @ back.slopes).T
    by_vectors = turned(rows) @ vectors.T
    np.testing.assert_array_equal(by_rows.argmax(axis=1), by_vectors.argmax(axis=1))


def test_more_directions_than_rows_give_finite_maps():
    rows, vectors = made(n_rows=5, n_features=12, n_dims=8)
    pair = Rotated(rows, vectors)
    assert np.isfinite(pair.affine(0.0)(rows)).all()
    assert np.isfinite(pair.residuals(0.01)).all()
