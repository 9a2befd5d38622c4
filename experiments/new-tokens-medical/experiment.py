"""Medical terms as tokens of MiniLM: what it says of pairs against what people say."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

import vecfill as vf
from minilm import SentenceEncoder, minilm_folder
from record import Result
from vecfill.views import plots

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "quality"))
from whole_file import glove_file

SPLIT = "split, as before"


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Add the terms of UMNSRS that MiniLM splits, and compare pairs with people's judgement."""
    folder = minilm_folder()
    pairs = pd.read_csv(data / "similarity" / "umnsrs-sim.csv", names=["one", "other", "score"],
                        header=0)  # fmt: skip
    pairs = pairs.assign(one=pairs["one"].str.lower(), other=pairs["other"].str.lower())
    pairs = pairs[: config["n_pairs"] or None]
    terms = list(dict.fromkeys([*pairs["one"], *pairs["other"]]))
    rows = _rows(folder, terms, out, is_kept=not config["quick"])
    pairs = pairs[pairs["one"].isin(rows.words) | pairs["other"].isin(rows.words)]
    encoder = SentenceEncoder(folder)
    nearness = {SPLIT: _nearness(config, encoder, pairs)}
    judgements, place = {}, Path(tempfile.mkdtemp())
    for name, is_distilled in (("imputed", False), ("imputed and distilled", True)):
        extended = vf.add_tokens(
            folder, rows, place / name, distil=is_distilled, check=True, force=True
        )
        judgements[name] = dict(extended.fitted.lines() if extended.fitted else ())
        nearness[name] = _nearness(config, SentenceEncoder(place / name), pairs)
    table = _table(config, nearness, pairs["score"].to_numpy())
    title = (
        f"Spearman correlation with people on {len(pairs)} pairs with one of {len(rows)} new tokens"
    )
    metrics = {"spearman": table.reset_index().to_dict("records"), "said": judgements}
    return Result(metrics, {title: table}, {"new-tokens-medical": _figure(config, nearness, pairs)})


def _rows(folder: Path, terms: list[str], out: Path, *, is_kept: bool) -> vf.Embedding:
    """Return rows of the terms from GloVe and the pieces, which take a minute."""
    rows_file = out.parent / "cache" / "medical-rows.txt"
    if is_kept and rows_file.exists():
        return vf.read_embedding(rows_file)
    sources = {"glove": str(glove_file()), "pieces": "pieces"} if is_kept else "pieces"
    rows = vf.impute_tokens(folder, terms, sources, force=True).result.embedding
    if is_kept:
        rows_file.parent.mkdir(exist_ok=True)
        vf.write_embedding(rows, rows_file)
    return rows


def _nearness(
    config: dict[str, Any], encoder: SentenceEncoder, pairs: pd.DataFrame
) -> list[np.ndarray]:
    words = list(dict.fromkeys([*pairs["one"], *pairs["other"]]))
    place = {word: row for row, word in enumerate(words)}
    one, other = ([place[word] for word in pairs[side]] for side in ("one", "other"))
    nearness = []
    for text in config["sentences"]:
        vectors = encoder.encode([encoder.ids(text.format(word)) for word in words])
        nearness.append((vectors[one] * vectors[other]).sum(axis=1))
    return nearness


def _resampled(config: dict[str, Any], n: int) -> np.ndarray:
    return np.random.default_rng(config["seed"]).integers(0, n, (config["n_bootstrap"], n))


def _table(
    config: dict[str, Any], nearness: dict[str, list[np.ndarray]], scores: np.ndarray
) -> pd.DataFrame:
    """Return correlations, and their differences from splitting with 95 % intervals."""
    places = _resampled(config, len(scores))
    cells: dict[str, list[str]] = {}
    for name, parts in nearness.items():
        cells[name] = []
        for part, before in zip(parts, nearness[SPLIT], strict=True):
            text = f"{_spearman(part, scores):.3f}"
            if name != SPLIT:
                gains = [
                    _spearman(part[some], scores[some]) - _spearman(before[some], scores[some])
                    for some in places
                ]
                low, high = np.quantile(gains, [0.025, 0.975])
                text += f" ({low:+.3f} to {high:+.3f} against splitting)"
            cells[name].append(text)
    columns = ["the word alone", "in an unseen sentence"]
    return pd.DataFrame.from_dict(cells, orient="index", columns=columns).rename_axis("tokens")


def _spearman(one: np.ndarray, other: np.ndarray) -> float:
    return float(spearmanr(one, other).statistic)


def _figure(
    config: dict[str, Any], nearness: dict[str, list[np.ndarray]], pairs: pd.DataFrame
) -> Any:
    scores, panels = pairs["score"].to_numpy(), {}
    places = _resampled(config, len(scores))

    def ends(part: np.ndarray) -> list[float]:
        draws = [_spearman(part[some], scores[some]) for some in places]
        return np.quantile(draws, [0.025, 0.975]).tolist()

    for number, title in enumerate(("the word alone", "in an unseen sentence")):
        panels[title] = {
            name: (_spearman(parts[number], scores), *ends(parts[number]))
            for name, parts in nearness.items()
        }
    return plots.intervals(panels, accent=["imputed and distilled"])
