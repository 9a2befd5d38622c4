"""A model from the spelling of a word to its vector, learnt on a whole vocabulary.

A word is the bag of its character n-grams, and ridge regression gives each n-gram a vector: the
vector of a word is the sum of those of its n-grams, divided by the root of their number. The system
has a row for each of some 300,000 n-grams, so it is solved by sweeps over them (Gauss-Seidel), the
frequent ones first: each n-gram takes what its words still miss.
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
from scipy.sparse import csc_matrix, csr_matrix

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

# From decision 43: centred cosine of hidden words .3364, .3437, .3459, .3469, .3474 after one to
# five sweeps over GloVe, and .3469 after the twelve steps of conjugate gradients used before.
N_SWEEPS = 4
"""Times that the vector of every n-gram is brought up to date."""

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
    shares = np.repeat(1.0 / np.sqrt(np.maximum(np.diff(starts), 1)), np.diff(starts))
    by_word = csr_matrix((shares.astype(np.float32), columns, starts), (len(words), len(keys)))
    words_of = by_word.tocsc()
    # An n-gram that a word has twice counts twice in one entry.
    words_of.sum_duplicates()
    del grams, shares, by_word, columns
    solve = partial(_solved, words_of)
    with one_blas_thread(), ThreadPoolExecutor(_N_THREADS) as pool:
        coefficients = np.hstack([part.astype(np.float16) for part in pool.map(solve, targets)])
    return SpellingModel(keys, rows, coefficients, mean, scale)


def _solved(words_of: csc_matrix, targets: np.ndarray) -> np.ndarray:
    """Solve (A'A + ridge) x = A'targets; `words_of` is A, and its columns come by frequency.

    The targets are used up: what is left in them is what the n-grams do not explain.
    """
    vectors = np.zeros((words_of.shape[1], targets.shape[1]), np.float32)
    # The first n-grams are in thousands of words each, and steps that take all at once overshoot
    # there. One after the other, each sees what those before it have explained.
    for _ in range(N_SWEEPS):
        _sweep(words_of.indptr, words_of.indices, words_of.data, targets, vectors)
    return vectors


@compiled
def _sweep(
    starts: np.ndarray,
    words: np.ndarray,
    shares: np.ndarray,
    residuals: np.ndarray,
    vectors: np.ndarray,
) -> None:
    """Set the vector of each n-gram to the best one beside those of all others."""
    n_dims = vectors.shape[1]
    step = np.zeros(n_dims, np.float32)
    for gram in range(len(vectors)):
        square = np.float32(RIDGE)
        for dim in range(n_dims):
            step[dim] = np.float32(0.0)
        for place in range(starts[gram], starts[gram + 1]):
            word, share = words[place], shares[place]
            square += share * share
            for dim in range(n_dims):
                step[dim] += share * residuals[word, dim]
        for dim in range(n_dims):
            step[dim] = (step[dim] - np.float32(RIDGE) * vectors[gram, dim]) / square
            vectors[gram, dim] += step[dim]
        for place in range(starts[gram], starts[gram + 1]):
            word, share = words[place], shares[place]
            for dim in range(n_dims):
                residuals[word, dim] -= share * step[dim]


@compiled
def _add_up(columns: np.ndarray, starts: np.ndarray, vectors: np.ndarray, sums: np.ndarray) -> None:
    for name in range(len(starts) - 1):
        for place in range(starts[name], starts[name + 1]):
            row = columns[place]
            for dim in range(sums.shape[1]):
                sums[name, dim] += vectors[row, dim]


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
    setting = f"2 {RIDGE} {N_SWEEPS} {FEWEST_TIMES} {vectors.dtype} {vectors.shape}\n"
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
