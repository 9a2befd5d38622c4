"""A model from the spelling of a word to its vector, learnt on a whole vocabulary.

A word is the bag of its character n-grams, and ridge regression gives each n-gram a vector: the
vector of a word is the sum of those of its n-grams, divided by the root of their number. The system
has a row for each of some 300,000 n-grams, so it is solved by conjugate gradients, which
only need products with the sparse matrix of n-grams.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from vecfill.errors import InputError, VecfillError
from vecfill.inputs.names.ngrams import columns_of, ngrams_of
from vecfill.io.arrays import DAMAGE, as_tensor
from vecfill.io.atomic import atomic_output
from vecfill.io.safetensors import TensorFile, write_tensors
from vecfill.io.sources import Source
from vecfill.io.vector_cache import user_cache
from vecfill.machine.blas import one_blas_thread
from vecfill.machine.compiled import compiled

FEWEST_TIMES = 3
"""An n-gram of fewer words teaches little about others."""

RIDGE = 1.0
N_STEPS = 12
"""Steps of conjugate gradients. On GloVe, more change the score in the third digit."""

_BLOCK = 64
"""Dimensions solved together. They do not depend on each other, so blocks can run in threads
without changing a bit."""

_N_THREADS = 2

_TENSORS = ("keys", "rows", "vectors", "mean")
"""Arrays of a model that a file has."""


@dataclass(frozen=True, eq=False)
class SpellingModel:
    """Vectors of n-grams: those of the n-gram with hash `keys[i]` are row `rows[i]`."""

    keys: np.ndarray
    """(n_grams,) hashes, ascending."""
    rows: np.ndarray
    """(n_grams,) where the vector of an n-gram is; frequent n-grams come first."""
    vectors: np.ndarray
    """(n_grams, n_dims) in half precision, in units of `scale`."""
    mean: np.ndarray
    scale: float

    def predict(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return a vector for each name, and how many of its n-grams are known.

        A name without any known n-gram gets the mean vector.
        """
        grams = ngrams_of(names)
        columns, starts = columns_of(grams, self.keys, self.rows)
        n_grams = np.diff(starts)
        sums = np.zeros((len(names), len(self.mean)), np.float32)
        _add_up(columns, starts, self.vectors.astype(np.float32), sums)
        sums *= (self.scale / np.sqrt(np.maximum(n_grams, 1)))[:, None].astype(np.float32)
        return sums + self.mean, n_grams


def fit_spelling(words: Sequence[str], vectors: np.ndarray) -> SpellingModel:
    """Return the model of some words and their vectors.

    Examples
    --------
    >>> words = [f"{start}{end}" for start in ("walk", "talk", "jump")
    ...          for end in ("s", "ed", "ing")]
    >>> vectors = np.array([[word.startswith("jump"), word.endswith("ing")] for word in words])
    >>> model = fit_spelling(words, vectors.astype(np.float32))
    >>> found, n_grams = model.predict(["jumping", "stalked"])
    >>> bool((found[0] > found[1]).all()), int(n_grams[1])
    (True, 4)
    """
    # In alphabetical order neighbours share n-grams, whose vectors are then at hand. And the order
    # in which words come does not change the result.
    order = sorted(range(len(words)), key=words.__getitem__)
    vectors = vectors[order].astype(np.float32)
    grams = ngrams_of([words[place] for place in order])
    keys, times = np.unique(grams.hashes, return_counts=True)
    keys, times = keys[times >= FEWEST_TIMES], times[times >= FEWEST_TIMES]
    # Vectors of frequent n-grams side by side stay in the processor's cache.
    rows = np.empty(len(keys), np.int32)
    rows[np.argsort(-times, kind="stable")] = np.arange(len(keys), dtype=np.int32)
    columns, starts = columns_of(grams, keys, rows)
    mean = vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    scale = float(vectors.std(dtype=np.float64)) or 1.0
    blocks = [slice(first, first + _BLOCK) for first in range(0, vectors.shape[1], _BLOCK)]
    targets = [np.ascontiguousarray((vectors[:, b] - mean[b]) / np.float32(scale)) for b in blocks]
    solve = partial(_solved, columns, starts, len(keys))
    with one_blas_thread(), ThreadPoolExecutor(_N_THREADS) as pool:
        coefficients = np.hstack([part.astype(np.float16) for part in pool.map(solve, targets)])
    return SpellingModel(keys, rows, coefficients, mean, scale)


