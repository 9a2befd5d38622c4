"""An imputed row -> how far to trust it.

What can be seen of an imputed row without its truth (do its contributors agree, how many are
there, how well do its neighbours explain it ...) predicts how near the truth it lies. The relation
is learnt on known rows that were hidden, where the truth can be looked up. *Confidence* is the
centred cosine to expect, net of the constant: 0 is no better than the best vector that is the same
for all, which is the mean of the known ones, or the offset of rare entities where that is given.
The *lower bound* is a split-conformal one of the same quantity: at level 0.9 the cosine is at least
that in nine of ten cases, as long as unknown entities are like the known ones that were hidden.

Kinds of entities differ, so expectation and margin are learnt for each kind of which enough were
hidden. A kind that cannot be proved gets the expectation of the worst one that can, and a bound
that no signal raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from vecfill.trust.prove.hidden import Hidden
from vecfill.wording import count, html_bars, html_table, percent

ENOUGH_HIDDEN = 2000

FEWEST_HIDDEN = 20

MEASURES = ("net", "cosine")
"""Quantities that have a bound: centred cosine net of the constant, and plain cosine."""

FEWEST_PROVED = 30
"""Hidden rows of a kind below which its score proves nothing."""

SHRINK_KIND = 10.0
"""Rows' worth of belief that a kind is like the others. A guess: a third of `FEWEST_PROVED`."""

FEW_UNKNOWN = 10
"""Unknown rows of which one still believes half of what raises their mean: it may be chance."""


@dataclass(frozen=True, repr=False, eq=False)
class Confidence:
    """How far to trust each imputed row, and how that was learnt."""

    values: np.ndarray
    """(n_imputed,) centred cosine to expect, net of the constant, from 0 to 1."""
    lower_bound: np.ndarray
    """(n_imputed,) what that cosine reaches in a share `level` of cases."""
    plain_lower_bound: np.ndarray
    """(n_imputed,) the same for the plain cosine."""
    level: float
    expected: np.ndarray
    """(n_hidden,) expectation for hidden known rows, learnt without their fold."""
    actual: np.ndarray
    """(n_hidden,) their true centred cosine, net of the constant."""
    is_covered: np.ndarray
    """(n_hidden,) whether it was at least the bound, measured fold against fold."""
    proof: str = "random"
    """Which known rows were hidden: ``"random"`` ones, or the ``"rarest"`` as one block."""

    @property
    def coverage(self) -> float:
        """Share of hidden rows whose centred cosine was at least their bound."""
        return float(self.is_covered.mean())

    def rows(self, rows: np.ndarray) -> Confidence:
        """Return the confidence of some of the imputed rows."""
        return replace(
            self,
            values=self.values[rows],
            lower_bound=self.lower_bound[rows],
            plain_lower_bound=self.plain_lower_bound[rows],
        )

    def lowered_to(self, other: Confidence | None) -> Confidence:
        """Return the same with bounds that are nowhere above those of another proof."""
        if other is None:
            return self
        return replace(
            self,
            lower_bound=np.minimum(self.lower_bound, other.lower_bound),
            plain_lower_bound=np.minimum(self.plain_lower_bound, other.plain_lower_bound),
        )

    def cautious(self, rows: np.ndarray) -> Confidence:
        """Return bounds that no signal raises, for rows about which nothing is proved.

        Their bound is at most what a share `level` of all hidden rows reached.
        """
        if not rows.any():
            return self
        floor = _reached(self.actual, self.level)
        bound = np.where(rows, np.minimum(self.lower_bound, floor), self.lower_bound)
        return replace(self, lower_bound=bound)

    def curve(self, n_points: int = 20) -> list[dict[str, float]]:
        """Return what is kept and how good it is, threshold by threshold, on hidden rows.

        Each point has the share of rows whose expectation is at least the threshold, and their mean
        true centred cosine: choose a threshold and pass it as
        `min_confidence`.
        """
        order = np.argsort(-self.expected, kind="stable")
        points = []
        for share in np.linspace(1.0 / n_points, 1.0, n_points):
            kept = order[: max(1, round(share * order.size))]
            points.append(
                {
                    "threshold": float(self.expected[kept].min()),
                    "share": float(kept.size / order.size),
                    "centred_cosine": float(self.actual[kept].mean()),
                }
            )
        return points

    def __repr__(self) -> str:
        what = "the rarest known rows" if self.proof == "rarest" else "known rows"
        proof = (
            f"{percent(self.level)} bounds held for {percent(self.coverage, 1)} of "
            f"{self.actual.size:,} hidden rows, {what}"
        )
        if not self.values.size:
            return f"Confidence(nothing imputed; {proof})"
        low, middle, high = np.quantile(self.values, [0.25, 0.5, 0.75])
        return (
            f"Confidence({count(self.values.size, 'entity')}: median {middle:.2f}, half of them "
            f"{low:.2f} to {high:.2f}; {proof})"
        )

    def _repr_html_(self) -> str:
        counts, _ = np.histogram(self.values, bins=20, range=(0.0, 1.0))
        head = ["confidence at least", "share kept", "mean centred cosine"]
        rows = [
            [f"{each['threshold']:.2f}", percent(each["share"]), f"{each['centred_cosine']:.2f}"]
            for each in self.curve(5)
        ]
        return (
            f"<p>{escape(repr(self)[len('Confidence(') : -1])}</p>"
            + html_bars(counts.tolist(), 0, 1, "confidence of the imputed entities")
            + html_table(head, rows)
        )


