"""Rare entities: how good and how honest is imputation for those people really ask about?

    python benchmarks/quality/rarity.py [SET ...] [--full] [--with-unknown] [--json FILE]

Unknown entities are rarer than known ones, so random hiding flatters. For each set this hides the
rarest 40 % and 20 % of the known entities, and as a control as many at random, asks
`vecfill.impute` for them, and compares with the truth. Rarity is the place of a word in its
embedding file, or the count of an entity.

Only known entities take part unless ``--with-unknown`` adds the others to the domain. At most 3,000
entities of a set are sampled unless ``--full`` takes all of them.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from datasets import SETS, Set
from quality_set import Vocabulary

import vecfill as vf

STUDIED = ("headings", "cities", "movies", "words", "companies", "elements", "compounds")
SHARES = (0.4, 0.2)
MOST_ROWS = 3000
LEVEL = 0.9


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

    def counts(self, *, of_hidden: bool) -> dict[str, float]:
        """Return how often entities were seen, as far as the question tells."""
        rows = np.flatnonzero(self.is_seen | (self.is_hidden & of_hidden))
        return {self.entities[row]: float(np.exp(20.0 - self.rarity[row])) for row in rows}


@dataclass(frozen=True)
class Answer:
    """What a library says about the hidden rows, in their order."""

    vectors: np.ndarray
    confidence: np.ndarray | None
    """Centred cosine to expect."""
    lower_bound: np.ndarray | None
    bound_is_centred: bool
    """Whether the bound is on the centred cosine or on the plain one."""
    claim: float | None
    """Mean centred cosine that the library itself reports from rows it has hidden."""
    setting: str


@dataclass(frozen=True)
class Measures:
    """An answer compared with the truth; means over the hidden rows."""

    n_seen: int
    n_hidden: int
    centred_cosine: float
    mrr: float
    hits_at_10: float
    own_mean_cosine: float
    """Cosine about the hidden rows' own means: are they told apart, wherever they lie?"""
    norm_ratio: float
    confidence: float
    claim: float
    coverage: float
    """Share of rows whose bound holds, for the cosine that the bound is about."""
    coverage_centred: float
    """Share of rows whose centred cosine is at least the bound."""
    coverage_plain: float
    seconds: float
    setting: str


def ask(question: Question) -> Answer:
    """Ask vecfill with everything automatic; the only place that knows how it is called."""
    return _asked(question, {} if question.ranks is not None else {"of_hidden": False})


def ask_with_counts(question: Question) -> Answer:
    """Ask with the rarity of every entity, the hidden ones included."""
    return _asked(question, {"of_hidden": True})


def _asked(question: Question, counted: dict[str, bool]) -> Answer:
    names = np.array(question.entities, dtype=object)
    run = vf.impute(
        dict(zip(question.entities, question.domain, strict=True)),
        question.file(),
        match="exact",
        force=True,
        level=LEVEL,
        counts=question.counts(**counted) if counted else None,
    )
    place = {word: i for i, word in enumerate(run.embedding.words)}
    rows = np.array([place[name] for name in names[question.is_hidden]])
    trust = run.confidence
    return Answer(
        vectors=np.asarray(run.embedding.vectors)[rows],
        confidence=None if trust is None else trust.values[rows],
        lower_bound=None if trust is None else trust.lower_bound[rows],
        bound_is_centred=True,
        claim=None if run.heldout is None else float(run.heldout.centred_cosine.mean()),
        setting=f"{run.predictor}; offset {run.decision.rule}; proof {run.decision.proof}",
    )


WAYS: dict[str, Callable[[Question], Answer]] = {"auto": ask, "counts": ask_with_counts}
"""Ways to ask, by name; every way is measured on the same questions."""


def sampled(data: Set, most: int | None, with_unknown: bool) -> np.ndarray:
    """Return the rows of a set that take part, ascending."""
    rows = np.flatnonzero(data.is_known)
    if most is not None and rows.size > most:
        rows = np.random.default_rng(0).choice(rows, most, replace=False)
    if with_unknown:
        rows = np.concatenate([rows, np.flatnonzero(~data.is_known)])
    return np.sort(rows)


