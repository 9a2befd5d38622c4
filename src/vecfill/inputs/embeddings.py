"""What a user has for an embedding -> an `Embedding`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.columns import read_numbers
from vecfill.inputs.frames import frame_of, keyed


def as_embedding(source: Any) -> Embedding:
    """Return an `Embedding` of what holds words and vectors in memory.

    `source` is an `Embedding`, a mapping from word to vector, or a pandas, polars or Arrow table
    whose index or first column holds the words and whose other columns are the dimensions.

    Examples
    --------
    >>> as_embedding({"cat": [1.0, 0.0], "dog": [0.5, 0.5]})
    Embedding(2 words, 2 dims, float64: 'cat', 'dog')
    """
    if isinstance(source, Embedding):
        return source
    if isinstance(source, Mapping):
        if not source:
            raise InputError("the embedding is an empty mapping. Pass a vector for each word.")
        return Embedding([str(word) for word in source], np.array(list(source.values())))
    frame = None if isinstance(source, np.ndarray) else frame_of(source)
    if frame is None:
        raise InputError(
            f"an embedding cannot be made of an object of type {type(source).__name__}. Pass an "
            "Embedding (vecfill.read_embedding reads one), the path of a file of vectors, a "
            "mapping from word to vector, or a table with a column of words and a column per "
            "dimension."
        )
    words, rest = keyed(frame, None)
    advice = "An embedding holds numbers only."
    columns = [
        read_numbers(rest.label, name, cells, words, advice=advice)
        for name, cells in zip(rest.names, rest.cells, strict=True)
    ]
    return Embedding(words, np.column_stack(columns))
