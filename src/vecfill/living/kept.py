"""What is kept of a fitted model: one typed part for everything that a file has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from vecfill.inputs.later_rows import KeptSource
from vecfill.inputs.names.kept_names import KeptNames
from vecfill.model.offset import OffsetRule
from vecfill.model.predictors import Predictor
from vecfill.model.stretch import Stretch
from vecfill.trust.choose.fusion import SourceReport
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.learning import Teachers
from vecfill.trust.prove.proof import Suspicion
from vecfill.trust.prove.strata import Stratum


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a fitted model; its domain is kept by the `Space`.

    From a file, each part is read and checked when it is first asked for.
    """

    names: KeptNames
    """Names of all entities, known and imputed."""
    columns: tuple[str, ...]
    """Names of the columns of the domain."""
    predictor: Predictor
    """How the vectors were imputed, with everything that was chosen."""
    embedding: np.ndarray = field(repr=False)
    """(n_rows, n_dims) vectors of all entities, known and imputed."""
    is_known: np.ndarray = field(repr=False)
    """(n_rows,) which entities have a known vector."""
    is_left_out: np.ndarray = field(repr=False)
    """(n_rows,) which entities are imputed but not given."""
    calibrates_norms: bool
    """Whether imputed vectors get lengths like those of known ones."""
    sources: tuple[KeptSource, ...] = field(repr=False)
    """How every source was read."""
    rule: OffsetRule | None
    """How the offset of rare entities is found, if there is one."""
    stretch: Stretch
    """By what the steps of imputed rows from the mean are multiplied."""
    rarity: np.ndarray = field(repr=False)
    """(n_rows,) how rare each entity is."""
    has_rarity: np.ndarray = field(repr=False)
    """(n_rows,) whether that is known."""
    is_spared: np.ndarray | None = field(repr=False)
    """(n_rows,) which entities are unknown for another reason than rarity."""
    teachers: Teachers | None = field(repr=False)
    """From what confidence is learnt; ``None`` if too few entities are known."""
    confidence: Confidence | None = field(repr=False)
    """Of every imputed row; ``None`` if it is to be learnt when it is first asked for."""
    reports: tuple[SourceReport, ...] = field(repr=False)
    """What became of each source at the fit; empty if there was one table."""
    strata: tuple[Stratum, ...] = field(repr=False)
    """Kinds of entities, and what was proved about each at the fit."""
    suspicious: tuple[Suspicion, ...] = field(repr=False)
    """Known entities that their neighbours contradict, worst first."""
    notes: tuple[str, ...] = field(repr=False)
    """What there was to say at the fit."""
    signals: tuple[str, ...]
    """Names of the signals from which confidence is learnt, in the order of their columns."""
    for_adding: Mapping[str, Any] | None = field(repr=False)
    """What the predictor keeps so that adding is quick; ``None`` if it is to be computed again."""

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> Kept:
        """Return parts that are read when they are asked for."""
        kept = object.__new__(cls)
        vars(kept)["_parts"] = parts
        return kept

    def __getattr__(self, name: str) -> Any:
        # Only what was not read before comes here.
        if "_parts" not in vars(self) or name not in NAMES:
            raise AttributeError(name)
        vars(self)[name] = part = vars(self)["_parts"][name]
        return part

    def changed(self, **parts: Any) -> Kept:
        """Return the same with other parts; what was not read yet stays in its file."""
        assert set(parts) <= set(NAMES)
        other = object.__new__(Kept)
        vars(other).update(vars(self) | parts)
        return other

    def by_name(self) -> dict[str, Any]:
        """Return all parts, read."""
        return {name: getattr(self, name) for name in NAMES}


NAMES = tuple(part.name for part in fields(Kept))
