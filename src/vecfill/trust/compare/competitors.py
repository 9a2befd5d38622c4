"""Everything that `auto` is compared with in one fold: the paper, tuned rivals, single sources."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, Predictor
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import SourcesSpace
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.choose.decision import Decision
from vecfill.trust.compare.rivals import RIVALS, Rival
from vecfill.trust.prove.hidden import HIDDEN_TOL

Predict = Callable[[np.ndarray], np.ndarray]
"""Places among the unknown rows -> their vectors."""

AUTO_LABEL = "vecfill (auto)"
PAPER_LABEL = "the paper's method"


class Competitors:
    """The methods that `auto` is compared with, tuned on the known rows of one fold.

    Beside several sources, rivals work with the first one, as their users would. Every source
    competes alone, and every further one by ridge regression too: encode the text, and regress.
    """

    def __init__(
        self,
        space: Space,
        given: KnownRows,
        decision: Decision,
        rivals: Mapping[str, Rival],
        *,
        goal: str,
        seed: int,
    ) -> None:
        self.tuned: dict[str, Predictor] = {}
        self.predict: dict[str, Predict] = {}
        self.labels = {"auto": AUTO_LABEL, "paper": PAPER_LABEL}
        self.labels |= {name: each.label for name, each in rivals.items()}
        if isinstance(space, SourcesSpace):
            self._add_sources(space, given, decision, rivals, goal, seed)
            return
        self._add("paper", PAPER, space, given)
        for name, rival in rivals.items():
            if rival.fits(space):
                tuned = rival.tuned(space, given, goal=goal, seed=seed)
                self._add(name, tuned, rival.space or space, given)

    def _add(self, name: str, predictor: Predictor, space: Any, given: KnownRows) -> None:
        self.tuned[name] = predictor
        self.predict[name] = lambda places: (
            predictor.predict(space, given, Unknown(places), tol=HIDDEN_TOL).vectors
        )

    def _add_sources(
        self,
        space: SourcesSpace,
        given: KnownRows,
        decision: Decision,
        rivals: Mapping[str, Rival],
        goal: str,
        seed: int,
    ) -> None:
        assert decision.choice is not None
        reports = decision.choice.sources
        space = space.of_variants([report.variant for report in reports])
        self._add("paper", Fused.of_one(space, 0, PAPER), space, given)
        for place, (member, report) in enumerate(zip(space.members, reports, strict=True)):
            if report.predictor is None or member.is_guess:
                continue
            alone = f"{member.name} alone"
            self.labels[alone] = f"source {member.name!r} alone"
            self._add(alone, Fused.of_one(space, place, report.predictor), space, given)
            tried = rivals if place == 0 else {f"{member.name} + ridge": RIVALS["ridge"]}
            for name, rival in tried.items():
                if rival.fits(member.space):
                    own = member.given(given)
                    tuned = rival.tuned(member.space, own, goal=goal, seed=seed)
                    self.labels.setdefault(name, f"ridge regression from source {member.name!r}")
                    self._add(name, Fused.of_one(space, place, tuned), space, given)
