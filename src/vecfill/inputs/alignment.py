"""Table and embedding brought together: a domain row for each entity, a vector for those known.

A table describes entities by itself. A text can also be read by the vectors of its words, and a
name by what the vocabulary teaches about spelling. Both need the embedding, so they are read when
it is there (`described`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.counts import read_counts
from vecfill.inputs.embeddings import as_embedding
from vecfill.inputs.files import Inputs, Progress, quiet, read_domain, read_inputs
from vecfill.inputs.groups import Groups
from vecfill.inputs.names.domains import (
    FEWEST_WORDS,
    NAMES,
    name_sources,
    parts_domain,
    rows_of_others,
)
from vecfill.inputs.names.match_report import MatchReport, without_unreliable
from vecfill.inputs.names.matching import match_names
from vecfill.inputs.names.siblings import kinds_of_names
from vecfill.inputs.names.vocabulary import N_BESIDES, frequent_and_even, words_besides
from vecfill.inputs.prepared import Domain, Source, joint
from vecfill.inputs.rarity import (
    RankSample,
    Rarity,
    VocabularyMeans,
    absent_for_another_reason,
    counts_of,
    in_counts,
    log_rank,
    looks_reversed,
    minus_log_count,
    moves_with,
)
from vecfill.inputs.table.one_table import OneTable, read_one_table
from vecfill.io.batches import finite_rows
from vecfill.io.tables import read_table
from vecfill.requests import FILE_OPTIONS, NAME_OPTIONS, Reading
from vecfill.wording import count

NEARLY_ALL = 0.98
"""Share of a file's words that is as good as all: words that come twice are kept once."""

MUCH_LARGER = 5
"""Words in the vocabulary for each known entity from which it teaches more than these do."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """What is given: rows keep the order of the domain, and an unknown row is all NaN."""

    domain: Domain
    matches: MatchReport
    embedding: EmbeddingVectors = field(repr=False)
    is_known: KnownMask = field(repr=False)
    notes: tuple[str, ...] = field(default=(), repr=False)
    """What there is to say about files, table and names."""
    rarity: Rarity | None = None
    """How rare the entities are; ``None`` if neither order nor counts tell."""
    groups: Groups | None = field(default=None, repr=False)
    """Groups that get bounds of their own, if a user named some."""
    table: OneTable | None = field(default=None, repr=False)
    """The table that holds both features and vectors, if there is only one."""
    vocabulary: Embedding | None = field(default=None, repr=False)
    """Words and vectors of the whole embedding, or a sample of a large one, as users see them."""

    @property
    def n_known(self) -> int:
        """How many entities have a vector."""
        return int(self.is_known.sum())

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the entities that have a vector."""
        return tuple(self._entities[self.is_known].tolist())

    @property
    def unknown(self) -> tuple[str, ...]:
        """Names of the entities that have none."""
        return tuple(self._entities[~self.is_known].tolist())

    @property
    def _entities(self) -> np.ndarray:
        return np.array(self.domain.entities, dtype=object)

    @cached_property
    def words_besides(self) -> np.ndarray | None:
        """Vectors of words that are no entity, among which hidden entities are ranked."""
        if self.vocabulary is None:
            return None
        besides = words_besides(self.vocabulary, self.matches.words.values())
        return besides if len(besides) else None

    @property
    def has_whole_vocabulary(self) -> bool:
        """Whether `vocabulary` holds all words of the embedding, but for a few that are odd."""
        n_words = self.matches.n_words
        return self.vocabulary is not None and len(self.vocabulary) >= NEARLY_ALL * n_words

    def with_few_words(self) -> Alignment:
        """Return the same with no more of the vocabulary than a comparison of methods needs."""
        if self.vocabulary is None or len(self.vocabulary) <= N_BESIDES:
            return self
        half = N_BESIDES // 2
        places = frequent_and_even(len(self.vocabulary), n_frequent=half, n_even=half)
        words = [self.vocabulary.words[place] for place in places.tolist()]
        return replace(self, vocabulary=Embedding(words, self.vocabulary.vectors[places]))

    def refuse_cut_off(self) -> None:
        """Refuse a graph in which some entities have no path to a known one."""
        cut_off = self.domain.cut_off(set(self.matches.words))
        if cut_off:
            names = ", ".join(printable(name) for name in cut_off[:3])
            raise InputError(
                f"{count(len(cut_off), 'entity has', 'entities have')} no path in the graph to a "
                f"known one ({names}{' ...' if len(cut_off) > 3 else ''}). Leave out what cannot "
                "be reached, or add edges."
            )


