"""What a source says about terms and about the whole words of a model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, FloatArray, printable
from vecfill.exchange.huggingface.folder import ModelFolder, read_model
from vecfill.exchange.huggingface.gguf import is_gguf
from vecfill.exchange.huggingface.pieces import FEWEST_LETTERS, word_pieces
from vecfill.inputs.domain import as_domain
from vecfill.inputs.entities import listed
from vecfill.inputs.files import holds_vectors, read_domain
from vecfill.inputs.names.folding import folded
from vecfill.inputs.names.matching import match_names
from vecfill.inputs.names.parts import PartsModel, means_of_parts, rows_of_parts
from vecfill.inputs.prepared import Domain
from vecfill.inputs.rarity import has_several_words
from vecfill.inputs.sources import are_sources
from vecfill.io import iter_words, read_embedding
from vecfill.io.batches import finite_rows
from vecfill.requests import DOMAIN_OPTIONS, Reading
from vecfill.wording import count

PIECES = "pieces"
"""The source that is made of a model's own word pieces."""
OF_TABLES = (*DOMAIN_OPTIONS, "match", "aliases")
OF_VECTORS = ("kind", "standardize", "match", "aliases", "format", "member")
"""Options that say how a table, and a file of word vectors, is read."""
NOT_COVERED = "is not described by any source"


@dataclass(frozen=True)
class Described:
    """The terms and whole words that a source describes."""

    domain: Domain
    lacking: dict[str, str] = field(default_factory=dict)
    """Why terms of several words have no description by their parts."""
    ranks: dict[str, int] = field(default_factory=dict)
    """Place of each term and word in a source of word vectors, from 1; of several words, that of
    the rarest."""


def named_sources(source: Any) -> dict[str, Any]:
    """Return sources by name; a mapping from entity to vector is one source, not several."""
    if isinstance(source, str) or not are_sources(source):
        return {"source": source}
    if isinstance(source, Mapping):
        return dict(source)
    return {f"source {number}": part for number, part in enumerate(source, start=1)}


def _is_file_of_vectors(source: Any, reading: Reading) -> bool:
    is_path = isinstance(source, str | os.PathLike) and source != PIECES
    return is_path and (reading.kind == "embedding" or holds_vectors(Path(source)))


def refuse_unused(reading: Reading, sources: Iterable[Any]) -> None:
    """Refuse options that no source has a use for."""
    usable: set[str] = {"counts"}
    why: list[str] = []
    for source in sources:
        if isinstance(source, str) and source == PIECES:
            why.append("word pieces are not read from a file")
        elif _is_file_of_vectors(source, reading):
            usable.update(OF_VECTORS)
            why.append(f"{source} is a file of word vectors")
        else:
            usable.update(OF_TABLES)
            label = source if isinstance(source, str | os.PathLike) else "the source"
            why.append(f"{label} is not a file of word vectors")
    among = {source.name for source in fields(Reading)}
    of_words = among.difference(OF_TABLES, OF_VECTORS, {"counts"})
    reading.refuse_unused((), of_words, "tokens have no use for it")
    reading.refuse_unused(usable, among, " and ".join(why))


