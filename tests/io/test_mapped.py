"""Digests of the arrays of a model file."""

import numpy as np

from vecfill.io.mapped import BLOCK, digest_of


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
