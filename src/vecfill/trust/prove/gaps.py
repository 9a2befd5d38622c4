"""Which facts rows lack, and the same rows without further ones.

A *fact* is what one column of a table says about a row, or all that one of several sources says.
Rows of the fit and rows that came later are `SourceRows` here, so both lack facts in one way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vecfill.inputs.later_rows import KeptSource, Reader
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.columns_reader import ColumnsReader
from vecfill.model.predictors import Predictor
from vecfill.model.wanted import SourceRows


@dataclass(frozen=True)
class Fact:
    """Something that is said about rows, and that some may lack."""

    name: str
    source: int
    """Number of the source that says it."""
    column: int | None
    """Number among the facts of its reader; ``None``: all that the source says."""


@dataclass(frozen=True, eq=False)
class FactList:
    """The facts of all sources that a predictor uses, in an order that never changes."""

    readers: tuple[Reader | None, ...] = field(repr=False)
    """Of each source; ``None`` if it is not used."""
    facts: tuple[Fact, ...]

    @classmethod
    def of(
        cls, names: Sequence[str], readers: Sequence[Reader | None], is_used: Sequence[bool]
    ) -> FactList:
        """Return the facts of some sources: each as a whole if there are several, and columns."""
        readers_used = [
            reader if used else None for reader, used in zip(readers, is_used, strict=True)
        ]
        # Every entity has a name, so the sources that read names are never missing.
        are_described = [
            number
            for number, used in enumerate(is_used)
            if used and not getattr(readers[number], "reads_names", False)
        ]
        facts = []
        for number, reader in enumerate(readers_used):
            if number in are_described and len(are_described) > 1:
                facts.append(Fact(f"source {names[number]!r}", number, None))
            columns = () if reader is None else reader.facts
            of_source = f"{names[number]}: " if len(are_described) > 1 else ""
            facts += [Fact(of_source + name, number, at) for at, name in enumerate(columns)]
        return cls(tuple(readers_used), tuple(facts))

    @classmethod
    def of_kept(cls, sources: Sequence[KeptSource], is_used: Sequence[bool]) -> FactList:
        """Return the facts of the sources of a model."""
        names, readers = [source.name for source in sources], [source.reader for source in sources]
        return cls.of(names, readers, is_used)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the facts."""
        return tuple(fact.name for fact in self.facts)

    def gaps(self, rows: SourceRows, lacks: Mapping[int, np.ndarray] | None = None) -> np.ndarray:
        """(n_rows, n_facts) which facts rows lack.

        `lacks` has what their readers said of them, by number of the source; by default the rows
        are looked at. Of a source that is missing as a whole, no column is missing besides.
        """
        gaps = np.zeros((rows.n_new, len(self.facts)), np.bool_)
        of_source: dict[int, np.ndarray] = dict(lacks or {})
        for number, fact in enumerate(self.facts):
            places = rows.places.get(fact.source, np.empty(0, np.int64))
            if fact.column is None:
                gaps[:, number] = True
                gaps[places, number] = False
            elif places.size:
                if fact.source not in of_source:
                    reader = self.readers[fact.source]
                    assert reader is not None
                    of_source[fact.source] = reader.lacks(rows.rows[fact.source])
                gaps[places, number] = of_source[fact.source][:, fact.column]
        return gaps

    def without(self, rows: SourceRows, gaps: np.ndarray) -> SourceRows:
        """Return rows without some facts, whatever else they lack."""
        blanked, places = dict(rows.rows), dict(rows.places)
        for number in rows.rows:
            of_source = [at for at, fact in enumerate(self.facts) if fact.source == number]
            whole = [at for at in of_source if self.facts[at].column is None]
            columns = [at for at in of_source if self.facts[at].column is not None]
            reader = self.readers[number]
            if columns and reader is not None:
                lacks = gaps[places[number]][:, columns]
                blanked[number] = reader.blanked(blanked[number], lacks)
            if whole:
                is_there = ~gaps[places[number], whole[0]]
                blanked[number] = blanked[number][np.flatnonzero(is_there)]
                places[number] = places[number][is_there]
        is_any = {number: size for number, size in places.items() if size.size}
        return SourceRows(rows.n_new, {number: blanked[number] for number in is_any}, is_any)


@dataclass(frozen=True, eq=False)
class FittedRows:
    """The rows of the fit in every source that a predictor uses, and which facts they lack."""

    fact_list: FactList
    rows: SourceRows = field(repr=False)
    gaps: np.ndarray = field(repr=False)
    """(n_rows, n_facts)."""

    @classmethod
    def of(
        cls, domain: Domain, predictor: Predictor, space: Any, is_known: np.ndarray
    ) -> FittedRows:
        """Return the rows of a domain."""
        is_used = [of_source is not None for _, of_source in predictor.by_source(space)]
        row_of = {name: row for row, name in enumerate(domain.entities)}
        names, readers, rows, places = [], [], {}, {}
        lacks: dict[int, np.ndarray] = {}
        for number, source in enumerate(domain.sources):
            variant = source.variants[predictor.variant_of(number)]
            names.append(source.name)
            readers.append(variant.reader)
            if not is_used[number]:
                continue
            rows[number] = variant.vectors
            places[number] = np.array([row_of[name] for name in variant.entities], np.int64)
            if isinstance(variant.reader, ColumnsReader):
                known = is_known[places[number]]
                lacks[number] = variant.reader.lacks_of_fitted(variant.vectors, known)
        fact_list, source_rows = (
            FactList.of(names, readers, is_used),
            SourceRows(len(domain), rows, places),
        )
        return cls(fact_list, source_rows, fact_list.gaps(source_rows, lacks))

    def unproved_gaps(self, is_known: np.ndarray, fewest: int) -> np.ndarray:
        """Return the gaps, without sources if at least `fewest` known rows have just the same ones.

        Such rows are a kind of their own, which is judged apart.
        """
        gaps = self.gaps.copy()
        is_whole = np.array([fact.column is None for fact in self.fact_list.facts], np.bool_)
        if is_whole.any():
            patterns, pattern_of = np.unique(gaps[:, is_whole], axis=0, return_inverse=True)
            n_known = np.bincount(pattern_of.ravel()[is_known], minlength=len(patterns))
            gaps &= ~(is_whole & (n_known >= fewest)[pattern_of.ravel()][:, None])
        return gaps

    def at(self, numbers: np.ndarray) -> SourceRows:
        """Return some rows, each as often as it is named, as if they had come later."""
        rows, places = {}, {}
        for number, of_source in self.rows.places.items():
            place_of = np.full(self.rows.n_new, -1)
            place_of[of_source] = np.arange(of_source.size)
            in_source = place_of[numbers]
            described = np.flatnonzero(in_source >= 0)
            if described.size:
                rows[number] = self.rows.rows[number][in_source[described]]
                places[number] = described
        return SourceRows(len(numbers), rows, places)
