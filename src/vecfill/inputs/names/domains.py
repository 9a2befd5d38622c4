"""Names of entities -> a domain, by what their spelling and their parts say about their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.later_rows import Facts, LaterRows, Reader
from vecfill.inputs.names.folding import folded, glued
from vecfill.inputs.names.ngrams import NGramModel, ngram_rows
from vecfill.inputs.names.parts import PartsModel, PartsOfNames
from vecfill.inputs.names.spelling_model import SpellingModel, cached_model, fit_spelling
from vecfill.inputs.prepared import Domain
from vecfill.inputs.rarity import has_several_words
from vecfill.io.batches import finite_rows
from vecfill.wording import count

FEWEST_WORDS = 2000
"""Words besides those of entities from which a spelling model is worth learning."""

N_COMPONENTS = 100

_BLOCKS = ("mean of parts", "first part", "last part")


@dataclass(frozen=True, eq=False)
class NamesReader(Reader):
    """Names by their spelling and their parts."""

    reads_names = True
    spelling: SpellingModel | None = field(default=None, repr=False)
    grams: NGramModel | None = field(default=None, repr=False)
    parts: PartsModel | None = field(default=None, repr=False)
    means: np.ndarray = field(default_factory=partial(np.empty, 0), repr=False)
    """(n_columns,) what was taken out of each column."""
    factors: np.ndarray = field(default_factory=partial(np.empty, 0), repr=False)
    """(n_columns,) by what each column was multiplied."""
    is_guess: bool = False
    """Whether rows are what the parts make, and nothing else."""

    def read(self, facts: Facts, *, encoder: Any = None) -> LaterRows:  # noqa: ARG002
        """Return the rows of new names."""
        names = facts.entities
        if self.grams is None:
            return self._by_parts(facts)
        grams, has_grams = self.grams.rows(names)
        if self.spelling is None:
            return LaterRows.usual(facts, grams[has_grams], has_grams)
        guesses, n_grams = self.spelling.predict(names)
        guesses = guesses.astype(np.float64)
        is_present = n_grams > 0
        if self.parts is not None and self.parts.slopes is not None:
            features, has_parts = self.parts.features(names)
            guesses[has_parts] = self.parts.wholes(features[has_parts])
            is_present |= has_parts
        columns = np.hstack([guesses, _seen(names, n_grams), grams])
        rows = (columns - self.means) * self.factors
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


def names_domain(
    entities: Sequence[str],
    words_of_entities: Mapping[str, str],
    vocabulary: Embedding,
    *,
    names_cache: Path | None = None,
) -> Domain:
    """Return what names say: those of several words by their parts, the others by their spelling.

    Both say which vector of the embedding a name may have, so what is learnt on the many known
    names of one word serves those of several words too. `spelling_domain` explains the parameters.

    Examples
    --------
    >>> base = Embedding(["walked", "walking"], [[1.0, 0.0], [0.0, 1.0]])
    >>> names_domain(["walked", "talked", "talking"], {"walked": "walked"}, base).entities
    ('walked', 'talked', 'talking')
    """
    wholes, parts = whole_vectors(entities, words_of_entities, vocabulary)
    return spelling_domain(
        entities,
        words_of_entities,
        vocabulary,
        names_cache=names_cache,
        wholes=wholes,
        parts=parts,
    )


def spelling_domain(
    entities: Sequence[str],
    words_of_entities: Mapping[str, str],
    vocabulary: Embedding,
    *,
    names_cache: Path | None = None,
    wholes: Mapping[str, np.ndarray] = MappingProxyType({}),
    parts: PartsModel | None = None,
) -> Domain:
    """Return what the spelling of each name says, learnt from the words of the embedding.

    The model is learnt on the whole vocabulary but for the words that any of the entities goes by,
    in any spelling. So it has seen no entity, and what it says about a known one is as good as what
    it says about an unknown one. If the vocabulary holds little else, as when only matched words
    were read, the n-grams of the names themselves are the features, and nothing is learnt here.
    Names without any known n-gram are absent.

    Parameters
    ----------
    entities
        Names of all entities.
    words_of_entities
        The word of each known entity (``matches.words``).
    vocabulary
        Words and vectors, best those of the whole file.
    names_cache
        File in which the model is kept for another run with the same vocabulary and names.
    wholes, parts
        Vectors of names of several words that their parts make, which stand for what their spelling
        says, and how later names get theirs.

    Examples
    --------
    >>> base = Embedding(["walked", "walking"], [[1.0, 0.0], [0.0, 1.0]])
    >>> spelling_domain(["walked", "talked", "talking"], {"walked": "walked"}, base)
    Domain(3 entities, 3 columns, kind='features', 1 note)
    """
    if not len(entities):
        raise InputError("there are no entities, so there is no spelling to learn from.")
    rows = rows_of_others(entities, words_of_entities, vocabulary)
    if len(rows) < FEWEST_WORDS:
        return _domain_of_ngrams(entities, len(rows))
    words = [vocabulary.words[row] for row in rows]
    model = cached_model(names_cache, words, vocabulary.vectors[rows], fit_spelling)
    guesses, n_grams = model.predict(entities)
    note = f"A spelling model was learnt on {len(rows):,} words, none of them an entity."
    is_present = n_grams > 0
    for place, name in enumerate(entities):
        if name in wholes:
            guesses[place], is_present[place] = wholes[name], True
    if wholes:
        n_wholes = count(len(wholes), "name of several words is", "names of several words are")
        note += f" {n_wholes} described by the vectors of the parts."
    features, columns, reader = _features(entities, guesses, n_grams)
    reader = replace(reader, spelling=model, parts=parts)
    return _domain(entities, features[is_present], is_present, columns, note, reader)


def whole_vectors(
    entities: Sequence[str], words_of_entities: Mapping[str, str], vocabulary: Embedding
) -> tuple[dict[str, np.ndarray], PartsModel | None]:
    """Return the vector that its parts give each name of several words; none if it has no parts.

    Empty if the vocabulary has too few words of several parts to learn from. The second is how
    names that come later are read.

    Examples
    --------
    >>> base = Embedding(["fort", "worth"], np.eye(2))
    >>> whole_vectors(["Fort Worth"], {}, base)[0]
    {}
    """
    parts = PartsOfNames.of(entities, words_of_entities, vocabulary)
    model = parts.with_map()
    if model.slopes is None:
        return {}, None
    return dict(zip(parts.entities, model.wholes(parts.features), strict=True)), model


def _seen(names: Sequence[str], n_grams: np.ndarray) -> np.ndarray:
    """Return what is seen in names: how many n-grams are known, their length, several words or one.

    Short names tend to be those of frequent words, and names of several words lie elsewhere.
    """
    lengths = [len(name) for name in names]
    return np.column_stack([np.log1p(n_grams), lengths, has_several_words(names)]).astype(float)


def _features(
    entities: Sequence[str], guesses: np.ndarray, n_grams: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...], NamesReader]:
    """Return the guessed vectors, and beside them what is seen in the names themselves."""
    # The n-grams let a later model learn what an ending means among these entities, which may
    # differ from the rest of the vocabulary.
    of_names = ngram_rows(entities, n_components=N_COMPONENTS)
    grams = np.zeros((len(entities), of_names.vectors.shape[1]))
    grams[of_names.is_present] = of_names.vectors
    blocks = (guesses, *(column[:, None] for column in _seen(entities, n_grams).T), grams)
    columns = (
        *(f"guess {dim + 1}" for dim in range(guesses.shape[1])),
        "log number of n-grams",
        "length",
        "several words",
        *(f"n-grams {dim + 1}" for dim in range(grams.shape[1])),
    )
    scales = [_scale(block, guesses) for block in blocks]
    means = np.concatenate([mean for mean, _ in scales])
    factors = np.repeat([factor for _, factor in scales], [block.shape[1] for block in blocks])
    features = (np.column_stack(blocks) - means) * factors
    return features, columns, NamesReader(grams=of_names.model, means=means, factors=factors)


def parts_domain(
    entities: Sequence[str], words_of_entities: Mapping[str, str], vocabulary: Embedding
) -> Domain:
    """Return the domain of the names of several words of which at least one has a vector.

    "Fort Worth", "x-ray" and "new_york" have two parts each. A row holds the mean vector of the
    parts (rare words count more), that of the first part and that of the last. If the vocabulary
    has many words of several parts itself ("well-known", "post-war"), a linear map from parts to
    whole is learnt on those that are no entity, and the vector it gives comes first in the row.

    Names of one word, and names without any known part, are absent: a name of one word would tell
    itself. A part that stands for an entity's whole name ("worth" for Worth Inc.) does not count.

    Examples
    --------
    >>> base = Embedding(["fort", "worth", "oslo"], np.eye(3))
    >>> found = parts_domain(["Fort Worth", "Oslo", "New Delhi"], {"Oslo": "oslo"}, base)
    >>> found.entities, found.vectors.round(1)
    (('Fort Worth',), array([[0.4, 0.6, 0. , 1. , 0. , 0. , 0. , 1. , 0. ]]))
    """
    parts = PartsOfNames.of(entities, words_of_entities, vocabulary)
    model, features = parts.with_map(), parts.features
    n_named = len(parts.entities)
    note = f"Names of several words, some of them known: {n_named:,} of {len(entities):,}."
    blocks = _BLOCKS
    if model.slopes is not None:
        features, blocks = np.hstack([model.wholes(features), features]), ("whole", *_BLOCKS)
        n_compounds = len(parts.compounds)
        note += f" How parts make a whole was learnt on {n_compounds:,} words of several parts."
    columns = tuple(f"{block} {dim + 1}" for block in blocks for dim in range(vocabulary.n_dims))
    reader = NamesReader(parts=model)
    return Domain(parts.entities, features, columns, "features", (note,), reader=reader)


def parts_guess(
    entities: Sequence[str], words_of_entities: Mapping[str, str], vocabulary: Embedding
) -> Domain | None:
    """Return what their parts say about the vectors of names of several words, as steps.

    What parts make of a whole is learnt on words of several parts that are no entity. So no known
    entity has to teach it, and names of several words get a vector where no known one has such a
    name. ``None`` if there are no such names.

    Examples
    --------
    >>> base = Embedding(["fort", "worth", "new", "york"], np.eye(4))
    >>> parts_guess(["Fort Worth", "New York", "Oslo"], {}, base).vectors.round(2)
    array([[ 0.05,  0.08, -0.06, -0.07],
           [-0.05, -0.08,  0.06,  0.07]])
    """
    parts = PartsOfNames.of(entities, words_of_entities, vocabulary)
    if not parts.entities:
        return None
    slopes = parts.slopes_of_steps()
    # Steps from the mean of these names: what all have in common, the mean of the known has too.
    shift = -parts.features.mean(axis=0) @ slopes
    model = replace(parts.model(), slopes=slopes, shift=shift)
    note = f"Names of several words, some of them known: {count(len(parts.entities), 'entity')}."
    return Domain(
        parts.entities,
        model.wholes(parts.features),
        tuple(f"from parts {dim + 1}" for dim in range(vocabulary.n_dims)),
        notes=(note,),
        reader=NamesReader(parts=model, is_guess=True),
        is_guess=True,
    )


def rows_of_others(
    entities: Sequence[str], words_of_entities: Mapping[str, str], vocabulary: Embedding
) -> np.ndarray:
    """Return the rows of words that are no entity, however an entity may be spelled.

    Examples
    --------
    >>> base = Embedding(["Oslo", "OSLO", "fjord", "oslo's"], np.eye(4))
    >>> rows_of_others(["oslo"], {"oslo": "Oslo"}, base)
    array([2, 3])
    """
    names = [*entities, *words_of_entities.values()]
    spellings = set(glued(folded(names)))
    keys = glued(folded(vocabulary.words))
    is_finite = finite_rows(vocabulary.vectors)
    is_other = np.array([key not in spellings for key in keys], np.bool_)
    return np.flatnonzero(is_other & is_finite)


def _scale(block: np.ndarray, like: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the means and a factor that give columns, on average, the spread of another block."""
    mean = block.mean(axis=0)
    spread = float((block - mean).std(axis=0).mean()) if block.shape[1] else 0.0
    return mean, float(like.std(axis=0).mean()) / spread if spread > 0 else 1.0


