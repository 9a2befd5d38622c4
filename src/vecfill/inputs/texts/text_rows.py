"""Texts -> rows: leading components of TF-IDF, or weighted means of the vectors of their words.

Both have the same bits for any number of threads.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.inputs.later_rows import Facts, LaterRows, TextsReader
from vecfill.inputs.names.siblings import besides_own
from vecfill.machine.blas import one_blas_thread

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

N_COMPONENTS = 128
MOST_TERMS = 100_000
"""Terms of a large collection that are kept: the most frequent ones."""

_SEED = 0
_WORD = re.compile(r"\w+")
# Written without spaces between words: Thai, kana, and Chinese characters.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")


@dataclass(frozen=True, eq=False)
class TextRows:
    """Rows of the texts that share a term with another text."""

    vectors: np.ndarray
    """(n_present, n_components), float64, the leading component first."""
    is_present: np.ndarray
    """(n_texts,): whether a text has a row. Empty texts have none."""
    model: Any = field(default=None, repr=False)
    """What these texts taught, to read those that come later."""


@dataclass(frozen=True, eq=False)
class TextModel:
    """TF-IDF and its leading components, as learnt from some texts.

    Examples
    --------
    >>> found = text_rows(["a soft metal", "a hard metal", "a noble gas", "noble gas"])
    >>> again = found.model.rows(["a hard metal", "unheard of"])
    >>> again.is_present, np.allclose(again.vectors[0], found.vectors[1], atol=1e-6)
    (array([ True, False]), True)
    """

    terms: tuple[str, ...]
    idf: np.ndarray
    """(n_terms,)."""
    components: np.ndarray
    """(n_components, n_terms) in 32 bits."""

    @property
    def n_components(self) -> int:
        """How many numbers a text becomes."""
        return self.components.shape[0]

    @cached_property
    def _place(self) -> dict[str, int]:
        return {term: place for place, term in enumerate(self.terms)}

    def rows(self, texts: Sequence[str]) -> TextRows:
        """Return the rows of other texts; one without a known term has none."""
        vectors, is_present = [], np.zeros(len(texts), np.bool_)
        for number, text in enumerate(texts):
            times = Counter(term for term in _terms(text) if term in self._place)
            if not times:
                continue
            is_present[number] = True
            columns = [self._place[term] for term in times]
            weights = (1.0 + np.log(np.fromiter(times.values(), np.float64))) * self.idf[columns]
            weights /= np.linalg.norm(weights)
            vectors.append(self.components[:, columns].astype(np.float64) @ weights)
        return TextRows(np.array(vectors).reshape(-1, self.n_components), is_present, self)


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case; pairs of characters where no spaces are written.

    Examples
    --------
    >>> words_of("A soft, grey metal."), words_of("東京都")
    (['a', 'soft', 'grey', 'metal'], ['東京', '京都'])
    """
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        if word.isascii() or not _UNSPACED.search(word):
            words.append(word)
            continue
        for run in _UNSPACED.findall(word):
            words += [run[i : i + 2] for i in range(max(1, len(run) - 1))]
        words += filter(None, _UNSPACED.split(word))
    return words


def text_rows(texts: Sequence[str], *, n_components: int = N_COMPONENTS) -> TextRows:
    """Return TF-IDF of words and pairs of words, reduced to its leading components.

    A term of a single text cannot say that two texts are alike, so it is left out; a text that has
    no other terms gets no row.

    Examples
    --------
    >>> found = text_rows(["a soft metal", "a hard metal", "a noble gas", "", "so-so"])
    >>> found.is_present
    array([ True,  True,  True, False, False])
    >>> near, far = found.vectors[0] @ found.vectors[1], found.vectors[0] @ found.vectors[2]
    >>> bool(near > far)
    True
    """
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - slow to load
    from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415 - slow to load

    counted = TfidfVectorizer(
        analyzer=_terms, min_df=2, max_features=MOST_TERMS, sublinear_tf=True, dtype=np.float64
    )
    try:
        rows = csr_matrix(counted.fit_transform(texts))
    except ValueError:  # no term is left
        return TextRows(np.zeros((0, 0)), np.zeros(len(texts), np.bool_))
    is_present = np.diff(rows.indptr) > 0
    vectors, components = leading_components(rows[is_present], n_components)
    terms = tuple(str(term) for term in counted.get_feature_names_out())
    model = TextModel(terms, counted.idf_, components.astype(np.float32))
    return TextRows(vectors, is_present, model)


def _terms(text: str) -> list[str]:
    words = words_of(text)
    return words + list(map(" ".join, pairwise(words)))


def leading_components(rows: csr_matrix, n_components: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows in the basis of their leading right singular vectors, and these.

    Examples
    --------
    >>> from scipy.sparse import csr_matrix
    >>> scores, basis = leading_components(csr_matrix([[0.0, 2.0], [1.0, 2.0]]), 2)
    >>> scores.shape, basis.shape
    ((2, 2), (2, 2))
    """
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415 - slow to load

    n_components = min(n_components, *rows.shape)
    if n_components == min(rows.shape):
        # A randomised search for all the components there are finds them with errors.
        with one_blas_thread():
            scores, lengths, basis = np.linalg.svd(rows.toarray(), full_matrices=False)
        is_kept = lengths > 1e-9 * lengths[0]
        scores, lengths, basis = scores[:, is_kept], lengths[is_kept], basis[is_kept]
        largest = np.abs(scores).argmax(axis=0)
        signs = np.sign(scores[largest, np.arange(scores.shape[1])])
        return scores * signs * lengths, basis * signs[:, None]
    with one_blas_thread():
        svd = TruncatedSVD(n_components, n_iter=4, random_state=_SEED)
        return svd.fit_transform(rows), svd.components_


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
    that name the entity itself, `names`, do not count in its text, in any spelling or inflection:
    the vector of a known entity would tell itself. `columns` are those in which later texts are
    found. After Arora, Liang and Ma, "A simple but tough-to-beat baseline for sentence embeddings"
    (2017).

    Examples
    --------
    >>> base = Embedding(["soft", "hard", "iron"], [[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    >>> names = [("iron", "iron"), ("lead", "lead"), ("neon", "neon")]
    >>> word_means(["iron is hard", "soft", "a gas"], names, base).is_present
    array([ True,  True, False])
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to load

    row_of = _rows_by_word(embedding)
    tokens = [
        besides_own(words_of(text), of_entity) for text, of_entity in zip(texts, names, strict=True)
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
            tokens = besides_own(words_of(text), [name])
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


def _first_component(rows: np.ndarray) -> np.ndarray | None:
    if len(rows) <= rows.shape[1] // 4:
        return None  # too few to tell what texts in general share
    with one_blas_thread():
        _, directions = np.linalg.eigh(rows.T @ rows)
        return directions[:, -1]
