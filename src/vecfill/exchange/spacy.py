"""Imputed vectors -> the vocabulary of a spaCy pipeline."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np

from vecfill.embedding import printable
from vecfill.errors import InputError, library
from vecfill.exchange.rows import Found, all_rows, new_rows
from vecfill.inputs.embeddings import refuse_floret

Pipeline = TypeVar("Pipeline")


def to_spacy(nlp: Pipeline, result: Found) -> Pipeline:
    """Add the imputed vectors to a spaCy pipeline or vocabulary, and return it.

    A word that has a vector keeps it, so a second call changes nothing. If the vocabulary has no
    vectors yet, it gets those of the known entities as well. spaCy looks vectors up by token: the
    vector of ``New York`` is that of ``vocab["New York"]``, not of the two tokens in a text.

    Parameters
    ----------
    nlp
        The pipeline or its `Vocab`. It is changed.
    result
        What `vecfill.impute` or `LivingModel.add` returned, a model, or an `Embedding`.

    Examples
    --------
    >>> from vecfill import Embedding
    >>> import spacy
    >>> nlp = to_spacy(spacy.blank("en"), Embedding(["cat", "dog"], np.eye(2, dtype="f4")))
    >>> nlp("a dog")[1].vector.tolist(), nlp.vocab.vectors.shape
    ([0.0, 1.0], (2, 2))
    """
    library("spacy", extra="spacy")
    vocab: Any = getattr(nlp, "vocab", nlp)
    if not hasattr(vocab, "set_vector"):
        raise InputError(
            f"an object of type {type(nlp).__name__} has no spaCy vocabulary. Pass a pipeline "
            "(spacy.load, spacy.blank) or its vocab."
        )
    refuse_floret(vocab.vectors)
    table = vocab.vectors
    for word in all_rows(result).words:
        if printable(word) != word:
            raise InputError(
                f"the word {word!r} is not valid UTF-8, and spaCy holds no other words. Rename it, "
                "or leave it out (Embedding.subset)."
            )
    if table.n_keys == 0:
        rows = all_rows(result)
        table.resize((len(rows), rows.n_dims))
    else:
        existing = {word for word in all_rows(result).words if vocab.has_vector(word)}
        rows = new_rows(result, existing, n_dims=table.shape[1], where="this vocabulary")
        _make_room(table, len(rows))
    for word, vector in zip(rows.words, rows.vectors, strict=True):
        # A copy, because spaCy wants float32 that it may write to.
        vocab.set_vector(word, np.array(vector, np.float32))
    return nlp


def _make_room(table: Any, n_new: int) -> None:
    """Give the table exactly the rows it needs; `set_vector` would add a third of all rows."""
    n_free = table.shape[0] - len({row for row in table.key2row.values() if row >= 0})
    if n_new > n_free:
        table.resize((table.shape[0] + n_new - n_free, table.shape[1]))
