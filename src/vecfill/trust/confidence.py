"""An imputed row -> how far to trust it.

What can be seen of an imputed row without its truth (do its contributors agree, how many are
there, how well do its neighbours explain it ...) predicts how near the truth it lies. The relation
is learnt on known rows that were hidden, where the truth can be looked up. *Confidence* is the
centred cosine to expect. The *lower bound* is a split-conformal one of the same quantity: at level
0.9 the centred cosine is at least that in nine of ten cases, as long as unknown entities are like
the known ones that were hidden.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape

import numpy as np

from vecfill._english import count, percent
from vecfill._html import html_bars, html_table
from vecfill.trust.hidden import Hidden

ENOUGH_HIDDEN = 2000

FEWEST_HIDDEN = 20

MEASURES = ("centred_cosine", "cosine")
"""Quantities that have a bound."""

FEW_UNKNOWN = 10
"""Unknown rows of which one still believes half of what raises their mean: it may be chance."""


@dataclass(frozen=True, repr=False, eq=False)
class Confidence:
    """How far to trust each imputed row, and how that was learnt."""

    values: np.ndarray
    """(n_imputed,) centred cosine to expect, from 0 to 1."""
    lower_bound: np.ndarray
    """(n_imputed,) centred cosine that is reached in a share `level` of cases."""
    plain_lower_bound: np.ndarray
    """(n_imputed,) the same for the plain cosine."""
    level: float
    expected: np.ndarray
    """(n_hidden,) expectation for hidden known rows, learnt without their fold."""
    actual: np.ndarray
    """(n_hidden,) their true centred cosine."""
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


def _margin(shortfall: np.ndarray, level: float) -> float:
    """Return the conformal quantile of how far truths fall short of expectations."""
    place = int(np.ceil((shortfall.size + 1) * level))
    return float(np.sort(shortfall)[place - 1]) if place <= shortfall.size else np.inf


def learn_confidence(
    hidden: Hidden, unknown_signals: np.ndarray, *, level: float = 0.9, proof: str = "random"
) -> Confidence | None:
    """Return the confidence of unknown rows, learnt on hidden ones; ``None`` if they are too few.

    Examples
    --------
    >>> from vecfill.model.known import KnownRows
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.model.space import Space
    >>> from vecfill.trust.folds import hidden_folds
    >>> from vecfill.trust.hidden import hide_and_impute
    >>> from vecfill.trust.signals import signals
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
    centred, plain = (_Bounded(hidden, measure, level) for measure in MEASURES)
    values, lower_bound = centred.of(unknown_signals)
    return Confidence(
        np.clip(values, 0.0, 1.0),
        lower_bound,
        plain.of(unknown_signals)[1],
        level,
        np.clip(centred.expected, 0.0, 1.0),
        hidden.carried.centred_cosine,
        centred.is_covered,
        proof,
    )


def excess_of(hidden: Hidden, unknown_signals: np.ndarray) -> tuple[float, float]:
    """Return by how much signals alone would make unknown rows better than a hidden block.

    Signals tell good rows from bad ones among rows that were imputed alike. But a block is imputed
    from fewer known rows than the unknown ones are, and that alone moves signals: more rows agree,
    or are nearer. Nothing says that rarer rows are better for it, so what signals say about the
    unknown rows as a whole may lower their confidence, but not raise it. Of a few unknown rows a
    part is believed, since they may be better by chance.
    """
    n_unknown = len(unknown_signals)
    if hidden.rows.size < FEWEST_HIDDEN or not n_unknown:
        return 0.0, 0.0
    ranks, seen = (_ranks(each, hidden.signals) for each in (hidden.signals, unknown_signals))
    excess = []
    for measure in MEASURES:
        truth = hidden.carried.of(measure)
        raised = float(_Line.fitted(ranks, truth).at(seen).mean() - truth.mean())
        excess.append(max(raised, 0.0) * n_unknown / (n_unknown + FEW_UNKNOWN))
    return excess[0], excess[1]


class _Bounded:
    """Expectation and lower bound of one quantity, learnt on hidden rows."""

    def __init__(self, hidden: Hidden, measure: str, level: float) -> None:
        self.reference = hidden.signals
        self.excess = hidden.excess[MEASURES.index(measure)]
        ranks = _ranks(hidden.signals, hidden.signals)
        truth = hidden.carried.of(measure)
        self.expected = _cross_fitted(ranks, truth, hidden.fold)
        self.line = _Line.fitted(ranks, truth)
        shortfall = self.expected - truth
        self.margin = _margin(shortfall, level)
        if hidden.moved is not None:
            # All carried rows shrink alike, and real rare ones do not: they scatter more.
            as_found = hidden.scores.of(measure)
            shortfall_found = _cross_fitted(ranks, as_found, hidden.fold) - as_found
            self.margin = max(self.margin, _margin(shortfall_found, level))
        self.is_covered = np.empty(truth.size, np.bool_)
        for one in np.unique(hidden.fold):
            is_out = hidden.fold == one
            margin = _margin(shortfall[~is_out], level)
            self.is_covered[is_out] = truth[is_out] >= self.expected[is_out] - margin

    def of(self, signals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return expectation and lower bound of new rows."""
        if not len(signals):
            return np.empty(0), np.empty(0)
        values = self.line.at(_ranks(signals, self.reference)) - self.excess
        return values, np.clip(values - self.margin, -1.0, 1.0)


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
    >>> from vecfill.trust.folds import hidden_folds
    >>> from vecfill.trust.hidden import hide_and_impute
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
