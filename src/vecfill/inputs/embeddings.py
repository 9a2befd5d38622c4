"""What a user has for an embedding -> an `Embedding`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.objects import array_of, comes_from, embedding_of_object
from vecfill.inputs.table.columns import read_numbers
from vecfill.inputs.table.frames import Frame, frame_of, keyed
from vecfill.inputs.table.vector_cells import is_vectors, read_vectors


def as_embedding(source: Any, *, key: str | None = None, vector: str | None = None) -> Embedding:
    """Return an `Embedding` of what holds words and vectors in memory.

    `source` is an `Embedding`; a gensim `KeyedVectors`; a spaCy `Language`, `Vocab` or `Vectors`; a
    pair of words and an array, a torch tensor or a `torch.nn.Embedding`; a mapping from word to
    vector; or a pandas, polars or Arrow table. The words of a table are its index or first column.
    Its vectors are in a column of lists, or every other column is a dimension. `key` and `vector`
    name the columns if that does not tell them.

    Examples
    --------
    >>> as_embedding({"cat": [1.0, 0.0], "dog": [0.5, 0.5]})
    Embedding(2 words, 2 dims, float64: 'cat', 'dog')
    >>> as_embedding((["cat", "dog"], np.eye(2, dtype=np.float32)))
    Embedding(2 words, 2 dims, float32: 'cat', 'dog')
    """
    found = source if isinstance(source, Embedding) else embedding_of_object(source)
    if found is None and isinstance(source, Mapping):
        if not source:
            raise InputError("the embedding is an empty mapping. Pass a vector for each word.")
        vectors = list(source.values())
        are_masked = any(isinstance(each, np.ma.MaskedArray) for each in vectors)
        rows = np.ma.stack(vectors) if are_masked else _stacked(source)
        found = Embedding([str(word) for word in source], rows)
    if found is not None:
        if vector is not None:
            raise InputError(
                f"vector={vector!r} names a column, but the embedding is an object of type "
                f"{type(source).__name__}. Leave it out."
            )
        return found
    frame = None if isinstance(source, np.ndarray) else frame_of(source)
    if frame is None:
        raise InputError(_no_embedding(source))
    return _of_frame(frame, key, vector)


def _stacked(vectors: Mapping[Any, Any]) -> np.ndarray:
    rows = list(vectors.values())
    one_of_each_type = {type(each): each for each in rows}.values()
    if any(comes_from(each, "torch") for each in one_of_each_type):
        rows = [array_of(each, ndim=1) for each in rows]
    try:
        return np.array(rows)
    except (ValueError, TypeError):
        sizes = [np.size(each) for each in rows]
    word = next((word for word, n in zip(vectors, sizes, strict=True) if n != sizes[0]), None)
    raise InputError(
        "the vectors are not rows of numbers of one length"
        + (f": see those of {next(iter(vectors))!r} and {word!r}. " if word is not None else ". ")
        + "Pass the vectors of one embedding."
    )


def _of_frame(frame: Frame, key: str | None, vector: str | None) -> Embedding:
    lists = [
        name for name, cells in zip(frame.names, frame.cells, strict=True) if is_vectors(cells)
    ]
    if vector is None and len(lists) > 1:
        raise InputError(
            f"{frame.label} has {len(lists)} columns of vectors: {', '.join(map(repr, lists))}. "
            "Name the one to use (vector=)."
        )
    if vector is not None or lists:
        name = vector if vector is not None else lists[0]
        # `key` is that of the table of features, which this table need not share.
        is_here = key in frame.names or (key is not None and key == frame.index_name)
        words, rest = keyed(frame, key if is_here else None)
        found = read_vectors(rest, name, words)
        known = [word for word, is_known in zip(words, found.is_known, strict=True) if is_known]
        return Embedding(known, found.vectors[found.is_known])
    words, rest = keyed(frame, None)
    advice = "An embedding holds numbers only."
    columns = [
        read_numbers(rest.label, name, cells, words, advice=advice)
        for name, cells in zip(rest.names, rest.cells, strict=True)
    ]
    return Embedding(words, np.column_stack(columns))


def _no_embedding(source: Any) -> str:
    kind = type(source).__name__
    if isinstance(source, np.ndarray) or comes_from(source, "torch"):
        return (
            f"an object of type {kind} has vectors but no words. Pass both as a pair, "
            "(words, vectors), with the words in the order of the rows."
        )
    return (
        f"an embedding cannot be made of an object of type {kind}. Pass an "
        "Embedding (vecfill.read_embedding reads one), the path of a file of vectors, a gensim "
        "KeyedVectors, a spaCy pipeline, a pair (words, vectors), a mapping from word to vector, "
        "or a table with a column of words and a column of vectors or a column per dimension."
    )
