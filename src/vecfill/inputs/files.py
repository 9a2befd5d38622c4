"""Files of a user -> the domain, how its names matched, and the rows of the matching words."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import FormatError, InputError, VecfillError
from vecfill.inputs.counts import is_column, read_counts
from vecfill.inputs.domain import Domain, as_domain, domain_of
from vecfill.inputs.names.match_report import MatchReport, without_unreliable
from vecfill.inputs.names.matching import NameSearch
from vecfill.inputs.names.vocabulary import FEW_WORDS, VocabularySample
from vecfill.inputs.prepared import is_late
from vecfill.inputs.rarity import RankSample, VocabularyMeans
from vecfill.inputs.sources import are_sources, numbered, read_sources
from vecfill.io import Scan, read_embedding
from vecfill.io.batches import finite_rows
from vecfill.io.codecs import CODECS, codec_named, codec_of
from vecfill.io.reading import ScannedBatch, about_odd, about_repeats
from vecfill.io.sources import Source
from vecfill.io.tables import TableFile
from vecfill.requests import DOMAIN_OPTIONS, KINDS, TEXT_KIND, Reading

PathOrName = str | os.PathLike[str]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is (0: unknown)."""


@dataclass(frozen=True)
class Inputs:
    """What was read: the domain, how its names matched, and the rows of the matching words."""

    domain: Domain
    matches: MatchReport
    embedding: Embedding
    format: str
    taken: frozenset[str]
    """Words of the file under which an entity would have to be written."""
    rows: dict[str, int]
    """The row in the file of each matched word, from 0: its frequency rank in most files."""
    sha256: str
    """The hash of the embedding file as it is on disk."""
    size: int
    """The size of the embedding file on disk, in bytes."""
    vocabulary: VocabularyMeans
    """Mean vectors of the whole file by rank."""
    counts: dict[str, float] | None = None
    """How often entities were counted, if that was told."""
    words: Embedding | None = None
    """Words and vectors of the whole file, or a sample of a large one."""

    @property
    def n_words(self) -> int:
        """The number of rows of the embedding file."""
        return self.matches.n_words

    @property
    def notes(self) -> tuple[str, ...]:
        """What the readers had to tell, in sentences."""
        return (*self.embedding.notes, *self.domain.notes, *self.matches.notes)


def read_inputs(
    embedding: PathOrName,
    table: Any,
    reading: Reading,
    *,
    unreliable: Collection[str] = (),
    fuses: bool = False,
    names_only: bool = False,
    progress: Progress | None = None,
) -> Inputs:
    """Read the domain; match its names and read their rows in one pass over the embedding.

    Entities that are `unreliable` are treated as unknown; which word they have is kept. If the
    caller `fuses` sources, words and vectors of the whole file are kept for names and texts. With
    `names_only`, the nodes of a graph get no vectors, which take far longer than their names.
    """
    tell = progress or quiet
    with _scan(embedding, table, reading) as scan:
        tell("Reading the table", 0, 0)
        domain = read_domain(table, reading, names_only=names_only)
        counts = None if reading.counts is None else read_counts(table, reading)
        search = NameSearch(
            domain.entities,
            level=reading.match,
            aliases=reading.aliases,
            exclude=reading.exclude,
        )
        forms = {
            form for entity in domain.entities for form in (entity, scan.codec.word_of(entity))
        }
        words_in_file: set[str] = set()
        candidates, sample = _Candidates(), RankSample()
        whole = None if names_only else _vocabulary_sample(domain, reading, fuses=fuses)
        for batch in scan:
            first, places = (
                batch.first_row,
                sample.places(first_row=batch.first_row, n_rows=len(batch.words)),
            )
            sample.add(first_row=first, places=places, vectors=batch.vectors(places))
            if whole is not None:
                whole.add(batch)
            words_in_file.update(forms.intersection(batch.words))
            candidates.add(batch, search.offer(batch.words))
            tell("Scanning words", batch.first_row + len(batch.words), 0)
    tell("Reading known rows", 0, 0)
    matches = without_unreliable(
        search.report(), reading, counts=counts, rows=candidates.rows, named=unreliable
    )
    known = candidates.embedding(scan, dict.fromkeys(matches.words.values()))
    rows = {word: candidates.rows[word] for word in known.words}
    words = None if whole is None else whole.embedding()
    if fuses:
        from vecfill.inputs.alignment import described  # noqa: PLC0415 - slow to load

        mode = reading.name_mode
        domain = described(domain, words, matches.words, names=mode, progress=progress)
    return Inputs(
        domain,
        matches,
        known,
        scan.codec.name,
        frozenset(words_in_file),
        rows,
        scan.sha256,
        scan.size,
        sample.means(n_words=matches.n_words),
        counts,
        words,
    )


