"""How texts and names were read, so that those which come later are read in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from vecfill.errors import InputError
from vecfill.inputs.entities import is_missing, listed
from vecfill.inputs.later_rows import Facts, LaterRows
from vecfill.inputs.names.folding import folded, glued
from vecfill.inputs.names.ngrams import columns_of, ngrams_of
from vecfill.inputs.names.spelling_model import SpellingModel
from vecfill.inputs.table.frames import objects
from vecfill.inputs.texts.tfidf import TextModel, TextRows, words_of


def texts_of(facts: Facts, columns: Sequence[str]) -> list[str]:
    """Return the texts about new entities: some columns, joined.

    Examples
    --------
    >>> texts_of(Facts(("tin",), {"about": ["a soft metal"]}), ("about",))
    ['a soft metal']
    """
    chosen = [name for name in columns if name in facts.columns]
    if not chosen and len(facts.columns) == 1:
        chosen = list(facts.columns)
    if not chosen:
        raise InputError(
            f"{facts.label} has no column {listed(columns)} with the texts about new entities. It "
            f"has {listed(facts.columns, 10)}."
        )
    parts = [objects(facts.columns[name]) for name in chosen]
    return [
        "\n".join(str(cell).strip() for cell in cells if not is_missing(cell))
        for cells in zip(*parts, strict=True)
    ]


def _read(facts: Facts, rows: np.ndarray, is_present: np.ndarray) -> LaterRows:
    """Return the entities that have a row."""
    kept = [name for name, is_there in zip(facts.entities, is_present, strict=True) if is_there]
    return LaterRows(tuple(kept), rows, ((),) * len(kept))


@dataclass(frozen=True, eq=False)
class TextReader:
    """Texts by TF-IDF."""

    columns: tuple[str, ...]
    model: TextModel

    def read(self, facts: Facts) -> LaterRows:
        """Return the rows of new texts; one without a known word has none."""
        found = self.model.rows(texts_of(facts, self.columns))
        return _read(facts, found.vectors, found.is_present)


@dataclass(frozen=True, eq=False)
class WordsReader:
    """Texts by the vectors of their words."""

    columns: tuple[str, ...]
    words: tuple[str, ...] = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    """(n_words, n_dims) times the weight of each word."""
    first: np.ndarray | None = field(repr=False)
    """(n_dims,) what all texts have in common; it is taken out."""

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def read(self, facts: Facts) -> LaterRows:
        """Return the rows of new texts; one without a known word has none."""
        rows, is_present = [], []
        for name, text in zip(facts.entities, texts_of(facts, self.columns), strict=True):
            tokens = [word for word in words_of(text) if word != name.lower()]
            places = [self._place[word] for word in tokens if word in self._place]
            is_present.append(bool(places))
            if places:
                rows.append(self.vectors[places].sum(axis=0, dtype=np.float64) / len(places))
        found = np.array(rows).reshape(-1, self.vectors.shape[1])
        if self.first is not None:
            found = found - (found @ self.first)[:, None] * self.first
        return _read(facts, found, np.array(is_present))


def words_reader(found: TextRows, columns: tuple[str, ...]) -> WordsReader:
    """Return how texts that come later are read by the vectors of their words."""
    details = found.details
    vectors = details["vectors"].astype(np.float32)
    return WordsReader(columns, details["words"], vectors, details["first"])


@dataclass(frozen=True, eq=False)
class EncoderReader:
    """Texts by an encoder, which is not part of the model."""

    columns: tuple[str, ...]
    encoder: str
    """Of what type it was."""

    def read(self, facts: Facts) -> LaterRows:
        """Refuse: the encoder must be passed."""
        raise InputError(
            f"{len(facts.entities)} texts need the encoder of the fit (of type {self.encoder}), "
            "which is not kept in the model. Pass it: add(..., encoder=...)."
        )

    def encoded(self, facts: Facts, encode: Any) -> LaterRows:
        """Return the rows of new texts by an encoder."""
        texts = texts_of(facts, self.columns)
        is_present = np.array([bool(text) for text in texts])
        rows = encode([text for text in texts if text])
        return _read(facts, np.asarray(rows, np.float64), is_present)


@dataclass(frozen=True, eq=False)
class NGramModel:
    """Character n-grams of names and their leading components, as learnt from some names."""

    keys: np.ndarray
    """(n_grams,) hashes, ascending."""
    weights: np.ndarray
    """(n_grams,)."""
    components: np.ndarray
    """(n_components, n_grams) in 32 bits."""

    def rows(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the components of other names, and which have a known n-gram."""
        grams = ngrams_of(names)
        places = np.arange(len(self.keys), dtype=np.int32)
        columns, starts = columns_of(grams, self.keys, places)
        found = np.zeros((len(names), self.components.shape[0]))
        for row in range(len(names)):
            used, times = np.unique(columns[starts[row] : starts[row + 1]], return_counts=True)
            if used.size:
                weights = self.weights[used] * times
                weights /= np.linalg.norm(weights)
                found[row] = self.components[:, used].astype(np.float64) @ weights
        return found, np.diff(starts) > 0