def _ranks(values: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return where values stand among reference values, column by column, from 0 to 1."""
    out = np.empty(values.shape)
    for column in range(values.shape[1]):
        ordered = np.sort(reference[:, column])
        low = np.searchsorted(ordered, values[:, column], side="left")
        high = np.searchsorted(ordered, values[:, column], side="right")
        out[:, column] = (low + high) / (2.0 * ordered.size)
    return out


@dataclass(frozen=True)
class _Line:
    """A linear map from ranks of signals to what they let expect.

    Ridge regression on a handful of columns: a library that has it takes two seconds to load.
    """

    slopes: np.ndarray
    shift: float

    @classmethod
    def fitted(cls, ranks: np.ndarray, target: np.ndarray, *, alpha: float = 1.0) -> _Line:
        centre, mean = ranks.mean(axis=0), float(target.mean())
        steps = ranks - centre
        gram = steps.T @ steps + alpha * np.eye(ranks.shape[1])
        slopes = np.linalg.solve(gram, steps.T @ (target - mean))
        return cls(slopes, mean - float(centre @ slopes))

    def at(self, ranks: np.ndarray) -> np.ndarray:
        return ranks @ self.slopes + self.shift


def _cross_fitted(ranks: np.ndarray, target: np.ndarray, group: np.ndarray) -> np.ndarray:
    expected = np.empty(target.size)
    for one in np.unique(group):
        is_out = group == one
        expected[is_out] = _Line.fitted(ranks[~is_out], target[~is_out]).at(ranks[is_out])
    return expected


def _reached(values: np.ndarray, level: float) -> float:
    """Return what at least a share `level` of values like these reach."""
    place = max(0, int(np.floor((1.0 - level) * (values.size + 1))) - 1)
    return float(np.sort(values)[place])


def _margin(shortfall: np.ndarray, level: float, *, is_block: bool = False) -> float:
    """Return the conformal quantile of how far truths fall short of expectations.

    That of a block is taken one standard error higher: the offset and its length were chosen on
    the very rows, and few rows flatter most.
    """
    place = int(np.ceil((shortfall.size + 1) * level))
    if is_block and place <= shortfall.size:
        error = np.sqrt(level * (1.0 - level) / shortfall.size)
        place = min(int(np.ceil((shortfall.size + 1) * (level + error))), shortfall.size)
    return float(np.sort(shortfall)[place - 1]) if place <= shortfall.size else np.inf


Kinds = Sequence[np.ndarray]
"""Ways of sorting rows into kinds: for each, a label of every row, ``None`` if it has no kind."""


def learn_confidence(
    hidden: Hidden,
    unknown_signals: np.ndarray,
    *,
    level: float = 0.9,
    proof: str = "random",
    of_hidden: Kinds = (),
    of_unknown: Kinds = (),
) -> Confidence | None:
    """Return the confidence of unknown rows, learnt on hidden ones; ``None`` if they are too few.

    Kinds of rows are judged apart; `of_hidden` and `of_unknown` label both in the same ways.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.model.space import Space
    >>> from vecfill.trust.choose.folds import hidden_folds
    >>> from vecfill.trust.prove.hidden import hide_and_impute
    >>> from vecfill.trust.prove.signals import signals
    >>> domain = np.random.default_rng(0).normal(size=(60, 3))
    >>> space, given = Space(domain), KnownRows(domain, np.arange(60) < 50)
    >>> folds = hidden_folds(given.is_known, n_folds=5, seed=0)
    >>> hidden = hide_and_impute(space, domain, given.known, PAPER, folds)
    >>> seen = signals(given, PAPER.predict(space, given))
    >>> learn_confidence(hidden, seen).values.round(1)[:3]
    array([1., 1., 1.])
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return None
    net, plain = (
        _Bounded(hidden, measure, level, of_hidden, is_block=proof == "rarest")
        for measure in MEASURES
    )
    values, lower_bound = net.of(unknown_signals, of_unknown)
    return Confidence(
        np.clip(values, 0.0, 1.0),
        lower_bound,
        plain.of(unknown_signals, of_unknown)[1],
        level,
        np.clip(net.expected, 0.0, 1.0),
        hidden.carried.net,
        net.is_covered,
        proof,
    )


def put_together(parts: Sequence[tuple[np.ndarray, Confidence | None]]) -> Confidence | None:
    """Return one confidence of the rows of several parts, each with a mask of its rows.

    What hidden rows show is that of all parts together; the first part says which proof it is.
    """
    learnt = [(rows, part) for rows, part in parts if part is not None]
    if len(learnt) < len(parts):
        return None

    first = learnt[0][1]

    def placed(name: str) -> np.ndarray:
        values = np.empty(learnt[0][0].size)
        for rows, part in learnt:
            values[rows] = getattr(part, name)
        return values

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(part, name) for _, part in learnt])

    return Confidence(
        placed("values"),
        placed("lower_bound"),
        placed("plain_lower_bound"),
        first.level,
        joined("expected"),
        joined("actual"),
        joined("is_covered"),
        first.proof,
    )


