"""Texts about entities -> domains: by TF-IDF, by the embedding's own words, or by an encoder."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, ClassVar

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, is_missing, listed, unique_entities
from vecfill.inputs.later_rows import Facts, LaterRows, Reader, TextsReader
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.columns import MISSING
from vecfill.inputs.table.frames import Cells, Frame, frame_of, keyed, objects
from vecfill.inputs.texts.encoders import encoded, function_of
from vecfill.inputs.texts.text_rows import TextModel, TextRows, text_rows, word_means
from vecfill.requests import TEXT_OPTIONS, Reading
from vecfill.wording import count

FEWEST_TEXTS = 3


@dataclass(frozen=True, eq=False)
class TextSource:
    """Entities and a text about each; what has no text is left out.

    Examples
    --------
    >>> source = TextSource(("iron", "neon"), ("a hard metal", "a noble gas"))
    >>> len(source), source
    (2, TextSource(2 texts))
    """

    title: ClassVar[str] = "text"

    entities: tuple[str, ...]
    texts: tuple[str, ...] = field(repr=False)
    encoder: Any = None
    """An object with ``encode(list of texts)``, or a function of a list of texts."""
    cache: str | os.PathLike[str] | None = None
    """Folder for the vectors of an encoder; by default in the cache folder of the user."""
    notes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    """Columns of the table that the texts come from."""

    def __len__(self) -> int:
        return len(self.entities)

    def __repr__(self) -> str:
        how = "" if self.encoder is None else f", encoder of type {type(self.encoder).__name__}"
        return f"TextSource({len(self)} texts{how})"

    def variants(
        self,
        embedding: Embedding | None = None,
        *,
        words: Mapping[str, str] | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> tuple[Domain, ...]:
        """Return the ways to turn the texts into vectors, one domain each; hidden rows choose.

        With an encoder there is only that. Without one there is TF-IDF and, if an embedding is
        given whose words occur in the texts, the mean of their vectors.

        Parameters
        ----------
        embedding
            Words and vectors, best those of a whole file.
        words
            The word of each known entity (``matches.words``): it is left out of the entity's own
            text, because an unknown entity has no such vector either.
        progress
            Called with what is done, how many texts are encoded, and how many there are.

        Examples
        --------
        >>> metals = text({"iron": "hard metal", "lead": "soft metal", "neon": "noble gas",
        ...                "argon": "noble gas"})
        >>> [domain.vectors.shape for domain in metals.variants()]
        [(4, 2)]
        """
        if self.encoder is not None:
            return (self._by_encoder(progress),)
        ways = [self._by_tfidf()]
        if embedding is not None:
            ways.append(self._by_words(embedding, words or {}))
        domains = tuple(way for way in ways if way is not None)
        if not domains:
            raise InputError(
                f"the {len(self)} texts have no word in common, such as {self.texts[0][:60]!r}, so "
                "they cannot be compared. Pass an encoder=, or check the column."
            )
        return domains

    def _by_encoder(self, progress: Callable[[str, int, int], None] | None) -> Domain:
        vectors = encoded(self.texts, self.encoder, cache=self.cache, progress=progress)
        kind = type(self.encoder).__name__
        note = f"{count(len(self), 'text')} became vectors of {vectors.shape[1]} numbers ({kind})."
        rows = TextRows(vectors, np.ones(len(self), np.bool_))
        return self._domain(rows, "encoded", note, EncoderReader(self.columns, kind))

    def _by_tfidf(self) -> Domain | None:
        rows = text_rows(self.texts)
        if rows.is_present.sum() < FEWEST_TEXTS:
            return None
        n_components = rows.vectors.shape[1]
        note = f"{count(len(rows.vectors), 'text')} became TF-IDF of {n_components} components."
        return self._domain(rows, "tfidf", note, TextReader(self.columns, rows.model))

    def _by_words(self, embedding: Embedding, words: Mapping[str, str]) -> Domain | None:
        names = [(entity, words.get(entity, entity)) for entity in self.entities]
        rows = word_means(self.texts, names, embedding, columns=self.columns)
        if rows.is_present.sum() < FEWEST_TEXTS:
            return None
        texts = count(len(rows.vectors), "text")
        note = f"{texts} became means of the embedding's own word vectors."
        return self._domain(rows, "words", note, rows.model)

    def _domain(self, rows: TextRows, name: str, note: str, reader: Reader) -> Domain:
        entities = tuple(compress(self.entities, rows.is_present))
        notes = (*self.notes, note)
        if n_absent := len(self) - len(entities):
            notes += (f"{n_absent} texts have no word that could be compared; left out.",)
        vectors = rows.vectors.astype(np.float64)
        columns = tuple(f"{name} {number + 1}" for number in range(vectors.shape[1]))
        return Domain(entities, vectors, columns, "features", notes, reader=reader)


@dataclass(frozen=True, eq=False)
class TextReader(TextsReader):
    """Texts by TF-IDF."""

    model: TextModel

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the rows of new texts; one without a known word has none."""
        rows = self.model.rows(facts.texts(self.columns))
        return LaterRows.usual(facts, rows.vectors, rows.is_present)