def _domain_of_ngrams(entities: Sequence[str], n_others: int) -> Domain:
    grams = ngram_rows(entities, n_components=N_COMPONENTS)
    if not grams.is_present.any():
        raise InputError(
            f"the names, such as {entities[0]!r}, have no letters in common, so their spelling "
            "says nothing. Use names='off'."
        )
    columns = tuple(f"n-grams {number + 1}" for number in range(grams.vectors.shape[1]))
    note = (
        f"The embedding in memory has {n_others:,} words besides the entities, too few to learn a "
        "spelling model on; the letters of the names are used as they are. Pass the path of the "
        "embedding, so that all of its words teach."
    )
    reader = NamesReader(grams=grams.model)
    return _domain(entities, grams.vectors, grams.is_present, columns, note, reader)


def _domain(
    entities: Sequence[str],
    rows: np.ndarray,
    is_present: np.ndarray,
    columns: tuple[str, ...],
    note: str,
    reader: NamesReader,
) -> Domain:
    """Return the domain of the names that have a row."""
    names = tuple(compress(entities, is_present))
    notes = (note,)
    if n_absent := len(entities) - len(names):
        notes += (f"{count(n_absent, 'name has', 'names have')} no known n-gram; left out.",)
    vectors = np.asarray(rows, np.float64)
    return Domain(names, vectors, columns, "features", notes, reader=reader)
