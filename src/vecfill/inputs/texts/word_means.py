"""Texts -> weighted means of the vectors of their words, without what all texts share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from vecfill.embedding import Embedding
from vecfill.inputs.texts.tfidf import TextRows, words_of
from vecfill.machine.blas import one_blas_thread

SMOOTHING = 1e-3
"""A word that is this share of all words counts half as much as one that is rare."""


def word_means(
    texts: Sequence[str], own: Sequence[tuple[str, str]], embedding: Embedding
) -> TextRows:
    """Return the mean vector of each text's words, weighted by a / (a + share of the word).

    The leading component of all means, which is what they have in common, is taken out. The words
    that name the entity itself, `own`, do not count in its text: the vector of a known entity would
    tell itself. After Arora, Liang and Ma, "A simple but tough-to-beat baseline for sentence
    embeddings" (2017).

    Examples
    --------
    >>> base = Embedding(["soft", "hard", "iron"], [[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    >>> names = [("iron", "iron"), ("lead", "lead"), ("neon", "neon")]
    >>> found = word_means(["iron is hard", "soft", "a gas"], names, base)
    >>> found.is_present
    array([ True,  True, False])
    """
    row_of = _rows_by_word(embedding)
    tokens = [
        [word for word in words_of(text) if word not in _words_of_names(names)]
        for text, names in zip(texts, own, strict=True)
    ]
    times = Counter(word for words in tokens for word in words)
    n_words = sum(times.values())
    known = [[word for word in words if word in row_of] for words in tokens]
    is_present = np.array([len(words) > 0 for words in known], np.bool_)
    chosen = list(dict.fromkeys(word for words in known for word in words))
    place_of = {word: place for place, word in enumerate(chosen)}
    weight_of = {word: SMOOTHING / (SMOOTHING + times[word] / n_words) for word in chosen}
    kept = [words for words in known if words]
    lengths = np.array([len(words) for words in kept], np.int64)
    shares = csr_array(
        (
            np.array([weight_of[word] for words in kept for word in words]),
            np.array([place_of[word] for words in kept for word in words], np.int64),
            np.concatenate([[0], np.cumsum(lengths)]),
        ),
        shape=(len(kept), len(chosen)),
    )
    vectors = embedding.vectors[[row_of[word] for word in chosen]].astype(np.float64)
    means = shares @ vectors / np.maximum(lengths, 1)[:, None]
    first = _first_component(means)
    rows = means if first is None else means - (means @ first)[:, None] * first
    weights = np.array([weight_of[word] for word in chosen])
    details = {"words": tuple(chosen), "vectors": vectors * weights[:, None], "first": first}
    return TextRows(rows, is_present, details=details)


def _rows_by_word(embedding: Embedding) -> dict[str, int]:
    """Rows by lower-case word; of several spellings the first, which is the most frequent."""
    rows: dict[str, int] = {}
    for row, word in enumerate(embedding.words):
        rows.setdefault(word.lower(), row)
    return rows


def _words_of_names(names: tuple[str, str]) -> set[str]:
    """Return the words that are a whole name; a part of a name says something of its own."""
    return {name.lower() for name in names}


def _first_component(rows: np.ndarray) -> np.ndarray | None:
    if len(rows) <= rows.shape[1] // 4:
        return None  # too few to tell what texts in general share
    with one_blas_thread():
        _, directions = np.linalg.eigh(rows.T @ rows)
        return directions[:, -1]