def align(
    table: Any,
    embedding: Any,
    reading: Reading,
    *,
    matches: MatchReport | None = None,
    fuses: bool = False,
    progress: Progress | None = None,
) -> Alignment:
    """Return what a table and an embedding, in memory or in files, have in common.

    If the caller `fuses` sources, names and texts are read by the words of the embedding. If
    `embedding` is None, the table has a column of vectors (`vector`) as well.

    Examples
    --------
    >>> base = Embedding(["Oslo"], [[1.0, 2.0]])
    >>> align({"oslo": [0.0], "Bern": [1.0]}, base, Reading()).embedding
    array([[ 1.,  2.],
           [nan, nan]])
    """
    if matches is not None:
        why = "matches= says which entity is which word"
        reading.refuse_unused((), NAME_OPTIONS, why)
    if embedding is None:
        return _align_one_table(table, reading, matches)
    if isinstance(embedding, str | os.PathLike) and reading.vector is not None:
        reading.refuse_unused((), FILE_OPTIONS, "vector= names a column of a table")
        embedding = read_table(embedding)
    if isinstance(embedding, str | os.PathLike) and matches is None:
        inputs = read_inputs(embedding, table, reading, fuses=fuses, progress=progress or quiet)
        return aligned_inputs(inputs)
    if isinstance(embedding, str | os.PathLike):
        raise InputError(
            "matches= needs the embedding in memory. Read its words first: "
            "read_embedding(path, words=...)."
        )
    base = as_embedding(embedding, key=reading.key, vector=reading.vector)
    reading.refuse_unused((), FILE_OPTIONS, "the embedding is not a file")
    domain = read_domain(table, reading)
    counts = None if reading.counts is None else read_counts(table, reading)
    if matches is None:
        matches = match_names(
            domain.entities,
            base.words,
            level=reading.match,
            aliases=reading.aliases,
            exclude=reading.exclude,
        )
        rows = {word: base.row(word) for word in matches.words.values()}
        matches = without_unreliable(matches, reading, counts=counts, rows=rows)
    if fuses:
        mode = reading.name_mode
        domain = described(domain, base, matches.words, names=mode, progress=progress)
    alignment = replace(aligned(domain, base, matches), vocabulary=base)
    rows = {word: base.row(word) for word in matches.words.values()}
    ordered = with_order(alignment, rows, vocabulary_of(base))
    return ordered if counts is None else with_counts(alignment, counts, ordered.rarity)


def _align_one_table(table: Any, reading: Reading, matches: MatchReport | None) -> Alignment:
    """Return a table of features and the vectors that some of its rows have."""
    if matches is not None:
        raise InputError("matches= needs an embedding. In one table every row has its own vector.")
    one_table = read_one_table(table, reading)
    counts = None if reading.counts is None else read_counts(table, reading)
    rows = dict.fromkeys(one_table.matches.words, 0)  # Rows of a table tell nothing of rarity.
    known = without_unreliable(one_table.matches, reading, counts=counts, rows=rows)
    alignment = replace(aligned(one_table.domain, one_table.embedding, known), table=one_table)
    return alignment if counts is None else with_counts(alignment, counts)