def _vocabulary_sample(domain: Domain, reading: Reading, *, fuses: bool) -> VocabularySample:
    """Return what gathers the words of the file: all that names need, or enough to look at."""
    is_read = reading.name_mode != "off" or any(
        source.late is not None for source in domain.sources
    )
    if fuses and is_read:
        return VocabularySample(domain.entities)
    return VocabularySample((), n_most=FEW_WORDS, n_frequent=FEW_WORDS)


def _scan(embedding: PathOrName, table: Any, reading: Reading) -> Scan:
    """Start to read the embedding; if it is none and the table is, say that they were swapped."""
    try:
        return Scan(embedding, format=reading.format, member=reading.member)
    except FormatError as error:
        if isinstance(table, str | os.PathLike) and _are_swapped(embedding, table):
            raise FormatError(
                f"{error} {table} does hold word vectors: did you swap EMBEDDING and TABLE?"
            ) from error
        raise


def _are_swapped(embedding: PathOrName, table: PathOrName) -> bool:
    """Tell whether a file that is no embedding is a table, and the table is an embedding."""
    try:
        with Source(embedding) as source:
            if not codec_of(source).is_table:
                return False
        if not holds_vectors(Path(table)):
            return False
        with Scan(table):
            return True
    except VecfillError:
        return False


@dataclass
class _Candidates:
    """Rows of words that may turn out to be matches, a few for each entity."""

    rows: dict[str, int] = field(default_factory=dict)
    vectors: dict[str, FloatArray] = field(default_factory=dict)
    problems: dict[str, FormatError] = field(default_factory=dict)
    repeats: list[str] = field(default_factory=list)

    def add(self, batch: ScannedBatch, places: list[int]) -> None:
        """Keep the rows at `places`; of a word that comes again the first row counts."""
        new: list[int] = []
        for place in places:
            word = batch.words[place]
            if word in self.rows:
                self.repeats.append(word)
            else:
                self.rows[word] = batch.first_row + place
                new.append(place)
        if not new:
            return
        vectors = batch.vectors(new)
        is_finite = finite_rows(vectors).tolist()
        for place, vector, is_good in zip(new, vectors, is_finite, strict=True):
            self.vectors[batch.words[place]] = vector
            if not is_good:
                self.problems[batch.words[place]] = batch.problem(place)

    def embedding(self, scan: Scan, words: Iterable[str]) -> Embedding:
        """Return the rows of `words`, which were matched; refuse if one holds NaN."""
        chosen = list(words)
        # The first in the file, as a reader of these words alone would meet it.
        for word in sorted(self.problems.keys() & chosen, key=self.rows.__getitem__):
            raise self.problems[word]
        notes = list(scan.notes)
        matched = set(chosen)
        if repeats := [word for word in self.repeats if word in matched]:
            notes.append(about_repeats(scan.source, len(repeats), repeats[0]))
        if scan.n_odd:
            notes.append(about_odd(scan.source, scan.n_odd))
        notes += scan.codec.notes_on_adding(scan.rows)
        dtype = scan.rows.dtype.newbyteorder("=")
        vectors = np.empty((len(chosen), scan.rows.n_dims), dtype)
        for row, word in enumerate(chosen):
            vectors[row] = self.vectors[word]
        return Embedding(chosen, vectors, notes=notes, provenance=scan.rows.provenance)


def read_domain(
    table: Any, reading: Reading, *, names_only: bool = False, skip_empty: bool = False
) -> Domain:
    """Return the domain that a table, a file of a table or of vectors, or several sources make.

    With `skip_empty`, rows of a table without any value are left out, as one of several sources
    may not describe an entity.
    """
    if are_sources(table):
        why = "there are several sources; read each with its own options (vecfill.as_domain)"
        reading.refuse_unused(("names",), (*DOMAIN_OPTIONS, "text"), why)
        return read_sources(_joined(_named(table), _more_sources(reading)), _reader_of(reading))
    if reading.text or reading.source:
        return read_sources(_split(table, reading), _reader_of(reading))
    is_path = isinstance(table, str | os.PathLike)
    is_asked = reading.kind == "embedding"
    if is_path and (is_asked or (reading.kind == "features" and holds_vectors(Path(table)))):
        why = f"{table} is a file of word vectors"
        replace(reading, names=reading.row_names).refuse_unused(
            ("kind", "standardize"), DOMAIN_OPTIONS, why
        )
        vectors = read_embedding(table)
        domain = as_domain(vectors, standardize=reading.standardize)
        return replace(domain, notes=(*vectors.notes, *domain.notes))
    names_suffice = reading.name_mode not in (None, "off")
    plain = reading if reading.name_mode is None else replace(reading, names=None)
    if reading.counts is not None and is_column(reading.counts):
        # How often an entity was counted does not describe it.
        plain = replace(plain, ignore=(*plain.ignore, reading.counts))
    try:
        return domain_of(
            table,
            plain,
            names_only=names_only,
            names_suffice=names_suffice,
            skip_empty=skip_empty,
        )
    except InputError:
        if reading.counts is not None and is_column(reading.counts):
            read_counts(table, reading)  # If it is the column that is missing, this says so.
        raise


