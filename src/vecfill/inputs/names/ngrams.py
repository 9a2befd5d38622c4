"""Names -> hashed character n-grams, many thousand names at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from vecfill.inputs.names.folding import folded
from vecfill.inputs.texts.text_rows import TextRows, leading_components
from vecfill.machine.compiled import compiled

SHORTEST = 3
LONGEST = 6

_MANY = 1_000_000
"""N-grams from which a table of hashes is quicker than binary search, compiling it included: of the
ten million of GloVe it takes a fifth of the time. A guess for fewer."""

_START, _END, _SEPARATOR = (ord(letter) for letter in "<>_")
_OFFSET = np.uint64(14695981039346656037)
_PRIME = np.uint64(1099511628211)
_MIX = np.uint64(0xFF51AFD7ED558CCD)


@dataclass(frozen=True, eq=False)
class NGrams:
    """The n-grams of some names; those of name `i` are `hashes[starts[i]:starts[i + 1]]`."""

    hashes: np.ndarray
    starts: np.ndarray


def ngrams_of(names: Sequence[str]) -> NGrams:
    """Return the hashes of all n-grams of 3 to 6 characters of each name.

    Case, accents and punctuation do not count, and ``<`` and ``>`` mark where a word begins and
    ends. A whole word with both its marks is left out: it would tell a word by itself, which says
    nothing about other words. A name of several words has the n-grams of each of them.

    Examples
    --------
    >>> found = ngrams_of(["cat", "Cat", "black cat"])
    >>> np.diff(found.starts)
    array([ 5,  5, 19])
    >>> bool((found.hashes[:5] == found.hashes[5:10]).all())
    True
    """
    letters, starts = _letters(folded(names))
    counts = np.zeros(len(starts) - 1, np.int64)
    _count(letters, starts, counts)
    ends = np.concatenate([[0], np.cumsum(counts)])
    hashes = np.empty(ends[-1], np.uint64)
    _hash(letters, starts, ends, hashes)
    return NGrams(hashes, ends)


def columns_of(grams: NGrams, keys: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the n-grams that are among `keys`, and where those of each name start.

    Examples
    --------
    >>> grams = NGrams(np.array([7, 5, 7], np.uint64), np.array([0, 2, 3]))
    >>> columns_of(grams, keys=np.array([7], np.uint64), rows=np.array([0], np.int32))
    (array([0, 0], dtype=int32), array([0, 1, 2]))
    """
    if not len(keys):
        return np.zeros(0, np.int32), np.zeros(len(grams.starts), np.int64)
    if len(grams.hashes) < _MANY:
        places = np.minimum(np.searchsorted(keys, grams.hashes), len(keys) - 1)
    else:
        # Twice as many slots as keys or more, so that most hashes are found at the first.
        slots = np.full(1 << (2 * len(keys)).bit_length(), -1, np.int32)
        places = np.empty(len(grams.hashes), np.int32)
        _look_up(grams.hashes, keys, slots, places)
    is_known = keys[places] == grams.hashes
    n_before = np.concatenate([[0], np.cumsum(is_known)])
    return rows[places[is_known]], n_before[grams.starts]