def aligned_inputs(inputs: Inputs) -> Alignment:
    """Return what was read from files, brought together."""
    alignment = aligned(inputs.domain, inputs.embedding, inputs.matches)
    alignment = replace(alignment, vocabulary=inputs.words)
    ordered = with_order(alignment, inputs.rows, inputs.vocabulary)
    if inputs.counts is None:
        return ordered
    return with_counts(alignment, inputs.counts, ordered.rarity)


def vocabulary_of(embedding: Embedding) -> VocabularyMeans:
    """Return the mean vectors of an embedding in memory by rank."""
    sample = RankSample()
    places = sample.places(first_row=0, n_rows=len(embedding))
    sample.add(first_row=0, places=places, vectors=embedding.vectors[places])
    return sample.means(n_words=len(embedding))


def with_counts(
    alignment: Alignment, counts: Mapping[str, float], order: Rarity | None = None
) -> Alignment:
    """Return the alignment with rarities from counts; known entities need one.

    If the `order` of the embedding means something as well, its whole vocabulary teaches how the
    mean vector moves with counts.
    """
    values = minus_log_count(counts_of(counts, alignment.domain.entities))
    is_lacking = alignment.is_known & np.isnan(values)
    n_lacking, notes = int(is_lacking.sum()), alignment.notes
    if n_lacking > alignment.n_known // 2:
        raise InputError(
            f"counts name {alignment.n_known - n_lacking} of the {alignment.n_known} known "
            "entities; at least half of them are needed to learn what rarity means. Check that "
            "counts and table use the same names."
        )
    if n_lacking:
        values[is_lacking] = np.nanmedian(values[alignment.is_known])
        entities_without = count(n_lacking, "known entity has", "known entities have")
        notes = (*notes, f"{entities_without} no count; the median was taken.")
    vocabulary: VocabularyMeans | None = None
    if order is not None and order.vocabulary is not None:
        has_count = alignment.is_known & ~is_lacking
        vocabulary = in_counts(order.vocabulary, order.values[has_count], values[has_count])
    return replace(alignment, rarity=Rarity(values, "counts", vocabulary), notes=notes)


def with_order(
    alignment: Alignment, rows: Mapping[str, int], vocabulary: VocabularyMeans
) -> Alignment:
    """Return the alignment with rarities from the order of the embedding, if that means anything.

    The mean vector must move along the order by more than chance. An order that seems to have the
    rarest words first is not used, and a note says so. The whole vocabulary teaches how the mean
    moves if it is much larger than the known part.
    """
    words = alignment.matches.words
    ranks = [rows[words[entity]] for entity in alignment.known]
    values = np.full(len(alignment.domain), np.nan)
    values[alignment.is_known] = log_rank(ranks)
    vectors = alignment.embedding[alignment.is_known]
    if not moves_with(values[alignment.is_known], vectors):
        return alignment
    if looks_reversed(values[alignment.is_known], [words[entity] for entity in alignment.known]):
        note = (
            "The order of the embedding was not taken for frequency: words near its end are "
            "shorter than those near its beginning, as if the rarest words came first. Pass "
            "counts=."
        )
        return replace(alignment, notes=(*alignment.notes, note))
    is_larger = vocabulary.n_words >= MUCH_LARGER * alignment.n_known
    # Only what is itself rare says so: a word of the file has no spaces, however frequent it is.
    spared, spares_several = absent_for_another_reason(
        alignment.domain.entities, alignment.is_known, _alphabet(alignment)
    )
    rarity = Rarity(values, "order", vocabulary if is_larger else None, spares_several, spared)
    return replace(alignment, rarity=rarity)


def _alphabet(alignment: Alignment) -> set[str]:
    """Return the characters of the words that the embedding has, and of known entities."""
    words = () if alignment.vocabulary is None else alignment.vocabulary.words
    return set("".join(words)).union(*alignment.known, "_")