def _reader_of(reading: Reading) -> Callable[[Any], Domain]:
    """Return what reads a source that has no options; only names are asked for from all of them."""
    return partial(read_domain, reading=Reading(names=reading.name_mode), skip_empty=True)


def _named(table: Any) -> dict[str, Any]:
    if is_late(table):
        return {table.title: table}
    if isinstance(table, Mapping):
        return dict(table)
    return dict(numbered(table))


def _split(table: Any, reading: Reading) -> dict[str, Any]:
    """Return a table, its text columns and further files as sources by name."""
    features_reading: Reading | None = reading
    texts: dict[str, Any] = {}
    if reading.text:
        from vecfill.inputs.texts.text import split_texts  # noqa: PLC0415 - slow to load

        texts, features_reading = split_texts(
            table, reading, reading.text, encoder=_encoder(reading.encoder)
        )
    sources: dict[str, Any] = {}
    if features_reading is not None:
        alone = replace(features_reading, text=(), source=(), encoder=None)
        sources["table"] = read_domain(table, alone, skip_empty=True)
    return _joined(sources, texts, _more_sources(reading))


def _joined(*groups: Mapping[str, Any]) -> dict[str, Any]:
    """Return sources of several origins; a name that two of them have would drop one of them."""
    sources: dict[str, Any] = {}
    for group in groups:
        for name, source in group.items():
            if name in sources:
                raise InputError(f"two sources are called {name!r}. Give each a name of its own.")
            sources[name] = source
    return sources


def _encoder(encoder: Any) -> Any:
    """Return the encoder, read from its folder if that is what was given."""
    from vecfill.inputs.texts.encoders import load_encoder  # noqa: PLC0415 - slow to load

    return load_encoder(encoder) if isinstance(encoder, str | os.PathLike) else encoder


def _more_sources(reading: Reading) -> dict[str, Any]:
    """Return the domains of further files, and the texts of files of text."""
    return {name: _of_file(*file, reading) for name, file in source_files(reading).items()}


def _of_file(path: str, kind: str, reading: Reading) -> Any:
    if kind == TEXT_KIND:
        from vecfill.inputs.texts.text import text_file  # noqa: PLC0415 - slow to load

        return text_file(path, encoder=_encoder(reading.encoder))
    return read_domain(path, Reading(kind=kind, names=reading.name_mode), skip_empty=True)


def source_files(reading: Reading) -> dict[str, tuple[str, str]]:
    """Return path and kind of the files that were named as NAME=FILE or NAME=FILE:KIND.

    Examples
    --------
    >>> source_files(Reading(source=("graph=mesh.csv:edges", "facts=facts.csv")))
    {'graph': ('mesh.csv', 'edges'), 'facts': ('facts.csv', 'features')}
    """
    files: dict[str, tuple[str, str]] = {}
    for text in reading.source:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise InputError(f"source {text!r} is not NAME=FILE or NAME=FILE:KIND.")
        if name in files or name == "table":
            raise InputError(f"two sources are called {name!r}. Give each a name of its own.")
        files[name] = _path_and_kind(path)
    return files


def _path_and_kind(path: str) -> tuple[str, str]:
    kinds = (*KINDS, TEXT_KIND)
    before, colon, kind = path.rpartition(":")
    if colon and kind not in kinds and Path(before).is_file() and not Path(path).exists():
        raise InputError(f"{path}: {kind!r} is no kind of source. Kinds are {', '.join(kinds)}.")
    return (before, kind) if colon and kind in kinds else (path, "features")


def holds_vectors(path: Path) -> bool:
    """Tell whether a file that is no table by its name is one of word vectors."""
    suffix = path.suffix.lower()
    if suffix == ".tab" or any(
        suffix in entry.suffixes and entry.codec.is_table for entry in CODECS
    ):
        return False
    with Source(path) as source:
        return not codec_of(source).may_be_features(source)


def word_in_file(entity: str, format: str) -> str:  # noqa: A002
    """Return an entity's name as a file of this format can hold it."""
    return codec_named(format).word_of(entity)


def shared_table(table: Any, reading: Reading, *, is_shown: bool = False) -> Any:
    """Return a table file as one that is parsed once, however many readers it has."""
    if isinstance(table, TableFile) or not isinstance(table, str | os.PathLike):
        return table
    counts = reading.counts is not None and is_column(reading.counts)
    # Some readers need the cells as they are written; numbers would have to be parsed beside them.
    as_text = is_shown or counts or bool(reading.text) or reading.vector is not None
    return TableFile(table, as_text=as_text)


def forget(table: Any) -> None:
    """Free the cells of a shared table that nobody will ask for soon."""
    if isinstance(table, TableFile):
        table.forget()


def quiet(_what: str, _done: int, _total: int) -> None:
    """Say nothing."""
