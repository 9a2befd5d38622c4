"""A table of new entities -> their rows in every source of a model; and what they get, `Added`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.checks import one_of
from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.entities import listed
from vecfill.inputs.groups import Groups
from vecfill.inputs.later_rows import Facts, KeptSource, Reader, facts_of
from vecfill.inputs.prepared import is_late
from vecfill.inputs.table.frames import objects
from vecfill.model.wanted import SourceRows
from vecfill.requests import TEXT_OPTIONS
from vecfill.trust.explain import Explanation
from vecfill.trust.prove.confidence import Confidence
from vecfill.wording import count

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class NewEntities:
    """New entities as the model reads them."""

    names: tuple[str, ...]
    rows: SourceRows = field(repr=False)
    """Their rows in each source."""
    unusual: tuple[tuple[str, ...], ...] = field(repr=False)
    lacks: dict[int, np.ndarray] = field(repr=False)
    """By number of the source, which facts the entities lack that it describes."""
    is_odd: np.ndarray = field(repr=False)
    """(n_new,) which are unusual for more than a missing fact."""
    shifts: dict[tuple[int, int], str] = field(repr=False)
    """By source and column, what differs as a whole from the fit: another unit, say."""
    drifts: tuple[str, ...] = ()
    """What they lack far more often than fitted entities."""
    groups: Groups | None = field(default=None, repr=False)
    """Their groups, if groups were named at the fit."""


def read_new(
    sources: Sequence[KeptSource],
    tables: Mapping[str, Facts],
    is_new: Mapping[str, bool],
    *,
    is_used: Sequence[bool],
    encoder: Any = None,
) -> NewEntities:
    """Return the rows of those entities that are new, source by source.

    `tables` are the facts of each source by name. Only sources that are used are read.
    """
    names = tuple(name for name, is_it in is_new.items() if is_it)
    place = {name: number for number, name in enumerate(names)}
    unusual: list[list[str]] = [[] for _ in names]
    rows: dict[int, Any] = {}
    places: dict[int, np.ndarray] = {}
    lacks: dict[int, np.ndarray] = {}
    is_odd = np.zeros(len(names), np.bool_)
    shifts: dict[tuple[int, int], str] = {}
    drifts: list[str] = []
    for number, (source, reads) in enumerate(zip(sources, is_used, strict=True)):
        if not reads or not names:
            continue
        facts = Facts(names, {}) if source.reads_names else tables.get(source.name)
        if facts is None:
            continue
        later_rows = source.read(facts, encoder)
        new_rows = [row for row, name in enumerate(later_rows.entities) if name in place]
        if not new_rows:
            continue
        of_new = later_rows.rows[new_rows]
        source.refuse_absurd(of_new, [later_rows.entities[row] for row in new_rows])
        rows[number] = csr_array(of_new) if issparse(of_new) else of_new
        places[number] = np.array([place[later_rows.entities[row]] for row in new_rows], np.int64)
        is_odd_row = later_rows.is_odd
        if is_odd_row is None:
            is_odd_row = np.array([bool(reasons) for reasons in later_rows.unusual], np.bool_)
        for at, row, far in zip(places[number], new_rows, source.out_of_range(of_new), strict=True):
            unusual[at] += [*later_rows.unusual[row], *([far] if far else [])]
            is_odd[at] |= bool(far or is_odd_row[row])
        if later_rows.lacks is not None and source.reader is not None:
            lacks[number] = later_rows.lacks[new_rows]
            drifts += source.reader.drifts(lacks[number])
            for column, shift in source.reader.shifts(of_new, lacks[number]).items():
                shifts[number, column] = shift
    reasons = tuple(tuple(of_entity) for of_entity in unusual)
    new_rows = SourceRows(len(names), rows, places)
    return NewEntities(names, new_rows, reasons, lacks, is_odd, shifts, tuple(drifts))


def groups_of_new(
    fitted: Groups | None,
    tables: Mapping[str, Facts],
    names: Sequence[str],
    group_of: Mapping[str, Any] | None,
) -> Groups | None:
    """Return the groups of new entities: those that are passed, or those in the column of the fit.

    An entity without a group is judged as all entities are.
    """
    if fitted is None:
        if group_of is not None:
            raise InputError(
                "groups= has no effect: the model was fitted without groups. Leave it out."
            )
        return None
    if group_of is None:
        group_of = {}
        for facts in tables.values():
            if fitted.title in facts.columns:
                cells = objects(facts.columns[fitted.title])
                group_of |= dict(zip(facts.entities, cells, strict=True))
    return Groups.of(fitted.title, [group_of.get(name) for name in names])


def notes_on_groups(groups: Groups | None) -> tuple[str, ...]:
    """Say so if new entities lack the group that bounds were learnt by."""
    n_without = 0 if groups is None else int((groups.codes < 0).sum())
    if groups is None or not n_without:
        return ()
    return (
        f"{count(n_without, 'new entity has', 'new entities have')} no {groups.title}; bounds "
        "there are those of all entities.",
    )


def refuse_unknown_options(options: Mapping[str, Any]) -> None:
    """Refuse options that do not say how a text file is read."""
    strange = [name for name in options if name not in TEXT_OPTIONS]
    if strange:
        raise InputError(
            f"{listed(strange)} is no option of add: how a table is read was decided at the fit."
        )


def facts_by_source(
    sources: Sequence[KeptSource],
    table: Any,
    *,
    key: str | None,
    names: Any,
    missing: str = "refuse",
    **options: Any,
) -> dict[str, Facts]:
    """Return what the user passes about new entities, for each source.

    A mapping from names of sources gives each its own table. A single table serves every source
    that finds its columns there. Unless `missing` allows it, columns of a table that serves must
    not be absent.
    """
    one_of(missing, "missing", ("refuse", "allow"))
    tables = _tables_of_sources(sources, table, key=key, names=names, **options)
    for source in sources:
        if source.name in tables and source.reader is not None and missing == "refuse":
            source.reader.refuse_absent(tables[source.name])
    return tables


def _tables_of_sources(
    sources: Sequence[KeptSource], table: Any, *, key: str | None, names: Any, **options: Any
) -> dict[str, Facts]:
    known = [source.name for source in sources]
    is_mapping = isinstance(table, Mapping) and bool(table)
    how = {"key": key, "names": names, **options}
    if is_mapping and len(sources) > 1 and all(name in known for name in table):
        reader_of = {source.name: source.reader for source in sources}
        facts = {name: _own_facts(reader_of[name], of, **how) for name, of in table.items()}
        rows = {name: facts_of(of, **how) for name, of in table.items() if facts[name] is None}
        # Triples name more than new entities; beside a table, they describe those of the table.
        entities = dict.fromkeys(name for of in rows.values() for name in of.entities)
        return rows | {
            name: of.about(tuple(entities)) if entities else of
            for name, of in facts.items()
            if of is not None
        }
    strange = [name for name in table if name not in known] if is_mapping else []
    if is_mapping and len(sources) > 1 and len(strange) < len(table):
        raise InputError(
            f"{listed(strange)} is no source of this model. Its sources are {listed(known, 10)}."
        )
    described = [source for source in sources if not source.reads_names]
    own = [(source.name, _own_facts(source.reader, table, **how)) for source in described]
    read_by_source = {name: of for name, of in own if of is not None}
    if read_by_source and (is_late(table) or len(read_by_source) == len(described)):
        return read_by_source
    facts = facts_of(table, key=key, names=names, names_suffice=not described, **options)
    if not described:
        return {source.name: facts for source in sources}
    usable = [source for source in described if source.finds(facts)]
    if not usable:
        usable = described[:1]  # its reader says what is missing
    return {source.name: facts for source in usable}


def _own_facts(reader: Reader | None, table: Any, *, key: str | None, **how: Any) -> Facts | None:
    """Return what a source reads in its own way, from triples for instance."""
    if reader is None or isinstance(table, Facts):
        return None
    how.pop("guess", None)
    return reader.facts_from(table, key=key, **how)


@dataclass(frozen=True, eq=False, repr=False)
class Added:
    """New entities with vectors, confidence and reasons.

    Examples
    --------
    >>> from vecfill import impute
    >>> from vecfill.sample import towns
    >>> places, known = towns()
    >>> added = impute(places, known).to_model().add({"newtown": [0.1, 0.2], "town3": [0.0, 0.0]})
    >>> added
    Added: 1 new entity; confidence 1.00
      already known  'town3'
    >>> added.embedding["newtown"].round(1)
    array([0.1, 0.2, 0. , 0. , 0. ])
    """

    embedding: Embedding
    """The new entities and their vectors."""
    confidence: Confidence | None
    """How far to trust each of them; ``None`` if the model has learnt no confidence."""
    unusual: dict[str, tuple[str, ...]]
    """New entities unlike anything fitted, and why; their bounds are cautious."""
    already_known: tuple[str, ...]
    """Entities of the new table whose vectors the model knows; they were not imputed."""
    already_imputed: tuple[str, ...]
    """Entities of the new table that the model has imputed before."""
    undescribed: tuple[str, ...]
    """Entities that no source describes that the model uses; they got no vector."""
    notes: tuple[str, ...]
    _explained: Callable[[int, int], Explanation] = field(repr=False)

    def explain(self, word: str, n: int = 10) -> Explanation:
        """Return the `n` known entities that contribute most to a new one."""
        if not isinstance(word, str) or word not in self.embedding:
            raise InputError(
                f"{printable(str(word))!r} is not among the {len(self.embedding)} new entities."
            )
        return self._explained(self.embedding.row(word), n)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "added": [self._about(row) for row in range(len(self.embedding))],
            "already_known": list(self.already_known),
            "already_imputed": list(self.already_imputed),
            "undescribed": list(self.undescribed),
            "notes": list(self.notes),
        }

    def _about(self, row: int) -> dict[str, Any]:
        word = self.embedding.words[row]
        about: dict[str, Any] = {"entity": word, "unusual": list(self.unusual.get(word, ()))}
        if self.confidence is not None:
            about["confidence"] = float(self.confidence.values[row])
            about["lower_bound"] = float(self.confidence.lower_bound[row])
        return about

    def to_pandas(self) -> pd.DataFrame:
        """Return one row for each new entity: vector, confidence, bound, what is unusual."""
        import pandas  # noqa: PLC0415

        sure = self.confidence
        words = self.embedding.words
        columns = {
            "confidence": None if sure is None else sure.values,
            "lower_bound": None if sure is None else sure.lower_bound,
            "unusual": ["; ".join(self.unusual.get(word, ())) for word in words],
            "vector": list(self.embedding.vectors),
        }
        return pandas.DataFrame(columns, index=pandas.Index(words, name="entity"))

    def __repr__(self) -> str:
        n_new = len(self.embedding)
        head = f"Added: {count(n_new, 'new entity')}"
        if self.confidence is not None and n_new:
            head += f"; confidence {float(np.median(self.confidence.values)):.2f}"
        lines = [head]
        for title, names in (
            ("already known", self.already_known),
            ("already imputed", self.already_imputed),
            ("not described", self.undescribed),
            ("unusual", tuple(self.unusual)),
        ):
            if names:
                lines.append(f"  {title:13}  {listed(names)}")
        return "\n".join(lines)
