"""Digests of the arrays of a model file."""

import os

import numpy as np
import pytest

from vecfill.errors import FormatError
from vecfill.io.mapped import BLOCK, MappedArrays, digest_of, write_mapped


def test_damage_of_any_kind_changes_the_digest():
    whole = np.random.default_rng(0).normal(size=BLOCK // 8 + 100)
    digest = digest_of(whole)
    assert digest_of(whole.copy()) == digest
    for place in (0, 5000, BLOCK // 8 + 99):
        flipped = whole.copy()
        flipped.view(np.uint8)[8 * place] ^= 1
        assert digest_of(flipped) != digest
    swapped = whole.copy()
    swapped[:64], swapped[640:704] = whole[640:704], whole[:64]
    assert digest_of(swapped) != digest, "sectors of 512 bytes that changed places"


def test_a_file_that_was_cut_after_it_was_opened_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "x.bin"
    write_mapped(path, {"x": np.ones(10_000)}, {}, kind="example", version=1)
    arrays = MappedArrays(path, kind="example", versions=[1])
    os.truncate(path, 100)
    # To read a part of a map that is no longer there would end the process.
    with pytest.raises(FormatError, match="was written into after it was opened"):
        _ = arrays["x"]


def test_an_array_can_be_read_after_its_file_was_replaced(tmp_path):
    path = tmp_path / "x.bin"
    write_mapped(path, {"x": np.ones(10)}, {}, kind="example", version=1)
    arrays = MappedArrays(path, kind="example", versions=[1])
    write_mapped(path, {"x": np.zeros(5)}, {}, kind="example", version=1, overwrite=True)
    assert arrays["x"].tolist() == [1.0] * 10