@dataclass(frozen=True, eq=False)
class NGramModel:
    """Character n-grams of names and their leading components, as learnt from some names."""

    keys: np.ndarray
    """(n_grams,) hashes, ascending."""
    weights: np.ndarray
    """(n_grams,)."""
    components: np.ndarray
    """(n_components, n_grams) in 32 bits."""

    @classmethod
    def of_none(cls) -> NGramModel:
        """Return the model of names that share no n-gram."""
        return cls(np.empty(0, np.uint64), np.empty(0), np.empty((0, 0), np.float32))

    def rows(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the components of other names, and which have a known n-gram."""
        grams = ngrams_of(names)
        places = np.arange(len(self.keys), dtype=np.int32)
        columns, starts = columns_of(grams, self.keys, places)
        scores = np.zeros((len(names), self.components.shape[0]))
        for row in range(len(names)):
            places, times = np.unique(columns[starts[row] : starts[row + 1]], return_counts=True)
            if places.size:
                weights = self.weights[places] * times
                weights /= np.linalg.norm(weights)
                scores[row] = self.components[:, places].astype(np.float64) @ weights
        return scores, np.diff(starts) > 0


def ngram_rows(names: Sequence[str], *, n_components: int) -> TextRows:
    """Return the n-grams of names, the rarer the heavier, reduced to their leading components.

    Examples
    --------
    >>> found = ngram_rows(["walking", "talking", "walked", "x"], n_components=2)
    >>> found.vectors.shape, found.is_present
    ((3, 2), array([ True,  True,  True, False]))
    """
    grams = ngrams_of(names)
    keys, times = np.unique(grams.hashes, return_counts=True)
    keys, times = keys[times > 1], times[times > 1]
    columns, starts = columns_of(grams, keys, np.arange(len(keys), dtype=np.int32))
    is_present = np.diff(starts) > 0
    if not is_present.any():
        return TextRows(np.zeros((0, 0)), is_present, NGramModel.of_none())
    weights = np.log(len(names) / times) + 1.0
    rows = csr_matrix((weights[columns], columns, starts), (len(names), len(keys)))[is_present]
    rows.sum_duplicates()
    lengths = np.sqrt(rows.multiply(rows).sum(axis=1)).A1
    rows.data /= np.repeat(lengths, np.diff(rows.indptr))
    vectors, components = leading_components(rows, n_components)
    return TextRows(vectors, is_present, NGramModel(keys, weights, components.astype(np.float32)))


def _letters(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return all code points, and where each name starts; a name ends with a separator."""
    text = "_".join([*names, ""])
    letters = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.fromiter((len(name) + 1 for name in names), np.int64, len(names))
    return letters, np.concatenate([[0], np.cumsum(lengths)])


@compiled
def _look_up(hashes: np.ndarray, keys: np.ndarray, slots: np.ndarray, places: np.ndarray) -> None:
    """Write the place of each hash among the keys, or that of another key if it is not there."""
    last = np.uint64(len(slots) - 1)
    for place in range(len(keys)):
        slot = keys[place] & last
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = place
    for number in range(len(hashes)):
        slot = hashes[number] & last
        places[number] = 0
        while slots[slot] >= 0:
            if keys[slots[slot]] == hashes[number]:
                places[number] = slots[slot]
                break
            slot = (slot + np.uint64(1)) & last


@compiled
def _count(letters: np.ndarray, starts: np.ndarray, counts: np.ndarray) -> None:
    for name in range(len(counts)):
        length = 1
        for place in range(starts[name], starts[name + 1]):
            if letters[place] != _SEPARATOR:
                length += 1
                continue
            length += 1
            for size in range(SHORTEST, min(LONGEST, length - 1) + 1):
                counts[name] += length - size + 1
            length = 1


@compiled
def _hash(letters: np.ndarray, starts: np.ndarray, ends: np.ndarray, hashes: np.ndarray) -> None:
    for name in range(len(ends) - 1):
        out = ends[name]
        first = starts[name]
        for place in range(starts[name], starts[name + 1]):
            if letters[place] != _SEPARATOR:
                continue
            # The word is letters[first:place], between two marks.
            length = place - first + 2
            for begin in range(length):
                value = _OFFSET
                for end in range(begin, min(begin + LONGEST, length)):
                    letter = np.uint64(_START)
                    if end == length - 1:
                        letter = np.uint64(_END)
                    elif end > 0:
                        letter = np.uint64(letters[first + end - 1])
                    value = (value ^ letter) * _PRIME
                    size = end - begin + 1
                    if SHORTEST <= size < length:
                        scrambled = (value ^ (value >> np.uint64(33))) * _MIX
                        hashes[out] = scrambled ^ (scrambled >> np.uint64(33))
                        out += 1
            first = place + 1
