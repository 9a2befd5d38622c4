"""Which rows the job on files writes: those it adds, those it replaces, those without a place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError, OptionError
from vecfill.inputs.entities import listed
from vecfill.inputs.files import Inputs, word_in_file
from vecfill.io import read_embedding
from vecfill.io.appending import row_patches
from vecfill.io.names import read_names
from vecfill.io.patching import Patch
from vecfill.requests import Ask, Reading, Replacement
from vecfill.result import Result
from vecfill.wording import count

EXCLUDED, SUSPICIOUS = "excluded", "suspicious"


@dataclass(frozen=True)
class WrittenRows:
    """The imputed entities by what becomes of them, with the words they have in the file."""

    added: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    """Entities whose name is that of a row that is not to be replaced."""
    notes: tuple[str, ...] = ()


def named_entities(reading: Reading, replacement: Replacement) -> tuple[str, ...]:
    """Return the entities that were named for replacing; refuse what cannot be meant.

    Examples
    --------
    >>> named_entities(Reading(), Replacement(replace=["Oslo", "Bern"]))
    ('Oslo', 'Bern')
    >>> named_entities(Reading(), Replacement(replace=True))
    Traceback (most recent call last):
    vecfill.errors.OptionError: replace='excluded' needs exclude=, min_count= or from_rank=, ...
    """
    kind, blend = kind_of(replacement), replacement.blend
    if blend is not None and kind is None:
        raise OptionError(f"blend={blend:g} needs replace=, which says what rows to replace.")
    if blend is not None and reading.counts is None:
        raise OptionError(
            f"blend={blend:g} needs counts: pass counts=, a file of entity and count "
            "or a column of the table."
        )
    if blend == 0:
        raise OptionError("blend=0 would keep every old vector. Use a number above 0.")
    if kind == EXCLUDED and not {"exclude", "min_count", "from_rank"}.intersection(reading.asked()):
        raise OptionError(
            "replace='excluded' needs exclude=, min_count= or from_rank=, which say what entities "
            "to treat as unknown."
        )
    return kind if isinstance(kind, tuple) else ()


def kind_of(replacement: Replacement) -> str | tuple[str, ...] | None:
    """Return `EXCLUDED`, `SUSPICIOUS`, the names of entities, or None if nothing is replaced."""
    requested = replacement.replace
    if requested is None or requested is False:
        return None
    if requested is True or requested in (EXCLUDED, SUSPICIOUS):
        return EXCLUDED if requested is True else requested
    if isinstance(requested, str | os.PathLike):
        return _names_in(requested)
    if isinstance(requested, tuple):
        return tuple(dict.fromkeys(str(name).strip() for name in requested))
    raise OptionError(
        f"replace={requested!r} is not understood. Use True, 'suspicious', a file of names or a "
        "list of names."
    )


def _names_in(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the names in a file, one per line."""
    if not Path(path).is_file():
        raise OptionError(
            f"replace={os.fspath(path)!r} is not a file, nor 'excluded' or 'suspicious'. Name a "
            "file with one entity per line."
        )
    return tuple(dict.fromkeys(read_names(path)))


def replaceable(inputs: Inputs, names: Iterable[str] | None = None) -> dict[str, str]:
    """Return unknown entities that have a row, with its word: all of them, or some by name.

    Entities that were set aside have the row of the word they were matched with. An excluded one
    was said to mean another thing than a word that is like its name, so only a row of its very
    name is its own.
    """
    word_of = dict(inputs.matches.set_aside)
    for match in inputs.matches.matches:
        word = word_in_file(match.entity, inputs.format)
        if match.how == "excluded" and match.entity not in word_of and word in inputs.taken:
            word_of[match.entity] = word
    return word_of if names is None else {name: word_of[name] for name in names if name in word_of}


