"""Imputed vectors -> gensim `KeyedVectors`."""

from __future__ import annotations

from typing import Any

import numpy as np

from vecfill.errors import InputError, library
from vecfill.exchange.rows import Found, all_rows, new_rows


def to_gensim(result: Found, into: Any = None) -> Any:
    """Return gensim `KeyedVectors` with the imputed vectors.

    Norms are computed again: after `add_vectors` gensim keeps the old ones, and `most_similar`
    would fail. New keys have the count 0.

    Parameters
    ----------
    result
        What `vecfill.impute` returned, or an `Embedding`.
    into
        `KeyedVectors` to which the imputed entities are added, and which are returned. Existing
        keys keep their vectors, so a second call changes nothing. By default, new `KeyedVectors`
        hold the known and the imputed entities.

    Examples
    --------
    >>> from vecfill import Embedding
    >>> words = Embedding(["cat", "dog", "car"], np.array([[1, 0], [0.8, 0.6], [0, 1]], "f4"))
    >>> to_gensim(words).most_similar("cat", topn=1)[0][0]
    'dog'
    """
    keyed_vectors = library("gensim.models.keyedvectors", extra="gensim")
    if into is None:
        rows = all_rows(result)
        keyed = keyed_vectors.KeyedVectors(rows.n_dims, dtype=rows.vectors.dtype)
    else:
        keyed = _checked(into, keyed_vectors)
        rows = new_rows(
            result, keyed.key_to_index, n_dims=keyed.vector_size, where="these KeyedVectors"
        )
    if len(rows):
        # gensim puts old and new vectors in a new array, so a read-only one (mmap) will do.
        keyed.add_vectors(list(rows.words), np.array(rows.vectors, keyed.vectors.dtype))
        _lengthen(keyed)
    keyed.fill_norms(force=True)
    return keyed


def _checked(into: Any, keyed_vectors: Any) -> Any:
    if not isinstance(into, keyed_vectors.KeyedVectors):
        advice = " Pass its vectors, model.wv." if hasattr(into, "wv") else ""
        raise InputError(
            f"into= is an object of type {type(into).__name__}, not gensim KeyedVectors.{advice}"
        )
    if hasattr(into, "vectors_ngrams"):
        raise InputError(
            "into= holds fastText vectors, which are put together from parts of words: gensim "
            "makes one for any word, and added ones would be lost when it computes them again. "
            "Leave into= out to get KeyedVectors of their own."
        )
    return into


def _lengthen(keyed: Any) -> None:
    """Give new keys the attributes that old ones have, as zeros; `add_vectors` leaves them out."""
    for name, values in keyed.expandos.items():
        n_new = len(keyed) - len(values)
        if n_new > 0:
            keyed.expandos[name] = np.concatenate([values, np.zeros(n_new, values.dtype)])
