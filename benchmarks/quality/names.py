"""What names and texts alone say about hidden known entities, by ridge regression.

    python benchmarks/quality/names.py [SET ...]

For each set: the letters of names, the sources of names without and with their parts, and each text
in its two variants; guesses count as they are. Scores are centred cosine / MRR / hits@10 of known
entities hidden in five folds, and of those with names of several words. The ridge is chosen in the
training part of each fold.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from sets import SETS, Set

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.names.domains import name_sources, parts_domain
from vecfill.inputs.names.ngrams import ngram_rows
from vecfill.inputs.names.siblings import inflected_siblings
from vecfill.inputs.prepared import Domain
from vecfill.inputs.texts.text import text

RIDGES = (30.0, 100.0, 300.0, 1000.0, 3000.0)


def scores(found: np.ndarray, truth: np.ndarray, known: np.ndarray) -> str:
    mean = known.mean(axis=0)
    found, truth, known = (_unit(each - mean) for each in (found, truth, known))
    cosines = (found * truth).sum(axis=1)
    ranks = 1 + (found @ known.T > cosines[:, None] + 1e-9).sum(axis=1)
    means = (cosines.mean(), (1 / ranks).mean(), (ranks <= 10).mean())
    return "/".join(f"{value:.3f}".lstrip("0") for value in means)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def hidden(features: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Predictions of each row by a ridge regression learnt on the other folds."""
    fold = np.random.default_rng(0).permutation(len(vectors)) % 5
    found = np.empty_like(vectors)
    for number in range(5):
        train, inner = fold != number, fold == (number + 1) % 5
        left = dict.fromkeys(RIDGES, 0.0)
        for ridge in RIDGES:
            guess = _ridge(
                features[train & ~inner], vectors[train & ~inner], features[inner], ridge
            )
            center = vectors[train & ~inner].mean(axis=0)
            both = _unit(guess - center), _unit(vectors[inner] - center)
            left[ridge] = float((both[0] * both[1]).sum(axis=1).mean())
        best = max(left, key=left.__getitem__)
        found[~train] = _ridge(features[train], vectors[train], features[~train], best)
    return found


def _ridge(rows: np.ndarray, vectors: np.ndarray, new: np.ndarray, ridge: float) -> np.ndarray:
    center, spread, mean = rows.mean(axis=0), rows.std(axis=0) + 1e-12, vectors.mean(axis=0)
    rows, new = (rows - center) / spread, (new - center) / spread
    gram = rows.T @ rows + ridge * np.eye(rows.shape[1])
    return new @ np.linalg.solve(gram, rows.T @ (vectors - mean)) + mean


def scored(domain: Domain, data: Set, several: set[str]) -> dict[str, object]:
    row_of = {name: row for row, name in enumerate(data.entities)}
    kept = [at for at, name in enumerate(domain.entities) if data.is_known[row_of[name]]]
    names = [domain.entities[at] for at in kept]
    truth = data.embedding[[row_of[name] for name in names]].astype(np.float64)
    known = data.embedding[data.is_known].astype(np.float64)
    rows = np.asarray(domain.vectors[kept], np.float64)
    # What is a guess already needs no regression.
    found = rows + truth.mean(axis=0) if domain.is_guess else hidden(rows, truth)
    is_several = np.array([name in several for name in names])
    report: dict[str, object] = {"n": len(names), "score": scores(found, truth, known)}
    if is_several.sum() >= 30 and not is_several.all():
        report["several words"] = scores(found[is_several], truth[is_several], known)
    return report


def measure(data: Set) -> None:
    assert data.vocabulary is not None, "names are learnt on the whole vocabulary"
    base = Embedding(data.vocabulary.words, np.asarray(data.vocabulary.vectors))
    pairs = zip(data.entities, data.words, strict=True)
    words = {entity: word for entity, word in pairs if word is not None}
    siblings = inflected_siblings(data.entities, base.words)
    shares = [
        np.mean([each in siblings for each in data.entities if (each in words) == is_known])
        for is_known in (True, False)
    ]
    print(
        f"{data}; siblings: {100 * shares[0]:.1f} % of known, {100 * shares[1]:.1f} % of unknown",
        flush=True,
    )
    several = set(parts_domain(data.entities, words, base).entities)
    own = ngram_rows(data.entities, n_components=100)
    present = tuple(np.array(data.entities, dtype=object)[own.is_present])

    def by_name(*, reads_parts: bool) -> list[Domain]:
        sources = name_sources(data.entities, words, base, reads_parts=reads_parts)
        return [domain for source in sources for domain in source.variants]

    ways: dict[str, Callable[[], Sequence[Domain]]] = {
        "letters": lambda: [Domain(present, own.vectors, ())],
        "spelling": lambda: by_name(reads_parts=False),
        "names": lambda: by_name(reads_parts=True),
    }
    for kind, texts in data.texts.items():
        source = dict(zip(data.entities, texts, strict=True))
        ways[f"text: {kind}"] = lambda source=source: text(source).variants(base, words=words)
    for way, make in ways.items():
        start = time.process_time()
        try:
            domains = make()
        except InputError as error:
            print(json.dumps({"way": way, "refused": str(error)}), flush=True)
            continue
        cpu = round(time.process_time() - start, 1)
        for domain in domains:
            kind = domain.columns[0] if domain.columns else ""
            report = scored(domain, data, several)
            print(json.dumps({"way": way, "of": kind, "cpu": cpu, **report}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=["headings", "cities"], metavar="SET")
    for name in parser.parse_args().sets:
        measure(SETS[name]())


if __name__ == "__main__":
    main()
