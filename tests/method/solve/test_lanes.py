from __future__ import annotations

import numba
import numpy as np
import pytest
from numba.core.errors import TypingError

from vecfill.method.solve.lanes import (
    N_LANES,
    load,
    padded,
    plus,
    product,
    quotient,
    scaled,
    store,
    widened,
)


@numba.njit
def _computed(left, right, factor, out, wide):
    for row in range(len(left)):
        one, other = load(left, row), load(right, row)
        store(out, row, plus(scaled(one, factor), quotient(product(one, other), other)))
        store(wide, row, product(widened(one), widened(other)))


@numba.njit
def _narrowed(wide, out):
    for row in range(len(wide)):
        store(out, row, load(wide, row))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lanes_compute_as_numpy_does_bit_for_bit(dtype):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 7, N_LANES)).astype(dtype)
    out, wide = np.empty_like(left), np.empty(left.shape)
    _computed(left, right, 0.3, out, wide)
    np.testing.assert_array_equal(out, left * dtype(0.3) + left * right / right)
    np.testing.assert_array_equal(wide, left.astype(float) * right.astype(float))


def test_64_bits_are_rounded_when_they_are_stored_in_32():
    wide = np.random.default_rng(0).normal(size=(3, N_LANES))
    out = np.empty(wide.shape, np.float32)
    _narrowed(wide, out)
    np.testing.assert_array_equal(out, wide.astype(np.float32))


def test_rows_with_gaps_are_refused():
    with pytest.raises(TypingError, match="without gaps"):
        _narrowed(np.ones((3, 2 * N_LANES))[:, ::2], np.empty((3, N_LANES)))


def test_columns_are_padded_with_zeros():
    columns = np.arange(6.0).reshape(3, 2)
    found = padded(columns)
    np.testing.assert_array_equal(found[:, :2], columns)
    assert not found[:, 2:].any()
    assert found.flags.c_contiguous
