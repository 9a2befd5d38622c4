"""New tokens for MiniLM: how good their rows are, and what they do to sentence vectors."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import vecfill as vf
from glove import read_glove
from minilm import SentenceEncoder, ids_without, minilm_folder
from new_rows import pursued_rows, ridge_rows, sparsemax_rows
from rare_words import read_rare_words
from record import Result
from vecfill.views import plots

Rows = dict[str, np.ndarray]


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Impute rows of hidden words and of rare words by each method, and look what they do."""
    folder = minilm_folder()
    base = vf.read_model(folder)
    pairs = read_rare_words(out.parent / "cache")[: config["n_pairs"] or None]
    asked = dict.fromkeys([*pairs["one"], *pairs["other"]])
    glove = read_glove([*base.words, *asked], out.parent / "cache")
    hidden, known, rare = _words(config, base, glove, list(asked))
    wanted = [*hidden, *rare]
    pieces = _chosen(vf.word_pieces(folder, wanted), [*known, *wanted])
    rows = _rows(config, vf.Embedding(known, base[known]), glove, pieces, wanted)
    table = _on_hidden(config, folder, base, hidden, rows)
    people = _on_rare(folder, pairs, rare, rows)
    counts = {"hidden": len(hidden), "known": len(known), "rare": len(rare)}
    tables = {
        f"{len(hidden)} hidden whole words of MiniLM, {len(known):,} known": table,
        f"Rare Words: pairs with one of {len(rare):,} words that MiniLM splits": people,
    }
    metrics = {
        "counts": counts,
        "hidden": table.reset_index().to_dict("records"),
        "rare": people.reset_index().to_dict("records"),
    }
    return Result(metrics, tables, {"new-tokens": _figure(table, people)})