@dataclass(frozen=True, eq=False)
class EncoderReader(TextsReader):
    """Texts by an encoder, which is not part of the model."""

    encoder: str
    """Of what type it was."""

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:
        """Return the rows of new texts by the encoder, which must be passed again."""
        if encoder is None:
            raise InputError(
                f"{len(facts.entities)} texts need the encoder of the fit (of type "
                f"{self.encoder}), which is not kept in the model. Pass it: add(..., encoder=...)."
            )
        texts = facts.texts(self.columns)
        is_present = [bool(text) for text in texts]
        rows = encoded([text for text in texts if text], encoder)
        return LaterRows.usual(facts, rows.astype(np.float64), is_present)


def text(
    source: Any,
    columns: str | Sequence[str] | None = None,
    *,
    key: str | None = None,
    encoder: Any = None,
    cache: str | os.PathLike[str] | None = None,
    encoding: str = "utf-8",
    separator: str | None = None,
    header: bool = True,
) -> TextSource:
    """Return texts about entities as a source for `impute`.

    Parameters
    ----------
    source
        A pandas, polars or Arrow table, the path of a table, or a mapping from entity to text.
    columns
        The column of text, or several, which are joined. Not needed if there is only one.
    key
        The column of entity names; by default pandas' index, or the first column.
    encoder
        An object with ``encode(list of texts)``, as in sentence-transformers and model2vec, or a
        function of a list of texts. By default TF-IDF or the embedding's own word vectors,
        whichever does better on hidden entities.
    cache
        Folder in which the encoder's vectors are kept, so that a text is encoded once.
    encoding, separator, header
        How a CSV or TSV file is read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"name": ["iron", "neon", "tin"], "about": ["hard metal", "gas", None]})
    >>> found = text(table, "about")
    >>> found.entities, found.texts
    (('iron', 'neon'), ('hard metal', 'gas'))
    """
    if encoder is None and cache is not None:
        raise InputError(f"cache={cache!r} has no effect without encoder=. Leave it out.")
    if encoder is not None:
        # Not every run comes to use it: a method for one table alone never asks for texts.
        function_of(encoder)
    text_options = {"encoding": encoding, "separator": separator, "header": header}
    if not isinstance(source, str | os.PathLike):
        Reading(**text_options).refuse_unused((), TEXT_OPTIONS, "the source is not a text file")
    if isinstance(source, Mapping):
        if columns is not None or key is not None:
            raise InputError("columns= and key= are for tables; a mapping has its keys and texts.")
        names = unique_entities(source, where="the texts")
        return _source(names, [_texts([*source.values()], "the texts", names)], encoder, cache)
    frame = frame_of(source, **text_options)
    if frame is None:
        raise InputError(
            f"texts cannot be read from an object of type {type(source).__name__}. Pass a table, "
            "the path of one, or a mapping from entity to text."
        )
    entities, described = keyed(frame, key)
    chosen = _chosen(described, columns)
    parts = [
        _texts(described.columns[name], f"{described.label}, column {name!r}", entities)
        for name in chosen
    ]
    return replace(_source(entities, parts, encoder, cache), columns=tuple(chosen))


