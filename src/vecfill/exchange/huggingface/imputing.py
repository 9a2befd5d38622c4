"""Terms and what describes them -> rows for new tokens, with confidence and reasons."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from vecfill import checks
from vecfill.embedding import Embedding, FloatArray, printable
from vecfill.errors import InputError
from vecfill.exchange.huggingface.folder import ModelFolder, read_model
from vecfill.exchange.huggingface.gguf import is_gguf
from vecfill.exchange.huggingface.pieces import FEWEST_LETTERS, as_terms, word_pieces
from vecfill.inputs.domain import as_domain
from vecfill.inputs.entities import listed
from vecfill.inputs.files import Progress, holds_vectors, quiet, read_domain
from vecfill.inputs.names.folding import folded
from vecfill.inputs.names.matching import match_names
from vecfill.inputs.names.parts import PartsModel, means_of_parts, rows_of_parts
from vecfill.inputs.prepared import Domain
from vecfill.inputs.rarity import has_several_words
from vecfill.inputs.sources import are_sources
from vecfill.inputs.table.frames import frame_of, keyed
from vecfill.io import iter_words, read_embedding
from vecfill.io.batches import finite_rows
from vecfill.io.names import read_names
from vecfill.requests import DOMAIN_OPTIONS, Ask, Method, Reading, Trust, takes
from vecfill.result import Result
from vecfill.run import impute
from vecfill.wording import count

PIECES = "pieces"
"""The source that is made of a model's own word pieces."""
OF_TABLES = (*DOMAIN_OPTIONS, "match", "aliases")
OF_VECTORS = ("kind", "standardize", "match", "aliases", "format", "member")
"""Options that say how a table, and a file of word vectors, is read."""
_NOT_COVERED = "is not described by any source"
N_NAMED = 5
"""Terms that a refusal names, with what is wrong with each."""


@dataclass(frozen=True)
class TokenImputation:
    """Rows for new tokens: of the input table, of an untied head, and terms that get none."""

    result: Result
    """Rows of the input table, with confidence and reasons."""
    head: Result | None = field(default=None, repr=False)
    """Rows of the output table, if it has rows of its own."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Terms that get no row, and why."""


@takes(Reading, Method, Trust)
def impute_tokens(
    folder: str | os.PathLike[str],
    terms: Iterable[str] | str | os.PathLike[str],
    source: Any,
    *,
    head: str = "auto",
    tensor: str | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ask: Ask,
) -> TokenImputation:
    """Return rows for terms that a language model splits into pieces, ready for `add_tokens`.

    The model's whole words that a source describes too teach how descriptions and rows go together.
    A term of several words that word vectors lack is described by the mean of its parts, if all of
    them have a vector.
    An output table that is not tied to the input table is imputed in its own space.

    Parameters
    ----------
    folder
        The model: a folder of transformers, model2vec or sentence-transformers.
    terms
        What to give one token each: a list, a text file of a term a line, or a table whose first
        column holds them. A term that is one token already is skipped.
    source
        What describes terms and words: a file of word vectors such as GloVe, a GGUF file of another
        model, a table, an `Embedding`; ``"pieces"`` for the pieces that the model splits them into;
        or a mapping from name to source, for several of them.
    head
        ``"auto"`` imputes an output table that is not tied to the input table in its own space;
        ``"mean"`` leaves it out, so that `add_tokens` takes the mean row there.
    tensor
        Name of the input table, if it is not a usual one.
    n_jobs, progress
        As in `vecfill.impute`.

    Examples
    --------
    >>> from vecfill.exchange.huggingface.example import WORDS, write_small_model
    >>> folder = write_small_model()
    >>> metals = {word: [i, i * i] for i, word in enumerate([*WORDS, "radon", "white gold"])}
    >>> found = impute_tokens(folder, ["Radon", "white gold", "iron"], metals, force=True)
    >>> found.result.embedding
    Embedding(2 words, 4 dims, float32: 'Radon', 'white gold')
    >>> found.skipped
    {'iron': 'is one token already'}
    """
    reading = ask.reading
    sources = _named(source)
    _refuse_unused(reading, sources.values())
    tell = progress or quiet
    tell("Reading the model", 0, 0)
    model = ModelFolder(folder, tensor=tensor)
    _check_head(model, head)
    usable, skipped = _usable(model, read_terms(terms))
    tell("Reading sources", 0, 0)
    domains: dict[str, Domain] = {}
    reasons: dict[str, str] = {}
    for name, description in sources.items():
        domains[name], lacking = _domain(model, description, usable, reading, tensor)
        reasons |= lacking
    entities = {name: set(description.entities) for name, description in domains.items()}
    covered = set().union(*entities.values())
    skipped |= {term: reasons.get(term, _NOT_COVERED) for term in usable if term not in covered}
    if covered.isdisjoint(usable):
        raise InputError(_about_nothing(skipped))
    ask = replace(ask, reading=Reading(match="exact"))
    how_to_run: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    described = next(iter(domains.values())) if len(domains) == 1 else domains
    result = impute(described, model.embedding(model.tables.inputs[0]), **how_to_run, ask=ask)
    # Confidence is judged by the input table; a term that is added needs a row in the head too.
    ask = replace(ask, trust=replace(ask.trust, min_confidence=None, min_bound=None))
    head_tables = model.tables.heads[:1] if head == "auto" else ()
    heads = [
        impute(described, model.embedding(table), **how_to_run, ask=ask) for table in head_tables
    ]
    skipped |= {term: _why_left_out(term, result, entities) for term in result.abstained}
    result, without = _with_rows_in(result, heads)
    skipped |= dict.fromkeys(without, "is described by no source that helps the output table")
    return TokenImputation(result, heads[0] if heads else None, skipped)