def written_rows(
    result: Result | None,
    inputs: Inputs,
    replaceable: Mapping[str, str],
    kind: str | tuple[str, ...] | None = None,
) -> WrittenRows:
    """Return what becomes of each imputed entity; refuse two that claim one row."""
    notes = _notes(result, inputs, replaceable, kind)
    if result is None:
        return WrittenRows(notes=notes)
    added: dict[str, str] = {}
    replaced: dict[str, str] = {}
    left_out: list[str] = []
    owner: dict[str, str] = {}
    for entity in result.embedding.words:
        word = replaceable.get(entity, word_in_file(entity, inputs.format))
        if entity not in replaceable and word in inputs.taken:
            left_out.append(entity)
            continue
        if word in owner:
            raise InputError(
                f"The entities {owner[word]!r} and {entity!r} would both be written as {word!r}. "
                "Rename one of them."
            )
        owner[word] = entity
        (replaced if entity in replaceable else added)[entity] = word
    _refuse_shared(inputs, replaced)
    return WrittenRows(added, replaced, tuple(left_out), notes)


def _notes(
    result: Result | None,
    inputs: Inputs,
    replaceable: Mapping[str, str],
    kind: str | tuple[str, ...] | None,
) -> tuple[str, ...]:
    """Tell about rows that were to be replaced, but are not."""
    notes: list[str] = []
    entities = {match.entity for match in inputs.matches.matches}
    if isinstance(kind, tuple) and (strangers := [name for name in kind if name not in entities]):
        strangers_text = count(len(strangers), "name to replace is", "names to replace are")
        notes.append(f"{strangers_text} not in the table: {listed(strangers)}.")
    if kind == SUSPICIOUS and result is None:
        notes.append("No entity is unknown, so no known one was checked for being suspicious.")
    elif kind is not None and not replaceable:
        notes.append("No row was replaced, because none of these entities has one.")
    if result is not None and (
        unchanged := [name for name in result.abstained if name in replaceable]
    ):
        notes.append(
            f"{count(len(unchanged), 'row was', 'rows were')} left unchanged because of too little "
            f"confidence in the new vectors: {listed(unchanged)}."
        )
    return tuple(notes)


def _refuse_shared(inputs: Inputs, replaced: Mapping[str, str]) -> None:
    """Refuse to replace a row that is the known vector of another entity."""
    owner = {word: entity for entity, word in inputs.matches.words.items()}
    for entity, word in replaced.items():
        if word in owner:
            raise InputError(
                f"The row of {word!r} would be replaced for {entity!r}, but it is also the known "
                f"vector of {owner[word]!r}. Exclude that one too (exclude=), or give one of "
                "them another word (aliases=)."
            )


def patches_of(
    embedding: str | os.PathLike[str],
    result: Result | None,
    rows: WrittenRows,
    inputs: Inputs,
    ask: Ask,
) -> tuple[Patch, ...]:
    """Return the rows to replace and what is to stand in their place."""
    if result is None or not rows.replaced:
        return ()
    where: dict[str, Any] = {"format": ask.reading.format, "member": ask.reading.member}
    blend = ask.replacement.blend
    entities, words = list(rows.replaced), list(rows.replaced.values())
    vectors = result.embedding[entities]
    if blend is not None:
        old = read_embedding(embedding, words=words, **where)
        shares = _shares_of_new(entities, inputs.counts or {}, blend)
        blended = (1.0 - shares) * old[words] + shares * vectors
        vectors = blended.astype(vectors.dtype)
    return row_patches(embedding, Embedding(words, vectors), **where)


def _shares_of_new(entities: Sequence[str], counts: Mapping[str, float], blend: float) -> Any:
    """Return the share of the new vector in each row, (n_rows, 1)."""
    lacking = [entity for entity in entities if entity not in counts]
    if lacking:
        raise InputError(
            f"blend={blend:g} needs a count for each entity whose row is replaced, but "
            f"{len(lacking)} have none: {listed(lacking)}. Add their counts."
        )
    return np.array([[blend / (counts[entity] + blend)] for entity in entities])
