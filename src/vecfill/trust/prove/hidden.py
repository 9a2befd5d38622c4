"""Known rows hidden and imputed again: what could be seen of them, and what was true."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vecfill._types import EmbeddingVectors
from vecfill.inputs.rarity import Rarity
from vecfill.machine.lengths import unit
from vecfill.model.fitted import Model
from vecfill.model.known import KnownRows
from vecfill.model.offset import Curve, OffsetRule, Offsets, without
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown, Wanted
from vecfill.trust.choose.decision import CLEAR, Decision, hidden_offsets
from vecfill.trust.choose.folds import Fold, judged_together
from vecfill.trust.choose.rareness import has_own
from vecfill.trust.choose.scores import RowScores, joined, score_rows
from vecfill.trust.prove.signals import signals

HIDDEN_TOL = 1e-6
"""Residual to which hidden rows are solved: their scores are shown with three digits."""

QUANTILES = np.linspace(0.0, 1.0, 11)
"""Of the rarities that hidden and unknown rows have, brought together."""


@dataclass(frozen=True, eq=False)
class Hidden:
    """Hidden known rows imputed again by one predictor: signals and scores."""

    rows: np.ndarray
    """Row numbers, in the order of the other arrays."""
    fold: np.ndarray
    """Which rows are judged together: those of one fold, or a part of a single one."""
    signals: np.ndarray
    scores: RowScores
    net: np.ndarray
    """Centred cosine net of the constant: from the offset of the row's rarity if it got one,
    otherwise from the mean of the seen rows. 0 is no better than that constant."""
    vectors: np.ndarray | None = None
    """(n_hidden, n_dims) as imputed, while they are needed."""
    moved: Cosines | None = None
    """The cosines that the rows would have where the unknown rows lie, if known."""
    excess: tuple[float, float] = (0.0, 0.0)
    """What not to believe of the signals of unknown rows, for centred and plain cosine: by how much
    they would make these rows better, on average, than the hidden ones."""

    def part(self, rows: np.ndarray) -> Hidden:
        """Return some of the rows, without vectors."""
        assert self.moved is None
        return replace(
            self,
            rows=self.rows[rows],
            fold=self.fold[rows],
            signals=self.signals[rows],
            scores=self.scores.rows(rows),
            net=self.net[rows],
            vectors=None,
        )

    def without_vectors(self) -> Hidden:
        """Return what is kept of them to learn from: everything but the vectors."""
        return replace(self, vectors=None)

    @property
    def as_found(self) -> Cosines:
        """The cosines that the rows have."""
        return Cosines(self.net, self.scores.cosine)

    @property
    def carried(self) -> Cosines:
        """The cosines that teach confidence."""
        return self.as_found if self.moved is None else self.moved


@dataclass(frozen=True, eq=False)
class Cosines:
    """What confidence is about, a value for each row."""

    net: np.ndarray
    """Centred cosine net of the constant."""
    cosine: np.ndarray
    """Plain cosine."""


@dataclass(frozen=True, eq=False)
class Region:
    """Where the unknown rows are taken to lie, compared with hidden known ones."""

    curve: Curve
    """Mean and spread of vectors by rarity."""
    middle: np.ndarray
    """Mean of what the offsets leave of the known vectors: where steps start beside an offset."""
    offset: np.ndarray | None
    """What the unknown rows have got for their rarity; ``None`` if each has got its own."""
    length: float
    """Root mean square length of the steps of unknown rows from there."""
    hidden: np.ndarray
    """Rarities of hidden rows, ascending: the ends, or quantiles."""
    unknown: np.ndarray
    """Rarities that the unknown rows are taken to have in their place."""

    def carried(self, rarity: np.ndarray) -> np.ndarray:
        """Return rarities of hidden rows as they would be among the unknown ones."""
        return np.interp(rarity, self.hidden, self.unknown)


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked for while some rows are hidden: rows, and which hidden one each is.

    The hidden rows as they are, or rows that are made from them.
    """

    wanted: Wanted
    of_hidden: np.ndarray
    """(n_wanted,) the hidden row of each, as a place among those of the fold."""

    @classmethod
    def as_they_are(cls, fold: Fold) -> Asked:
        """Return the hidden rows themselves."""
        return cls(Unknown(fold.places), np.arange(fold.hidden.size))


