"""Which map leads best from one embedding to another, judged by what a search would find.

Cosines with the truth reward maps that shrink towards the mean, and those bend the angles by which
a search sorts. So maps are judged on hidden pairs by the goal itself: the nearest documents that
re-embedding everything would find.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.method.rotation import STRENGTHS
from vecfill.model.known import KnownRows
from vecfill.model.predictors import Predictor
from vecfill.model.predictors.affine import Adjoint, Affine, AffineKernel, Procrustes
from vecfill.model.space import Space
from vecfill.model.wanted import New, Unknown
from vecfill.trust.choose.folds import hidden_folds
from vecfill.trust.retrieval import cosines, judged, nearest, top_of

SIDES = ("documents", "queries")

N_FOLDS = 5

N_FOUND = 10
"""Documents that a search is taken to show."""

MOST_PAIRS = 1200
"""Pairs on which maps are compared: 240 are hidden at a time, as many searches a fold. A guess."""

MOST_KERNEL_WORK = 400_000_000
"""Rows to translate times pairs up to which a kernel may be added: about a minute of one core. A
kernel with every pair would cost a million rows more than the map itself many times over."""

FEWEST_QUERIES = 100
"""Queries of the user's own from which on they, and not the pairs, decide which map is best. A
guess: each has several documents to find."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries embedded by both models, and which documents answer them."""

    old: np.ndarray = field(repr=False)
    new: np.ndarray = field(repr=False)
    relevant: tuple[np.ndarray, ...] | None = None
    """Places of the documents that answer each query; ``None``: what the new model finds."""

    def __len__(self) -> int:
        return len(self.new)

    def among(self, rows: np.ndarray, n_pairs: int) -> Queries | None:
        """Return the queries about some pairs; those without an answer among them are left out."""
        if self.relevant is None:
            return self
        place_of = np.full(n_pairs, -1)
        place_of[rows] = np.arange(len(rows))
        answers = [place_of[right] for right in self.relevant]
        answers = [rows_among[rows_among >= 0] for rows_among in answers]
        places = np.array([place for place, right in enumerate(answers) if right.size], np.int64)
        if not places.size:
            return None
        return Queries(self.old[places], self.new[places], tuple(answers[row] for row in places))


@dataclass(frozen=True, eq=False)
class Search:
    """Scores of documents for queries, and what re-embedding everything would find."""

    scores: np.ndarray = field(repr=False)
    """(n_queries, n_documents)."""
    new_queries: np.ndarray = field(repr=False)
    new_documents: np.ndarray = field(repr=False)
    own_places: np.ndarray | None = None
    """The place of each query among the documents, if it is one of them."""
    relevant: tuple[np.ndarray, ...] | None = None

    def judged(self, k: int, scores: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """Return recall and NDCG of each query, by these scores or by others."""
        right = self.relevant
        if right is None:
            right = nearest(self.new_queries, self.new_documents, k, self.own_places)
        top = top_of(self.scores if scores is None else scores, k, self.own_places)
        return judged(top, right, k)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Documents embedded by both models."""

    old: np.ndarray = field(repr=False)
    new: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.old)

    def ends(self, side: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the vectors that are mapped, and those that they are mapped to."""
        return (self.old, self.new) if side == "documents" else (self.new, self.old)

    def rows(self, rows: np.ndarray) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.old[rows], self.new[rows])


