"""Rare entities: how good and how honest is imputation for those people really ask about?

    python benchmarks/quality/rarity.py [SET ...] [--json FILE]

Unknown entities are rarer than known ones, so random hiding flatters. For each set this hides the
rarest 40 % and 20 % of the known entities, and as a control as many at random, asks
`vecfill.impute` for them by the table alone, and compares with the truth. Rarity is the place of a
word in its embedding file, or the count of an entity. Intervals are of 95 %, by bootstrap over the
hidden rows. Sets of fewer than 1,000 entities are hidden at random under three seeds; large ones
once, 40 % of them.

Three ways to ask: *before*, by the same predictor in a file whose order means nothing, so that
nothing is known about rarity; *auto*, by the order of the file, or by counts of known entities; and
*counts*, by counts of all entities.

At most 3,000 entities of a set are sampled unless ``--full`` takes all of them. ``--hide`` and
``--ways`` measure a part of this; ``--noise`` asks with counts of another corpus, as it were.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
from quality_set import Vocabulary
from sets import SETS, Set

import vecfill as vf
from vecfill.trust.choose import decision
from vecfill.trust.choose.choice import Choice

STUDIED = ("headings", "cities", "movies", "words", "companies", "elements", "compounds")
SHARES = (0.4, 0.2)
MOST_ROWS = 3000
LEVEL = 0.9
SMALL = 1000
N_SEEDS = 3
N_RESAMPLES = 1000


@dataclass(frozen=True)
class Question:
    """Entities with domain rows and rarity, and which of their vectors may be seen."""

    entities: list[str]
    domain: np.ndarray
    embedding: np.ndarray
    rarity: np.ndarray
    is_seen: np.ndarray
    is_hidden: np.ndarray
    """Known, not seen, and judged."""
    ranks: np.ndarray | None = None
    """Rows of the known entities' words in the whole embedding file."""
    vocabulary: Vocabulary | None = None
    noise: float = 0.0
    """Standard deviation of random noise in the logarithms of counts."""

    def file(self) -> vf.Embedding:
        """Return the embedding as its file would be if the hidden words had never been in it."""
        names = np.array(self.entities, dtype=object)
        if self.ranks is None or self.vocabulary is None:
            return vf.Embedding(names[self.is_seen].tolist(), self.embedding[self.is_seen])
        words = list(self.vocabulary.words)
        is_left = np.ones(len(words), np.bool_)
        taken = set(self.entities)
        is_left[[row for row, word in enumerate(words) if word in taken]] = False
        is_left[self.ranks[self.ranks >= 0]] = False
        for name, rank in zip(names[self.is_seen], self.ranks[self.is_seen], strict=True):
            words[rank], is_left[rank] = name, True
        rows = np.flatnonzero(is_left)
        return vf.Embedding([words[row] for row in rows], self.vocabulary.vectors[rows])

    def shuffled(self) -> vf.Embedding:
        """Return the seen rows in an order that means nothing."""
        rows = np.random.default_rng(5).permutation(np.flatnonzero(self.is_seen))
        return vf.Embedding([self.entities[row] for row in rows], self.embedding[rows])

    def counts(self, *, of_hidden: bool) -> dict[str, float]:
        """Return how often entities were seen, as far as the question tells."""
        rows = np.flatnonzero(self.is_seen | (self.is_hidden & of_hidden))
        noise = self.noise * np.random.default_rng(1).normal(size=self.rarity.size)
        counts = np.exp(20.0 - self.rarity + noise)
        return {self.entities[row]: float(counts[row]) for row in rows}


@dataclass(frozen=True)
class Answer:
    """What vecfill says about the hidden rows, in their order."""

    vectors: np.ndarray
    confidence: np.ndarray
    """Centred cosine to expect, net of the constant."""
    lower_bound: np.ndarray
    start: np.ndarray
    """Where a vector would lie if nothing but the offset were known: the constant of each row."""
    setting: str


@dataclass(frozen=True)
class Measures:
    """An answer compared with the truth: means over the hidden rows, and their intervals."""

    n_seen: int
    n_hidden: int
    centred_cosine: float
    mrr: float
    hits_at_10: float
    net_cosine: float
    """Cosine from the constant, which confidence expects."""
    own_mean_cosine: float
    """Cosine about the hidden rows' own means: are they told apart, wherever they lie?"""
    norm_ratio: float
    confidence: float
    coverage: float
    """Share of rows whose centred cosine is at least the bound."""
    intervals: dict[str, tuple[float, float]]
    seconds: float
    setting: str