def _solved(
    columns: np.ndarray, starts: np.ndarray, n_grams: int, targets: np.ndarray
) -> np.ndarray:
    """Solve (A'A + ridge) x = A'targets; row `i` of A has 1 / sqrt(n) at the n-grams of word i."""
    n_of_word = np.maximum(np.diff(starts), 1)
    shares = (1.0 / n_of_word).astype(np.float32)
    right = np.zeros((n_grams, targets.shape[1]), np.float32)
    _spread(columns, starts, targets * np.sqrt(shares)[:, None], right)
    diagonal = np.bincount(columns, np.repeat(shares, np.diff(starts)), n_grams) + RIDGE
    inverse = (1.0 / diagonal).astype(np.float32)[:, None]
    solution, residual = np.zeros_like(right), right
    direction, product = np.zeros_like(right), np.zeros_like(right)
    length = _dots(residual, residual * inverse)
    ratio = np.zeros_like(length)
    for _ in range(N_STEPS):
        _turn(direction, product, residual, inverse, ratio.astype(np.float32))
        _add_normal_product(columns, starts, shares, direction, product)
        step = length / np.maximum(_dots(direction, product), 1e-30)
        new = _advance(solution, residual, direction, product, inverse, step.astype(np.float32))
        ratio, length = new / np.maximum(length, 1e-30), new
    return solution


