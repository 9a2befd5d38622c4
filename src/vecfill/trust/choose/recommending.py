"""What imputed vectors are worth to a recommender: hidden entities, recommended by their vectors.

Users are solved from the vectors that are not hidden, as recommenders do, and their inner products
with imputed vectors order the hidden items. *NDCG at 20* and *recall at 20* are means over users,
*coverage* is the share of hidden items that are among the twenty of anybody. A mean over users is a
sum over items of what each adds to it, so all three are kept item by item, and everything that is
done to scores of rows (honest choice, bootstrap) is done to them. If the table describes users,
each hidden user is recommended items, and the other way round is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.errors import OptionError
from vecfill.inputs.interactions import Tastes, read_tastes
from vecfill.machine.blas import one_blas_thread
from vecfill.requests import Ask
from vecfill.trust.choose.folds import Fold, fold_of

N_SHOWN = 20
"""Items in a list of recommendations. The usual number in papers on cold start."""

MOST_OTHERS = 2000
"""Users whose lists are looked at. With 943 of them NDCG is known to .01; a guess."""

STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1)
"""Ridge of a user's vector that is tried, in units of the mean square of what the vectors span."""

ALPHAS = (1.0, 10.0)
"""How much more what was taken counts than what was not. Recommenders have 1 and 40 as defaults."""

N_PARTS = 5
"""Parts in which known rows are hidden to choose the ridge, and in which a race is run; a guess."""

ROUNDED = 9
"""Digits of a score, the largest of a list being 1, that count."""

FACTORS = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5, 2.0, 3.0)
"""Lengths of steps from the mean that are tried."""


class Recommend(str):
    """The goal of recommending: its name, and what was taken.

    Examples
    --------
    >>> tastes = Tastes(csr_array(np.eye(3)))
    >>> goal = Recommend.of(tastes)
    >>> goal == "recommend", tastes_of(goal) is tastes, tastes_of("rank")
    (True, True, None)
    """

    __slots__ = ("tastes",)
    tastes: Tastes

    @classmethod
    def of(cls, tastes: Tastes) -> Recommend:
        """Return the goal for these tastes."""
        goal = cls("recommend")
        goal.tastes = tastes
        return goal


def goal_of(ask: Ask, entities: Sequence[str], words: Mapping[str, str]) -> str:
    """Return the goal that was asked for, with what was taken if that is to recommend."""
    goal, source = ask.method.goal, ask.reading.interactions
    if goal != "recommend":
        if source is not None:
            raise OptionError(
                f"interactions= says what was taken, and goal={goal!r} does not look at that. Use "
                "goal='recommend', or leave interactions= out."
            )
        return goal
    return Recommend.of(tastes_for(source, entities, words))


def tastes_for(source: Any, entities: Sequence[str], words: Mapping[str, str]) -> Tastes:
    """Return what was taken of some entities, or refuse to recommend without knowing that."""
    if source is None:
        raise OptionError(
            "goal='recommend' needs to know who took what. Pass interactions=, a table with a "
            "column of users and one of items."
        )
    return read_tastes(source, entities, words)


def tastes_of(goal: str) -> Tastes | None:
    """Return what was taken, if the goal is to recommend."""
    return goal.tastes if isinstance(goal, Recommend) else None


def of_rows(goal: str, rows: np.ndarray) -> str:
    """Return the goal where only some rows are there, as in one of several sources."""
    tastes = tastes_of(goal)
    if tastes is None:
        return goal
    part = Tastes(
        csr_array(tastes.taken[:, rows]), tastes.is_rated, tastes.are_users, tastes.vectors
    )
    return Recommend.of(part)


class Setting(NamedTuple):
    """How vectors of users are solved."""

    strength: float
    alpha: float