def excess_of(
    hidden: Hidden, unknown_signals: np.ndarray, drift: tuple[float, float] = (0.0, 0.0)
) -> tuple[float, float]:
    """Return by how much signals alone would make unknown rows better than they are.

    Signals tell good rows from bad ones among rows that were imputed alike. But a block is imputed
    from fewer known rows than the unknown ones are, and that alone moves signals: more rows agree,
    or are nearer. Nothing says that rarer rows are better for it, so what signals say about the
    unknown rows as a whole may lower their confidence, but not raise it. Of a few unknown rows a
    part is believed, since they may be better by chance.

    By their `drift` they are worse than the block, and what signals say of that counts towards it.
    """
    n_unknown = len(unknown_signals)
    if hidden.rows.size < FEWEST_HIDDEN or not n_unknown:
        return 0.0, 0.0
    ranks, seen = (_ranks(each, hidden.signals) for each in (hidden.signals, unknown_signals))
    excess = []
    for measure, drop in zip(MEASURES, drift, strict=True):
        truth = getattr(hidden.carried, measure)
        raised = float(_Line.fitted(ranks, truth).at(seen).mean() - truth.mean())
        doubted = max(raised, 0.0) * n_unknown / (n_unknown + FEW_UNKNOWN)
        excess.append(doubted + max(drop + min(raised, 0.0), 0.0))
    return excess[0], excess[1]


