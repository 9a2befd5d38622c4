"""Files of a user -> the domain, how its names matched, and the rows of the matching words."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vecfill.embedding import Embedding
from vecfill.inputs.domain import Domain, as_domain
from vecfill.inputs.match_report import MatchReport
from vecfill.inputs.names import match_names
from vecfill.io import Format, iter_words, read_embedding
from vecfill.io.formats import detected_format, named_format
from vecfill.io.sources import Source
from vecfill.requests import DOMAIN_OPTIONS, Reading

PathOrName = str | os.PathLike[str]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: unknown)."""

_TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".parquet", ".feather", ".arrow")


@dataclass(frozen=True)
class Inputs:
    """What was read: the domain, how its names matched, and the rows of the matching words."""

    domain: Domain
    matches: MatchReport
    embedding: Embedding
    format: Format
    taken: frozenset[str]
    """Words of the file under which an entity would have to be written."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the readers had to tell, in sentences."""
        return (*self.embedding.notes, *self.domain.notes, *self.matches.notes)


def read_inputs(
    embedding: PathOrName, table: Any, reading: Reading, *, progress: Progress | None = None
) -> Inputs:
    """Read the domain, match its names in one pass over the file's words, read their rows."""
    tell = progress or quiet
    format, member = reading.format, reading.member  # noqa: A001
    with Source(embedding, member) as source:
        kind = detected_format(source) if format is None else named_format(format)
    tell("Reading the domain", 0, 0)
    domain = read_domain(table, reading)
    names = {form for entity in domain.entities for form in (entity, word_in_file(entity, kind))}
    taken: set[str] = set()

    def watched() -> Iterator[list[str]]:
        n_words = 0
        for batch in iter_words(embedding, format=format, member=member):
            taken.update(names.intersection(batch))
            n_words += len(batch)
            tell("Scanning words", n_words, 0)
            yield batch

    matches = match_names(
        domain.entities,
        watched(),
        level=reading.match,
        aliases=reading.aliases,
        exclude=reading.exclude,
    )
    words = list(dict.fromkeys(matches.words.values()))
    tell("Reading known rows", 0, 0)
    known = read_embedding(embedding, words=words, format=format, member=member)
    return Inputs(domain, matches, known, kind, frozenset(taken))


def read_domain(table: Any, reading: Reading) -> Domain:
    """Return the domain that a table, or a file of a table or of vectors, describes."""
    options = {name: getattr(reading, name) for name in reading.asked() if name in DOMAIN_OPTIONS}
    is_path = isinstance(table, str | os.PathLike)
    is_asked = reading.kind == "embedding"
    if is_path and (is_asked or (reading.kind == "features" and _holds_vectors(Path(table)))):
        reading.refuse_unused(
            ("kind", "standardize"), DOMAIN_OPTIONS, f"{table} is a file of word vectors"
        )
        vectors = read_embedding(table)
        domain = as_domain(vectors, standardize=reading.standardize)
        return replace(domain, notes=(*vectors.notes, *domain.notes))
    return as_domain(table, **options)


def _holds_vectors(path: Path) -> bool:
    """Tell whether a file that is no table by its name is one of word vectors."""
    if path.suffix.lower() in _TABLE_SUFFIXES:
        return False
    with Source(path) as source:
        kind = detected_format(source)
        if kind in (Format.CSV, Format.TSV, Format.PARQUET, Format.ARROW):
            return False
        first = source.head.split(b"\n", 1)[0]
    is_text = kind in (Format.WORD2VEC_TEXT, Format.GLOVE)
    return not (is_text and (b"\t" in first or b"," in first))


def word_in_file(entity: str, kind: Format) -> str:
    """Return an entity's name as a file of this format can hold it."""
    if kind.value in ("word2vec-binary", "word2vec-text", "glove"):
        return "_".join(entity.split())
    return entity


def quiet(_what: str, _done: int, _total: int) -> None:
    """Say nothing."""