def hide_and_impute(
    space: Space,
    embedding: EmbeddingVectors,
    known: np.ndarray,
    predictor: Predictor,
    folds: Iterable[Fold],
    *,
    rule: OffsetRule | None = None,
    as_rare: bool = True,
    rarity: np.ndarray | None = None,
    region: Region | None = None,
    factor: float = 1.0,
    asked: Callable[[Fold], Asked] | None = None,
) -> Hidden:
    """Return the rows of some folds, hidden and imputed again, with what can be seen of them.

    `known` are the vectors of all known rows, among which the truth is ranked. With a `rule`, rows
    get the offset of rare entities, or the usual one if they are not imputed `as_rare`. `region` is
    where the unknown rows are taken to lie; it matters only with an offset. Steps from the mean are
    stretched by the `factor`. With `asked`, rows that are made from the hidden ones are imputed in
    their place, as rows that came later are.

    Examples
    --------
    >>> from vecfill.model.predictors import PAPER
    >>> from vecfill.trust.choose.folds import hidden_folds
    >>> domain = np.random.default_rng(0).normal(size=(40, 3))
    >>> folds = hidden_folds(np.ones(40, bool), n_folds=5, seed=0)
    >>> len(hide_and_impute(Space(domain), domain, domain, PAPER, folds).rows)
    40
    """
    folds = list(folds)
    hidings = [as_seen(embedding, fold, rule, rarity, as_rare=as_rare) for fold in folds]
    requests = [(asked or Asked.as_they_are)(fold) for fold in folds]
    if asked is None:
        in_folds = [(known_rows, fold.places) for known_rows, _, fold in hidings]
        by_fold = type(predictor).predict_folds([predictor], space, in_folds, tol=HIDDEN_TOL)
        predicted = [prediction for (prediction,) in by_fold]
    else:
        predicted = [
            predictor.predict(space, known_rows, request.wanted, tol=HIDDEN_TOL)
            for (known_rows, _, _), request in zip(hidings, requests, strict=True)
        ]
    signal_parts, scores, net, carried, imputed = [], [], [], [], []
    for (seen_rows, curve, fold), request, prediction in zip(
        hidings, requests, predicted, strict=True
    ):
        of_hidden = request.of_hidden
        places, truth_places = fold.places[of_hidden], fold.truth[of_hidden]
        mix = prediction.composition.mix
        offsets = None if curve is None else curve.completed(mix, places)
        centre = embedding[fold.is_seen].mean(axis=0, dtype=np.float64)
        start = seen_rows.known.mean(axis=0, dtype=np.float64)
        # 64 bits from here on: the mean and the offset are large beside a step.
        steps = factor * (prediction.vectors.astype(np.float64) - start)
        if offsets is not None:
            start = start + offsets.unknown[places]
        vectors, truth = start + steps, known[truth_places].astype(np.float64)
        signal_parts.append(signals(seen_rows, prediction, request.wanted))
        scores.append(score_rows(vectors, truth_places, known, centre, n_jobs=space.n_jobs))
        net.append(cosines(steps, truth - start))
        imputed.append(vectors)
        if region is not None and offsets is not None:
            assert rarity is not None
            carried.append(_carried(steps, truth, rarity[fold.hidden[of_hidden]], region))
    in_order = list(zip(folds, requests, strict=True))
    rows = np.concatenate([fold.hidden[request.of_hidden] for fold, request in in_order])
    moved_cosines = None
    if carried:
        moved_cosines = Cosines(*(np.concatenate(column) for column in zip(*carried, strict=True)))
    return Hidden(
        rows,
        _judged_with(folds, requests),
        np.vstack(signal_parts),
        joined(scores),
        np.concatenate(net),
        np.vstack(imputed),
        moved_cosines,
    )


def _judged_with(folds: Sequence[Fold], requests: Sequence[Asked]) -> np.ndarray:
    """Return the group of each row that is asked for: that of its hidden row."""
    groups = np.split(judged_together(folds), np.cumsum([fold.hidden.size for fold in folds])[:-1])
    pairs = zip(groups, requests, strict=True)
    return np.concatenate([group[request.of_hidden] for group, request in pairs])


def drift_of(hidden: Hidden, rarity: np.ndarray, farther: float) -> tuple[float, float]:
    """Return by how much rows that are `farther` beyond a hidden block come back worse than it.

    Within the block, the rarest rows come back worst, and unknown rows are rarer still. So the line
    through the block's cosines, centred and plain, is followed as far as it is clear: less
    `CLEAR` standard errors, and never upwards. What a region already takes off counts.

    `rarity` is that of the hidden rows.
    """
    steps = rarity - rarity.mean()
    squares = float(steps @ steps)
    if rarity.size < 3 or not squares > 0 or not farther > 0:
        return 0.0, 0.0
    drifts = []
    for measure in ("net", "cosine"):
        cosine, carried = getattr(hidden.as_found, measure), getattr(hidden.carried, measure)
        slope = float(steps @ cosine) / squares
        residuals = cosine - cosine.mean() - slope * steps
        error = float(np.sqrt(residuals @ residuals / (rarity.size - 2) / squares))
        drop = (-slope - CLEAR * error) * farther - float(cosine.mean() - carried.mean())
        drifts.append(max(drop, 0.0))
    return drifts[0], drifts[1]


