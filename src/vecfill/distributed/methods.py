"""From rows and known vectors to solved columns, under one method or the best of a few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.distributed.alignment import Known, Sample
from vecfill.distributed.graph import Search, planned_search, searched, spanned
from vecfill.distributed.judging import FEWEST_KNOWN, HiddenRows, centred, chosen, hide
from vecfill.distributed.layout import Layout
from vecfill.distributed.partition import Partition, partitioned
from vecfill.distributed.preparing import PREPARATIONS, prepared
from vecfill.distributed.solving import Solving, System, solved
from vecfill.distributed.tasks import Runner
from vecfill.distributed.trend import Trend, fitted_trend
from vecfill.distributed.weighing import weighed
from vecfill.errors import InputError
from vecfill.method.trend import MAX_RANK
from vecfill.model.predictors import PAPER, LatentSemantic
from vecfill.model.predictors.base import TOL
from vecfill.requests import Method
from vecfill.trust.choose.candidates import FIRST_RIDGE, with_trends
from vecfill.trust.choose.choice import Choice
from vecfill.trust.prove.confidence import learn_confidence
from vecfill.trust.prove.hidden import HIDDEN_TOL, Hidden
from vecfill.trust.prove.signals import SPREAD_TOL
from vecfill.wording import count

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
    fold = hide(known, how.seed)
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
        choice = _compared(ground, hidden_rows, graphs, how.goal)
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
    return chosen(*hidden.judge(), predictions, goal)
