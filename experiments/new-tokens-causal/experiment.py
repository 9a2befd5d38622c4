"""New tokens for SmolLM2: hidden whole words get rows by each method, as input and as output."""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

import vecfill as vf
from new_rows import pursued_rows, ridge_rows, sparsemax_rows, wechsel_rows
from record import Result
from smollm2 import BEGIN, CausalModel, smollm2_folder
from vecfill.exchange.huggingface.folder import ModelFolder
from vecfill.exchange.huggingface.level import OutputSample, as_frequencies, levelled
from vecfill.exchange.huggingface.pieces import PieceFinder
from vecfill.exchange.huggingface.running import RunningModel
from vecfill.exchange.huggingface.sentences import ORDINARY
from vecfill.views import plots

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "quality"))
from downloads import wink_glove, wordnet_glosses

Rows = dict[str, np.ndarray]
OURS, LEVELLED = "vecfill", "vecfill, level by rank"
AFTER = ("true rows", LEVELLED, "FOCUS", "WECHSEL")
"""Methods whose text after the word is judged; each costs a pass through the model."""


class Draw(NamedTuple):
    """Hidden words, sentences with them, and sentences without any."""

    hidden: list[str]
    known: list[str]
    ids: list[int]
    texts: list[list[int]]
    places: list[int]
    split: list[list[int]]
    others: list[list[int]]


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Hide words, make their rows, and measure rows, losses and probabilities of each draw."""
    torch.set_num_threads(1)
    cache = out.parent / "cache"
    folder = smollm2_folder(cache)
    tables = []
    for seed in range(config["seed"], config["seed"] + config["n_draws"]):
        kept = out / f"draw-{seed}{'-quick' if config['quick'] else ''}.json"
        if not kept.exists():
            kept.write_text(json.dumps(_measured(config, folder, seed)))
        tables.append(pd.DataFrame(json.loads(kept.read_text())).T)
    draws = pd.concat(tables).groupby(level=0, sort=False)
    mean, error = draws.mean(), draws.std().fillna(0.0) / np.sqrt(len(tables))
    shown = mean.round(4).astype(str) + " ± " + error.round(4).astype(str)
    title = f"{config['n_hidden']} hidden words of SmolLM2-135M, {len(tables)} draws"
    metrics = {"mean": mean.T.to_dict(), "error": error.T.to_dict()}
    return Result(
        metrics,
        {title: shown.rename_axis("rows")},
        {"new-tokens-causal": _figure(mean, error)},
    )


def _measured(config: dict[str, Any], folder: Path, seed: int) -> dict[str, dict[str, float]]:
    """Return what each method's rows are worth in one draw."""
    model = ModelFolder(folder)
    base = vf.read_model(folder)
    glove = _glove(base)
    draw = _draw(config, model, base, glove, seed)
    rows = _rows(config, base, glove, draw, seed)
    running = RunningModel(model, [])
    texts = [[BEGIN, *running.split(text)] for text in ORDINARY]
    sample = OutputSample(
        running, [*texts, *running.sampled(config["n_sampled"], config["n_tokens"], seed=0)]
    )
    del running
    ranks = {word: rank + 1 for word, rank in wink_glove()[0].items() if word in glove.index}
    frequencies = as_frequencies("rank", ranks, draw.hidden)
    ids_of = dict(
        zip(base.words, (model.tokenizer.whole_words[word] for word in base.words), strict=True)
    )
    for name in (OURS, "FOCUS"):
        if name in rows:
            done = levelled(sample, rows[name], draw.hidden, ids_of, frequencies)
            assert not isinstance(done, str), done
            rows[f"{name}, level by rank"] = done.rows
    return _judged(config, CausalModel(folder), draw, rows)


def _draw(
    config: dict[str, Any],
    model: ModelFolder,
    base: vf.Embedding,
    glove: pd.DataFrame,
    seed: int,
) -> Draw:
    sentences = _sentences()
    where = defaultdict(list)
    for place, text in enumerate(sentences):
        for word in dict.fromkeys(re.findall(r"(?<= )[a-z]+(?= )", text)):
            where[word].append(place)
    row_of, (ranks, _) = model.tokenizer.whole_words, wink_glove()
    whole = [
        word for word in base.words if word in glove.index and word.isalpha() and word.islower()
    ]
    can_be_hidden = [
        word
        for word in whole
        if len(word) >= config["shortest"]
        and len(where[word]) >= config["least_sentences"]
        and ranks[word] > config["first_rank"]
    ]
    rng = np.random.default_rng(seed)
    hidden = sorted(rng.choice(can_be_hidden, config["n_hidden"], replace=False).tolist())
    gone = set(hidden)
    split_of, finder = {}, PieceFinder(model)
    running_ids = _encoder(model)
    texts, places, split = [], [], []
    for word in hidden:
        ids = [BEGIN, *running_ids(" " + sentences[where[word][0]])]
        at = ids.index(row_of[word])
        split_of[word] = finder.ids(word)
        texts.append(ids)
        places.append(at)
        split.append([*ids[:at], *split_of[word], *ids[at + 1 :]])
    others = [text for text in sentences if gone.isdisjoint(re.findall(r"[a-z]+", text.lower()))][
        : config["n_other"]
    ]
    return Draw(
        hidden,
        [word for word in whole if word not in gone],
        [row_of[word] for word in hidden],
        texts,
        places,
        split,
        [[BEGIN, *running_ids(" " + text)] for text in others],
    )