def aligned(domain: Domain, embedding: Embedding, matches: MatchReport) -> Alignment:
    """Return a domain and the vectors of the words that its entities were matched to."""
    matches.require_matches()
    words = matches.words
    is_known = np.array([entity in words for entity in domain.entities])
    vectors = np.full((len(domain), embedding.n_dims), np.nan, embedding.vectors.dtype)
    matched = [words[name] for name in domain.entities if name in words]
    vectors[is_known] = embedding[matched]
    _refuse_not_finite(vectors[is_known], matched)
    notes = (*embedding.notes, *domain.notes, *matches.notes)
    return Alignment(domain, matches, vectors, is_known, notes)


def _refuse_not_finite(vectors: EmbeddingVectors, words: Sequence[str]) -> None:
    """Refuse a known vector with NaN or infinity, as a reader of files does."""
    is_finite = finite_rows(vectors)
    if not is_finite.all():
        word = printable(words[int(np.argmin(is_finite))])
        raise InputError(
            f"the vector of {word!r} holds NaN or infinity. Remove the word from the embedding, "
            "and its entity is imputed."
        )


def described(
    domain: Domain,
    vocabulary: Embedding | None,
    words: Mapping[str, str],
    *,
    names: str | None = None,
    progress: Progress | None = None,
) -> Domain:
    """Return a domain with everything that the embedding can add to it.

    `vocabulary` has the words and vectors of the whole embedding, `words` the word of each known
    entity. `names` is a mode; ``None`` is ``"auto"`` if the vocabulary has many words besides those
    of the entities, and ``"off"`` otherwise.

    Examples
    --------
    >>> table = Domain(("Fort Worth", "Oslo"), np.eye(2), ("x", "y"))
    >>> base = Embedding(["fort", "worth", "oslo"], np.eye(3))
    >>> described(table, base, {"Oslo": "oslo"}, names="parts")
    Domain(2 entities, 2 sources: table, names)
    """
    context = {"words": words, "progress": progress}
    resolved = [source.resolved(vocabulary, **context) for source in domain.sources]
    sources = [source for source in resolved if not source.is_bare]
    if progress is not None and names != "off" and vocabulary is not None:
        progress("Reading names", 0, 0)
    of_names = _sources_of_names(domain.entities, vocabulary, words, names)
    clash = {source.name for source in sources} & {source.name for source in of_names}
    if clash:
        raise InputError(
            f"a source is called {min(clash)!r}, as what names say is. Give it another name, or "
            "say names='off'."
        )
    sources += of_names
    if not sources and words:
        raise InputError(_nothing_but_names(names))
    if not sources or not (of_names or domain.is_joint):
        return domain
    together = joint(sources)
    notes = joint([source for source in resolved if source.is_bare]).notes
    together = replace(together, notes=(*notes, *together.notes))
    if not of_names or vocabulary is None:
        return together
    return replace(together, kinds=kinds_of_names(together.entities, vocabulary.words))


def _nothing_but_names(mode: str | None) -> str:
    return (
        f"the entities have nothing but names, and names={mode!r} finds nothing in them that can "
        "be compared. Describe the entities by a table, a text or a graph."
    )


def _sources_of_names(
    entities: tuple[str, ...],
    vocabulary: Embedding | None,
    words: Mapping[str, str],
    mode: str | None,
) -> list[Source]:
    """Return what the names say; nothing if they are not to be asked or cannot be compared."""
    if mode == "off" or vocabulary is None:
        return []
    if mode is None and len(vocabulary) < FEWEST_WORDS + len(words):
        return []
    if mode is None and len(rows_of_others(entities, words, vocabulary)) < FEWEST_WORDS:
        return []
    if mode == "parts":
        of_parts = parts_domain(entities, words, vocabulary)
        return [Source(NAMES, (of_parts,))] if len(of_parts) else []
    try:
        return name_sources(entities, words, vocabulary, reads_parts=mode != "spelling")
    except InputError:
        if mode == "spelling":
            raise
        # Names that cannot be compared say nothing, and nobody asked for more.
        return []