def text_file(path: str | os.PathLike[str], *, encoder: Any = None) -> TextSource:
    """Return the texts of a file whose first column has names, and whose others have texts."""
    frame = frame_of(path)
    assert frame is not None, "a path is always read"
    _, columns = keyed(frame, None)
    return text(path, columns.names, encoder=encoder)


def split_texts(
    table: Any, reading: Reading, columns: Sequence[str], *, encoder: Any = None
) -> tuple[dict[str, TextSource], Reading | None]:
    """Return each text column of a table as a source, and how to read the rest of the table.

    The second is None if nothing but text is left, so that there is no table to read.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"name": ["iron", "neon"], "mass": [55.8, 20.2], "about": ["a", "b"]})
    >>> texts, rest = split_texts(table, Reading(), ["about"])
    >>> texts, rest.ignore
    ({'about': TextSource(2 texts)}, ('about',))
    """
    if reading.kind != "features":
        raise InputError(
            f"text={columns[0]!r} names a column of a table of features, and this one holds "
            f"{reading.kind}. Pass the texts as a source of their own."
        )
    is_path = isinstance(table, str | os.PathLike)
    options = {name: getattr(reading, name) for name in TEXT_OPTIONS} if is_path else {}
    sources = {
        name: text(table, name, key=reading.key, encoder=encoder, **options)
        for name in dict.fromkeys(columns)
    }
    for name in columns:
        if name in (*reading.ignore, *reading.categorical):
            raise InputError(
                f"column {name!r} is to be read as text, and also to be ignored or read as "
                "categories. Keep one of these options."
            )
    frame = frame_of(table, **options)
    assert frame is not None, "text() would have refused it"
    _, features = keyed(frame, reading.key)
    counts = (reading.counts,) if isinstance(reading.counts, str) else ()
    if not set(features.names) - {*columns, *reading.ignore, *counts}:
        return sources, None
    return sources, replace(reading, ignore=(*reading.ignore, *sources))


def _chosen(frame: Frame, columns: str | Sequence[str] | None) -> list[str]:
    if columns is None:
        if len(frame.names) > 1:
            raise InputError(
                f"{frame.label} has the columns {listed(frame.names, 10)}. Say which hold the "
                "text (columns=)."
            )
        return list(frame.names)
    chosen = [columns] if isinstance(columns, str) or not hasattr(columns, "__iter__") else columns
    chosen = list(map(str, dict.fromkeys(chosen)))
    absent = [name for name in chosen if name not in frame.names]
    if absent or not chosen:
        problem = f"no column {listed(absent)}" if absent else "to be read without any column"
        raise InputError(
            f"{frame.label} has {problem}. Besides entity names it has {listed(frame.names, 10)}."
            + (did_you_mean(absent[0], frame.names) if absent else "")
        )
    return chosen


def _texts(cells: Cells, where: str, entities: Sequence[str]) -> list[str]:
    """Return cells as texts, empty where there is none; refuse what is no text."""
    texts: list[str] = []
    for row, cell in enumerate(objects(cells)):
        if is_missing(cell):
            texts.append("")
        elif isinstance(cell, str):
            stripped = cell.strip()
            texts.append("" if stripped in MISSING else stripped)
        else:
            raise InputError(
                f"{where}, entity {entities[row]!r} (row {row + 1}): {cell!r} is of type "
                f"{type(cell).__name__}, not text. Use numbers as columns of a table instead."
            )
    return texts


def _source(
    entities: tuple[str, ...], parts: Sequence[Sequence[str]], encoder: Any, cache: Any
) -> TextSource:
    texts = ["\n".join(filter(None, cells)) for cells in zip(*parts, strict=True)]
    rows = [row for row, text in enumerate(texts) if text]
    if not rows:
        raise InputError(f"all {len(entities)} texts are empty. Check the column of text.")
    n_empty = len(entities) - len(rows)
    notes = (
        (f"{count(n_empty, 'entity has', 'entities have')} no text; left out of this source.",)
        if n_empty
        else ()
    )
    return TextSource(
        tuple(entities[row] for row in rows),
        tuple(texts[row] for row in rows),
        encoder,
        cache,
        notes,
    )