def _encoder(model: ModelFolder) -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415

    tokenizer = Tokenizer.from_file(str(model.tokenizer.path))
    return lambda text: tokenizer.encode(text).ids


def _glove(base: vf.Embedding) -> pd.DataFrame:
    """Return the GloVe vectors of the model's words, the most frequent first."""
    row_of, vectors = wink_glove()
    words = sorted((word for word in base.words if word in row_of), key=row_of.__getitem__)
    rows = np.asarray(vectors)[[row_of[word] for word in words]]
    return pd.DataFrame(rows.astype(np.float64), index=words)


def _sentences() -> list[str]:
    """Return the examples of WordNet, in an order of chance."""
    texts = {
        text
        for gloss in wordnet_glosses().values()
        for text in re.findall(r'"([^"]+)"', gloss)
        if 5 <= len(text.split()) <= 25
    }
    ordered = sorted(texts)
    np.random.default_rng(99).shuffle(ordered)
    return ordered


def _rows(
    config: dict[str, Any], base: vf.Embedding, glove: pd.DataFrame, draw: Draw, seed: int
) -> Rows:
    """Return rows of the hidden words by each method; GloVe is what describes words."""
    known = base[draw.known].astype(np.float64)
    shown, asked = glove.loc[draw.known].to_numpy(), glove.loc[draw.hidden].to_numpy()
    table = glove.loc[[*draw.known, *draw.hidden]]
    result = vf.impute(table, vf.Embedding(draw.known, base[draw.known]), match="exact", seed=seed,
                       names="off")  # fmt: skip
    rows = {"true rows": base[draw.hidden], OURS: result.embedding[draw.hidden]}
    rows["mean of all rows"] = np.repeat(known.mean(axis=0)[None], len(draw.hidden), axis=0)
    rows["FOCUS"] = sparsemax_rows(shown, asked, known)
    if config["rivals"]:
        rows["WECHSEL"] = wechsel_rows(shown, asked, known)
        rows["OMP-64"] = pursued_rows(shown, asked, known, config["n_atoms"])
        rows["ridge"] = ridge_rows(shown, asked, known)
    return {name: np.asarray(part, np.float32) for name, part in rows.items()}


def _judged(
    config: dict[str, Any], model: CausalModel, draw: Draw, rows: Rows
) -> dict[str, dict[str, float]]:
    """Return for each method: cosine of rows, losses, and probability in other text."""
    states = model.states(draw.texts)
    before = torch.stack([part[at - 1] for part, at in zip(states, draw.places, strict=True)])
    other = torch.cat([part[1:] for part in model.states(draw.others)])
    true, mean = rows["true rows"], model.table.mean(dim=0).numpy()
    measured: dict[str, dict[str, float]] = {}
    for name, part in rows.items():
        steps = [torch.tensor(vectors - mean) for vectors in (part, true)]
        scores = before @ torch.tensor(part).T
        totals = torch.logaddexp(_total(model, before, draw.ids), torch.logsumexp(scores, dim=1))
        log_odds = torch.logsumexp(other @ torch.tensor(part).T, dim=1) - _total(
            model, other, draw.ids
        )
        measured[name] = {
            "row cosine": float(torch.cosine_similarity(*steps).mean()),
            "loss of the word": float((totals - scores.diagonal()).mean()),
            "mass in other text": float(torch.sigmoid(log_odds).mean()),
            "loss of other text": float(torch.nn.functional.softplus(log_odds).mean()),
        }
    some = slice(0, config["n_after"])
    places = [
        len(ids) - len(whole) + at
        for ids, whole, at in zip(draw.split, draw.texts, draw.places, strict=True)
    ]
    measured["split"] = {
        "loss after it": _after(model, model.states(draw.split[some]), draw.split, places)
    }
    for name in AFTER:
        if name in rows:
            read = model.with_rows(draw.ids, rows[name], draw.texts[some])
            measured[name]["loss after it"] = _after(model, read, draw.texts, draw.places)
    return measured


def _total(model: CausalModel, states: torch.Tensor, gone: list[int]) -> torch.Tensor:
    """Return the log of the summed scores of all tokens but some."""
    parts = []
    for block in states.split(256):
        scores = block @ model.table.T
        scores[:, gone] = -torch.inf
        parts.append(torch.logsumexp(scores, dim=1))
    return torch.cat(parts)


def _after(
    model: CausalModel, states: list[torch.Tensor], texts: list[list[int]], places: list[int]
) -> float:
    """Return the mean loss of the tokens after the word."""
    losses = []
    for part, ids, at in zip(states, texts, places, strict=False):
        chances = torch.log_softmax(part[at:-1] @ model.table.T, dim=1)
        losses += (-chances[torch.arange(len(chances)), torch.tensor(ids[at + 1 :])]).tolist()
    return float(np.mean(losses))


def _figure(mean: pd.DataFrame, error: pd.DataFrame) -> Any:
    panels = {}
    for measure in ("row cosine", "loss of the word", "loss after it"):
        column, around = mean[measure].dropna(), error[measure].fillna(0.0)
        panels[measure] = {
            name: (column[name], column[name] - around[name], column[name] + around[name])
            for name in column.index
        }
    accent = [name for name in mean.index if name.startswith("vecfill")]
    return plots.intervals(panels, accent=accent)
