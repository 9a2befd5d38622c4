"""New tokens for a small causal transformer: perplexity right after adding and after tuning."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import vecfill as vf
from glove import read_glove
from headlines import END, UNKNOWN, Headlines, as_numbers, read_headlines, vocabulary
from new_rows import ridge_rows, sparsemax_rows
from record import Result
from transformer import Transformer, losses, trained
from vecfill.views import plots

Rows = dict[str, np.ndarray]
MEASURES = ("new words, at once", "all words, at once", "new words, tuned", "all words, tuned")


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Train models that lack some words, add these words, and measure what their rows are worth."""
    torch.set_num_threads(1)
    shares = {name: config[name] for name in ("train_share", "valid_share")}
    parts = read_headlines(data, seed=config["split_seed"], **shares)
    train = parts.train[: config["max_train_lines"]]
    parts = Headlines(train, [], parts.test[: config["max_other_lines"]])
    words = vocabulary(parts.train, min_count=config["min_count"])
    glove = read_glove(words, out.parent / "cache")
    runs = [_perplexities(config, parts, words, glove, seed) for seed in range(config["n_seeds"])]
    table = pd.concat(runs).groupby(level=0, sort=False)
    mean, error = table.mean(), table.std().fillna(0.0) / np.sqrt(len(runs))
    shown = mean.round(1).astype(str) + " ± " + error.round(1).astype(str)
    heading = (
        f"Perplexity of a two-layer transformer with {config['n_new']} new words, "
        f"by the start of their rows ({len(runs)} seeds)"
    )
    metrics = {"perplexity": mean.reset_index().to_dict("records"), "n_words": len(words)}
    metrics["by_seed"] = [each.reset_index().to_dict("records") for each in runs]
    return Result(
        metrics, {heading: shown.rename_axis("start")}, {"new-tokens-causal": _figure(mean, error)}
    )


def _perplexities(
    config: dict[str, Any], parts: Headlines, words: list[str], glove: pd.DataFrame, seed: int
) -> pd.DataFrame:
    """Return the perplexities of one draw of new words, a row for each start."""
    recipe = config["recipe"] | {"seed": config["seed"] + seed}
    new = _new_words(config, parts, words, glove, recipe["seed"])
    known = [word for word in words if word not in set(new)]
    torch.manual_seed(recipe["seed"])
    model = Transformer(len(known), recipe)
    trained(model, as_numbers(parts.train, known), recipe["n_epochs"], recipe)
    table = model.words.weight.detach().numpy().astype(np.float64)
    test = as_numbers(parts.test, [*known, *new])
    tuning = as_numbers(parts.train[: config["tuning_lines"]], [*known, *new])
    found = {}
    # A model that was trained for a moment has rows that nothing can predict.
    options = {"seed": recipe["seed"], "force": config["quick"]}
    for name, rows in _starts(known, table, new, glove, **options).items():
        grown = model.with_rows(rows)
        at_once = _measured(grown, test, len(known), recipe)
        trained(grown, tuning, config["tuning_epochs"], recipe)
        found[name] = (*at_once, *_measured(grown, test, len(known), recipe))
    return pd.DataFrame.from_dict(found, orient="index", columns=list(MEASURES))


def _new_words(
    config: dict[str, Any], parts: Headlines, words: list[str], glove: pd.DataFrame, seed: int
) -> list[str]:
    counts = Counter(word for line in parts.train for word in line)
    can_be_new = [
        word
        for word in words
        if word in glove.index and word.isalpha() and counts[word] >= config["fewest"]
    ]
    rng = np.random.default_rng(seed)
    # The most frequent words are those that every vocabulary has.
    return sorted(rng.choice(can_be_new[100:], config["n_new"], replace=False).tolist())


def _starts(
    known: list[str],
    table: np.ndarray,
    new: list[str],
    glove: pd.DataFrame,
    *,
    seed: int,
    force: bool,
) -> Rows:
    """Return rows of the new words by each rule; GloVe is what describes words."""
    described = [word for word in known if word in glove.index and word not in (UNKNOWN, END)]
    rows = table[[known.index(word) for word in described]]
    shown, asked = glove.loc[described].to_numpy(), glove.loc[new].to_numpy()
    rng = np.random.default_rng(seed)
    table_and_rows = glove.loc[[*described, *new]], vf.Embedding(described, rows)
    options = {"match": "exact", "seed": seed, "force": force}
    result = vf.impute(*table_and_rows, **options)
    # One table serves as input and output here, so lengths decide how likely a word is.
    as_long = vf.impute(*table_and_rows, **options, method=result.decision, calibrate_norms=True)
    return {
        "random": rng.normal(rows.mean(axis=0), rows.std(axis=0), size=(len(new), rows.shape[1])),
        "mean of all rows": np.repeat(rows.mean(axis=0)[None], len(new), axis=0),
        "FOCUS (sparsemax)": sparsemax_rows(shown, asked, rows),
        "ridge": ridge_rows(shown, asked, rows),
        "vecfill, glove": result.embedding[new],
        "vecfill, glove, lengths calibrated": as_long.embedding[new],
    }


def _measured(
    model: Transformer, test: np.ndarray, first_new: int, recipe: dict[str, Any]
) -> tuple[float, float]:
    """Return the perplexity of the new words, and of all words."""
    found, words = losses(model, test, recipe["batch"])
    return float(np.exp(found[words >= first_new].mean())), float(np.exp(found.mean()))


def _figure(mean: pd.DataFrame, error: pd.DataFrame) -> Any:
    low, high = mean - error, mean + error
    panels = {
        f"perplexity of {measure}": {
            start: (mean.loc[start, measure], low.loc[start, measure], high.loc[start, measure])
            for start in mean.index
        }
        for measure in MEASURES[::2]
    }
    accent = [start for start in mean.index if start.startswith("vecfill")]
    return plots.intervals(panels, accent=accent, log=True)
