"""What a search finds under each option, fold by fold, among documents with both vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from vecfill.machine.blas import one_blas_thread
from vecfill.machine.lengths import unit
from vecfill.model.predictors import Predictor
from vecfill.trust.choose.translating import (
    N_FOUND,
    CrossFitted,
    Pairs,
    Queries,
    Search,
    choose_translation,
)
from vecfill.trust.compare.migration import (
    DOCUMENTS,
    EVERYTHING,
    ORDERS,
    QUERIES,
    SHARES,
    STAY,
    MigrationEvaluation,
    share_name,
)
from vecfill.trust.prove.translated import Trust, are_unit
from vecfill.trust.retrieval import MEASURES, cosines, top_of

MOST_DOCUMENTS = 5000
"""Documents among which is searched: 5,000 queries then take 100 MB."""


@one_blas_thread()
def evaluate_pairs(
    pairs: Pairs,
    queries: Queries | None,
    *,
    n_wanted: int,
    k: int = N_FOUND,
    budget: float = 0.5,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> MigrationEvaluation:
    """Return what a search among the pairs finds under each option."""
    tell = progress or (lambda _done, _total: None)
    n_pairs = len(pairs)
    if len(pairs) > MOST_DOCUMENTS:
        pairs, queries = _fewer(pairs, queries, seed)
    options = {"n_wanted": n_wanted, "queries": queries, "seed": seed, "n_jobs": n_jobs}
    maps, fitted = {}, {}
    for number, side in enumerate((DOCUMENTS, QUERIES)):
        tell(number, 3)
        fitted[side] = CrossFitted(pairs, side, seed=seed, n_jobs=n_jobs)
        maps[side], _ = choose_translation(pairs, side, fitted=fitted[side], **options)
    tell(2, 3)
    collection = _Asked(pairs, queries, fitted[DOCUMENTS], maps[DOCUMENTS], k)
    scores = collection.options()
    searches = fitted[QUERIES].searches(maps[QUERIES], queries)
    scores[QUERIES] = collection.judged(search.scores for search in searches)
    by_order = {order: collection.by_share(order, seed) for order in ORDERS}
    for name, measures in by_order["gain"].items():
        scores[name] = measures
    tell(3, 3)
    return MigrationEvaluation(
        scores,
        k,
        len(pairs),
        n_pairs,
        queries is not None and queries.relevant is not None,
        {
            order: {name: scores_of["recall"] for name, scores_of in measures.items()}
            for order, measures in by_order.items()
        },
        maps,
        collection.agreed(),
        budget,
        n_wanted,
    )


def _fewer(pairs: Pairs, queries: Queries | None, seed: int) -> tuple[Pairs, Queries | None]:
    rows = np.sort(np.random.default_rng(seed).permutation(len(pairs))[:MOST_DOCUMENTS])
    queries = None if queries is None else queries.among(rows, len(pairs))
    return pairs.rows(rows), queries


class _Asked:
    """One collection and its queries, under every option."""

    def __init__(
        self,
        pairs: Pairs,
        queries: Queries | None,
        fitted: CrossFitted,
        predictor: Predictor,
        k: int,
    ) -> None:
        self.pairs, self.queries, self.k = pairs, queries, k
        self.folds = [fold.hidden for fold in fitted.folds]
        self.searches = fitted.searches(predictor, queries)
        mapped = self.raw = fitted.mapped(predictor)
        is_unit = are_unit(pairs.new)
        self.mapped = unit(mapped) if is_unit else mapped
        self.trust = Trust.learnt(mapped, fitted, 0.9, is_unit=is_unit)

    def judged(self, scores: Iterator[np.ndarray]) -> dict[str, np.ndarray]:
        """Return the measures of all queries, by the scores of each search."""
        parts = [
            search.judged(self.k, of_search)
            for search, of_search in zip(self.searches, scores, strict=True)
        ]
        return {name: np.concatenate([part[name] for part in parts]) for name in MEASURES}

    def scores_among(self, documents: np.ndarray, *, is_old: bool) -> Iterator[np.ndarray]:
        """Yield for each search the cosines of its queries with some vectors of the documents."""
        if self.queries is not None:
            yield cosines(self.queries.old if is_old else self.queries.new, documents)
            return
        vectors = self.pairs.old if is_old else self.pairs.new
        for hidden in self.folds:
            yield cosines(vectors[hidden], documents[hidden])

    def options(self) -> dict[str, dict[str, np.ndarray]]:
        """Return the measures of staying, translating documents, and re-embedding everything."""
        ways = {STAY: (self.pairs.old, True), DOCUMENTS: (self.mapped, False)}
        ways[EVERYTHING] = (self.pairs.new, False)
        return {
            name: self.judged(self.scores_among(documents, is_old=is_old))
            for name, (documents, is_old) in ways.items()
        }

    def agreed(self) -> float:
        """Return how much of what both models find is found in translated documents."""
        scores_of_ways = [
            self.scores_among(documents, is_old=is_old)
            for documents, is_old in (
                (self.pairs.old, True),
                (self.pairs.new, False),
                (self.mapped, False),
            )
        ]
        shared = [
            _share_kept(search, *scores, k=self.k)
            for search, *scores in zip(self.searches, *scores_of_ways, strict=True)
        ]
        shares = np.concatenate(shared)
        return float(shares[~np.isnan(shares)].mean()) if not np.isnan(shares).all() else np.nan

    def by_share(self, order: str, seed: int) -> dict[str, dict[str, np.ndarray]]:
        """Return the measures when the first shares of an order are re-embedded."""
        measures = {}
        first = self._order(order, seed)
        for share in SHARES:
            documents = self.mapped.copy()
            chosen = first[: round(share * len(first))]
            documents[chosen] = self.pairs.new[chosen]
            measures[share_name(share)] = self.judged(self.scores_among(documents, is_old=False))
        return measures

    def _order(self, order: str, seed: int) -> np.ndarray:
        n_documents = len(self.pairs)
        if order == "random":
            return np.random.default_rng(seed).permutation(n_documents)
        if order == "mahalanobis":
            signals = self.trust.surroundings.signals(self.pairs.old, self.raw)
            return np.argsort(-signals[:, 1], kind="stable")
        expected, _ = self.trust.of(self.pairs.old, self.raw)
        return np.argsort(expected, kind="stable")


def _share_kept(
    search: Search, of_old: np.ndarray, of_new: np.ndarray, of_mapped: np.ndarray, *, k: int
) -> np.ndarray:
    """Return the share of what both models find that is found in mapped documents; else NaN."""
    tops = [top_of(scores, k, search.own_places) for scores in (of_old, of_new, of_mapped)]
    shared = np.full(len(tops[0]), np.nan)
    for row, (old, new, mapped) in enumerate(zip(*tops, strict=True)):
        common = np.intersect1d(old, new)
        if common.size:
            shared[row] = np.isin(common, mapped).mean()
    return shared