class _Bounded:
    """Expectation and lower bound of one quantity, learnt on hidden rows, kind by kind."""

    def __init__(
        self, hidden: Hidden, measure: str, level: float, kinds: Kinds, *, is_block: bool
    ) -> None:
        self.reference = hidden.signals
        self.level = level
        self.is_block = is_block
        self.excess = hidden.excess[MEASURES.index(measure)]
        self.truth = getattr(hidden.carried, measure)
        ranks = _ranks(hidden.signals, hidden.signals)
        self.expected = _cross_fitted(ranks, self.truth, hidden.fold)
        self.line = _Line.fitted(ranks, self.truth)
        self.sorts = [_Sort(labels, self.truth.size) for labels in kinds]
        everyone = np.arange(self.truth.size)
        self.shifts = self._shifts_learnt_on(everyone)
        # All carried rows shrink alike, and real rare ones do not: they scatter more.
        self.scatter = 0.0
        if hidden.moved is not None:
            as_found = getattr(hidden.as_found, measure)
            shortfall = self._shortfall(everyone, self.shifts)
            found = _cross_fitted(ranks, as_found, hidden.fold) - as_found
            self.scatter = max(0.0, _margin(found, level) - _margin(shortfall, level))
        self.margins = self._margins_learnt_on(everyone, self.shifts)
        self.is_covered = np.empty(self.truth.size, np.bool_)
        self._cross_fit(hidden.fold)

    def _cross_fit(self, fold: np.ndarray) -> None:
        """Shift expectations, and see which bounds hold, by what the other folds teach."""
        plain = self.expected.copy()
        shifted = np.empty_like(plain)
        for one in np.unique(fold):
            rows, others = np.flatnonzero(fold == one), np.flatnonzero(fold != one)
            shifts = self._shifts_learnt_on(others)
            margins = self._margins_learnt_on(others, shifts)
            shifted[rows] = plain[rows] + self._total(shifts, rows)
            margin = self._widest(margins, rows)
            self.is_covered[rows] = self.truth[rows] >= shifted[rows] - margin
        self.expected = shifted

    def _shifts_learnt_on(self, rows: np.ndarray) -> list[dict[Any, float]]:
        """Return for each way of sorting by how much its kinds differ from what is expected."""
        left = self.truth - self.expected
        shifts = []
        for sort in self.sorts:
            learnt = {
                kind: float(left[those].sum()) / (those.size + SHRINK_KIND)
                for kind, those in sort.members(rows)
            }
            for kind, those in sort.members(rows):
                left[those] -= learnt[kind]
            shifts.append(learnt)
        return shifts

    def _shortfall(self, rows: np.ndarray, shifts: list[dict[Any, float]]) -> np.ndarray:
        return self.expected[rows] + self._total(shifts, rows) - self.truth[rows]

    def _margins_learnt_on(
        self, rows: np.ndarray, shifts: list[dict[Any, float]]
    ) -> tuple[float, list[dict[Any, float]]]:
        """Return the margin of all rows, and those of the kinds that are proved."""
        shortfall = np.full(self.truth.size, np.nan)
        shortfall[rows] = self._shortfall(rows, shifts)
        margin = _margin(shortfall[rows], self.level, is_block=self.is_block)
        of_kinds = []
        for sort in self.sorts:
            own = {
                kind: _margin(shortfall[those], self.level, is_block=self.is_block)
                for kind, those in sort.members(rows)
            }
            # Too few rows for so high a level: all rows have to do.
            of_kinds.append({kind: each for kind, each in own.items() if np.isfinite(each)})
        return margin, of_kinds

    def _total(self, shifts: list[dict[Any, float]], rows: np.ndarray) -> np.ndarray:
        labels = [sort.labels[rows] for sort in self.sorts]
        return _looked_up(shifts, labels, rows.size)

    def _widest(
        self, margins: tuple[float, list[dict[Any, float]]], rows: np.ndarray
    ) -> np.ndarray:
        labels = [sort.labels[rows] for sort in self.sorts]
        return _widest(*margins, labels, rows.size)

    def of(self, signals: np.ndarray, kinds: Kinds) -> tuple[np.ndarray, np.ndarray]:
        """Return expectation and lower bound of new rows."""
        if not len(signals):
            return np.empty(0), np.empty(0)
        values = self.line.at(_ranks(signals, self.reference)) - self.excess
        values += _looked_up(self.shifts, kinds, len(values))
        bound = values - _widest(*self.margins, kinds, len(values)) - self.scatter
        for sort, shifts, labels in zip(self.sorts, self.shifts, kinds, strict=True):
            is_unproved = sort.is_unproved(labels)
            if is_unproved.any():
                worst = min(shifts.values(), default=0.0)
                values[is_unproved] += min(worst, 0.0)
                floor = self._floor(sort, shifts)
                bound[is_unproved] = np.minimum(bound[is_unproved], floor)
        return values, np.clip(bound, -1.0, 1.0)

    def _floor(self, sort: _Sort, shifts: dict[Any, float]) -> float:
        """Return what a share `level` of the worst proved kind reached, whatever was seen."""
        reached = self.truth
        if shifts:
            worst = min(shifts, key=lambda kind: float(self.truth[sort.labels == kind].mean()))
            reached = self.truth[sort.labels == worst]
        return _reached(reached, self.level)


