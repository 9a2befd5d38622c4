"""A table of new entities -> their rows in every source of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.errors import InputError
from vecfill.inputs.entities import listed
from vecfill.inputs.later_rows import Facts, KeptSource, facts_of
from vecfill.model.wanted import SourceRows
from vecfill.requests import TEXT_OPTIONS


@dataclass(frozen=True, eq=False)
class NewEntities:
    """New entities as the model reads them."""

    names: tuple[str, ...]
    rows: Any = field(repr=False)
    """Their rows, or `SourceRows` if the model has several sources."""
    unusual: tuple[tuple[str, ...], ...] = field(repr=False)


def read_new(
    sources: Sequence[KeptSource],
    tables: Mapping[str, Facts],
    is_new: Mapping[str, bool],
    *,
    used: Sequence[bool],
    is_joint: bool,
    encoder: Any = None,
) -> NewEntities:
    """Return the rows of those entities that are new, source by source.

    `tables` are the facts of each source by name. Only sources that are `used` are read.
    """
    names = tuple(name for name, is_it in is_new.items() if is_it)
    place = {name: number for number, name in enumerate(names)}
    unusual: list[list[str]] = [[] for _ in names]
    rows: dict[int, Any] = {}
    places: dict[int, np.ndarray] = {}
    for number, (source, is_used) in enumerate(zip(sources, used, strict=True)):
        if not is_used or not names:
            continue
        facts = Facts(names, {}) if source.reads_names else tables.get(source.name)
        if facts is None:
            continue
        found = source.read(facts, encoder)
        kept = [row for row, name in enumerate(found.entities) if name in place]
        if not kept:
            continue
        its = found.rows[kept]
        source.refuse_absurd(its, [found.entities[row] for row in kept])
        rows[number] = csr_array(its) if issparse(its) else its
        places[number] = np.array([place[found.entities[row]] for row in kept], np.int64)
        for at, row, far in zip(places[number], kept, source.out_of_range(its), strict=True):
            unusual[at] += [*found.unusual[row], *([far] if far else [])]
    told = tuple(tuple(each) for each in unusual)
    if not is_joint:
        return NewEntities(names, rows.get(0), told)
    return NewEntities(names, SourceRows(len(names), rows, places), told)


def refuse_unknown_options(options: Mapping[str, Any]) -> None:
    """Refuse options that do not say how a text file is read."""
    strange = [name for name in options if name not in TEXT_OPTIONS]
    if strange:
        raise InputError(
            f"{listed(strange)} is no option of add: how a table is read was decided at the fit."
        )


def facts_by_source(
    sources: Sequence[KeptSource], table: Any, *, key: str | None, names: Any, **options: Any
) -> dict[str, Facts]:
    """Return what the user passes about new entities, for each source.

    A mapping from names of sources gives each its own table. A single table serves every source
    that finds its columns there.
    """
    known = [each.name for each in sources]
    is_mapping = isinstance(table, Mapping) and bool(table)
    if is_mapping and len(sources) > 1 and all(name in known for name in table):
        return {
            name: facts_of(each, key=key, names=names, **options) for name, each in table.items()
        }
    strange = [name for name in table if name not in known] if is_mapping else []
    if is_mapping and len(sources) > 1 and len(strange) < len(table):
        raise InputError(
            f"{listed(strange)} is no source of this model. Its sources are {listed(known, 10)}."
        )
    described = [each for each in sources if not each.reads_names]
    facts = facts_of(table, key=key, names=names, names_suffice=not described, **options)
    if not described:
        return {each.name: facts for each in sources}
    usable = [each for each in described if each.reader is not None and each.reader.finds(facts)]
    if not usable:
        usable = described[:1]  # its reader says what is missing
    return {each.name: facts for each in usable}