def ask(question: Question) -> Answer:
    """Ask by the order of the file, or by counts of the known entities if there is none."""
    counts = None if question.ranks is not None else question.counts(of_hidden=False)
    return _asked(question, question.file(), counts)


def ask_with_counts(question: Question) -> Answer:
    """Ask with the rarity of every entity, the hidden ones included."""
    return _asked(question, question.file(), question.counts(of_hidden=True))


def ask_without_rarity(question: Question) -> Answer:
    """Ask when nothing is known about rarity."""
    return _asked(question, question.shuffled(), None)


def _asked(question: Question, file: vf.Embedding, counts: dict[str, float] | None) -> Answer:
    names = np.array(question.entities, dtype=object)
    run = vf.impute(
        dict(zip(question.entities, question.domain, strict=True)),
        file,
        match="exact",
        names="off",
        force=True,
        level=LEVEL,
        counts=counts,
    )
    place = {word: i for i, word in enumerate(run.embedding.words)}
    rows = np.array([place[name] for name in names[question.is_hidden]])
    trust = run.confidence
    assert trust is not None
    known, offsets = run.known.vectors.astype(np.float64), run.model.offsets
    start = np.broadcast_to(known.mean(axis=0), (len(run.embedding), known.shape[1]))
    if offsets is not None:
        start = (known - offsets.known).mean(axis=0) + offsets.unknown
    return Answer(
        vectors=np.asarray(run.embedding.vectors)[rows],
        confidence=trust.values[rows],
        lower_bound=trust.lower_bound[rows],
        start=start[rows],
        setting=f"{run.predictor}; {run.decision.to_dict()}; odds {run.decision.odds_of_rare}",
    )


WAYS: dict[str, Callable[[Question], Answer]] = {
    "before": ask_without_rarity,
    "auto": ask,
    "counts": ask_with_counts,
}
"""Ways to ask, by name; every way is measured on the same questions."""


@contextmanager
def one_choice(known: Choice | None = None) -> Iterator[None]:
    """Choose the predictor once for all ways to ask: it does not depend on rarity."""
    choose, found = decision.choose, [known]

    def chosen(*about: object, **options: object) -> Choice:
        found[0] = found[0] or choose(*about, **options)
        return found[0]

    with patch.object(decision, "choose", chosen):
        yield


def sampled(data: Set, most: int | None) -> np.ndarray:
    """Return the rows of a set that take part, ascending."""
    rows = np.flatnonzero(data.is_known)
    if most is not None and rows.size > most:
        rows = np.random.default_rng(0).choice(rows, most, replace=False)
    return np.sort(rows)


def hidden_rows(
    rarity: np.ndarray, is_known: np.ndarray, share: float, how: str, seed: int = 0
) -> np.ndarray:
    """Tell which known rows to hide: a share of them, the rarest or any."""
    known = np.flatnonzero(is_known)
    n_hidden = known.size - int((1.0 - share) * known.size)
    if how == "rarest":
        order = np.argsort(rarity[known], kind="stable")
    else:
        order = np.random.default_rng(seed).permutation(known.size)
    is_hidden = np.zeros(is_known.size, np.bool_)
    is_hidden[known[order[known.size - n_hidden :]]] = True
    return is_hidden


def question_of(data: Set, rows: np.ndarray, share: float, how: str, seed: int = 0) -> Question:
    """Hide known rows of a set."""
    assert data.rarity is not None
    rarity, is_known = data.rarity[rows], data.is_known[rows]
    is_hidden = hidden_rows(rarity, is_known, share, how, seed)
    return Question(
        entities=[data.entities[row] for row in rows],
        domain=data.domain[rows],
        embedding=data.embedding[rows],
        rarity=rarity,
        is_seen=is_known & ~is_hidden,
        is_hidden=is_hidden,
        ranks=None if data.ranks is None else data.ranks[rows],
        vocabulary=data.vocabulary,
    )


def cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows; 0 if one of them is zero."""
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return (left * right).sum(axis=1) / np.maximum(lengths, 1e-12)


def true_ranks(predicted: np.ndarray, own: np.ndarray, pool: np.ndarray) -> np.ndarray:
    """Return the rank of ``pool[own[i]]`` by cosine with ``predicted[i]``; ties count against."""
    left = predicted / np.maximum(np.linalg.norm(predicted, axis=1, keepdims=True), 1e-12)
    right = pool / np.maximum(np.linalg.norm(pool, axis=1, keepdims=True), 1e-12)
    nearness = left @ right.T
    return (nearness >= nearness[np.arange(len(own)), own][:, None]).sum(axis=1)


def interval(values: np.ndarray) -> tuple[float, float]:
    """Return a bootstrap interval of a mean over rows."""
    rng = np.random.default_rng(0)
    means = values[rng.integers(values.size, size=(N_RESAMPLES, values.size))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def measured(question: Question, answer: Answer, seconds: float) -> Measures:
    """Compare an answer with the truth. The pool for ranks is every seen and hidden row."""
    predicted = answer.vectors.astype(np.float64)
    truth = question.embedding[question.is_hidden].astype(np.float64)
    centre = question.embedding[question.is_seen].mean(axis=0, dtype=np.float64)
    pooled = question.is_seen | question.is_hidden
    own = np.flatnonzero(question.is_hidden[pooled])
    pool = question.embedding[pooled].astype(np.float64)
    rank = true_ranks(predicted - centre, own, pool - centre)
    centred = cosines(predicted - centre, truth - centre)
    # Confidence is about what goes beyond the constant.
    net = cosines(predicted - answer.start, truth - answer.start)
    rows = {
        "centred_cosine": centred,
        "mrr": 1.0 / rank,
        "hits_at_10": (rank <= 10).astype(float),
        "net_cosine": net,
        "coverage": (net >= answer.lower_bound).astype(float),
    }
    lengths = np.linalg.norm(predicted, axis=1) / np.linalg.norm(truth, axis=1)
    return Measures(
        n_seen=int(question.is_seen.sum()),
        n_hidden=len(truth),
        **{name: float(values.mean()) for name, values in rows.items()},
        own_mean_cosine=float(cosines(predicted - predicted.mean(0), truth - truth.mean(0)).mean()),
        norm_ratio=float(lengths.mean()),
        confidence=float(answer.confidence.mean()),
        intervals={name: interval(values) for name, values in rows.items()},
        seconds=seconds,
        setting=answer.setting,
    )


HEAD = (
    "| set | hidden | way | cosine | MRR | hits@10 | confidence - truth | bound holds "
    "| norm ratio | CPU s |\n" + "| --- " * 10 + "|"
)


def line(name: str, hidden: str, way: str, found: Measures) -> str:
    """Return a row of the table."""
    cells = []
    for measure in ("centred_cosine", "mrr", "hits_at_10"):
        low, high = found.intervals[measure]
        cells.append(f"{getattr(found, measure):.3f} ({low:.3f} to {high:.3f})")
    low, high = found.intervals["coverage"]
    return (
        f"| {name} ({found.n_seen} + {found.n_hidden}) | {hidden} | {way} | {' | '.join(cells)} "
        f"| {found.confidence - found.net_cosine:+.3f} "
        f"| {found.coverage:.2f} ({low:.2f} to {high:.2f}) | {found.norm_ratio:.2f} "
        f"| {found.seconds:.0f} |"
    )


def cases(n_known: int) -> Iterator[tuple[str, float, int]]:
    """Yield how to hide rows: which, what share, and the seed."""
    for share in SHARES:
        yield "rarest", share, 0
    is_small = n_known < SMALL
    for share in SHARES if is_small else SHARES[:1]:
        for seed in range(N_SEEDS if is_small else 1):
            yield "random", share, seed


def study(name: str, options: argparse.Namespace) -> list[dict]:
    """Measure one set under every way to hide and to ask."""
    data = SETS[name]()
    rows = sampled(data, None if options.full else MOST_ROWS)
    results = []
    for how, share, seed in cases(rows.size):
        if options.hide not in (None, how):
            continue
        question = replace(question_of(data, rows, share, how, seed), noise=options.noise)
        with one_choice():
            for way in options.ways:
                start = time.process_time()
                answer = WAYS[way](question)
                found = measured(question, answer, time.process_time() - start)
                told = f"{how} {100 * share:.0f} %" + (f", seed {seed}" if how == "random" else "")
                print(line(name, told, way, found), flush=True)
                about = {"set": name, "hidden": how, "share": share, "seed": seed, "way": way}
                results.append({**about, **asdict(found)})
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(STUDIED), metavar="SET")
    parser.add_argument("--hide", choices=("rarest", "random"), help="Hide only these rows.")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS), help="Ways to ask.")
    parser.add_argument("--noise", type=float, default=0.0, help="Noise of log counts.")
    parser.add_argument("--full", action="store_true", help="Use all rows of every set.")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/rarity.json"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    results = []
    for name in options.sets:
        results += study(name, options)
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