def as_seen(
    embedding: EmbeddingVectors,
    fold: Fold,
    rule: OffsetRule | None,
    rarity: np.ndarray | None,
    *,
    as_rare: bool,
) -> tuple[KnownRows, Offsets | None, Fold]:
    """Return the known rows that a fold shows, less the offset of rarity if there is one."""
    known_rows = KnownRows(embedding, fold.is_seen)
    if rule is None:
        return known_rows, None, fold
    assert rarity is not None
    offsets = hidden_offsets(rule, rarity, known_rows, fold, as_rare=as_rare)
    return without(embedding, fold.is_seen, offsets), offsets, fold


def _carried(
    steps: np.ndarray, truth: np.ndarray, rarity: np.ndarray, region: Region
) -> tuple[np.ndarray, np.ndarray]:
    """Return the cosines, net and plain, that hidden rows would have where the unknown rows lie.

    Rare vectors lie elsewhere than frequent ones, and nearer to each other. So a hidden row whose
    truth is rarer still would have another cosine, and its truth is moved and shrunk as vectors of
    the embedding are from its rarity to the other.
    """
    curve, farther = region.curve, region.carried(rarity)
    shrink = curve.spread_at(farther) / curve.spread_at(rarity)
    moved_truth = curve.at(farther) + shrink[:, None] * (truth - curve.at(rarity))
    # Steps of the block are not as long as those of unknown rows: more rows are seen there. From
    # the offset a length changes no cosine, but from zero it does.
    length = float(np.sqrt((steps**2).sum(axis=1).mean()))
    steps = (region.length / length if length > 0 else 1.0) * steps
    start = region.middle + (curve.at(farther) if region.offset is None else region.offset)
    return cosines(steps, moved_truth - start), cosines(start + steps, moved_truth)


def cosines(vectors: np.ndarray, other_vectors: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows; 0 if one of them is zero."""
    return np.einsum("ij,ij->i", unit(vectors), unit(other_vectors))


def reaches(
    rarity: Rarity, is_known: np.ndarray, is_unknown: np.ndarray, block: Fold
) -> tuple[np.ndarray, np.ndarray]:
    """Return what rarities the hidden and the unknown rows are taken to have: ends, or quantiles.

    With counts, unknown rows have rarities of their own. Without, they begin where the known rows
    end, span as much as the hidden ones, and cannot be rarer than the last word.
    """
    of_unknown = rarity.values[is_unknown]
    if has_own(rarity.values, is_known):
        of_unknown = np.where(np.isnan(of_unknown), rarity.values[is_known].max(), of_unknown)
        of_hidden = np.quantile(rarity.values[block.hidden], QUANTILES)
        return of_hidden, np.quantile(of_unknown, QUANTILES)
    # Names that are missing for another reason may be as rare as any that is hidden.
    low = float(rarity.values[rarity.may_be_rare(block.is_seen)].max())
    high = float(rarity.values[rarity.may_be_rare(is_known)].max())
    last = 2.0 * high - low
    if rarity.vocabulary is not None:
        last = max(high, min(last, float(rarity.vocabulary.rarity[-1])))
    return np.array([low, high]), np.array([high, last])


def region_of(
    model: Model, decision: Decision, of_hidden: np.ndarray, of_unknown: np.ndarray
) -> Region | None:
    """Return where the unknown rows are taken to lie, as far as the whole vocabulary tells it.

    A curve through known rows says nothing reliable about rows that are rarer than all of them.
    """
    rule, offsets = decision.rule, model.offsets
    if rule is None or rule.curve is None or offsets is None or not offsets.is_rare.any():
        return None
    rows, is_rare = model.as_predicted(), offsets.is_rare
    middle = rows.known.mean(axis=0, dtype=np.float64)
    steps = decision.stretch.rare * (rows.embedding[rows.unknown][is_rare] - middle)
    return Region(
        curve=rule.curve,
        middle=middle,
        offset=None if rule.uses_own else offsets.unknown[is_rare][0],
        length=float(np.sqrt((steps**2).sum(axis=1).mean())),
        hidden=of_hidden,
        unknown=of_unknown,
    )
