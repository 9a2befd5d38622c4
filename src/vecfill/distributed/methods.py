"""Which method is used, and how far to trust it: stages for one method, or for the best of a few.

Some known rows are hidden and imputed over the full graph, because on a sample of rows neighbours
are farther away and everything looks worse. One set of hidden rows serves the choice among
candidates and the confidence. How a prediction is put together, seen, scored and chosen is what
`vecfill.model` and `vecfill.trust` say; here are only the pieces that they are computed from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.distributed.alignment import Known, Sample
from vecfill.distributed.graph import Search, planned_search, searched, spanned
from vecfill.distributed.layout import Layout
from vecfill.distributed.partition import Partition, partitioned
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.preparing import PREPARATIONS, prepared
from vecfill.distributed.sampling import HasTwin, have_twins, known_by_chance, no_twins
from vecfill.distributed.solving import Solving, System, n_slabs, slab_piece, solved
from vecfill.distributed.tasks import Runner
from vecfill.distributed.trend import Trend, fitted_trend
from vecfill.distributed.weighing import weighed
from vecfill.errors import InputError
from vecfill.machine.lengths import row_lengths, unit
from vecfill.method.scaling import in_range_of
from vecfill.method.trend import MAX_RANK
from vecfill.model.predictors import PAPER, LatentSemantic
from vecfill.model.predictors.base import TOL
from vecfill.model.stretch import stretch_of
from vecfill.requests import Method
from vecfill.trust.choose.candidates import FIRST_RIDGE, with_trends
from vecfill.trust.choose.choice import ChanceOf, Choice, judged
from vecfill.trust.choose.dependence import permutation_p_value
from vecfill.trust.choose.folds import Fold, dealt_out, fold_of
from vecfill.trust.choose.scores import Judge
from vecfill.trust.choose.trials import pool_of
from vecfill.trust.prove.hidden import HIDDEN_TOL, Hidden
from vecfill.trust.prove.learning import ENOUGH_HIDDEN, FEWEST_HIDDEN, learn_confidence
from vecfill.trust.prove.signals import SPREAD_TOL, Seen, signals_of
from vecfill.wording import count

HIDDEN_SHARE = 5
"""One known row in so many is hidden, up to enough: as a fold of five in memory."""

FEWEST_KNOWN = HIDDEN_SHARE * FEWEST_HIDDEN
"""Known rows of which enough can be hidden to choose a method, or to teach confidence."""


def hidden_places(n_known: int, seed: int, has_twin: HasTwin = no_twins) -> np.ndarray:
    """Return which known rows are hidden, as places among them; none if there are too few.

    A row with a twin stays: its vector would be there to be copied.

    Examples
    --------
    >>> hidden_places(100, 0).size, hidden_places(90, 0).size, hidden_places(10**6, 0).size
    (20, 0, 2000)
    """
    n_hidden = min(ENOUGH_HIDDEN, n_known // HIDDEN_SHARE)
    if n_hidden < FEWEST_HIDDEN:
        return np.empty(0, np.int64)
    # As many again, to take the places of those that stay.
    order = np.random.default_rng(seed).permutation(n_known)[: 2 * n_hidden]
    places = order[~has_twin(order)][:n_hidden]
    return np.sort(places) if places.size >= FEWEST_HIDDEN else np.empty(0, np.int64)


def hide(runner: Runner, known: Known, seed: int) -> Fold:
    """Return the rows to hide; write which rows are seen in each variant, and which are mixed."""
    places = hidden_places(known.n_known, seed, lambda places: have_twins(runner, known, places))
    fold = fold_of(known.is_known(), places)
    is_seen = np.ones(known.n_known, np.bool_)
    write_array(known.layout.piece("known", "seen_final"), is_seen)
    is_seen[fold.truth] = False
    write_array(known.layout.piece("known", "seen_hidden"), is_seen)
    write_array(known.layout.piece("known", "wanted"), ~fold.is_seen)
    return fold


def sums(sample: Sample, block: int) -> np.ndarray:
    """Return the sum of the seen vectors of a block, and how many they are."""
    places, _ = sample.block(block)
    vectors = sample.known.vectors(block)[places].astype(np.float64)
    return np.append(vectors.sum(axis=0), len(places))


def lengths(sample: Sample, block: int) -> np.ndarray:
    """Return how far each known vector of a block lies from the centre."""
    centre = read_array(sample.piece("centre"))
    return row_lengths(sample.known.vectors(block).astype(np.float64) - centre)


def centred(runner: Runner, sample: Sample) -> None:
    """Write the mean of the seen vectors, and how far each known vector lies from it."""
    blocks, stage = range(len(sample.known.blocks)), f"centre {sample.variant}"
    pieces = [sample.piece("sums", block) for block in blocks]
    total = runner.total(runner.run_each(stage, "sums", sums, pieces, sample=sample))
    write_array(sample.piece("centre"), total[:-1] / total[-1])
    pieces = [sample.piece("lengths_of", block) for block in blocks]
    runner.run_each(stage, "lengths", lengths, pieces, sample=sample)
    write_array(sample.piece("lengths"), runner.joined(pieces))


@dataclass(frozen=True)
class SolvedRows:
    """Some rows that were solved: their vectors, and what can be seen of them.

    It is the mix of its own signals, since the equations say how rows are mixed.
    """

    system: System
    trend: Trend | None
    rows: np.ndarray
    """(n_rows, n_features) prepared, for a trend."""
    part: slice
    """Where they are among the rows whose columns were written."""
    places: np.ndarray
    """Their places among the rows that are not seen."""

    def _slabs(self, kind: str) -> list[np.ndarray]:
        slabs = range(n_slabs(self.system, kind))
        return [read_array(slab_piece(self.system, kind, slab))[self.part] for slab in slabs]

    def vectors(self, predictor: LatentSemantic) -> np.ndarray:
        """Return the vectors that a predictor gives."""
        if predictor.residual_share is None:
            return np.hstack(self._slabs("values"))
        assert self.trend is not None
        residuals = np.hstack(self._slabs("residuals")) if predictor.residual_share else None
        vectors = predictor.put_on(self.trend.values(self.rows), residuals)
        return in_range_of(np.dtype(self.system.known.dtype), vectors)

    def signals(self, vectors: np.ndarray) -> np.ndarray:
        """Return every signal of the rows, whose vectors are these."""
        trend, rows = self.trend, self.rows
        visible = Seen(
            vectors,
            read_array(self.system.sample.piece("centre")),
            self,
            None if trend is None else lambda part: trend.values(rows[part]),
            *(np.sum(self._slabs(kind), axis=0) for kind in ("directions", "probes")),
        )
        return signals_of(visible)

    def straight(self) -> np.ndarray:
        """Return how much of each row's weight rests on known rows directly."""
        return self.system.signals()[self.places, 0]

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each row."""
        return self.system.signals()[self.places, 1]

    def misfit(self) -> np.ndarray:
        """Return how badly its neighbors explain each row in the domain."""
        return self.system.signals()[self.places, 2]


@dataclass(frozen=True)
class HiddenRows:
    """The hidden rows: what they were, and among which vectors their truth is ranked."""

    sample: Sample
    fold: Fold

    def judge(self) -> tuple[Judge, np.ndarray]:
        """Return known vectors against which predictions are scored, and the places of truths."""
        known = self.sample.known
        pool = pool_of(self.fold.truth, known.n_known)
        judge = Judge(known.some_vectors(pool), read_array(self.sample.piece("centre")))
        return judge, np.searchsorted(pool, self.fold.truth)

    def solved(self, system: System, trend: Trend | None) -> SolvedRows:
        """Return these rows as a system has solved them, and no others."""
        rows = system.partition.view.some_rows(self.fold.hidden)
        return SolvedRows(system, trend, rows, slice(0, self.fold.hidden.size), self.fold.places)

    def scored(self, solved: SolvedRows, predictor: LatentSemantic) -> Hidden:
        """Return signals and scores of the hidden rows, for the confidence."""
        vectors = solved.vectors(predictor)
        judge, truth = self.judge()
        scores = judge.scored(vectors, truth)
        signals, group = solved.signals(vectors), dealt_out(truth.size)
        return Hidden(self.fold.hidden, group, signals, scores, scores.centred_cosine)


def chosen(
    judge: Judge,
    truth: np.ndarray,
    predictions: Mapping[LatentSemantic, np.ndarray],
    goal: str,
    p_value: ChanceOf = permutation_p_value,
) -> Choice:
    """Return the candidate whose predictions of hidden rows are best, as the judge sees them.

    `truth` says which of the judge's known vectors are true, and `p_value` how likely chance is.
    """
    steps = {predictor: vectors - judge.centre for predictor, vectors in predictions.items()}
    true_vectors = judge.known[truth]
    return judged(
        list(predictions),
        [judge.scored(vectors, truth) for vectors in predictions.values()],
        [unit(step) for step in steps.values()],
        unit(true_vectors - judge.centre),
        dealt_out(truth.size),
        lambda predictor: stretch_of(judge.centre, steps[predictor], true_vectors),
        goal,
        p_value,
    )


AUTO_PREPARATIONS = ("as_given", "standardized", "unit_rows")
"""Preparations that `auto` compares; each costs a search for neighbours of its own."""

AUTO_DEGREE = 8
"""The degree that `auto` begins with in memory; others would cost another tree."""

MIX_SIGNALS = {"directions": SPREAD_TOL, "probes": SPREAD_TOL}
"""What is solved so that rows can be told by how they are mixed."""


Request = tuple[Sample, dict[str, float], np.ndarray | None]
"""Which rows may be seen, what to solve besides what predictors need, and the rows wanted."""


@dataclass(frozen=True)
class Chosen:
    """The method used, and the columns it has solved."""

    predictor: LatentSemantic
    system: System
    trend: Trend | None
    hidden: Hidden | None
    coverage: float | None
    choice: Choice | None
    recall: float

    @property
    def stretch(self) -> float:
        """By what steps from the mean of the known vectors are multiplied."""
        return 1.0 if self.choice is None else self.choice.stretch


def checked_method(how: Method) -> LatentSemantic | None:
    """Return the predictor that was asked for, ``None`` if one is to be chosen; or refuse it."""
    if how.setting():
        predictor = LatentSemantic(**how.setting())
    elif how.method in (None, "auto"):
        return None
    elif how.method == "paper":
        predictor = PAPER
    elif isinstance(how.method, LatentSemantic):
        predictor = how.method
    else:
        raise InputError(
            f"method={how.method!r} cannot be used on datasets. Use 'auto', 'paper' or a "
            "LatentSemantic(...)."
        )
    if predictor.preparation not in PREPARATIONS:
        raise InputError(
            f"preparation={predictor.preparation!r} needs whole columns in memory. Use one of "
            f"{', '.join(PREPARATIONS)}."
        )
    if predictor.solver != "direct":
        raise InputError("solver='power' is not built for datasets. Use the direct solver.")
    return predictor


@dataclass(frozen=True)
class Ground:
    """What all candidates stand on."""

    runner: Runner
    layout: Layout
    known: Known
    recall: float | None
    memory: int

    def graph(self, preparation: str, min_degree: int) -> tuple[Partition, Search]:
        """Return the rows under a preparation, with their neighbours and their tree."""
        runner = self.runner
        partition = partitioned(runner, prepared(runner, self.layout, preparation))
        search = planned_search(runner, partition, min_degree, self.recall)
        searched(runner, partition, search)
        spanned(runner, partition)
        return partition, search

    def solved(
        self,
        predictors: list[LatentSemantic],
        partition: Partition,
        requests: Sequence[Request],
    ) -> list[Solving]:
        """Return the equations of predictors that differ in their share, and their trend, solved.

        All samples are solved side by side, and the first decides how.
        """
        runner, shares = self.runner, [predictor.residual_share for predictor in predictors]
        key = predictors[0].weights_key
        weighed(runner, partition, key)
        has_trend, leader = shares != [None], System(partition, requests[0][0], key)
        solvings = []
        for sample, kinds, only in requests:
            trend = fitted_trend(runner, partition.view, sample) if has_trend else None
            tol = TOL if sample.variant == "final" else HIDDEN_TOL
            vectors = {"values": tol} if None in shares else {}
            if any(shares):
                vectors["residuals"] = tol
            system = System(partition, sample, key)
            solvings.append(Solving(system, leader, trend, {**vectors, **kinds}, only))
        solved(runner, solvings, self.memory)
        return solvings


def choose_method(
    ground: Ground, how: Method, predictor: LatentSemantic | None, level: float
) -> Chosen:
    """Return the method asked for, or the one that imputes hidden rows best, and what it solved."""
    runner, known = ground.runner, ground.known
    fold = hide(runner, known, how.seed)
    final, sample = Sample(known, "final"), Sample(known, "hidden")
    has_hidden = bool(fold.hidden.size)
    if predictor is None and not has_hidden:
        raise InputError(
            f"Only {count(known.n_known, 'entity is', 'entities are')} known, too few to choose a "
            "method by hiding some: "
            f"{FEWEST_KNOWN} are needed. Use method='paper', or give a setting."
        )
    centred(runner, final)
    if has_hidden:
        centred(runner, sample)
    hidden_rows, choice = HiddenRows(sample, fold), None
    graphs: dict[str, tuple[Partition, Search]] = {}
    if predictor is None:
        p_value = known_by_chance(runner, known, AUTO_PREPARATIONS)
        choice = _compared(ground, hidden_rows, graphs, how.goal, p_value)
        assert isinstance(choice.predictor, LatentSemantic)
        predictor = choice.predictor
    if predictor.preparation not in graphs:
        graphs[predictor.preparation] = ground.graph(predictor.preparation, predictor.min_degree)
    partition, search = graphs[predictor.preparation]
    requests: list[Request] = [(final, {}, None)]
    if has_hidden:
        requests = [(sample, MIX_SIGNALS, fold.places), (final, MIX_SIGNALS, None)]
    *of_hidden, of_unknown = ground.solved([predictor], partition, requests)
    hidden = coverage = None
    for solving in of_hidden:
        solved_rows = hidden_rows.solved(solving.system, solving.trend)
        hidden = hidden_rows.scored(solved_rows, predictor)
        confidence = learn_confidence(hidden, hidden.signals, level=level)
        coverage = None if confidence is None else confidence.coverage
    system, trend = of_unknown.system, of_unknown.trend
    return Chosen(predictor, system, trend, hidden, coverage, choice, search.recall)


def _compared(
    ground: Ground,
    hidden: HiddenRows,
    graphs: dict[str, tuple[Partition, Search]],
    goal: str,
    p_value: ChanceOf,
) -> Choice:
    """Return the candidate that does best on the hidden rows."""
    predictions: dict[LatentSemantic, np.ndarray] = {}
    for preparation in AUTO_PREPARATIONS:
        graphs[preparation] = ground.graph(preparation, AUTO_DEGREE)
        plain = LatentSemantic(preparation, AUTO_DEGREE, FIRST_RIDGE)
        is_wide = ground.layout.n_features > MAX_RANK
        kin = [plain] if is_wide else with_trends(plain, alone=True)
        request: Request = (hidden.sample, {}, hidden.fold.places)
        (solving,) = ground.solved(kin, graphs[preparation][0], [request])
        rows = hidden.solved(solving.system, solving.trend)
        predictions |= {predictor: rows.vectors(predictor) for predictor in kin}
    return chosen(*hidden.judge(), predictions, goal, p_value)
