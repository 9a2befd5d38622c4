"""Terms and what describes them -> rows for new tokens, with confidence and reasons."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from vecfill import checks
from vecfill.errors import InputError
from vecfill.exchange.huggingface.describing import (
    NOT_COVERED,
    described,
    named_sources,
    refuse_unused,
)
from vecfill.exchange.huggingface.folder import ModelFolder
from vecfill.exchange.huggingface.looking import examples_of, familiar_words
from vecfill.exchange.huggingface.pieces import as_terms
from vecfill.inputs.counts import is_column, read_counts
from vecfill.inputs.files import Progress, quiet
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.frames import frame_of, keyed
from vecfill.io.names import read_names
from vecfill.requests import Ask, Method, Reading, Trust, takes
from vecfill.result import Result
from vecfill.run import impute

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
    ranks: Mapping[str, int] = field(default_factory=dict, repr=False)
    """Place of words and terms in the first source of word vectors, the most frequent being 1."""
    counts: Mapping[str, float] = field(default_factory=dict, repr=False)
    """How often words and terms occur, if that was said."""


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
    sources = named_sources(source)
    refuse_unused(reading, sources.values())
    if isinstance(reading.counts, str) and is_column(reading.counts):
        raise InputError(
            f"counts={reading.counts!r} is no file. Pass a file with word and count, of the terms "
            "and of other words, or a mapping."
        )
    counts = {} if reading.counts is None else read_counts(None, reading)
    tell = progress or quiet
    tell("Reading the model", 0, 0)
    model = ModelFolder(folder, tensor=tensor)
    _check_head(model, head)
    usable, skipped = _usable(model, read_terms(terms))
    tell("Reading sources", 0, 0)
    domains: dict[str, Domain] = {}
    reasons: dict[str, str] = {}
    ranks: dict[str, int] = {}
    for name, description in sources.items():
        source_described = described(model, description, usable, reading, tensor)
        domains[name] = source_described.domain
        reasons |= source_described.lacking
        ranks = ranks or source_described.ranks
    entities = {name: set(description.entities) for name, description in domains.items()}
    covered = set().union(*entities.values())
    skipped |= {term: reasons.get(term, NOT_COVERED) for term in usable if term not in covered}
    if covered.isdisjoint(usable):
        raise InputError(_about_nothing(skipped))
    ask = replace(ask, reading=Reading(match="exact"))
    how_to_run: dict[str, Any] = {"n_jobs": n_jobs, "progress": progress}
    described_by = next(iter(domains.values())) if len(domains) == 1 else domains
    words = model.embedding(model.tables.inputs[0])
    result = impute(described_by, words, **how_to_run, ask=ask)
    # Confidence is judged by the input table; a term that is added needs a row in the head too.
    ask = replace(ask, trust=replace(ask.trust, min_confidence=None, min_bound=None))
    head_tables = model.tables.heads[:1] if head == "auto" else ()
    heads = [
        impute(described_by, model.embedding(table), **how_to_run, ask=ask) for table in head_tables
    ]
    skipped |= {term: _why_left_out(term, result, entities) for term in result.abstained}
    result, without = _with_rows_in(result, heads)
    skipped |= dict.fromkeys(without, "is described by no source that helps the output table")
    if result.sanity is not None and len(result.embedding):
        examples = examples_of(result.embedding, familiar_words(words, ranks))
        result = replace(result, sanity=replace(result.sanity, examples=examples))
    return TokenImputation(result, heads[0] if heads else None, skipped, ranks, counts)


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