def described(
    model: ModelFolder, source: Any, terms: list[str], reading: Reading, tensor: str | None
) -> Described:
    """Return what a source says about the terms and about whole words of the model."""
    if is_gguf(source):
        source = read_model(source)
    if isinstance(source, str) and source == PIECES:
        return Described(word_pieces(model.path, terms, tensor=tensor))
    if not isinstance(source, Embedding) and not _is_file_of_vectors(source, reading):
        domain = read_domain(source, reading)
        return Described(_renamed(domain, _places(model, terms, domain.entities, reading)))
    if isinstance(source, Embedding):
        words = source.words
    else:
        batches = iter_words(source, format=reading.format, member=reading.member)
        words = [word for batch in batches for word in batch]
    places = _places(model, terms, words, reading)
    named = {*places, *words}
    several = [term for term in terms if term not in named and has_several_words([term])[0]]
    rows = rows_of_parts(several, words)
    if isinstance(source, Embedding):
        vectors = source
    else:
        needed = dict.fromkeys([*places.values(), *(words[row] for row in rows.values())])
        vectors = read_embedding(source, words=needed, format=reading.format, member=reading.member)
    means = _means_of_parts(several, rows, vectors[[words[row] for row in rows.values()]])
    vectors = _extended(vectors, means)
    if isinstance(source, Embedding):
        domain = read_domain(vectors, reading)
    else:
        domain = replace(as_domain(vectors, standardize=reading.standardize), notes=vectors.notes)
    if means:
        domain = replace(domain, notes=(*domain.notes, _about_means(list(means))))
    # In the order of the terms, in which they get their ids.
    name_of = {term: places.get(term, term) for term in terms if term in places or term in means}
    words_of_model = {word: name for word, name in places.items() if word not in name_of}
    lacking = {term: _why_no_mean(term, rows) for term in several if term not in means}
    row_of = {name: row for row, name in enumerate(words)}
    ranks = {word: row_of[name] + 1 for word, name in places.items()}
    for term in means:
        ranks[term] = 1 + max(rows[part] for part in next(iter(folded([term]))).split("_"))
    return Described(_renamed(domain, words_of_model | name_of), lacking, ranks)


def _means_of_parts(
    terms: Sequence[str], rows: Mapping[str, int], vectors: FloatArray
) -> dict[str, FloatArray]:
    """Return the mean of the parts of terms of several words; `rows` tell how rare each part is."""
    is_finite = finite_rows(vectors)
    parts = [part for part, is_good in zip(rows, is_finite, strict=True) if is_good]
    ranks = np.array([rows[part] for part in parts], np.int64)
    return means_of_parts(terms, PartsModel(tuple(parts), ranks, vectors[is_finite]))


def _extended(vectors: Embedding, means: Mapping[str, FloatArray]) -> Embedding:
    """Return vectors with those of terms that they lack."""
    if not means:
        return vectors
    rows = np.stack(list(means.values())).astype(vectors.vectors.dtype)
    every = np.concatenate([vectors.vectors, rows])
    return Embedding([*vectors.words, *means], every, notes=vectors.notes)


def _about_means(terms: Sequence[str]) -> str:
    several = count(len(terms), "term of several words is", "terms of several words are")
    return f"{several} described by the mean of the parts: {listed(map(printable, terms))}."


def _why_no_mean(term: str, rows: Mapping[str, int]) -> str:
    """Return why a term of several words has no description by its parts."""
    lacking = [part for part in folded([term])[0].split("_") if part not in rows]
    reason = f"nor has its part {listed(lacking)} a vector" if lacking else "nor by its parts"
    return f"{NOT_COVERED}, {reason}"


def _places(
    model: ModelFolder, terms: list[str], names: Sequence[str], reading: Reading
) -> dict[str, str]:
    """Return the name in a source of each term and of each whole word that it has."""
    whole = [
        word
        for word in model.tokenizer.whole_words
        if len(word) >= FEWEST_LETTERS and any(char.isalpha() for char in word)
    ]
    # Words are common and short: a loose match would take "us" for the name "U.S.".
    name_of_word = match_names(whole, names, level="case").words
    level = reading.match
    name_of_term = match_names(terms, names, level=level, aliases=reading.aliases).words
    return {**name_of_word, **name_of_term}


def _renamed(domain: Domain, name_of: Mapping[str, str]) -> Domain:
    """Return the rows of a domain that were found, under the names of terms and words."""
    rows = {entity: row for row, entity in enumerate(domain.entities)}
    places = np.array([rows[name] for name in name_of.values()], np.int64)
    vectors = domain.vectors[places]
    if domain.kind == "distances":
        vectors = vectors[:, places]
    columns = tuple(name_of) if domain.kind == "distances" else domain.columns
    parts = None if domain.components is None else domain.components[places]
    return replace(
        domain,
        entities=tuple(name_of),
        vectors=vectors,
        columns=columns,
        components=parts,
        links=None,
    )