def _words(
    config: dict[str, Any], base: vf.Embedding, glove: pd.DataFrame, asked: list[str]
) -> tuple[list[str], list[str], list[str]]:
    """Return hidden words, known words, and rare words that the model splits."""
    whole = [word for word in base.words if word in glove.index and word.isalpha()]
    long = [word for word in whole if len(word) >= config["shortest"]]
    rng = np.random.default_rng(config["seed"])
    hidden = sorted(rng.choice(long, config["n_hidden"], replace=False).tolist())
    known = [word for word in whole if word not in set(hidden)]
    if config["n_known"]:
        known = known[:: max(1, len(known) // config["n_known"])]
    rare = [word for word in asked if word not in base and word in glove.index and word.isalpha()]
    return hidden, known, rare


def _chosen(domain: Any, words: list[str]) -> Any:
    places = {word: place for place, word in enumerate(domain.entities)}
    kept = [word for word in words if word in places]
    vectors = domain.vectors[[places[word] for word in kept]]
    return replace(domain, entities=tuple(kept), vectors=vectors)


def _rows(
    config: dict[str, Any], known: vf.Embedding, glove: pd.DataFrame, pieces: Any, wanted: list[str]
) -> dict[str, Rows]:
    """Return a row for each wanted word by each method."""
    mean = known.vectors.mean(axis=0)
    places = {word: place for place, word in enumerate(pieces.entities)}
    rows: dict[str, Rows] = {
        "mean of all rows": dict.fromkeys(wanted, mean),
        "mean of pieces": {
            word: pieces.vectors[places[word], : known.n_dims] if word in places else mean
            for word in wanted
        },
    }
    if config["rivals"]:
        rows |= _rivals(config, known, glove, wanted)
    described = {"glove": glove.loc[[*known.words, *wanted]], "pieces": pieces}
    for names in config["sources"]:
        sources = {name: described[name] for name in names}
        rows[f"vecfill, {' and '.join(names)}"] = _imputed(sources, known, wanted, config["seed"])
    return rows


def _rivals(
    config: dict[str, Any], known: vf.Embedding, glove: pd.DataFrame, wanted: list[str]
) -> dict[str, Rows]:
    """Return a row for each wanted word by the rules of others."""
    shown, asked = glove.loc[list(known.words)].to_numpy(), glove.loc[wanted].to_numpy()
    n_atoms = config["n_atoms"]
    found = {
        "FOCUS (sparsemax)": sparsemax_rows(shown, asked, known.vectors),
        f"OMP-{n_atoms}": pursued_rows(shown, asked, known.vectors, n_atoms),
        "ridge": ridge_rows(shown, asked, known.vectors),
    }
    return {name: dict(zip(wanted, rows, strict=True)) for name, rows in found.items()}


def _imputed(sources: dict[str, Any], known: vf.Embedding, wanted: list[str], seed: int) -> Rows:
    """Impute from one source or several; a word that none describes gets the mean row."""
    source = sources if len(sources) > 1 else next(iter(sources.values()))
    found = vf.impute(source, known, match="exact", seed=seed).embedding
    rows = dict(zip(found.words, found.vectors, strict=True))
    mean = known.vectors.mean(axis=0)
    return {word: rows.get(word, mean) for word in wanted}


def _on_hidden(
    config: dict[str, Any],
    folder: Path,
    base: vf.Embedding,
    hidden: list[str],
    rows: dict[str, Rows],
) -> pd.DataFrame:
    """Score rows of hidden words against the true ones, and sentences with them likewise."""
    encoder = SentenceEncoder(folder)
    ids = [encoder.tokenizer.convert_tokens_to_ids(word) for word in hidden]
    texts = [[encoder.ids(each.format(word)) for word in hidden] for each in config["templates"]]
    truth = [encoder.encode(each) for each in texts]
    split = ids_without(folder, hidden)
    spelled = [[split(each.format(word)) for word in hidden] for each in config["templates"]]
    changed = [encoder.encode(each) for each in spelled]
    found = {"no token (pieces)": (np.nan, *_near(truth, changed))}
    true_rows = base[hidden].astype(np.float64)
    for name, given in rows.items():
        vectors = np.stack([given[word] for word in hidden])
        with encoder.rows(ids, vectors):
            changed = [encoder.encode(each) for each in texts]
        found[name] = (float(_cosines(vectors, true_rows).mean()), *_near(truth, changed))
    columns = ["row cosine", "nearest word", "sentence cosine"]
    return pd.DataFrame.from_dict(found, orient="index", columns=columns).rename_axis("method")


def _near(truth: list[np.ndarray], changed: list[np.ndarray]) -> tuple[float, float]:
    """Return how often the true vector of a word is the nearest, and the mean cosine with it."""
    n_words = len(truth[0])
    is_nearest = [
        (new @ old.T).argmax(axis=1) == np.arange(n_words)
        for old, new in zip(truth[:1], changed[:1], strict=True)
    ]
    cosines = [_cosines(new, old).mean() for old, new in zip(truth, changed, strict=True)]
    return float(np.mean(is_nearest)), float(np.mean(cosines))


def _on_rare(
    folder: Path, pairs: pd.DataFrame, rare: list[str], rows: dict[str, Rows]
) -> pd.DataFrame:
    """Correlate cosines of words, encoded with and without new tokens, with people's scores."""
    touched = pairs[pairs["one"].isin(rare) | pairs["other"].isin(rare)]
    words = list(dict.fromkeys([*touched["one"], *touched["other"]]))
    plain = SentenceEncoder(folder)
    found = {"no token (pieces)": _agreement(touched, words, plain, [plain.ids(w) for w in words])}
    method = list(rows)[-1]
    with tempfile.TemporaryDirectory() as place:
        new = Path(place) / "new"
        done = vf.add_tokens(folder, {word: rows[method][word] for word in rare}, new)
        assert vf.verify_model(folder, new).ok
        encoder = SentenceEncoder(new)
    texts = [encoder.ids(word) for word in words]
    assert all(len(ids) == 3 for word, ids in zip(words, texts, strict=True) if word in done.ids)
    for name, given in rows.items():
        with encoder.rows(list(done.ids.values()), np.stack([given[word] for word in done.ids])):
            found[name] = _agreement(touched, words, encoder, texts)
    columns = ["Spearman with people"]
    return pd.DataFrame.from_dict(found, orient="index", columns=columns).rename_axis("method")


def _agreement(
    pairs: pd.DataFrame, words: list[str], encoder: SentenceEncoder, texts: list[list[int]]
) -> tuple[float]:
    vectors = dict(zip(words, encoder.encode(texts), strict=True))
    ones = np.stack([vectors[word] for word in pairs["one"]])
    others = np.stack([vectors[word] for word in pairs["other"]])
    return (float(spearmanr(_cosines(ones, others), pairs["score"]).statistic),)


def _cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return (one * other).sum(axis=1) / lengths


def _figure(table: pd.DataFrame, people: pd.DataFrame) -> Any:
    shown = {
        "row cosine": table["row cosine"],
        "nearest word": table["nearest word"],
        str(people.columns[0]): people.iloc[:, 0],
    }
    panels = {title: column.astype(float).to_dict() for title, column in shown.items()}
    return plots.intervals(panels, accent=[name for name in table.index if "vecfill" in name])