def hidden_rows(rarity: np.ndarray, is_known: np.ndarray, share: float, how: str) -> np.ndarray:
    """Tell which known rows to hide: a share of them, the rarest or any."""
    known = np.flatnonzero(is_known)
    n_hidden = known.size - int((1.0 - share) * known.size)
    if how == "rarest":
        order = np.argsort(rarity[known], kind="stable")
    else:
        order = np.random.default_rng(0).permutation(known.size)
    is_hidden = np.zeros(is_known.size, np.bool_)
    is_hidden[known[order[known.size - n_hidden :]]] = True
    return is_hidden


def question_of(data: Set, rows: np.ndarray, share: float, how: str) -> Question:
    """Hide known rows of a set."""
    assert data.rarity is not None
    rarity, is_known = data.rarity[rows], data.is_known[rows]
    is_hidden = hidden_rows(rarity, is_known, share, how)
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


def measured(question: Question, answer: Answer, seconds: float) -> Measures:
    """Compare an answer with the truth. The pool for ranks is every seen and hidden row."""
    predicted = answer.vectors.astype(np.float64)
    truth = question.embedding[question.is_hidden].astype(np.float64)
    centre = question.embedding[question.is_seen].mean(axis=0, dtype=np.float64)
    pooled = question.is_seen | question.is_hidden
    own = np.flatnonzero(question.is_hidden[pooled])
    pool = question.embedding[pooled].astype(np.float64)
    rank = true_ranks(predicted - centre, own, pool - centre)
    centred, plain = cosines(predicted - centre, truth - centre), cosines(predicted, truth)
    bound = np.full(len(truth), np.nan) if answer.lower_bound is None else answer.lower_bound
    has_bound = answer.lower_bound is not None
    holds_centred = float((centred >= bound).mean()) if has_bound else np.nan
    holds_plain = float((plain >= bound).mean()) if has_bound else np.nan
    lengths = np.linalg.norm(predicted, axis=1) / np.linalg.norm(truth, axis=1)
    return Measures(
        n_seen=int(question.is_seen.sum()),
        n_hidden=len(truth),
        centred_cosine=float(centred.mean()),
        mrr=float((1.0 / rank).mean()),
        hits_at_10=float((rank <= 10).mean()),
        own_mean_cosine=float(cosines(predicted - predicted.mean(0), truth - truth.mean(0)).mean()),
        norm_ratio=float(lengths.mean()),
        confidence=np.nan if answer.confidence is None else float(answer.confidence.mean()),
        claim=np.nan if answer.claim is None else answer.claim,
        coverage=holds_centred if answer.bound_is_centred else holds_plain,
        coverage_centred=holds_centred,
        coverage_plain=holds_plain,
        seconds=seconds,
        setting=answer.setting,
    )


HEAD = (
    "| set | hidden | way | cosine / MRR / hits@10 | own-mean cosine | claim | confidence - truth "
    "| bound holds | norm ratio | CPU s |\n" + "| --- " * 10 + "|"
)


def line(name: str, hidden: str, way: str, found: Measures) -> str:
    """Return a row of the table."""
    scores = f"{found.centred_cosine:.3f} / {found.mrr:.3f} / {found.hits_at_10:.3f}"
    return (
        f"| {name} ({found.n_seen} + {found.n_hidden}) | {hidden} | {way} | {scores} "
        f"| {found.own_mean_cosine:.3f} | {found.claim:.3f} "
        f"| {found.confidence:.3f} - {found.centred_cosine:.3f} | {found.coverage:.2f} "
        f"| {found.norm_ratio:.2f} | {found.seconds:.0f} |"
    )


def study(name: str, options: argparse.Namespace) -> list[dict]:
    """Measure one set under every way to hide and to ask."""
    data = SETS[name]()
    rows = sampled(data, None if options.full else MOST_ROWS, options.with_unknown)
    results = []
    for how in ("rarest", "random"):
        for share in SHARES:
            question = question_of(data, rows, share, how)
            for way, asked in WAYS.items():
                start = time.process_time()
                answer = asked(question)
                found = measured(question, answer, time.process_time() - start)
                print(line(name, f"{how} {share:.0%}", way, found), flush=True)
                results.append(
                    {"set": name, "hidden": how, "share": share, "way": way, **asdict(found)}
                )
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(STUDIED), metavar="SET")
    parser.add_argument("--full", action="store_true", help="Use all rows of every set.")
    parser.add_argument(
        "--with-unknown", action="store_true", help="Keep unknown entities in the domain."
    )
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
