"""Known and imputed vectors -> a torch embedding layer in the order of a vocabulary."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from vecfill import checks
from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import InputError, library
from vecfill.exchange.rows import Found, all_rows
from vecfill.inputs.embeddings import as_embedding
from vecfill.inputs.entities import listed
from vecfill.io import read_embedding
from vecfill.result import Result
from vecfill.wording import count

MISSING = ("normal", "zeros", "refuse")
"""What a word without a vector gets: random numbers, zeros, or an error."""


def to_torch(
    result: Found,
    vocabulary: Iterable[str] | Mapping[str, int] | None = None,
    *,
    base: Any = None,
    missing: str = "normal",
    std: float = 0.3,
    padding: str | int | None = None,
    dtype: Any = None,
    seed: int = 0,
) -> Any:
    """Return a `torch.nn.Embedding` with a row for each word of a vocabulary, ready to train.

    Parameters
    ----------
    result
        What `vecfill.impute` or `LivingModel.add` returned, a model, or an `Embedding`.
    vocabulary
        The words in the order of the rows, or a mapping from word to row. By default the known
        and then the imputed entities.
    base
        The embedding that was completed, or its path, for words of the vocabulary that were not in
        the table. Anything that `vecfill.impute` takes will do.
    missing
        What a word without any vector gets. ``"normal"``, as in the paper: random numbers of mean
        0 and standard deviation `std`; ``"zeros"``; or ``"refuse"``, an error that names them.
    std
        Standard deviation of the random numbers.
    padding
        The word, or its row, that stands for no word. Its row is zero and is not trained.
    dtype
        The torch type of the layer, such as `torch.bfloat16`. By default that of the vectors.
    seed
        Random seed. The same seed gives the same rows.

    Examples
    --------
    >>> words = Embedding(["cat", "dog"], np.array([[1, 0], [0, 1]], "f4"))
    >>> layer = to_torch(words, ["<pad>", "dog", "cow"], padding="<pad>", missing="zeros")
    >>> layer.weight.tolist(), layer.padding_idx
    ([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]], 0)
    """
    torch = library("torch", extra="torch")
    checks.one_of(missing, "missing", MISSING)
    rows = all_rows(result)
    words = _in_order(rows.words if vocabulary is None else vocabulary)
    place = _padding_row(padding, words)
    vectors, is_found = _vectors(words, rows, _base(base, words), _synonyms(result))
    is_found[[] if place is None else [place]] = True
    lacking = np.flatnonzero(~is_found)
    if missing == "refuse" and lacking.size:
        names = listed(words[row] for row in lacking)
        raise InputError(
            f"No vector for {count(lacking.size, 'word')} of the vocabulary: {names}. Pass the "
            "embedding that has them (base=), or start at random (missing='normal')."
        )
    if missing == "normal":
        checks.number(std, "std", low=0)
        rng = np.random.default_rng(checks.whole_number(seed, "seed", low=0))
        vectors[lacking] = rng.normal(0.0, std, size=(lacking.size, rows.n_dims))
    if place is not None:
        vectors[place] = 0.0
    if dtype is not None and not getattr(dtype, "is_floating_point", False):
        raise InputError(
            f"dtype={dtype!r} is no floating-point type of torch. Pass one, such as torch.float32."
        )
    weight = torch.from_numpy(vectors)
    weight = weight if dtype is None else weight.to(dtype)
    return torch.nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=place)


def _in_order(vocabulary: Iterable[str] | Mapping[str, int]) -> list[str]:
    if isinstance(vocabulary, str):
        raise InputError(f"vocabulary is the one string {vocabulary!r}. Pass a list of words.")
    words = list(vocabulary)
    if isinstance(vocabulary, Mapping):
        words = sorted(words, key=vocabulary.__getitem__)
        if [vocabulary[word] for word in words] != list(range(len(words))):
            raise InputError(
                "the rows of the vocabulary do not count from 0 without a gap. Pass a list of the "
                "words in the order of the rows."
            )
    if not words:
        raise InputError("the vocabulary is empty. Pass the words in the order of the rows.")
    if len(set(words)) < len(words):
        earlier: set[str] = set()
        doubled = [word for word in words if word in earlier or earlier.add(word)]
        raise InputError(
            f"the vocabulary holds {listed(doubled)} more than once. Each word has one row."
        )
    return words


def _padding_row(padding: str | int | None, words: list[str]) -> int | None:
    if padding is None:
        return None
    if isinstance(padding, str):
        if padding not in words:
            raise InputError(
                f"padding={padding!r} is not in the vocabulary. Add it, or pass a row number."
            )
        return words.index(padding)
    row = checks.whole_number(padding, "padding", low=0)
    if row >= len(words):
        raise InputError(f"padding={row}, but the vocabulary has {len(words)} rows, from 0.")
    return row


def _base(base: Any, words: list[str]) -> Embedding | None:
    if base is None:
        return None
    if isinstance(base, str | os.PathLike):
        return read_embedding(base, words=words)
    return as_embedding(base)


def _synonyms(result: Found) -> dict[str, str]:
    """Return the entities that words of the embedding were matched to."""
    if not isinstance(result, Result):
        return {}
    return {word: entity for entity, word in result.matches.words.items()}


def _vectors(
    words: list[str], rows: Embedding, base: Embedding | None, synonyms: Mapping[str, str]
) -> tuple[FloatArray, np.ndarray]:
    """Return a row for each word, zero where there is none, and which words have one."""
    if base is not None and base.n_dims != rows.n_dims:
        raise InputError(
            f"base= has vectors of {base.n_dims} dimensions, the result of {rows.n_dims}. Pass the "
            "embedding that was used in vecfill.impute."
        )
    vectors = np.zeros((len(words), rows.n_dims), rows.vectors.dtype)
    is_found = np.zeros(len(words), np.bool_)
    for row, word in enumerate(words):
        name = word if word in rows else synonyms.get(word, word)
        if base is not None and word in base:
            vectors[row] = base[word]
        elif name in rows:
            vectors[row] = rows[name]
        else:
            continue
        is_found[row] = True
    return vectors, is_found
