"""The bundled sample is what its script builds, small, and credited."""

from __future__ import annotations

import hashlib

import pytest

from vecfill import read_embedding
from vecfill.io.tables import read_table
from vecfill.sample import CITIES, FOLDER, VECTORS

HASHES = {
    CITIES: "f3671161b90a37b3656f1d2e18d5aa574c8669fd735166f41d8fdc95cd23ec38",
    VECTORS: "f995de99444222a18e76890c39a60f5517fce88f07e327cfa4202475e18d47ba",
}


@pytest.mark.parametrize("path", HASHES, ids=lambda path: path.name)
def test_the_sample_is_what_its_script_builds(path):
    assert hashlib.sha256(path.read_bytes()).hexdigest() == HASHES[path]


def test_the_sample_is_small():
    assert sum(path.stat().st_size for path in HASHES) < 1_500_000


def test_geonames_and_glove_are_credited_beside_the_sample():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "Attribution 4.0" in text
    assert "Public Domain" in text


def test_the_sample_leaves_cities_to_impute():
    table, embedding = read_table(CITIES), read_embedding(VECTORS)
    assert (len(embedding), embedding.n_dims) == (2730, 100)
    assert table.num_rows == 3971
