"""What one imputation gives: the vectors, and everything there is to say about them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.inputs.match_report import MatchReport
from vecfill.inputs.prepared import Domain
from vecfill.settings import Imputation, Setting, Stages
from vecfill.trust.choice import Choice
from vecfill.trust.confidence import Confidence
from vecfill.trust.explain import Contributions, Explanation, place_of
from vecfill.trust.heldout import HeldoutReport
from vecfill.trust.scores import RowScores


@dataclass(frozen=True)
class Suspicion:
    """A known entity whose hidden vector its imputation contradicts."""

    entity: str
    word: str
    centred_cosine: float
    """Between its vector and what its neighbours make of it."""


@dataclass(frozen=True)
class Run:
    """What was imputed, how, from what, and how far to trust it."""

    embedding: Embedding
    """The imputed entities and their vectors."""
    known: Embedding
    """The known entities, by their names in the table, and their vectors."""
    matches: MatchReport
    setting: Setting
    domain: Domain = field(repr=False)
    confidence: Confidence | None = field(repr=False)
    """Aligned with `embedding`; ``None`` when too few entities are known to learn it."""
    heldout: RowScores | None = field(repr=False)
    """Scores of known rows hidden and imputed again under the chosen setting. `evaluate` scores
    the choice itself, against rivals."""
    choice: Choice | None = field(repr=False)
    suspicious: tuple[Suspicion, ...]
    abstained: tuple[str, ...]
    """Entities left out because their confidence was below what was asked for."""
    notes: tuple[str, ...]
    stages: Stages = field(repr=False)
    is_known: np.ndarray = field(repr=False)
    imputation: Imputation = field(repr=False)
    norm_factors: np.ndarray | None = field(repr=False)
    """Factors of a calibration of lengths; ``None`` if there was none."""

    def explain(self, word: str, n: int = 10) -> Explanation:
        """Return the known entities that an imputed one is made of, and their shares.

        The `n` largest are listed; the shares of all known entities sum to one.
        """
        unknown = [self.domain.entities[row] for row in np.flatnonzero(~self.is_known)]
        place = place_of(word, unknown, self.known.words)
        shares = self.contributions([place])[0]
        order = np.argsort(-shares, kind="stable")[:n]
        order = order[shares[order] > 0]
        names = tuple(self.known.words[i] for i in order)
        return Explanation(word, names, shares[order], float(self.trend_shares()[place]))

    def contributions(self, places: Iterable[int]) -> np.ndarray:
        """Return shares of all known entities (across) in some unknown ones (down).

        Unknown entities are numbered in the order of the table, those left out included.
        """
        return self._contributions.of(np.fromiter(places, np.int64))

    @cached_property
    def _contributions(self) -> Contributions:
        # One factorisation serves every explanation of this run.
        return Contributions(self.stages.weights(self.setting), self.is_known)

    def trend_shares(self) -> np.ndarray:
        """Return the trend's share in each unknown vector's way from the mean of the known ones."""
        n_unknown = int((~self.is_known).sum())
        trend = self.imputation.trend
        if trend is None:
            return np.zeros(n_unknown)
        centre = self.known.vectors.mean(axis=0, dtype=np.float64)
        way = np.linalg.norm(trend.values[~self.is_known] - centre, axis=1)
        rest = np.linalg.norm(self.imputation.vectors - trend.values[~self.is_known], axis=1)
        total = way + rest
        return np.divide(way, total, out=np.ones(n_unknown), where=total > 0)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        heldout: HeldoutReport | None = None,
        coordinates: Mapping[str, Sequence[float]] | np.ndarray | None = None,
        title: str = "Imputed vectors",
        manifest: Mapping[str, Any] | None = None,
        overwrite: bool = False,
    ) -> None:
        """Write one self-contained HTML page on this run; `vecfill.views.report` tells more."""
        # Imported when asked for: most runs draw nothing.
        from vecfill.views.report import write_report  # noqa: PLC0415

        write_report(
            self,
            path,
            heldout=heldout,
            coordinates=coordinates,
            title=title,
            manifest=manifest,
            overwrite=overwrite,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON and manifests."""
        return {
            "n_known": len(self.known),
            "n_imputed": len(self.embedding),
            "method": self.setting.to_dict(),
            "matched": dict(self.matches.counts),
            "heldout": None if self.heldout is None else self.heldout.means(),
            "p_value": None if self.choice is None else self.choice.p_value,
            "confidence": None
            if self.confidence is None
            else {
                "level": self.confidence.level,
                "coverage": self.confidence.coverage,
                "entities": {
                    word: {"confidence": float(value), "lower_bound": float(bound)}
                    for word, value, bound in zip(
                        self.embedding.words,
                        self.confidence.values,
                        self.confidence.lower_bound,
                        strict=True,
                    )
                },
            },
            "suspicious": [
                {"entity": s.entity, "word": s.word, "centred_cosine": s.centred_cosine}
                for s in self.suspicious
            ],
            "abstained": list(self.abstained),
            "notes": list(self.notes),
        }
