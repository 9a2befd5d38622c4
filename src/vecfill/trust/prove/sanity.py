"""What a person sees who looks at imputed vectors: are they told apart, and what is near them.

A mean score cannot show that all vectors are nearly one vector. Three looks can: how alike they
are (*spread*), how many of them share their nearest word in the whole file (*hubs*), and a few
examples with their nearest words. The same looks at hidden known entities, as imputed and as they
really are, say what to expect.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.inputs.alignment import Alignment
from vecfill.inputs.names.vocabulary import frequent_and_even
from vecfill.machine.lengths import unit
from vecfill.method.engine import row_blocks
from vecfill.model.fitted import Model
from vecfill.model.stretch import spread
from vecfill.trust.prove.proof import Proof
from vecfill.wording import percent

N_EXAMPLES = 5
N_NEAREST = 5

MOST_LOOKED_AT = 2000
"""Entities that are looked at; more would cost more and show the same."""

MOST_PRODUCTS = 250_000_000_000
"""Products of numbers up to which every word is looked at: two or three seconds."""

N_WORDS = 50_000
"""Frequent words, and as many others, that are looked at in a larger file."""

FEWEST = 20
"""Entities that can collapse: a few may well be alike."""

CROWDED, COLLAPSED = 0.25, 0.5
"""By how much imputed vectors may be more alike (mean cosine) than the entities that they stand
for. In a whole GloVe file the paper's method had .10 on cities, smooth vectors .47, and a collapse
.76."""

LITTLE = 0.1
"""By how much they must be more alike for shared nearest words to be a collapse. Vectors of a file
may all be much alike, and then there is little room above."""

MOST_OF_ALL = 0.5
"""By how much the largest hub may be larger where vectors of a file are all much alike."""

CROWDED_HUB, COLLAPSED_HUB = 0.1, 0.25
"""By how much the share of the most frequent nearest word may be larger. The collapse had .36."""

MOST_ANCHORS = 200
"""Rows whose main known entity is looked up: each costs a solution of the system."""

CLEAR_SHARE = 5.0
"""How many times an equal share a known entity must have to be what a vector mostly is."""

ROWS_PER_BLOCK = 256


@dataclass(frozen=True)
class Look:
    """What is seen of some vectors.

    Examples
    --------
    >>> print(Look(1235, 0.31, 673, 0.02, "cholon"))
    673 different nearest words for 1,235 vectors, 'cholon' for 2 %; mean cosine between them 0.31
    """

    n_vectors: int
    spread: float
    """Mean cosine between two of them."""
    n_nearest: int
    """How many different words are the nearest one of some vector."""
    largest_hub: float
    """Share of the vectors whose nearest word is the most frequent one."""
    hub: str
    """That word."""

    def __str__(self) -> str:
        return (
            f"{self.n_nearest:,} different nearest words for {self.n_vectors:,} vectors, "
            f"{printable(self.hub)!r} for {percent(self.largest_hub)}; mean cosine between them "
            f"{self.spread:.2f}"
        )


@dataclass(frozen=True)
class Example:
    """An entity and the words nearest to its vector, the nearest first."""

    entity: str
    nearest: tuple[str, ...]

    def __str__(self) -> str:
        return f"{printable(self.entity)}: {', '.join(map(printable, self.nearest))}"


@dataclass(frozen=True)
class Sanity:
    """What a person sees of imputed vectors, beside what hidden known entities look like."""

    imputed: Look
    hidden: Look | None
    """Hidden known entities as they are imputed; ``None`` if none was hidden."""
    true: Look | None
    """The same entities as they really are; their own words are left out."""
    stand_for: float | None
    """Mean cosine between the known entities that the imputed ones are mostly made of, if the
    imputed ones are much alike."""
    examples: tuple[Example, ...]
    hidden_examples: tuple[Example, ...]
    is_whole_file: bool
    """Whether nearest words were sought among all words, or in a sample."""

    @property
    def verdict(self) -> str:
        """Either ``"fine"``, ``"crowded"`` or ``"collapsed"``."""
        if self.imputed.n_vectors < FEWEST or self.true is None:
            return "fine"
        # Cities of one country may well be alike, so they are compared with what they are made of.
        alike = self.imputed.spread - max(self.true.spread, self.stand_for or -1.0)
        hubs = self.imputed.largest_hub - self.true.largest_hub
        # Among few vectors, chance alone lets some share a word.
        hubs -= 1.0 / np.sqrt(self.imputed.n_vectors)
        is_crowd = hubs > MOST_OF_ALL and alike > LITTLE
        if alike > COLLAPSED or is_crowd or (hubs > COLLAPSED_HUB and alike > CROWDED):
            return "collapsed"
        return "crowded" if alike > CROWDED or hubs > CROWDED_HUB else "fine"

    @property
    def warning(self) -> str | None:
        """What to say first if the vectors cannot be told apart as they should; else ``None``."""
        if self.verdict == "fine" or self.true is None:
            return None
        problem = (
            "The imputed vectors have collapsed: they are nearly one vector"
            if self.verdict == "collapsed"
            else "The imputed vectors crowd together"
        )
        return (
            f"{problem}. They have {self.imputed}. Of hidden known entities, the true vectors have "
            f"{self.true}."
        )

    def lines(self) -> list[tuple[str, str]]:
        """Return what a summary says, as labels and texts."""
        beside = "" if self.true is None else f" (known entities {self.true.spread:.2f})"
        lines = [
            ("spread", f"mean cosine between new vectors {self.imputed.spread:.2f}{beside}"),
            (
                "nearest",
                f"{self.imputed.n_nearest:,} different nearest words for "
                f"{self.imputed.n_vectors:,} new vectors; {printable(self.imputed.hub)!r} for "
                f"{percent(self.imputed.largest_hub)}",
            ),
        ]
        if self.examples:
            lines.append(("examples", "; ".join(map(str, self.examples[:3]))))
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"verdict": self.verdict, **asdict(self)}


def sanity_of(
    model: Model, places: np.ndarray, names: tuple[str, ...], proof: Proof, words: Words
) -> Sanity:
    """Return what is seen of the unknown rows at some places, whose names are given for all."""
    looked_at = places[_sample(len(places), MOST_LOOKED_AT)]
    vectors = model.embedding[model.rows.unknown[looked_at]]
    look = words.look(vectors)
    hidden, true, hidden_examples = None, None, ()
    hidden_rows = proof.shown
    if hidden_rows is not None and len(hidden_rows.rows) > 1:
        assert hidden_rows.vectors is not None
        sample = _sample(len(hidden_rows.rows), MOST_LOOKED_AT)
        row_numbers, imputed = hidden_rows.rows[sample], hidden_rows.vectors[sample]
        hidden, true = (
            words.look(imputed),
            words.look(model.embedding[row_numbers], own_rows=row_numbers),
        )
        hidden_examples = words.examples(imputed, [words.entities[row] for row in row_numbers])
    stand_for = None
    if true is not None and look.spread - true.spread > LITTLE:
        # They may well be alike if the known entities that they are made of are.
        shares = model.shares(looked_at[_sample(len(looked_at), MOST_ANCHORS)])
        anchors = shares.argmax(axis=1)[shares.max(axis=1) > CLEAR_SHARE / shares.shape[1]]
        # If most vectors are mixes of many, no single entity says how alike they should be.
        if 2 * anchors.size > len(shares):
            stand_for = round(spread(model.known[anchors]), 4)
    examples = words.examples(vectors, [names[place] for place in looked_at])
    return Sanity(look, hidden, true, stand_for, examples, hidden_examples, words.is_whole)


def sanity_of_result(
    model: Model, alignment: Alignment, proof: Proof, is_described: np.ndarray
) -> Sanity | None:
    """Return what a person sees of the vectors that were imputed."""
    vocabulary, is_whole = alignment.vocabulary, alignment.has_whole_vocabulary
    if vocabulary is None:
        # A table that holds features and vectors is all there is to look at.
        vocabulary, is_whole = Embedding(alignment.known, model.known), True
        word_of = {name: name for name in alignment.known}
    else:
        word_of = dict(alignment.matches.words)
    if not len(vocabulary) or not is_described.any():
        return None
    words = Words(vocabulary, alignment.domain.entities, word_of, is_whole=is_whole)
    places = np.flatnonzero(is_described)
    return sanity_of(model, places, alignment.unknown, proof, words)


class Words:
    """The words that users see around a vector: those of the whole file, or of a large one a part.

    Parameters
    ----------
    vocabulary
        Words and vectors.
    entities
        Names of all rows of the table.
    word_of
        The word of each known entity.
    is_whole
        Whether the vocabulary is the whole file.
    """

    def __init__(
        self,
        vocabulary: Embedding,
        entities: tuple[str, ...],
        word_of: dict[str, str],
        *,
        is_whole: bool,
    ) -> None:
        self.entities = entities
        n_rows = min(len(entities), MOST_LOOKED_AT)
        places = np.arange(len(vocabulary))
        if len(vocabulary) * vocabulary.n_dims * 3 * n_rows > MOST_PRODUCTS:
            places = frequent_and_even(len(vocabulary), n_frequent=N_WORDS, n_even=N_WORDS)
        self.is_whole = is_whole and places.size == len(vocabulary)
        vectors = vocabulary.vectors[places]
        vectors = vectors.astype(np.promote_types(vectors.dtype, np.float32), copy=False)
        vectors[~np.isfinite(vectors).all(axis=1)] = 0.0
        # Directions first: 1e160 has no place in 32 bits, its direction has.
        self._directions = unit(vectors).astype(np.float32, copy=False)
        self._words = [vocabulary.words[place] for place in places.tolist()]
        row_of = {word: row for row, word in enumerate(self._words)}
        self._own = np.array([row_of.get(word_of.get(name, ""), -1) for name in entities], np.int64)

    def look(self, vectors: np.ndarray, own_rows: np.ndarray | None = None) -> Look:
        """Return what is seen of some vectors; words of entities in `own_rows` are left out."""
        nearest = self._nearest(vectors, 1, own_rows)[:, 0]
        counts = np.bincount(nearest)
        return Look(
            len(vectors),
            round(spread(vectors), 4),
            int((counts > 0).sum()),
            round(float(counts.max() / len(vectors)), 4),
            self._words[int(counts.argmax())],
        )

    def examples(self, vectors: np.ndarray, names: list[str]) -> tuple[Example, ...]:
        """Return a few of the entities, evenly spread, with their nearest words."""
        rows = _sample(len(vectors), N_EXAMPLES)
        nearest = self._nearest(vectors[rows], min(N_NEAREST, len(self._words)))
        return tuple(
            Example(names[row], tuple(self._words[place] for place in places))
            for row, places in zip(rows.tolist(), nearest.tolist(), strict=True)
        )

    def _nearest(
        self, vectors: np.ndarray, n: int, own_rows: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the rows of the nearest words, the nearest first."""
        # 32 bits, because the whole file may be multiplied; nearest words need no more digits.
        directions = unit(np.asarray(vectors, np.float64)).astype(np.float32)
        nearest = np.empty((len(vectors), n), np.int64)
        for block in row_blocks(len(vectors), ROWS_PER_BLOCK):
            nearness = directions[block] @ self._directions.T
            if own_rows is not None:
                places = self._own[own_rows[block]]
                is_there = np.flatnonzero(places >= 0)
                nearness[is_there, places[is_there]] = -np.inf
            # A sort of the whole file would take longer than the product.
            if n == 1:
                nearest[block, 0] = nearness.argmax(axis=1)
                continue
            unsorted = np.argpartition(-nearness, n - 1, axis=1)[:, :n]
            order = np.argsort(
                -np.take_along_axis(nearness, unsorted, axis=1), axis=1, kind="stable"
            )
            nearest[block] = np.take_along_axis(unsorted, order, axis=1)
        return nearest


def _sample(n: int, n_most: int) -> np.ndarray:
    """Return at most so many places, evenly spread.

    Examples
    --------
    >>> _sample(10, 5)
    array([0, 2, 4, 6, 8])
    """
    return np.arange(n)[:: -(-n // n_most)] if n else np.arange(0)