class CrossFitted:
    """Maps fitted without each fold of the pairs in turn; what maps share is computed once."""

    def __init__(
        self,
        pairs: Pairs,
        side: str,
        *,
        seed: int,
        n_folds: int = N_FOLDS,
        n_jobs: int | None = None,
    ) -> None:
        self.pairs, self.side = pairs, side
        rows, targets = pairs.ends(side)
        self.space = Space(rows, n_jobs=n_jobs)
        is_known = np.ones(len(rows), np.bool_)
        self.folds = list(hidden_folds(is_known, n_folds=n_folds, seed=seed))
        self.known_rows = [KnownRows(targets, fold.is_seen) for fold in self.folds]
        self._mapped: dict[Predictor, np.ndarray] = {}

    @property
    def fold(self) -> np.ndarray:
        """(n_pairs,) the fold in which each pair is hidden."""
        numbers = np.empty(len(self.pairs), np.int64)
        for number, fold in enumerate(self.folds):
            numbers[fold.hidden] = number
        return numbers

    def mapped(self, predictor: Predictor) -> np.ndarray:
        """Return what each pair is mapped to by a map that never saw it."""
        if predictor not in self._mapped:
            self._mapped = {predictor: self._mapped_now(predictor)}
        return self._mapped[predictor]

    def _mapped_now(self, predictor: Predictor) -> np.ndarray:
        vectors = np.empty(self.pairs.ends(self.side)[1].shape, np.float32)
        for fold, known_rows in zip(self.folds, self.known_rows, strict=True):
            wanted = Unknown(fold.places)
            vectors[fold.hidden] = predictor.predict(self.space, known_rows, wanted).vectors
        return vectors

    def searches(self, predictor: Predictor, queries: Queries | None) -> list[Search]:
        """Return searches in which one side is mapped: one for all queries, or one for each fold.

        By default pairs are the queries. A query that is a pair teaches where its neighbours go, so
        it searches its own fold alone, of which the map has seen nothing.
        """
        mapped = self.mapped(predictor)
        if queries is None:
            old, new = self.pairs.old, self.pairs.new
            ends = (new, mapped) if self.side == "documents" else (mapped, old)
            return [
                Search(
                    cosines(ends[0][hidden], ends[1][hidden]),
                    new[hidden],
                    new[hidden],
                    np.arange(hidden.size),
                )
                for hidden in (fold.hidden for fold in self.folds)
            ]
        if self.side == "documents":
            scores = cosines(queries.new, mapped)
        else:
            scores = np.empty((len(queries), len(self.pairs)), np.float32)
            for fold, known_rows in zip(self.folds, self.known_rows, strict=True):
                of_fold = predictor.predict(self.space, known_rows, New(queries.new)).vectors
                scores[:, fold.hidden] = cosines(of_fold, self.pairs.old[fold.hidden])
        return [Search(scores, queries.new, self.pairs.new, None, queries.relevant)]


def translations() -> list[Predictor]:
    """Return the linear maps that are compared.

    Examples
    --------
    >>> sorted({predictor.name for predictor in translations()})
    ['adjoint', 'affine', 'procrustes']
    """
    maps: list[Predictor] = [Procrustes()]
    maps += [Affine(strength=strength) for strength in STRENGTHS]
    maps += [
        Adjoint(strength=strength, is_centred=is_centred)
        for strength in STRENGTHS[2::2]
        for is_centred in (True, False)
    ]
    return maps


@one_blas_thread()
def choose_translation(
    pairs: Pairs,
    side: str,
    *,
    n_wanted: int,
    queries: Queries | None = None,
    fitted: CrossFitted | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
) -> tuple[Predictor, dict[Predictor, float]]:
    """Return the map by which a search finds most of what the new model finds, and all scores.

    Enough queries of the user's own are asked; else hidden pairs are the queries. Which documents
    answer them is left to the evaluation: a few answers a query would leave the choice to chance.
    A kernel is added to the best affine map where there are not too many rows to translate. What
    was `fitted` to the same pairs is used again.
    """
    if len(pairs) > MOST_PAIRS:
        rows = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:MOST_PAIRS])
        pairs, n_all, fitted = pairs.rows(rows), len(pairs), None
    else:
        n_all = len(pairs)
    judges = fitted or CrossFitted(pairs, side, seed=seed, n_jobs=n_jobs)
    questions = None
    if queries is not None and len(queries) >= FEWEST_QUERIES:
        questions = Queries(queries.old, queries.new)
    k = n_found(len(pairs) if questions is not None else len(pairs) // N_FOLDS)

    def score(predictor: Predictor) -> float:
        finds = [search.judged(k)["ndcg"] for search in judges.searches(predictor, questions)]
        return float(np.concatenate(finds).mean())

    scores = {predictor: score(predictor) for predictor in translations()}
    if n_all * n_wanted <= MOST_KERNEL_WORK:
        affine = [predictor for predictor in scores if isinstance(predictor, Affine)]
        with_kernel = AffineKernel(strength=max(affine, key=scores.__getitem__).strength)
        scores[with_kernel] = score(with_kernel)
    return max(scores, key=scores.__getitem__), scores


def n_found(n_documents: int) -> int:
    """Return how many documents a search among so many is taken to show: a twentieth, or ten.

    Examples
    --------
    >>> n_found(60), n_found(1000)
    (3, 10)
    """
    return max(1, min(N_FOUND, n_documents // 20))
