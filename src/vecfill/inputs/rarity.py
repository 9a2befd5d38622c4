"""How rare each entity is: its place in the embedding file, or a count.

Files of word2vec, GloVe and fastText are sorted by frequency, so the row of a word tells its rank.
Rarity is the logarithm of the rank, or minus the logarithm of the count: it grows with rareness.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vecfill.inputs.names.folding import folded
from vecfill.machine.lengths import with_safe_squares

CLEARLY_ODDER = 4.0
"""Odds ratio, unknown against known entities, from which on a trait of names is taken for the
reason why entities are unknown. In GloVe, it is above 70 for cities with names of several words;
where known and unknown items alike have such names (films), it is near 1."""

FIRST_BIN = 200
"""Ranks in the first bin; the most frequent words are few and unlike each other. A guess."""

BIN_RATIO = 1.36
"""Upper over lower end of the other bins; a guess."""

MOST_SAMPLED = 1000
"""Words of a bin whose vectors are read: the mean of so many is within 3 % of their spread."""

N_PERMUTATIONS = 199
"""Rarities dealt out at random. The true order must beat all: a chance of one in 200 by luck."""

MOST_TESTED = 5000
"""Known vectors that are looked at, which bounds the time of the test."""

FEWEST_WORDS = 50
"""Words below which their lengths do not tell the direction of an order; a guess."""

CLEARLY_REVERSED = 4.0
"""Standard errors by which frequent words must be longer than rare ones to doubt the order."""

CLEARLY_TOGETHER = 4.0
"""Standard errors by which counts must go with ranks to say at which count a rank is."""


def rank_bins(n_words: float) -> Iterator[tuple[int, int]]:
    """Yield bins of ranks that are equally wide on a logarithmic scale.

    Examples
    --------
    >>> list(rank_bins(400))
    [(0, 200), (200, 272), (272, 370), (370, 503)]
    """
    low, high = 0, FIRST_BIN
    while low < n_words:
        yield low, high
        low, high = high, round(high * BIN_RATIO)


def log_rank(rows: Any) -> np.ndarray:
    """Return the rarity of words by their rows in the file, from 0.

    Examples
    --------
    >>> log_rank([0, 99]).round(1)
    array([0. , 4.6])
    """
    return np.log(np.asarray(rows, np.float64) + 1.0)


def minus_log_count(counts: Any) -> np.ndarray:
    """Return the rarity of entities by how often they were counted; 0 counts as a half.

    Examples
    --------
    >>> minus_log_count([1, 0]).round(1)
    array([-0. ,  0.7])
    """
    return -np.log(np.maximum(np.asarray(counts, np.float64), 0.5))


@dataclass(frozen=True, eq=False)
class VocabularyMeans:
    """The mean vector of the whole vocabulary by rank, from a sample of each bin."""

    rarity: np.ndarray = field(repr=False)
    """(n_bins,) log rank of the middle of each bin, ascending."""
    means: np.ndarray = field(repr=False)
    """(n_bins, n_dims)."""
    spreads: np.ndarray = field(repr=False)
    """(n_bins,) root mean square distance of the words of each bin from their mean."""
    n_words: int


class RankSample:
    """Gathers the mean vector of each bin of ranks while an embedding is read from front to back.

    Examples
    --------
    >>> sample = RankSample()
    >>> sample.places(first_row=0, n_rows=3)
    [0, 1, 2]
    >>> sample.add(first_row=0, places=[0, 1, 2], vectors=np.array([[1.0], [2.0], [3.0]]))
    >>> sample.means(n_words=3).means
    array([[2.]])
    """

    def __init__(self) -> None:
        self._sums: dict[int, np.ndarray] = {}
        self._squares: dict[int, float] = {}
        self._counts: dict[int, int] = {}
        self._exponent: int | None = None

    def places(self, *, first_row: int, n_rows: int) -> list[int]:
        """Return the places in a batch of rows whose vectors are wanted: evenly spread in a bin."""
        chosen: list[int] = []
        for low, high in rank_bins(first_row + n_rows):
            if high <= first_row:
                continue
            step = max(1, (high - low) // MOST_SAMPLED)
            start = max(low, first_row)
            start += -(start - low) % step
            chosen += range(start - first_row, min(high - first_row, n_rows), step)
        return chosen

    def add(self, *, first_row: int, places: list[int], vectors: np.ndarray) -> None:
        """Add the vectors at some places of a batch; rows that are not finite do not count."""
        is_good = np.isfinite(vectors).all(axis=1)
        rows = first_row + np.asarray(places, np.int64)
        for low, high in rank_bins(float(rows.max(initial=-1)) + 1):
            inside = (rows >= low) & (rows < high) & is_good
            if inside.any():
                part = vectors[inside].sum(axis=0, dtype=np.float64)
                self._sums[low] = self._sums.get(low, 0.0) + part
                squares = float((self._safe(vectors[inside]) ** 2).sum())
                self._squares[low] = self._squares.get(low, 0.0) + squares
                self._counts[low] = self._counts.get(low, 0) + int(inside.sum())

    def _safe(self, vectors: np.ndarray) -> np.ndarray:
        """Return vectors in 64 bits, divided by one power of two if squares might overflow."""
        if self._exponent is None:
            largest = float(np.abs(vectors).max(initial=0.0))
            is_safe = largest == 0.0 or 1e-100 < largest < 1e100
            self._exponent = 0 if is_safe else int(np.frexp(largest)[1])
        return np.ldexp(vectors.astype(np.float64), -self._exponent)

    def means(self, *, n_words: int) -> VocabularyMeans:
        """Return what was gathered."""
        ends = {low: min(high, n_words) for low, high in rank_bins(n_words)}
        lows = sorted(self._counts)
        middles = [(low + ends[low] - 1) / 2 for low in lows]
        means = np.array([self._sums[low] / self._counts[low] for low in lows])
        squares = np.array([self._squares[low] / self._counts[low] for low in lows])
        spreads = np.sqrt(np.maximum(squares - (self._safe(means) ** 2).sum(axis=1), 0.0))
        spreads = np.ldexp(spreads, self._exponent or 0)
        return VocabularyMeans(log_rank(middles), means, spreads, n_words)


@dataclass(frozen=True, eq=False)
class Rarity:
    """How rare each entity is, and where that is known from."""

    values: np.ndarray = field(repr=False)
    """(n_rows,) larger is rarer; NaN where nothing is known."""
    basis: str
    """``"order"`` of the embedding, or ``"counts"``."""
    vocabulary: VocabularyMeans | None = None
    """Mean vectors of the whole vocabulary by rarity, if its order is that of frequency."""
    spares_several: bool = False
    """Whether names of several words are unknown for another reason, so nothing is said of them."""
    spared: np.ndarray | None = field(default=None, repr=False)
    """(n_rows,) whose names, known and unknown ones, are of a kind that is not about rarity;
    ``None``: none are."""

    def may_be_rare(self, rows: np.ndarray) -> np.ndarray:
        """Return which of some rows, a mask, may be unknown because they are rare."""
        return rows if self.spared is None else rows & ~self.spared


def moves_with(rarity: np.ndarray, vectors: np.ndarray) -> bool:
    """Tell whether the mean vector moves with rarity by more than chance would make it.

    An order that is not that of frequency, say of the alphabet, moves nothing. Rarities are dealt
    out at random 199 times; the true order must beat them all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise, order = rng.normal(size=(300, 5)), np.log(np.arange(300) + 1.0)
    >>> moves_with(order, noise), moves_with(order, noise + 0.3 * order[:, None])
    (False, True)
    """
    step = max(1, len(vectors) // MOST_TESTED)
    rarity, vectors = rarity[::step], vectors[::step].astype(np.float64)
    if len(vectors) < 20:
        return False
    centred = vectors - vectors.mean(axis=0)
    centred = with_safe_squares(centred)
    lengths = np.linalg.norm(centred, axis=1, keepdims=True)
    centred = np.divide(centred, lengths, out=np.zeros_like(centred), where=lengths > 0)
    order = (rarity - rarity.mean())[None]
    rng = np.random.default_rng(0)
    dealt = np.stack([rng.permutation(order[0]) for _ in range(N_PERMUTATIONS)])
    strength = np.linalg.norm(order @ centred, axis=1)
    return bool(strength[0] > np.linalg.norm(dealt @ centred, axis=1).max())


def in_counts(
    vocabulary: VocabularyMeans, log_ranks: np.ndarray, rarity: np.ndarray
) -> VocabularyMeans | None:
    """Return the mean vectors of a vocabulary by counts; ``None`` if counts do not go with ranks.

    Known entities have both a rank and a count, and a line through them tells the log rank to
    expect at a count. So the bins of the vocabulary get the counts at which they are expected.

    Examples
    --------
    >>> log_ranks = np.linspace(2, 8, 50)
    >>> words = VocabularyMeans(np.array([2.0, 8.0]), np.eye(2), np.ones(2), n_words=3000)
    >>> in_counts(words, log_ranks, log_ranks / 2 - 9).rarity
    array([-8., -5.])
    """
    away, ranks_away = rarity - rarity.mean(), log_ranks - log_ranks.mean()
    scale = float(np.linalg.norm(away)), float(np.linalg.norm(ranks_away))
    if not min(scale) > 0:
        return None
    together = float(away @ ranks_away) / (scale[0] * scale[1])
    if not together * np.sqrt(rarity.size) > CLEARLY_TOGETHER:
        return None
    slope = together * scale[1] / scale[0]
    at = rarity.mean() + (vocabulary.rarity - log_ranks.mean()) / slope
    return replace(vocabulary, rarity=at)


def looks_reversed(rarity: np.ndarray, words: Sequence[str]) -> bool:
    """Tell whether an order seems to have the rarest words first: frequent words are shorter.

    Examples
    --------
    >>> words = ["a" * (1 + i // 20) for i in range(200)]
    >>> order = np.arange(200.0)
    >>> looks_reversed(order, words), looks_reversed(-order, words)
    (False, True)
    """
    if len(words) < FEWEST_WORDS:
        return False
    ranks = np.argsort(np.argsort(rarity, kind="stable"), kind="stable") / len(words) - 0.5
    lengths = np.array([len(word) for word in words], np.float64)
    spread = float(lengths.std())
    if not spread > 0:
        return False
    scaled = float(ranks @ (lengths - lengths.mean())) / (len(words) * spread * float(ranks.std()))
    return bool(scaled < -CLEARLY_REVERSED / np.sqrt(len(words)))


def has_several_words(names: Sequence[str]) -> np.ndarray:
    """Tell which names have several words, however they are joined.

    Examples
    --------
    >>> has_several_words(["Oslo", "Fort_Worth", "x-ray"])
    array([False,  True,  True])
    """
    return np.array(["_" in name for name in folded(list(names))], np.bool_)


def absent_for_another_reason(
    names: Sequence[str], is_known: np.ndarray, alphabet: Collection[str]
) -> tuple[np.ndarray, bool]:
    """Tell whose names are of a kind that files of words lack, frequent or not.

    A name of several words, or with characters that no word of the file has (`alphabet`), is no
    evidence of rarity if such names are far more common among unknown than among known entities.
    The second value is whether that is so for names of several words.

    Examples
    --------
    >>> names = ["Oslo", "Bern", "Rome", "Fort Worth", "New Delhi", "San Juan", "Qo"]
    >>> absent_for_another_reason(names, np.arange(7) < 3, set("QOsloBernRme"))
    (array([False, False, False,  True,  True,  True, False]), True)
    """
    several = has_several_words(names)
    letters = set(alphabet)
    is_odd = np.array([not letters.issuperset(name.replace(" ", "_")) for name in names]) & ~several
    is_spared = np.zeros(len(names), np.bool_)
    for trait in (several, is_odd):
        if _odds(trait[~is_known]) > CLEARLY_ODDER * _odds(trait[is_known]):
            is_spared |= trait
    spares_several = bool((is_spared & several).any())
    return is_spared, spares_several


def _odds(trait: np.ndarray) -> float:
    """Return the odds of a trait; half a row more on either side keeps them finite."""
    return (float(trait.sum()) + 0.5) / (float((~trait).sum()) + 0.5)


def counts_of(source: Mapping[str, Any], entities: Sequence[str]) -> np.ndarray:
    """Return the count of each entity, NaN where there is none."""
    return np.array([float(source.get(entity, np.nan)) for entity in entities])
