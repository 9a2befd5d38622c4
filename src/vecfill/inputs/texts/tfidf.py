"""Texts -> TF-IDF, and its leading components: the same bits for any number of threads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

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
