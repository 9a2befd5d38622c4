"""How the names of entities that come later are read, in the same way as those of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from vecfill.inputs.later_rows import Facts, LaterRows, Reader
from vecfill.inputs.names.near_spellings import NearSpellings
from vecfill.inputs.names.ngrams import NGramModel
from vecfill.inputs.names.parts import PartsModel
from vecfill.inputs.names.spelling_model import SpellingModel
from vecfill.inputs.rarity import has_several_words


@dataclass(frozen=True, eq=False)
class NamesReader(Reader):
    """Names by what the vocabulary says about their spelling, and by their parts."""

    reads_names = True
    spelling: SpellingModel | None = field(default=None, repr=False)
    """In models that earlier versions saved: what is now learnt for each name by itself."""
    grams: NGramModel | None = field(default=None, repr=False)
    """Beside `spelling` only in those, in which n-grams were no source of their own."""
    parts: PartsModel | None = field(default=None, repr=False)
    means: np.ndarray = field(default_factory=partial(np.empty, 0), repr=False)
    """(n_columns,) what was taken out of each column."""
    factors: np.ndarray = field(default_factory=partial(np.empty, 0), repr=False)
    """(n_columns,) by what each column was multiplied."""
    is_guess: bool = False
    """Whether rows are what the parts make, and nothing else."""
    near: NearSpellings | None = field(default=None, repr=False)

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the rows of new names."""
        names = facts.entities
        if self.near is not None:
            guesses, means, n_grams = self.near.suggestions(names)
            beside = [means]
        elif self.spelling is not None:
            guesses, n_grams = self.spelling.predict(names)
            beside = [] if self.grams is None else [self.grams.rows(names)[0]]
        else:
            return self._by_letters(facts) if self.parts is None else self._by_parts(facts)
        guesses, is_present = guesses.astype(np.float64), n_grams > 0
        if self.parts is not None and self.parts.slopes is not None:
            features, has_parts = self.parts.features(names)
            guesses[has_parts] = self.parts.wholes(features[has_parts])
            is_present |= has_parts
        columns = np.hstack([guesses, seen(names, n_grams), *beside])
        rows = (columns - self.means) * self.factors
        return LaterRows.usual(facts, rows[is_present], is_present)

    def _by_letters(self, facts: Facts) -> LaterRows:
        assert self.grams is not None
        rows, is_present = self.grams.rows(facts.entities)
        return LaterRows.usual(facts, rows[is_present], is_present)

    def _by_parts(self, facts: Facts) -> LaterRows:
        assert self.parts is not None
        features, is_present = self.parts.features(facts.entities)
        features = features[is_present]
        if self.is_guess:
            return LaterRows.usual(facts, self.parts.wholes(features), is_present)
        if self.parts.slopes is not None:
            features = np.hstack([self.parts.wholes(features), features])
        return LaterRows.usual(facts, features, is_present)


@dataclass(frozen=True, eq=False)
class SpellingReader(Reader):
    """Names by the vectors that their spelling suggests, as steps from a mean."""

    reads_names = True
    near: NearSpellings = field(repr=False)
    mean: np.ndarray = field(repr=False)
    is_of_one_word: bool
    """Whether names of several words are left to their parts."""

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the steps of new names."""
        said = self.near.suggestions(facts.entities)
        is_present = has_guess(facts.entities, said.n_grams, is_of_one_word=self.is_of_one_word)
        return LaterRows.usual(facts, said.guesses[is_present] - self.mean, is_present)


def has_guess(names: Sequence[str], n_grams: np.ndarray, *, is_of_one_word: bool) -> np.ndarray:
    """Tell whose spelling suggests a vector; if only names of one word, parts have the others."""
    return (n_grams > 0) & ~has_several_words(names) if is_of_one_word else n_grams > 0


def seen(names: Sequence[str], n_grams: np.ndarray) -> np.ndarray:
    """Return what is seen in names: how many n-grams are known, their length, several words or one.

    Short names tend to be those of frequent words, and names of several words lie elsewhere.
    """
    lengths = [len(name) for name in names]
    return np.column_stack([np.log1p(n_grams), lengths, has_several_words(names)]).astype(float)
