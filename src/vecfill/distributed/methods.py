"""From rows and known vectors to solved columns, under one method or the best of a few."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vecfill.distributed.alignment import Known
from vecfill.distributed.judging import (
    HiddenRows,
    candidates_of,
    centred,
    chosen,
    hidden_places,
    put_together,
    seen_of,
    write_masks,
)
from vecfill.distributed.layout import Layout
from vecfill.distributed.neighbors import Search, planned_search, searched
from vecfill.distributed.partition import Partition, partitioned
from vecfill.distributed.preparing import PREPARATIONS, prepared
from vecfill.distributed.solving import ROUGH_TOL, System, Wanted, built, solved
from vecfill.distributed.spanning import spanned
from vecfill.distributed.tasks import Runner
from vecfill.distributed.trend import Sample, Trend, fitted_trend
from vecfill.distributed.weighing import weighed
from vecfill.errors import InputError
from vecfill.method.trend import MAX_RANK
from vecfill.model.predictors import PAPER, LatentSemantic
from vecfill.model.predictors.base import TOL
from vecfill.requests import Method
from vecfill.trust.choose.choice import Choice
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.learning import learn_confidence
from vecfill.wording import count

AUTO_PREPARATIONS = ("as_given", "standardized", "unit_rows")
"""Preparations that `auto` compares; each costs a search for neighbours of its own."""

AUTO_DEGREE = 8


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
        asked = LatentSemantic(**how.setting())
    elif how.method in (None, "auto"):
        return None
    elif how.method == "paper":
        asked = PAPER
    elif isinstance(how.method, LatentSemantic):
        asked = how.method
    else:
        raise InputError(
            f"method={how.method!r} cannot be used on datasets. Use 'auto', 'paper' or a "
            "LatentSemantic(...)."
        )
    if asked.preparation not in PREPARATIONS:
        raise InputError(
            f"preparation={asked.preparation!r} needs whole columns in memory. Use one of "
            f"{', '.join(PREPARATIONS)}."
        )
    if asked.solver != "direct":
        raise InputError("solver='power' is not built for datasets. Use the direct solver.")
    return asked


@dataclass(frozen=True)
class _Ground:
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
        asked: list[tuple[Sample, dict[str, float], np.ndarray | None]],
    ) -> list[Wanted]:
        """Return the equations of predictors that differ in their share, and their trend, solved.

        Asked for are samples, kinds to solve besides what the predictors themselves need, and
        which rows are wanted. All samples are solved side by side, and the first decides how.
        """
        runner, shares = self.runner, [each.residual_share for each in predictors]
        key = predictors[0].weights_key
        weighed(runner, partition, key)
        wanted = []
        for sample, kinds, only in asked:
            trend = None
            if any(share is not None for share in shares):
                trend = fitted_trend(runner, partition.view, sample)
            tol = TOL if sample.variant == "final" else ROUGH_TOL
            own = {"values": tol} if None in shares else {}
            if any(shares):
                own["residuals"] = tol
            system, leader = (System(partition, each, key) for each in (sample, asked[0][0]))
            wanted.append(Wanted(system, leader, trend, {**own, **kinds}, only))
        built(runner, wanted, self.memory)
        solved(runner, wanted, self.memory)
        return wanted


MIX_SIGNALS = {"directions": ROUGH_TOL, "probes": ROUGH_TOL}
"""What is solved so that rows can be told by how they are mixed."""


def choose_method(
    runner: Runner,
    layout: Layout,
    known: Known,
    how: Method,
    asked: LatentSemantic | None,
    recall: float | None,
    level: float,
    memory: int,
) -> Chosen:
    """Return the method asked for, or the one that imputes hidden rows best, and what it solved."""
    places = hidden_places(known.n_known, how.seed)
    if asked is None and not places.size:
        raise InputError(
            f"Only {count(known.n_known, 'entity is', 'entities are')} known, too few to choose a "
            "method by hiding some: "
            "100 are needed. Use method='paper', or give a setting."
        )
    write_masks(known, places)
    ground = _Ground(runner, layout, known, recall, memory)
    final, sample = Sample(known, "final"), Sample(known, "hidden")
    centred(runner, final)
    choice = None
    graphs: dict[str, tuple[Partition, Search]] = {}
    if asked is None:
        centred(runner, sample)
        choice = _compared(ground, HiddenRows(sample, places), graphs, how.goal)
    predictor = asked if choice is None else choice.predictor
    assert isinstance(predictor, LatentSemantic)
    if predictor.preparation not in graphs:
        graphs[predictor.preparation] = ground.graph(predictor.preparation, predictor.min_degree)
    partition, search = graphs[predictor.preparation]
    if not places.size:
        (found,) = ground.solved([predictor], partition, [(final, {}, None)])
        return Chosen(predictor, found.system, found.trend, None, None, choice, search.recall)
    centred(runner, sample)
    rows = HiddenRows(sample, places)
    both = [(sample, MIX_SIGNALS, rows.places_unseen()), (final, MIX_SIGNALS, None)]
    of_hidden, found = ground.solved([predictor], partition, both)
    hidden = _judged(predictor, of_hidden, rows)
    trust = learn_confidence(hidden, hidden.signals, level=level)
    coverage = None if trust is None else trust.coverage
    return Chosen(predictor, found.system, found.trend, hidden, coverage, choice, search.recall)


def _compared(
    ground: _Ground,
    hidden: HiddenRows,
    graphs: dict[str, tuple[Partition, Search]],
    goal: str,
) -> Choice:
    """Return the candidate that does best on the hidden rows."""
    found, only = [], hidden.places_unseen()
    for preparation in AUTO_PREPARATIONS:
        graphs[preparation] = ground.graph(preparation, AUTO_DEGREE)
        kin = candidates_of(preparation, AUTO_DEGREE)
        if ground.layout.n_features > MAX_RANK:
            kin = kin[:1]
        partition = graphs[preparation][0]
        (solved,) = ground.solved(kin, partition, [(hidden.sample, {}, only)])
        rows, part = partition.view.some_rows(hidden.numbers), slice(0, only.size)
        found += [
            (each, put_together(each, solved.system, solved.trend, rows, part)) for each in kin
        ]
    return chosen(hidden, found, goal)


def _judged(predictor: LatentSemantic, solved: Wanted, hidden: HiddenRows) -> Hidden:
    """Return the hidden rows under the method used: what can be seen of them, and their scores."""
    system, trend, only = solved.system, solved.trend, hidden.places_unseen()
    rows, part = system.partition.view.some_rows(hidden.numbers), slice(0, only.size)
    vectors = put_together(predictor, system, trend, rows, part)
    signals = seen_of(system, trend, vectors, rows, part, only)
    return hidden.judged(vectors, signals)