@dataclass(frozen=True, eq=False)
class Panel:
    """Hidden rows, and those to whom they are recommended (or who recommend, if rows are users)."""

    vectors: np.ndarray
    """(n_others, n_dims)."""
    relevant: csr_array
    """(n_lists, n_shown_rows): each list of recommendations and what was liked among its items."""
    are_users: bool
    seen: np.ndarray
    """Known vectors that are not hidden, beside which items are ranked in a whole catalogue."""
    taken: csr_array
    """(n_others, n_seen) what was taken of those, and is not recommended again."""

    def gains(self, vectors: np.ndarray) -> np.ndarray:
        """Return what each hidden row adds to NDCG, recall and coverage, (n_rows, 3)."""
        return self.gains_of(self.vectors @ vectors.T)

    def gains_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the same for scores of (n_others, n_rows)."""
        if self.are_users:
            return _of_lists(scores.T, self.relevant)
        return _of_items(scores, self.relevant)

    def in_catalogue(self, vectors: np.ndarray) -> float:
        """Return NDCG where hidden items stand among all others, but for those that were taken."""
        if self.are_users:
            return float(self.gains(vectors)[:, 0].mean())
        scores = self.vectors @ np.vstack([vectors, self.seen]).T
        pairs = self.taken.tocoo()
        scores[pairs.row, pairs.col + len(vectors)] = -np.inf
        relevant = self.relevant.copy()
        relevant.resize(scores.shape)
        return float(_of_items(scores, relevant)[:, 0].sum() / scores.shape[1])


@dataclass(frozen=True, eq=False)
class Audience:
    """Panels for the hidden rows of some folds, one after the other."""

    panels: tuple[Panel, ...]
    sizes: tuple[int, ...]
    """Hidden rows of each."""

    @classmethod
    @one_blas_thread()
    def of(
        cls,
        tastes: Tastes,
        embedding: EmbeddingVectors,
        folds: Sequence[Fold],
    ) -> Audience:
        """Return who judges the hidden rows of some folds, knowing what each fold may see."""
        tastes = _fewer_others(tastes)
        setting = _setting(tastes, embedding, folds[0].is_seen) if folds else Setting(1e-2, 1.0)
        vectors = np.asarray(embedding, np.float64)
        panels = tuple(_panel(tastes, vectors, fold, setting) for fold in folds)
        return cls(panels, tuple(fold.hidden.size for fold in folds))

    @property
    def by_fold(self) -> list[Audience]:
        """The audience of each fold alone."""
        pairs = zip(self.panels, self.sizes, strict=True)
        return [Audience((panel,), (size,)) for panel, size in pairs]

    def gains(self, vectors: np.ndarray) -> np.ndarray:
        """Return what each row adds to each measure."""
        return np.vstack([panel.gains(part) for panel, part in self._parts(vectors)])

    def gains_of(self, scores: np.ndarray) -> np.ndarray:
        """Return the same if every user gives a row the same score."""
        parts = [
            # Of users the score of each item, for each of them; of items, one for all users.
            (panel, part.T if panel.are_users else np.tile(part, (len(panel.vectors), 1)))
            for panel, part in self._parts(scores)
        ]
        return np.vstack([panel.gains_of(part) for panel, part in parts])

    def stretch(self, starts: np.ndarray, steps: np.ndarray) -> float:
        """Return how long steps from the mean are best made for lists of a whole catalogue.

        Among new items alone their common length changes no order. Beside known ones it says how
        often a new item is shown.
        """
        values = [
            sum(size * panel.in_catalogue(part)
                for size, (panel, part) in zip(
                    self.sizes, self._parts(starts + factor * steps), strict=True))
            for factor in FACTORS
        ]  # fmt: skip
        return FACTORS[int(np.argmax(values))]

    @property
    def metric(self) -> np.ndarray:
        """(n_dims, n_dims) a matrix under which lengths of errors are errors of scores."""
        gram = np.mean([panel.vectors.T @ panel.vectors for panel in self.panels], axis=0)
        values, axes = np.linalg.eigh(gram)
        return axes * np.sqrt(np.maximum(values, 0.0))

    def _parts(self, rows: np.ndarray) -> list[tuple[Panel, np.ndarray]]:
        parts = np.split(rows, np.cumsum(self.sizes)[:-1])
        return list(zip(self.panels, parts, strict=True))


def audience_for(goal: str, embedding: EmbeddingVectors, folds: Sequence[Fold]) -> Audience | None:
    """Return who judges hidden rows if the goal is to recommend; otherwise nobody does."""
    tastes = tastes_of(goal)
    return None if tastes is None else Audience.of(tastes, embedding, folds)


def parts_of(is_known: KnownMask) -> list[Fold]:
    """Return folds that hide the known rows in turn, for what is left out one by one."""
    n_known = int(is_known.sum())
    n_parts = min(N_PARTS, n_known)
    places = np.random.default_rng(0).permutation(n_known)
    return [fold_of(is_known, np.sort(places[part::n_parts])) for part in range(n_parts)]


def _fewer_others(tastes: Tastes) -> Tastes:
    """Return tastes of so many users that their means say enough."""
    n_others = tastes.taken.shape[0]
    # Items that are recommended must all stay.
    if tastes.are_users or n_others <= MOST_OTHERS:
        return tastes
    rows = np.sort(np.random.default_rng(0).permutation(n_others)[:MOST_OTHERS])
    vectors = None if tastes.vectors is None else tastes.vectors[rows]
    return Tastes(csr_array(tastes.taken[rows]), tastes.is_rated, vectors=vectors)


def _setting(tastes: Tastes, embedding: EmbeddingVectors, is_seen: KnownMask) -> Setting:
    """Return how to solve users so that known vectors, when hidden from them, are recommended."""
    if tastes.vectors is not None:
        return Setting(0.0, 0.0)
    fold = parts_of(is_seen)[0]
    vectors = np.asarray(embedding, np.float64)
    settings = [Setting(strength, alpha) for strength in STRENGTHS for alpha in ALPHAS]
    values = []
    for setting in settings:
        panel = _panel(tastes, vectors, fold, setting)
        values.append(float(panel.gains(vectors[fold.hidden])[:, 0].mean()))
    return settings[int(np.argmax(values))]


def _panel(tastes: Tastes, vectors: np.ndarray, fold: Fold, setting: Setting) -> Panel:
    seen_rows = np.flatnonzero(fold.is_seen)
    seen_tastes = csr_array(tastes.taken[:, seen_rows])
    users = tastes.vectors
    if users is None:
        users = solved(seen_tastes, vectors[seen_rows], setting, is_rated=tastes.is_rated)
    relevant = csr_array(tastes.relevant[:, fold.hidden])
    if tastes.are_users:
        relevant = csr_array(relevant.T)
    return Panel(users, relevant, tastes.are_users, vectors[seen_rows], seen_tastes)


def solved(
    tastes: csr_array, vectors: np.ndarray, setting: Setting, *, is_rated: bool
) -> np.ndarray:
    """Return the vectors of users by ridge regression on what they took.

    All items count, and those taken more, as in alternating least squares for implicit feedback.
    Ratings are predicted from their own items alone.

    Examples
    --------
    >>> taken = csr_array(np.array([[1.0, 0.0], [0.0, 1.0]]))
    >>> solved(taken, np.eye(2), Setting(0.5, 1.0), is_rated=False).round(2)
    array([[0.8, 0. ],
           [0. , 0.8]])
    """
    n_dims = vectors.shape[1]
    gram = vectors.T @ vectors
    strength = setting.strength * float(np.trace(gram)) / n_dims * np.eye(n_dims)
    mean = float(tastes.data.mean()) if tastes.nnz else 0.0
    out = np.zeros((tastes.shape[0], n_dims))
    for row in range(tastes.shape[0]):
        places = slice(tastes.indptr[row], tastes.indptr[row + 1])
        of_items = vectors[tastes.indices[places]]
        if not len(of_items):
            continue
        if is_rated:
            share = len(of_items) / len(vectors)
            system = of_items.T @ of_items + share * strength
            target = of_items.T @ (tastes.data[places] - mean)
        else:
            system = gram + setting.alpha * (of_items.T @ of_items) + strength
            target = (1.0 + setting.alpha) * of_items.sum(axis=0)
        out[row] = np.linalg.solve(system + 1e-12 * np.trace(system) * np.eye(n_dims), target)
    return out


def _of_items(scores: np.ndarray, relevant: csr_array) -> np.ndarray:
    """Return gains of columns: what each item adds to the means over the lists, times all items."""
    n_items = scores.shape[1]
    list_of, item, added, hit, is_top = _looked_up(scores, relevant)
    n_lists = max(int((np.diff(relevant.indptr) > 0).sum()), 1)
    gains = np.zeros((n_items, 3))
    gains[:, 0] = np.bincount(item, added, minlength=n_items) * n_items / n_lists
    gains[:, 1] = np.bincount(item, hit, minlength=n_items) * n_items / n_lists
    gains[:, 2] = is_top[np.unique(list_of)].any(axis=0) if list_of.size else 0.0
    return gains


def _of_lists(scores: np.ndarray, relevant: csr_array) -> np.ndarray:
    """Return gains of rows: NDCG and recall of each list, and the share of items in any list."""
    n_rows = len(scores)
    list_of, _, added, hit, is_top = _looked_up(scores, relevant)
    n_lists = max(int((np.diff(relevant.indptr) > 0).sum()), 1)
    gains = np.zeros((n_rows, 3))
    gains[:, 0] = np.bincount(list_of, added, minlength=n_rows) * n_rows / n_lists
    gains[:, 1] = np.bincount(list_of, hit, minlength=n_rows) * n_rows / n_lists
    gains[:, 2] = is_top.any(axis=0).mean()
    return gains


def _looked_up(
    scores: np.ndarray, relevant: csr_array
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return list, item, gain and hit of each liked item, and which items are at the top of which.

    Ties count against the item, so one vector for everything is worth nothing.
    """
    # Products of equal vectors may differ in the last bit, and would not be ties.
    largest = np.abs(scores, where=np.isfinite(scores), out=np.zeros_like(scores)).max(axis=1)
    scores = np.round(scores / np.where(largest > 0, largest, 1.0)[:, None], ROUNDED)
    n_top = min(N_SHOWN, scores.shape[1])
    liked = relevant.tocoo()
    row, item = liked.coords
    top = -np.sort(-np.partition(scores, scores.shape[1] - n_top, axis=1)[:, -n_top:], axis=1)
    score = scores[row, item]
    rank = (top[row] >= score[:, None]).sum(axis=1)
    # What ties with the last at the top may tie with many below it.
    n_ahead = (scores >= top[:, -1:]).sum(axis=1)
    is_hit = (score > top[row, -1]) | ((score == top[row, -1]) & (n_ahead[row] <= n_top))
    discounts = 1.0 / np.log2(np.arange(2, N_SHOWN + 2))
    n_liked = np.diff(relevant.indptr)
    best = np.concatenate([[1.0], np.cumsum(discounts)])[np.minimum(n_liked, N_SHOWN)]
    added = np.where(is_hit, discounts[np.maximum(rank, 1) - 1], 0.0) / best[row]
    hit = is_hit / np.maximum(np.minimum(n_liked, N_SHOWN), 1)[row]
    is_top = (scores >= top[:, -1:]) & (n_ahead <= n_top)[:, None]
    is_top |= scores > top[:, -1:]
    return row, item, added, hit, is_top
