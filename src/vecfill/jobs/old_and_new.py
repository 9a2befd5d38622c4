"""What two embeddings hold of the same documents: pairs, blocks of rows, and queries of both."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.embeddings import as_embedding
from vecfill.io import Scan, iter_words, read_embedding
from vecfill.trust.choose.translating import Pairs, Queries
from vecfill.trust.prove.translated import FEWEST_PAIRS
from vecfill.wording import count

ROWS_AT_ONCE = 8192
"""Rows that are translated at once: products are as fast as with more, and the bits of a file do
not depend on how its format cuts it."""


def read(source: Any) -> Embedding:
    """Return an embedding of a file, or of what holds words and vectors in memory."""
    is_file = isinstance(source, str | os.PathLike)
    return read_embedding(source) if is_file else as_embedding(source)


def names_and_pairs(old: Any, sample: Embedding) -> tuple[list[str], Pairs, int]:
    """Return the documents that have both vectors, these vectors, and how many have an old one."""
    if isinstance(old, str | os.PathLike):
        n_old = len({word for batch in iter_words(old) for word in batch})
        old = read_embedding(old, words=sample.words)
    else:
        old = as_embedding(old)
        n_old = len(old)
    names = [word for word in sample.words if word in old]
    if len(names) < FEWEST_PAIRS:
        raise InputError(
            f"{count(len(names), 'document has', 'documents have')} a vector in both embeddings, "
            f"of {n_old:,} and {len(sample):,}; {FEWEST_PAIRS} are needed to choose a map and "
            "check it. Embed more documents with the new model, under the same names."
        )
    rows, vectors = np.asarray(old[names]), np.asarray(sample[names])
    for age, side in (("old", rows), ("new", vectors)):
        if not np.isfinite(side).all():
            bad = names[int(np.argmin(np.isfinite(side).all(axis=1)))]
            raise InputError(
                f"the {age} vector of {printable(bad)!r} holds NaN or infinity. Leave the "
                "document out, or repair its vector."
            )
    return names, Pairs(rows, vectors), n_old


def blocks_of(old: Any) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield names and vectors, `ROWS_AT_ONCE` at a time; the first row of a name counts."""
    if not isinstance(old, str | os.PathLike):
        embedding = as_embedding(old)
        for first in range(0, len(embedding), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            yield list(embedding.words[rows]), embedding.vectors[rows]
        return
    names: list[str] = []
    parts: list[np.ndarray] = []
    earlier: set[str] = set()
    with Scan(old) as scan:
        for batch in scan:
            places = []
            for place, word in enumerate(batch.words):
                if word not in earlier:
                    earlier.add(word)
                    places.append(place)
            vectors = batch.vectors(places)
            if not (is_finite := np.isfinite(vectors).all(axis=1)).all():
                raise batch.problem(places[int(np.argmin(is_finite))])
            names += [batch.words[place] for place in places]
            parts.append(vectors)
            if len(names) >= ROWS_AT_ONCE:
                rows = np.concatenate(parts)
                n_whole = len(rows) - len(rows) % ROWS_AT_ONCE
                for first in range(0, n_whole, ROWS_AT_ONCE):
                    block = slice(first, first + ROWS_AT_ONCE)
                    yield names[block], rows[block]
                names, parts = names[n_whole:], [rows[n_whole:]]
    if names:
        yield names, np.concatenate(parts)


def queries_of(
    queries: tuple[Any, Any] | None,
    relevant: Mapping[str, Sequence[str]] | None,
    names: Sequence[str],
    pairs: Pairs,
) -> Queries | None:
    """Return the user's queries in both embeddings, with the places of their answers."""
    if queries is None:
        if relevant is not None:
            raise InputError("relevant= says what answers queries. Pass them too (queries=).")
        return None
    if not (isinstance(queries, tuple) and len(queries) == 2):
        raise InputError(
            "queries= must be a pair: the queries embedded by the old model, and by the new one."
        )
    of_old, of_new = (read(side) for side in queries)
    for age, side, ours in (("old", of_old, pairs.old), ("new", of_new, pairs.new)):
        if side.n_dims != ours.shape[1]:
            raise InputError(
                f"the {age} model's queries have {side.n_dims} dimensions, and its documents "
                f"{ours.shape[1]}. Pass (queries of the old model, queries of the new one)."
            )
    texts = [word for word in of_old.words if word in of_new]
    answers = None
    if relevant is not None:
        place_of = {name: place for place, name in enumerate(names)}
        right = [
            np.array([place_of[name] for name in relevant.get(text, ()) if name in place_of], int)
            for text in texts
        ]
        texts = [text for text, places in zip(texts, right, strict=True) if places.size]
        answers = tuple(places for places in right if places.size)
    if not texts:
        raise InputError(
            "no query can be judged: none is in both embeddings of queries"
            + ("" if relevant is None else " and answered by a document with both vectors")
            + ". Use the same names on both sides."
        )
    return Queries(np.asarray(of_old[texts]), np.asarray(of_new[texts]), answers)