def _why_left_out(term: str, result: Result, entities: Mapping[str, set[str]]) -> str:
    """Return why a term that a source describes was given no row."""
    helpful = [report.name for report in result.sources if report.is_kept]
    # What is not in `entities` was added by `impute`, such as names, and describes all terms.
    if helpful and all(name in entities and term not in entities[name] for name in helpful):
        return "is described only by sources that were dropped"
    return "has too little confidence"


def _with_rows_in(result: Result, heads: Sequence[Result]) -> tuple[Result, list[str]]:
    """Return a result without terms that an output table has no row for, and those terms."""
    without = [
        term for term in result.embedding.words if any(term not in head.embedding for head in heads)
    ]
    if not without:
        return result, without
    has_all = ~np.isin(np.array(result.alignment.unknown, dtype=object), without)
    return replace(result, is_kept=result.is_kept & has_all), without


def _check_head(model: ModelFolder, head: str) -> None:
    checks.one_of(head, "head", ("auto", "mean"))
    if head == "mean" and not model.tables.heads:
        raise InputError(
            f"head='mean' cannot be used here: {model.path} has no output table with rows of its "
            "own. Leave it out."
        )


def read_terms(terms: Iterable[str] | str | os.PathLike[str]) -> list[str]:
    """Return terms from a list, a text file of a term a line, or the first column of a table.

    Examples
    --------
    >>> read_terms(["fort  worth", "thulium", "thulium"])
    ['fort worth', 'thulium']
    """
    if isinstance(terms, str | os.PathLike):
        path = Path(terms)
        if path.suffix.lower() in (".txt", ""):
            words = read_names(path)
        else:
            frame = frame_of(path)
            assert frame is not None
            words, _ = keyed(frame, None)
    else:
        words = list(terms)
    clean = dict.fromkeys(" ".join(term.split()) for term in as_terms(words))
    return [term for term in clean if term]


def _usable(model: ModelFolder, terms: list[str]) -> tuple[list[str], dict[str, str]]:
    """Return the terms that can become tokens, and why the others cannot."""
    if not terms:
        raise InputError("There are no terms. Pass at least one.")
    usable: list[str] = []
    skipped: dict[str, str] = {}
    term_of: dict[str, str] = {}
    for term in terms:
        problem = model.tokenizer.problem_with(term)
        token = model.tokenizer.token_of(term)
        if problem is None and token in term_of:
            problem = f"is the same to the tokenizer as {term_of[token]!r}"
        if problem is None and not term.isprintable():
            problem = "has characters that cannot be shown"
        if problem is None:
            term_of[token] = term
            usable.append(term)
        else:
            skipped[term] = problem
    if not usable:
        raise InputError(_about_nothing(skipped))
    return usable, skipped


def _about_nothing(skipped: Mapping[str, str]) -> str:
    reasons = [f"{term!r} {why}" for term, why in skipped.items()]
    more = len(reasons) - N_NAMED
    others_text = f"; and {more:,} more" if more > 0 else ""
    return (
        f"No term can be given a token: {'; '.join(reasons[:N_NAMED])}{others_text}. "
        "Check the spelling of terms and of the source's names, or use the source 'pieces'."
    )


def _named(source: Any) -> dict[str, Any]:
    """Return sources by name; a mapping from entity to vector is one source, not several."""
    if isinstance(source, str) or not are_sources(source):
        return {"source": source}
    if isinstance(source, Mapping):
        return dict(source)
    return {f"source {number}": part for number, part in enumerate(source, start=1)}


def _is_file_of_vectors(source: Any, reading: Reading) -> bool:
    is_path = isinstance(source, str | os.PathLike) and source != PIECES
    return is_path and (reading.kind == "embedding" or holds_vectors(Path(source)))


def _refuse_unused(reading: Reading, sources: Iterable[Any]) -> None:
    """Refuse options that no source has a use for."""
    usable: set[str] = set()
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
    of_words = among.difference(OF_TABLES, OF_VECTORS)
    reading.refuse_unused((), of_words, "tokens have no use for it")
    reading.refuse_unused(usable, among, " and ".join(why))


def _domain(
    model: ModelFolder, source: Any, terms: list[str], reading: Reading, tensor: str | None
) -> tuple[Domain, dict[str, str]]:
    """Return what a source says about the terms and about whole words of the model.

    Beside it, why terms of several words have no description by their parts.
    """
    if is_gguf(source):
        source = read_model(source)
    if isinstance(source, str) and source == PIECES:
        return word_pieces(model.path, terms, tensor=tensor), {}
    if not isinstance(source, Embedding) and not _is_file_of_vectors(source, reading):
        domain = read_domain(source, reading)
        return _renamed(domain, _places(model, terms, domain.entities, reading)), {}
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
    return _renamed(domain, words_of_model | name_of), lacking


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
    return f"{_NOT_COVERED}, {reason}"


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
