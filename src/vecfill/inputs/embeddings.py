"""What a user has for an embedding -> an `Embedding`.

Objects of other libraries (gensim, spaCy, torch) are recognised by the module of their type, so
none of these libraries is imported here. A new kind of object is one function and one entry in
`KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from numbers import Integral
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.table.columns import read_matrix
from vecfill.inputs.table.filling import is_vectors, read_vectors
from vecfill.inputs.table.frames import Frame, comes_from, frame_of, keyed


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
    embedding = source if isinstance(source, Embedding) else embedding_of_object(source)
    if embedding is None and isinstance(source, Mapping):
        if not source:
            raise InputError("the embedding is an empty mapping. Pass a vector for each word.")
        vectors = list(source.values())
        are_masked = any(isinstance(row, np.ma.MaskedArray) for row in vectors)
        rows = np.ma.stack(vectors) if are_masked else _stacked(source)
        embedding = Embedding([str(word) for word in source], rows)
    if embedding is not None:
        if vector is not None:
            raise InputError(
                f"vector={vector!r} names a column, but the embedding is an object of type "
                f"{type(source).__name__}. Leave it out."
            )
        return embedding
    frame = None if isinstance(source, np.ndarray) else frame_of(source)
    if frame is None:
        raise InputError(_no_embedding(source))
    return _of_frame(frame, key, vector)


def _stacked(vectors: Mapping[Any, Any]) -> np.ndarray:
    rows = list(vectors.values())
    one_of_each_type = {type(row): row for row in rows}.values()
    if any(comes_from(row, "torch") for row in one_of_each_type):
        rows = [array_of(row, ndim=1) for row in rows]
    try:
        return np.array(rows)
    except (ValueError, TypeError):
        sizes = [np.size(row) for row in rows]
    word = next((word for word, n in zip(vectors, sizes, strict=True) if n != sizes[0]), None)
    raise InputError(
        "the vectors are not rows of numbers of one length"
        + (f": see those of {next(iter(vectors))!r} and {word!r}. " if word is not None else ". ")
        + "Pass the vectors of one embedding."
    )


def _of_frame(frame: Frame, key: str | None, vector: str | None) -> Embedding:
    lists = [name for name, cells in frame.columns.items() if is_vectors(cells)]
    if vector is None and len(lists) > 1:
        raise InputError(
            f"{frame.label} has {len(lists)} columns of vectors: {', '.join(map(repr, lists))}. "
            "Name the one to use (vector=)."
        )
    if vector is not None or lists:
        name = vector if vector is not None else lists[0]
        # `key` is that of the table of features, which this table need not share.
        is_here = key in frame.names or (key is not None and key == frame.index_name)
        words, columns = keyed(frame, key if is_here else None)
        cells = read_vectors(columns, name, words)
        known = list(compress(words, cells.is_known))
        return Embedding(known, cells.vectors[cells.is_known])
    words, columns = keyed(frame, None)
    return Embedding(words, read_matrix(columns, words, advice="An embedding holds numbers only."))


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


@dataclass(frozen=True)
class ObjectKind:
    """One kind of object: how it is recognised, and how words and vectors are taken from it."""

    name: str
    is_it: Callable[[Any], bool]
    read: Callable[[Any], Embedding]


def embedding_of_object(source: Any) -> Embedding | None:
    """Return the words and vectors of an object of another library; ``None`` if it is not one.

    A pair of words and vectors is one too: ``(words, array)``, ``(words, tensor)`` or
    ``(words, torch.nn.Embedding)``. The words are in the order of the rows, or a mapping from word
    to row, as tokenizers have it.

    Examples
    --------
    >>> embedding_of_object((["cat", "dog"], np.eye(2)))
    Embedding(2 words, 2 dims, float64: 'cat', 'dog')
    >>> embedding_of_object(({"dog": 1}, np.eye(2)))["dog"]
    array([0., 1.])
    >>> embedding_of_object("cat") is None
    True
    """
    for kind in KINDS:
        if kind.is_it(source):
            return kind.read(source)
    return None


def array_of(vectors: Any, *, ndim: int = 2) -> np.ndarray:
    """Return an array of an array, a torch tensor or a torch layer, with the same values.

    NumPy has no bfloat16, so that becomes float32, which holds the same values.

    Examples
    --------
    >>> array_of([[1.0, 2.0]])
    array([[1., 2.]])
    """
    if not comes_from(vectors, "torch"):
        return np.asarray(vectors)
    tensor = getattr(vectors, "weight", vectors)
    if not hasattr(tensor, "detach") or getattr(tensor, "ndim", 0) != ndim:
        raise InputError(
            f"vectors cannot be read from an object of type {type(vectors).__name__}. Pass a "
            "torch.nn.Embedding, or a tensor with one row for each word."
        )
    if tensor.is_quantized or tensor.is_sparse or str(tensor.device) == "meta":
        raise InputError(
            "the tensor is quantised, sparse or has no data (device 'meta'). Pass a dense tensor "
            "of floating-point numbers."
        )
    # A copy, because the layer may be trained on while the vectors are in use.
    tensor = tensor.detach().cpu().clone()
    return tensor.float().numpy() if str(tensor.dtype) == "torch.bfloat16" else tensor.numpy()


def _is_pair(source: Any) -> bool:
    if not (isinstance(source, tuple) and len(source) == 2):
        return False
    words, vectors = source
    is_listed = isinstance(words, Sequence | Mapping) or hasattr(words, "tolist")
    is_listed = is_listed and not isinstance(words, str) and len(words) > 0
    # A number may be an id, but only beside an array: two numbers are an edge of a graph.
    is_array = isinstance(vectors, np.ndarray) or comes_from(vectors, "torch")
    kinds = (str, Integral) if is_array else str
    is_named = is_listed and isinstance(next(iter(words)), kinds)
    is_rows = isinstance(vectors, np.ndarray | list | tuple)
    # Two edges of a graph are a pair of tuples as well, but of names alone.
    has_rows = is_rows and not isinstance(next(iter(vectors), ""), str)
    return is_named and (has_rows or comes_from(vectors, "torch"))


def _of_pair(source: tuple[Any, Any]) -> Embedding:
    words, vectors = source
    rows = array_of(vectors)
    if isinstance(words, Mapping):
        return _of_numbered(words, rows)
    return Embedding([str(word) for word in words], rows)


def _of_numbered(row_of: Mapping[str, int], rows: np.ndarray) -> Embedding:
    words = sorted(row_of, key=row_of.__getitem__)
    places = [row_of[word] for word in words]
    for word, place in zip(words, places, strict=True):
        if not 0 <= place < len(rows):
            raise InputError(
                f"the word {word!r} is at row {place}, but there are {len(rows)} rows of vectors. "
                "Pass the vocabulary that belongs to these vectors."
            )
    return Embedding(words, rows[places])


def _is_gensim(source: Any) -> bool:
    return comes_from(source, "gensim") and (
        hasattr(source, "index_to_key") or hasattr(getattr(source, "wv", None), "index_to_key")
    )


def _of_gensim(source: Any) -> Embedding:
    """Read `KeyedVectors`, or the vectors of a model; the most frequent words come first."""
    keyed = source if hasattr(source, "index_to_key") else source.wv
    words, vectors = keyed.index_to_key, np.asarray(keyed.vectors)
    order = _by_count(keyed, len(words))
    if None in words:  # rows that were allocated and not used yet
        order = np.array([row for row in order if words[row] is not None], np.int64)
    if len(order) == 0:
        raise InputError("the KeyedVectors hold no words. Train or load vectors first.")
    is_all = len(order) == len(vectors) and (np.diff(order) == 1).all()
    return Embedding([str(words[row]) for row in order], vectors if is_all else vectors[order])


def _by_count(keyed: Any, n_words: int) -> np.ndarray:
    """Return the rows by falling count, or in their own order where counts are unknown.

    The rank of a word tells how rare it is. Most `KeyedVectors` are sorted already; those of a
    model trained with ``sorted_vocab=0`` are not.
    """
    counts = np.asarray(keyed.expandos.get("count", ()))
    if len(counts) != n_words or counts.dtype.kind not in "iuf":
        return np.arange(n_words)
    return np.argsort(-counts.astype(np.float64), kind="stable")


def _is_spacy(source: Any) -> bool:
    return comes_from(source, "spacy") and _spacy_vectors(source) is not None


def _spacy_vectors(source: Any) -> Any:
    """Return the `Vectors` of a `Language`, a `Vocab` or of themselves."""
    source = getattr(source, "vocab", source)
    source = getattr(source, "vectors", source)
    return source if hasattr(source, "key2row") else None


def refuse_floret(vectors: Any) -> None:
    """Refuse spaCy vectors that are made from parts of words instead of kept for each word."""
    if getattr(vectors, "mode", "default") != "default":
        raise InputError(
            f"the spaCy vectors are in {vectors.mode} mode: they are put together from parts of "
            "words, so every word has one already and none can be added. Use a pipeline with a "
            "table of word vectors, such as en_core_web_md."
        )


def _of_spacy(source: Any) -> Embedding:
    vectors = _spacy_vectors(source)
    refuse_floret(vectors)
    strings = getattr(getattr(source, "vocab", source), "strings", vectors.strings)
    row_of = {strings[key]: row for key, row in vectors.key2row.items() if key in strings}
    data = vectors.data.get() if hasattr(vectors.data, "get") else np.asarray(vectors.data)
    row_of = {word: row for word, row in row_of.items() if row >= 0 and word}
    if not row_of:
        raise InputError(
            "the spaCy vocabulary has no word vectors. Load a pipeline that has some, such as "
            "en_core_web_md; those that end in _sm have none."
        )
    return _of_numbered(row_of, data)


KINDS = (
    ObjectKind("gensim KeyedVectors", _is_gensim, _of_gensim),
    ObjectKind("spaCy vocabulary", _is_spacy, _of_spacy),
    ObjectKind("words and vectors", _is_pair, _of_pair),
)
"""What is recognised, in this order."""
