"""What the words of a vocabulary that are spelled most like a name say about its vector.

Two spellings are as near as the cosine of their character n-grams, in which rare n-grams weigh
more. An inverted index finds the nearest words: for each n-gram of the names, the words that have
it. Two views come from them: the mean vector of the ten nearest, and kernel ridge regression on the
hundred nearest, with those cosines as the kernel. Nothing is learnt beforehand: what is
said about a name depends on this name and the vocabulary, and costs a millisecond or two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from vecfill.inputs.names.folding import folded
from vecfill.inputs.names.ngrams import ngrams_of
from vecfill.machine.blas import one_blas_thread
from vecfill.machine.compiled import compiled

N_NEAREST = 10
"""Words whose mean is taken. On headings, ridge regression from 3, 5 and 10 ranks hidden ones
alike."""

POWER = 3.0
"""Cosines are weights when raised to this power, so that a much nearer spelling decides. Powers of
3 and 5 rank hidden headings alike, and 1 ranks them lower."""

N_TAUGHT = 100
"""Words on which a name's own regression is learnt. Hidden headings, by centred cosine / MRR: with
50, 150 and 400 words .368/.342, .376/.345 and .377/.359, and by one regression on all 341,479 words
.372/.334; the cost grows with the square."""

RIDGE = 0.5
"""Added to the diagonal of the kernel, which is 1. With .3 and 1 and 150 words, headings have
.376/.345 and .378/.328; with .3, .6 and 1 and 100 words, cities have .149/.068, .158/.071 and
.163/.072."""

_FEWEST_BITS, _MOST_BITS = 16, 24
"""N-grams are told apart by so many bits of their hash: 64 values for each word. GloVe has 1.5
million n-grams, of which one in twelve shares its 24 bits, mostly with that of a single word."""

FEWEST_TIMES = 3
"""Words that have an n-gram before it counts as known: a rare one may be another by chance."""

_BLOCK = 50_000
"""Words whose n-grams are looked at together."""

_NAMES_AT_ONCE = 500
"""Names whose neighbours are in memory together."""


class Suggestions(NamedTuple):
    """What near spellings say about names."""

    guesses: np.ndarray
    """(n_names, n_dims) vectors by regression."""
    means: np.ndarray
    """(n_names, n_dims) means of the nearest words as steps, the longer the better these fit."""
    n_grams: np.ndarray
    """(n_names,) how many different n-grams of each name are known."""


class _Index(NamedTuple):
    """Who has which n-gram."""

    counts: np.ndarray
    """How many words have each n-gram."""
    norms: np.ndarray
    """(n_words,) lengths of the words."""
    words_of: np.ndarray
    """The words that have an n-gram which was asked for."""
    ends: np.ndarray
    """Those of n-gram i are at ``ends[i]:ends[i + 1]``."""


@dataclass(frozen=True, eq=False)
class NearSpellings:
    """Words and vectors of a vocabulary, found by spellings like theirs.

    Examples
    --------
    >>> near = NearSpellings.of(["walking", "walked", "oslo"], np.array([[2.0], [1.0], [-3.0]]))
    >>> near.suggestions(["walks", "xyz"]).guesses.round(1)
    array([[0.7],
           [0. ]])
    """

    letters: np.ndarray = field(repr=False)
    """Folded words in UTF-8, a line each."""
    vectors: np.ndarray = field(repr=False)
    """(n_words, n_dims) from the mean, in half precision and in units of `scale`."""
    mean: np.ndarray = field(repr=False)
    scale: float

    @classmethod
    def of(
        cls, words: Sequence[str], vectors: np.ndarray, places: np.ndarray | None = None
    ) -> NearSpellings:
        """Return words and vectors, all or those at some places; of equally near ones the first."""
        if places is None:
            places = np.arange(len(words))
        text = "\n".join(folded([words[int(place)] for place in places]))
        letters = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
        # Block by block: a copy of a large vocabulary would double the memory that a job takes.
        blocks = [slice(first, first + _BLOCK) for first in range(0, len(places), _BLOCK)]
        sums = sum(vectors[places[block]].sum(axis=0, dtype=np.float64) for block in blocks)
        mean = np.asarray(sums / max(len(places), 1))
        steps = np.empty((len(places), vectors.shape[1]), np.float16)
        squares = 0.0
        for block in blocks:
            squares += float(((vectors[places[block]] - mean) ** 2).sum())
        scale = np.sqrt(squares / max(steps.size, 1)) or 1.0
        for block in blocks:
            steps[block] = (vectors[places[block]] - mean) / scale
        return cls(letters, steps, mean, float(scale))

    def suggestions(self, names: Sequence[str]) -> Suggestions:
        """Return what near spellings say about each name; the mean if no word shares an n-gram."""
        grams, starts = _slots(names, self._bits, is_unique=True)
        places, cosines, counts = self._nearest(grams, starts)
        guesses = np.zeros((len(names), self.vectors.shape[1]))
        for first in range(0, len(names), _NAMES_AT_ONCE):
            block = slice(first, first + _NAMES_AT_ONCE)
            edges = starts[first : first + _NAMES_AT_ONCE + 1]
            own = grams[edges[0] : edges[-1]], edges - edges[0]
            guesses[block] = self._guesses(own, places[block], cosines[block], counts)
        is_known = np.concatenate([[0], np.cumsum(counts[grams] >= FEWEST_TIMES)])
        return Suggestions(guesses, self._means(places, cosines), np.diff(is_known[starts]))

    def nearest(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the places of the words spelled most like each name, and how like they are."""
        places, cosines, _ = self._nearest(*_slots(names, self._bits, is_unique=True))
        return places, cosines

    def _nearest(
        self, grams: np.ndarray, starts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        asked, grams_of_names = np.unique(grams, return_inverse=True)
        index = self._index(asked)
        shape = (starts.size - 1, N_TAUGHT)
        places, cosines = np.zeros(shape, np.int32), np.zeros(shape, np.float32)
        weights = _weights(index.counts[asked], len(index.norms))
        _search(
            starts,
            grams_of_names,
            weights,
            index.ends,
            index.words_of,
            index.norms,
            places,
            cosines,
        )
        return places, cosines, index.counts

    def _means(self, places: np.ndarray, cosines: np.ndarray) -> np.ndarray:
        """Return the mean vectors of the nearest words.

        They are sums divided by the root of the sum of weights only, half way between a mean and a
        sum. On headings that ranks hidden names better than either.
        """
        weights = cosines[:, :N_NEAREST].astype(np.float64) ** POWER
        steps = np.zeros((len(places), self.vectors.shape[1]))
        for number in range(weights.shape[1]):
            steps += weights[:, [number]] * self.vectors[places[:, number]].astype(np.float64)
        return steps * (self.scale / np.sqrt(np.maximum(weights.sum(axis=1), 1e-12)))[:, None]

    @one_blas_thread()
    def _guesses(
        self,
        of_names: tuple[np.ndarray, np.ndarray],
        places: np.ndarray,
        cosines: np.ndarray,
        counts: np.ndarray,
    ) -> np.ndarray:
        """Return the vectors that a regression of each name gives, learnt on its nearest words."""
        used, words = np.unique(places, return_inverse=True)
        words = words.reshape(places.shape).astype(np.int32)
        grams, starts = _slots([self._words[place] for place in used], self._bits, is_unique=True)
        grams_of_names, starts_of_names = of_names
        numbers = np.zeros(counts.size, np.int32)
        all_grams = np.unique(np.concatenate([grams, grams_of_names]))
        numbers[all_grams] = np.arange(all_grams.size, dtype=np.int32)
        squares = _weights(counts[all_grams], len(self._words))
        own, theirs = numbers[grams_of_names], numbers[grams]
        guesses = np.zeros((len(places), self.vectors.shape[1]))
        is_own = np.zeros(all_grams.size, np.bool_)
        kernel = np.empty((N_TAUGHT + 1, N_TAUGHT + 1))
        for name in range(len(places)):
            n_words = int((cosines[name] > 0).sum())
            if not n_words:
                continue
            part = own[starts_of_names[name] : starts_of_names[name + 1]]
            _kernel(part, theirs, starts, words[name, :n_words], squares, is_own, kernel)
            among = kernel[1 : n_words + 1, 1 : n_words + 1] + RIDGE * np.eye(n_words)
            shares = np.linalg.solve(among, kernel[1 : n_words + 1, 0])
            guesses[name] = shares @ self.vectors[places[name, :n_words]].astype(np.float64)
        return guesses * self.scale + self.mean

    @cached_property
    def _bits(self) -> int:
        return int(np.clip((64 * len(self._words)).bit_length(), _FEWEST_BITS, _MOST_BITS))

    @cached_property
    def _words(self) -> list[str]:
        return self.letters.tobytes().decode("utf-8", "surrogatepass").split("\n")

    def _index(self, asked: np.ndarray) -> _Index:
        """Return who has which of the n-grams that are asked for."""
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
            owner = np.repeat(np.arange(starts.size - 1, dtype=np.int32), np.diff(starts))
            norms[block] = np.bincount(owner, weight_of[counts[grams]], minlength=starts.size - 1)
            number = number_of[grams]
            is_asked = number >= 0
            numbers.append(number[is_asked])
            owners.append(owner[is_asked] + np.int32(block.start))
        number = np.concatenate(numbers)
        order = np.argsort(number, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=len(asked)))])
        return _Index(counts, np.sqrt(norms), np.concatenate(owners)[order], ends)


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


@compiled
def _kernel(
    own: np.ndarray,
    grams: np.ndarray,
    starts: np.ndarray,
    words: np.ndarray,
    squares: np.ndarray,
    is_own: np.ndarray,
    kernel: np.ndarray,
) -> None:
    """Write the cosines of a name, which comes first, and some words: all with one another.

    `is_own` marks the n-grams of a row while it is compared, and is false before and after.
    """
    n_rows = len(words) + 1
    for row in range(n_rows):
        first = own if row == 0 else grams[starts[words[row - 1]] : starts[words[row - 1] + 1]]
        for gram in first:
            is_own[gram] = True
        for column in range(row, n_rows):
            second = own
            if column > 0:
                second = grams[starts[words[column - 1]] : starts[words[column - 1] + 1]]
            product = 0.0
            for gram in second:
                if is_own[gram]:
                    product += squares[gram]
            kernel[row, column] = product
        for gram in first:
            is_own[gram] = False
    for row in range(n_rows):
        for column in range(row + 1, n_rows):
            length = np.sqrt(kernel[row, row] * kernel[column, column])
            kernel[row, column] /= length
            kernel[column, row] = kernel[row, column]
    for row in range(n_rows):
        kernel[row, row] = 1.0