class _Sort:
    """One way of sorting hidden rows into kinds."""

    def __init__(self, labels: np.ndarray, n_rows: int) -> None:
        assert len(labels) == n_rows
        self.labels = labels
        kinds = [kind for kind in dict.fromkeys(labels.tolist()) if kind is not None]
        self.proved = [kind for kind in kinds if (labels == kind).sum() >= FEWEST_PROVED]

    def members(self, rows: np.ndarray) -> list[tuple[Any, np.ndarray]]:
        """Return those of some rows that are of each proved kind."""
        labels = self.labels[rows]
        members = [(kind, rows[labels == kind]) for kind in self.proved]
        return [(kind, those) for kind, those in members if those.size]

    def is_unproved(self, labels: np.ndarray) -> np.ndarray:
        """Tell which of some rows are of a kind about which nothing is proved."""
        return np.array([kind is not None and kind not in self.proved for kind in labels], np.bool_)


def _looked_up(tables: Sequence[Mapping[Any, float]], labels: Kinds, n_rows: int) -> np.ndarray:
    """Return the sum of what the tables have for the labels of each row."""
    total = np.zeros(n_rows)
    for table, kinds in zip(tables, labels, strict=True):
        total += np.array([table.get(kind, 0.0) for kind in kinds], np.float64)
    return total


def _widest(
    margin: float, tables: Sequence[Mapping[Any, float]], labels: Kinds, n_rows: int
) -> np.ndarray:
    """Return the widest margin of the kinds of each row; that of all rows if it has none."""
    widest = np.full(n_rows, -np.inf)
    for table, kinds in zip(tables, labels, strict=True):
        own = np.array([table.get(kind, -np.inf) for kind in kinds], np.float64)
        widest = np.maximum(widest, own)
    return np.where(np.isfinite(widest), widest, margin)


def expected_of(hidden: Hidden) -> np.ndarray:
    """Return the centred cosine to expect of each hidden row, learnt without its fold."""
    ranks = _ranks(hidden.signals, hidden.signals)
    return _cross_fitted(ranks, hidden.scores.centred_cosine, hidden.fold)


def suspicious_rows(hidden: Hidden, *, most: int = 50) -> np.ndarray:
    """Return places in `hidden` of known rows that their imputation contradicts, worst first.

    Such a row is expected to be imputed well, and yet its own vector points elsewhere: often a
    homonym, such as the verb "reading" for a town.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> domain = rng.normal(size=(60, 3))
    >>> embedding = domain.copy()
    >>> embedding[7] = -5 * domain[7]
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.model.space import Space
    >>> from vecfill.trust.choose.folds import hidden_folds
    >>> from vecfill.trust.prove.hidden import hide_and_impute
    >>> folds = hidden_folds(np.ones(60, bool), n_folds=5, seed=0)
    >>> hidden = hide_and_impute(Space(domain), embedding, embedding, PAPER, folds)
    >>> 7 in hidden.rows[suspicious_rows(hidden)]
    True
    """
    if hidden.rows.size < FEWEST_HIDDEN:
        return np.empty(0, np.int64)
    centred = hidden.scores.centred_cosine
    surprise = centred - expected_of(hidden)
    # Far below what rows like it reach: two robust deviations, and little likeness at all.
    middle = np.median(surprise)
    deviation = 1.4826 * np.median(np.abs(surprise - middle))
    is_odd = (surprise < middle - 2.0 * deviation) & (centred < 0.5 * np.median(centred))
    places = np.flatnonzero(is_odd)
    return places[np.argsort(surprise[places], kind="stable")][:most]
