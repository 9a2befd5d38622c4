"""Texts -> weighted means of the vectors of their words, without what all texts share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vecfill.embedding import Embedding
from vecfill.inputs.later_rows import Facts, LaterRows, TextsReader
from vecfill.inputs.texts.tfidf import TextRows, words_of
from vecfill.machine.blas import one_blas_thread

SMOOTHING = 1e-3
"""A word that is this share of all words counts half as much as one that is rare."""


def word_means(
    texts: Sequence[str],
    names: Sequence[tuple[str, str]],
    embedding: Embedding,
    *,
    columns: tuple[str, ...] = (),
) -> TextRows:
    """Return the mean vector of each text's words, weighted by a / (a + share of the word).

    The leading component of all means, which is what they have in common, is taken out. The words
    that name the entity itself, `names`, do not count in its text: the vector of a known entity
    would tell itself. `columns` are those in which later texts are found. After Arora, Liang and
    Ma, "A simple but tough-to-beat baseline for sentence embeddings" (2017).

    Examples
    --------
    >>> base = Embedding(["soft", "hard", "iron"], [[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    >>> names = [("iron", "iron"), ("lead", "lead"), ("neon", "neon")]
    >>> word_means(["iron is hard", "soft", "a gas"], names, base).is_present
    array([ True,  True, False])
    """
    row_of = _rows_by_word(embedding)
    tokens = [
        [word for word in words_of(text) if word not in _words_of_names(of_entity)]
        for text, of_entity in zip(texts, names, strict=True)
    ]
    times = Counter(word for words in tokens for word in words)
    n_words = sum(times.values())
    known = [[word for word in words if word in row_of] for words in tokens]
    is_present = np.array([len(words) > 0 for words in known], np.bool_)
    chosen = list(dict.fromkeys(word for words in known for word in words))
    place_of = {word: place for place, word in enumerate(chosen)}
    weight_of = {word: SMOOTHING / (SMOOTHING + times[word] / n_words) for word in chosen}
    present = [words for words in known if words]
    lengths = np.array([len(words) for words in present], np.int64)
    shares = csr_array(
        (
            np.array([weight_of[word] for words in present for word in words]),
            np.array([place_of[word] for words in present for word in words], np.int64),
            np.concatenate([[0], np.cumsum(lengths)]),
        ),
        shape=(len(present), len(chosen)),
    )
    vectors = embedding.vectors[[row_of[word] for word in chosen]].astype(np.float64)
    means = shares @ vectors / np.maximum(lengths, 1)[:, None]
    first = _first_component(means)
    rows = _without(first, means)
    weights = np.array([weight_of[word] for word in chosen])
    learnt = (vectors * weights[:, None]).astype(np.float32)
    return TextRows(rows, is_present, WordsReader(columns, tuple(chosen), learnt, first))


@dataclass(frozen=True, eq=False)
class WordsReader(TextsReader):
    """Texts by the vectors of their words."""

    words: tuple[str, ...] = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    """(n_words, n_dims) times the weight of each word."""
    first: np.ndarray | None = field(repr=False)
    """(n_dims,) what all texts have in common; it is taken out."""

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the rows of new texts; one without a known word has none."""
        rows, is_present = [], []
        for name, text in zip(facts.entities, facts.texts(self.columns), strict=True):
            tokens = [word for word in words_of(text) if word != name.lower()]
            places = [self._place[word] for word in tokens if word in self._place]
            is_present.append(bool(places))
            if places:
                rows.append(self.vectors[places].sum(axis=0, dtype=np.float64) / len(places))
        means = np.array(rows).reshape(-1, self.vectors.shape[1])
        return LaterRows.usual(facts, _without(self.first, means), is_present)


def _without(first: np.ndarray | None, means: np.ndarray) -> np.ndarray:
    """Return means without the component that all texts share."""
    return means if first is None else means - (means @ first)[:, None] * first


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
