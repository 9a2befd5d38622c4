"""Words of the vocabulary that are spelled most like a name, and the mean of their vectors.

Two spellings are as near as the cosine of their character n-grams, in which rare n-grams weigh
more. An inverted index finds them: for each n-gram of the names, the words that have it. Only names
that are asked for are looked up, so a whole vocabulary costs little more than its n-grams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from vecfill.inputs.names.folding import folded
from vecfill.inputs.names.ngrams import ngrams_of
from vecfill.machine.compiled import compiled

N_NEAREST = 10
"""Words whose mean is taken. On headings, ridge regression from 3, 5 and 10 ranks hidden ones
alike."""

POWER = 3.0
"""Cosines are weights when raised to this power, so that a much nearer spelling decides. Powers of
3 and 5 rank hidden headings alike, and 1 ranks them lower."""

_FEWEST_BITS, _MOST_BITS = 16, 24
"""N-grams are told apart by so many bits of their hash: 64 values for each word. GloVe has 1.5
million n-grams, of which one in twelve shares its 24 bits, mostly with that of a single word."""

_BLOCK = 50_000
"""Words whose n-grams are in memory at a time."""


@dataclass(frozen=True, eq=False)
class NearSpellings:
    """Words and vectors of a vocabulary, found by spellings like theirs.

    Examples
    --------
    >>> near = NearSpellings.of(["walking", "walked", "oslo"], np.array([[2.0], [1.0], [-3.0]]))
    >>> near.steps(["walks", "xyz"]).round(1)
    array([[0.5...],
           [0. ]])
    """

    letters: np.ndarray = field(repr=False)
    """Folded words in UTF-8, a line each."""
    vectors: np.ndarray = field(repr=False)
    """(n_words, n_dims) from the mean, in half precision and in units of `scale`."""
    scale: float

    @classmethod
    def of(cls, words: Sequence[str], vectors: np.ndarray) -> NearSpellings:
        """Return words and vectors; the first of two words of equal nearness counts."""
        text = "\n".join(folded(list(words)))
        letters = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        mean = vectors.mean(axis=0, dtype=np.float64)
        scale = float(vectors.std(dtype=np.float64)) or 1.0
        steps = np.empty(vectors.shape, np.float16)
        for first in range(0, len(vectors), _BLOCK):
            block = slice(first, first + _BLOCK)
            steps[block] = (vectors[block] - mean) / scale
        return cls(letters, steps, scale)

    def steps(self, names: Sequence[str]) -> np.ndarray:
        """Return for each name the mean vector of the words spelled most like it, as a step.

        The better the nearest words fit, the longer the step: it is 0 if no word shares an n-gram.
        """
        places, cosines = self.nearest(names)
        weights = cosines.astype(np.float64) ** POWER
        steps = np.zeros((len(names), self.vectors.shape[1]))
        for number in range(places.shape[1]):
            steps += weights[:, [number]] * self.vectors[places[:, number]].astype(np.float64)
        # Divided by the root of the sum only: half way between a mean and a sum. On headings that
        # ranks hidden names better than either a mean or a sum.
        return steps * (self.scale / np.sqrt(np.maximum(weights.sum(axis=1), 1e-12)))[:, None]

    def nearest(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the words spelled most like each name, and how like they are."""
        grams, starts = _slots(names, self._bits, is_unique=True)
        asked, grams_of_names = np.unique(grams, return_inverse=True)
        times, norms, words_of, ends = self._index(asked)
        places = np.zeros((len(names), N_NEAREST), np.int32)
        cosines = np.zeros((len(names), N_NEAREST), np.float32)
        weights = _weights(times, len(norms))
        _search(starts, grams_of_names, weights, ends, words_of, norms, places, cosines)
        return places, cosines

    @cached_property
    def _bits(self) -> int:
        return int(np.clip((64 * len(self._words)).bit_length(), _FEWEST_BITS, _MOST_BITS))

    @cached_property
    def _words(self) -> list[str]:
        return self.letters.tobytes().decode("utf-8", "surrogatepass").split("\n")

    def _index(self, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return how many words have each n-gram, lengths of all words, and who has which n-gram.

        `asked` are the n-grams in question; of n-gram i, words are at ``ends[i]:ends[i + 1]``.
        """
        words = self._words
        blocks = [slice(first, first + _BLOCK) for first in range(0, len(words), _BLOCK)]
        slots = [_slots(words[block], self._bits, is_unique=False) for block in blocks]
        counts = np.zeros(1 << self._bits, np.int32)
        for grams, _ in slots:
            _count(grams, counts)
        weight_of = _weights(np.arange(counts.max(initial=0) + 1), len(words))
        number_of = np.full(1 << self._bits, -1, np.int32)
        number_of[asked] = np.arange(len(asked), dtype=np.int32)
        norms = np.zeros(len(words), np.float32)
        numbers, owners = [], []
        for block, (grams, starts) in zip(blocks, slots, strict=True):
            own = np.repeat(np.arange(starts.size - 1, dtype=np.int32), np.diff(starts))
            norms[block] = np.bincount(own, weight_of[counts[grams]], minlength=starts.size - 1)
            number = number_of[grams]
            is_asked = number >= 0
            numbers.append(number[is_asked])
            owners.append(own[is_asked] + np.int32(block.start))
        number = np.concatenate(numbers)
        order = np.argsort(number, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(asked)))])
        return counts[asked], np.sqrt(norms), np.concatenate(owners)[order], ends


def _weights(times: np.ndarray, n_words: int) -> np.ndarray:
    """Return the squared weight of n-grams that so many words have; 0 if none has them."""
    weights = (np.log(n_words / np.maximum(times, 1)) + 1.0) ** 2
    return np.where(times > 0, weights, 0.0).astype(np.float32)


def _slots(names: Sequence[str], n_bits: int, *, is_unique: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the leading bits of the n-grams of names, and where those of each name start."""
    grams = ngrams_of(names)
    slots = (grams.hashes >> np.uint64(64 - n_bits)).astype(np.int32)
    if not is_unique:
        return slots, grams.starts
    pairs = zip(grams.starts[:-1], grams.starts[1:], strict=True)
    by_name = [np.unique(slots[first:end]) for first, end in pairs]
    starts = np.concatenate([[0], np.cumsum([part.size for part in by_name])]).astype(np.int64)
    return np.concatenate([*by_name, np.empty(0, np.int32)]), starts


@compiled
def _count(grams: np.ndarray, counts: np.ndarray) -> None:
    for gram in grams:
        counts[gram] += 1


@compiled
def _search(
    starts: np.ndarray,
    grams: np.ndarray,
    weights: np.ndarray,
    ends: np.ndarray,
    words_of: np.ndarray,
    norms: np.ndarray,
    places: np.ndarray,
    cosines: np.ndarray,
) -> None:
    """Write the nearest words of each name and their cosines, the nearest first."""
    last = places.shape[1] - 1
    products = np.zeros(len(norms), np.float32)
    touched = np.empty(len(norms), np.int32)
    for name in range(len(places)):
        n_touched, length = 0, np.float32(0.0)
        for at in range(starts[name], starts[name + 1]):
            gram = grams[at]
            length += weights[gram]
            for place in range(ends[gram], ends[gram + 1]):
                word = words_of[place]
                # A word that has an n-gram twice is not twice as near: its length counts both.
                if place > ends[gram] and words_of[place - 1] == word:
                    continue
                if products[word] == 0:
                    touched[n_touched] = word
                    n_touched += 1
                products[word] += weights[gram]
        length = np.sqrt(length)
        for number in range(n_touched):
            word = touched[number]
            cosine = products[word] / (norms[word] * length)
            products[word] = 0
            spot = last + 1
            while spot > 0 and (
                cosines[name, spot - 1] < cosine
                or (cosines[name, spot - 1] == cosine and places[name, spot - 1] > word)
            ):
                if spot <= last:
                    cosines[name, spot] = cosines[name, spot - 1]
                    places[name, spot] = places[name, spot - 1]
                spot -= 1
            if spot <= last:
                cosines[name, spot] = cosine
                places[name, spot] = word