@compiled
def _dots(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the product of each column with its counterpart, in double precision."""
    products = np.zeros(first.shape[1])
    for row in range(first.shape[0]):
        for dim in range(first.shape[1]):
            products[dim] += np.float64(first[row, dim] * second[row, dim])
    return products


@compiled
def _turn(
    direction: np.ndarray,
    product: np.ndarray,
    residual: np.ndarray,
    inverse: np.ndarray,
    ratio: np.ndarray,
) -> None:
    """Set the next direction, and the part of its product that the ridge makes."""
    for row in range(direction.shape[0]):
        for dim in range(direction.shape[1]):
            value = residual[row, dim] * inverse[row, 0] + ratio[dim] * direction[row, dim]
            direction[row, dim] = value
            product[row, dim] = np.float32(RIDGE) * value


@compiled
def _advance(
    solution: np.ndarray,
    residual: np.ndarray,
    direction: np.ndarray,
    product: np.ndarray,
    inverse: np.ndarray,
    step: np.ndarray,
) -> np.ndarray:
    """Go one step; return the preconditioned length of the new residual, by dimension."""
    lengths = np.zeros(direction.shape[1])
    for row in range(direction.shape[0]):
        for dim in range(direction.shape[1]):
            solution[row, dim] += step[dim] * direction[row, dim]
            value = residual[row, dim] - step[dim] * product[row, dim]
            residual[row, dim] = value
            lengths[dim] += np.float64(value * value * inverse[row, 0])
    return lengths


@compiled
def _add_up(columns: np.ndarray, starts: np.ndarray, vectors: np.ndarray, sums: np.ndarray) -> None:
    for name in range(len(starts) - 1):
        for place in range(starts[name], starts[name + 1]):
            row = columns[place]
            for dim in range(sums.shape[1]):
                sums[name, dim] += vectors[row, dim]


@compiled
def _spread(
    columns: np.ndarray, starts: np.ndarray, targets: np.ndarray, right: np.ndarray
) -> None:
    for word in range(len(starts) - 1):
        for place in range(starts[word], starts[word + 1]):
            row = columns[place]
            for dim in range(right.shape[1]):
                right[row, dim] += targets[word, dim]


@compiled
def _add_normal_product(
    columns: np.ndarray,
    starts: np.ndarray,
    shares: np.ndarray,
    direction: np.ndarray,
    product: np.ndarray,
) -> None:
    """Add A'A direction to the product, word by word, so that no transpose is needed."""
    n_dims = direction.shape[1]
    total = np.zeros(n_dims, np.float32)
    for word in range(len(starts) - 1):
        for dim in range(n_dims):
            total[dim] = np.float32(0.0)
        for place in range(starts[word], starts[word + 1]):
            row = columns[place]
            for dim in range(n_dims):
                total[dim] += direction[row, dim]
        for dim in range(n_dims):
            total[dim] *= shares[word]
        for place in range(starts[word], starts[word + 1]):
            row = columns[place]
            for dim in range(n_dims):
                product[row, dim] += total[dim]


def names_cache_of(embedding: Path, *, is_asked: bool) -> Path:
    """Return where the spelling model of an embedding file is kept.

    Beside the file if a user `is_asked` for names. Otherwise in the cache folder of the account:
    nobody expects a new file beside their data. There is one model for each embedding file.

    Examples
    --------
    >>> names_cache_of(Path("glove.txt"), is_asked=True).name
    'glove.txt.spelling.safetensors'
    """
    if is_asked:
        return embedding.with_name(embedding.name + ".spelling.safetensors")
    place = hashlib.sha256(os.fsencode(embedding.absolute())).hexdigest()[:32]
    return user_cache() / "spelling" / f"{place}.safetensors"


def cached_model(
    path: Path | None,
    words: Sequence[str],
    vectors: np.ndarray,
    fit: Callable[[Sequence[str], np.ndarray], SpellingModel],
) -> SpellingModel:
    """Return the model kept in `path` if it is that of these words and vectors; fit it otherwise.

    A file that is damaged, or belongs to other words, is replaced. A folder that cannot be written
    to is no reason to stop: the model is then made again the next time.
    """
    if path is None:
        return fit(words, vectors)
    identity = _identity(words, vectors)
    if (cached := _read(path, identity)) is not None:
        return cached
    model = fit(words, vectors)
    _write(path, identity, model)
    return model


def _identity(words: Sequence[str], vectors: np.ndarray) -> str:
    setting = f"1 {RIDGE} {N_STEPS} {FEWEST_TIMES} {vectors.dtype} {vectors.shape}\n"
    digest = hashlib.sha256(setting.encode())
    digest.update("\n".join(words).encode("utf-8", "surrogateescape"))
    digest.update(np.ascontiguousarray(vectors).data)
    return digest.hexdigest()


def _write(path: Path, identity: str, model: SpellingModel) -> None:
    tensors = {name: getattr(model, name) for name in _TENSORS}
    tensors["keys"] = model.keys.view(np.int64)
    about = {"made_by": "vecfill", "identity": identity, "scale": repr(model.scale)}
    about["checksum"] = _checksum(model)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_output(path, overwrite=True, waits=False) as file:
            write_tensors(file, {name: as_tensor(array) for name, array in tensors.items()}, about)
    except (OSError, InputError):
        return


def _read(path: Path, identity: str) -> SpellingModel | None:
    try:
        with Source(path) as source:
            file = TensorFile(source)
            if file.metadata.get("identity") != identity:
                return None
            keys, rows, vectors, mean = (file.read(name) for name in _TENSORS)
            scale = float(file.metadata["scale"])
            model = SpellingModel(keys.view(np.uint64), rows, vectors, mean, scale)
            return model if file.metadata["checksum"] == _checksum(model) else None
    except (VecfillError, *DAMAGE):
        return None


def _checksum(model: SpellingModel) -> str:
    digest = hashlib.sha256(repr(model.scale).encode())
    for name in _TENSORS:
        digest.update(np.ascontiguousarray(getattr(model, name)).data)
    return digest.hexdigest()