@dataclass(frozen=True, eq=False)
class PartsModel:
    """Vectors of the words that names of several words may have, and how parts make a whole."""

    words: tuple[str, ...] = field(repr=False)
    ranks: np.ndarray = field(repr=False)
    vectors: np.ndarray = field(repr=False)
    slopes: np.ndarray | None = field(default=None, repr=False)
    """(3 * n_dims, n_dims) ``whole = features @ slopes + shift``; None if it was not learnt."""
    shift: np.ndarray | None = field(default=None, repr=False)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def features(self, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return mean, first and last vector of the parts of names, and which have any."""
        n_dims = self.vectors.shape[1]
        found, is_present = np.zeros((len(names), 3 * n_dims)), np.zeros(len(names), np.bool_)
        for row, name in enumerate(names):
            parts = folded([name])[0].split("_")
            own = set(glued(folded([name])))
            places = [
                self._place[each] for each in parts if each in self._place and each not in own
            ]
            if len(parts) < 2 or not places:
                continue
            is_present[row] = True
            vectors = self.vectors[places].astype(np.float64)
            weights = np.log(self.ranks[places] + 2.0)
            found[row, :n_dims] = (weights / weights.sum()) @ vectors
            found[row, n_dims : 2 * n_dims] = vectors[0]
            found[row, 2 * n_dims :] = vectors[-1]
        return found, is_present

    def wholes(self, features: np.ndarray) -> np.ndarray:
        """Return the vectors that parts make."""
        assert self.slopes is not None
        return features @ self.slopes + self.shift


@dataclass(frozen=True, eq=False)
class NamesReader:
    """Names by their spelling and their parts."""

    spelling: SpellingModel | None = field(repr=False)
    grams: NGramModel | None = field(repr=False)
    parts: PartsModel | None = field(repr=False)
    means: np.ndarray = field(repr=False)
    """(n_columns,) what was taken out of each column."""
    factors: np.ndarray = field(repr=False)
    """(n_columns,) by what each column was multiplied."""
    is_guess: bool = False
    """Whether rows are what the parts make, and nothing else."""

    def read(self, facts: Facts) -> LaterRows:
        """Return the rows of new names."""
        names = facts.entities
        if self.spelling is None and self.grams is None:
            return self._by_parts(facts)
        assert self.grams is not None
        grams, has_grams = self.grams.rows(names)
        if self.spelling is None:
            return _read(facts, grams[has_grams], has_grams)
        guesses, n_grams = self.spelling.predict(names)
        guesses = guesses.astype(np.float64)
        is_present = n_grams > 0
        if self.parts is not None and self.parts.slopes is not None:
            features, has_parts = self.parts.features(names)
            guesses[has_parts] = self.parts.wholes(features[has_parts])
            is_present |= has_parts
        lengths = [len(name) for name in names]
        is_several = ["_" in name for name in folded(names)]
        seen = np.column_stack([np.log1p(n_grams), lengths, is_several]).astype(np.float64)
        rows = (np.hstack([guesses, seen, grams]) - self.means) * self.factors
        return _read(facts, rows[is_present], is_present)

    def _by_parts(self, facts: Facts) -> LaterRows:
        assert self.parts is not None
        features, is_present = self.parts.features(facts.entities)
        features = features[is_present]
        if self.is_guess:
            return _read(facts, self.parts.wholes(features), is_present)
        if self.parts.slopes is not None:
            features = np.hstack([self.parts.wholes(features), features])
        return _read(facts, features, is_present)
