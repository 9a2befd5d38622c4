"""Names of entities -> sources: what spelling, near spellings and parts say of their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.names.folding import folded, glued
from vecfill.inputs.names.near_spellings import NearSpellings
from vecfill.inputs.names.ngrams import ngram_rows
from vecfill.inputs.names.parts import PartsModel, PartsOfNames
from vecfill.inputs.names.readers import NamesReader, SpellingReader, has_guess, seen
from vecfill.inputs.prepared import Domain, Source
from vecfill.inputs.texts.text_rows import TextRows
from vecfill.io.batches import finite_rows
from vecfill.wording import count

FEWEST_WORDS = 2000
"""Words besides those of entities from which a spelling model is worth learning."""

N_COMPONENTS = 100

NAMES, LETTERS, SPELLING, PARTS = "names", "letters", "spelling", "parts"
"""What names are called as sources. *Names*: what known entities teach about the vectors that their
spelling, the words spelled most like them and their parts suggest; *letters*: what they teach about
n-grams; *spelling* and *parts*: the suggestions as they are, of one word and of several."""

NAME_SOURCES = (NAMES, LETTERS, SPELLING, PARTS)


_BLOCKS = ("mean of parts", "first part", "last part")


def name_sources(
    entities: Sequence[str],
    words_of_entities: Mapping[str, str],
    vocabulary: Embedding,
    *,
    reads_parts: bool = True,
) -> list[Source]:
    """Return what names say, as sources of their own whose weights hidden entities teach.

    The words spelled most like a name are looked for in the whole vocabulary but for the words that
    any of the entities goes by, in any spelling. So what they say has seen no entity, and is as
    good about a known one as about an unknown one. If the vocabulary holds little else, as when
    only matched words were read, the n-grams of the names themselves are the features, and nothing
    is learnt here. Names without any known n-gram are absent.

    Parameters
    ----------
    entities
        Names of all entities.
    words_of_entities
        The word of each known entity (``matches.words``).
    vocabulary
        Words and vectors, best those of the whole file.
    reads_parts
        Whether names of several words are described by their parts, where these are known.

    Examples
    --------
    >>> base = Embedding(["walked", "walking"], [[1.0, 0.0], [0.0, 1.0]])
    >>> sources = name_sources(["walked", "talked", "talking"], {"walked": "walked"}, base)
    >>> [(source.name, source.variants) for source in sources]
    [('names', (Domain(3 entities, 3 columns, kind='features', 1 note),))]
    """
    if not len(entities):
        raise InputError("there are no entities, so there is no spelling to learn from.")
    parts = PartsOfNames.of(entities, words_of_entities, vocabulary) if reads_parts else None
    sources = _by_spelling(entities, words_of_entities, vocabulary, parts)
    of_parts = None if parts is None else _guess_of(parts)
    return sources if of_parts is None else [*sources, Source(PARTS, (of_parts,))]


def _by_spelling(
    entities: Sequence[str],
    words_of_entities: Mapping[str, str],
    vocabulary: Embedding,
    parts: PartsOfNames | None,
) -> list[Source]:
    """Return the sources that need spelling; parts say what names of several words mean."""
    rows = rows_of_others(entities, words_of_entities, vocabulary)
    if len(rows) < FEWEST_WORDS:
        return [Source(NAMES, (_domain_of_ngrams(entities, len(rows)),))]
    near = NearSpellings.of(vocabulary.words, vocabulary.vectors, rows)
    guesses, means, n_grams = near.suggestions(entities)
    is_present, note = n_grams > 0, _note_on_model(len(rows))
    wholes, parts_model = ({}, None) if parts is None else wholes_of(parts)
    suggestions = guesses.copy()
    for place, name in enumerate(entities):
        if name in wholes:
            suggestions[place], is_present[place] = wholes[name], True
    if wholes:
        n_wholes = count(len(wholes), "name of several words is", "names of several words are")
        note += f" {n_wholes} described by the vectors of the parts."
    features, columns, reader = _features(entities, suggestions, n_grams, means)
    reader = replace(reader, parts=parts_model, near=near)
    of_names = _domain(entities, features[is_present], is_present, columns, note, reader)
    sources = [Source(NAMES, (of_names,))]
    grams = ngram_rows(entities, n_components=N_COMPONENTS)
    if grams.is_present.any():
        sources.append(Source(LETTERS, (_of_letters(entities, grams),)))
    is_of_one_word = parts is not None
    is_guessed = has_guess(entities, n_grams, is_of_one_word=is_of_one_word)
    if is_guessed.any():
        # From the mean of these names: what all have in common, the mean of the known has too.
        mean = guesses[is_guessed].mean(axis=0)
        of_spelling = Domain(
            tuple(compress(entities, is_guessed)),
            guesses[is_guessed] - mean,
            tuple(f"from spelling {dim + 1}" for dim in range(vocabulary.n_dims)),
            reader=SpellingReader(near, mean, is_of_one_word),
            is_guess=True,
        )
        sources.append(Source(SPELLING, (of_spelling,)))
    return sources


def _note_on_model(n_words: int) -> str:
    return f"Spellings were compared with {n_words:,} words, none of them an entity."


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
    return wholes_of(PartsOfNames.of(entities, words_of_entities, vocabulary))


def wholes_of(parts: PartsOfNames) -> tuple[dict[str, np.ndarray], PartsModel | None]:
    """Return the same of parts that were looked up."""
    model = parts.with_map()
    if model.slopes is None:
        return {}, None
    return dict(zip(parts.entities, model.wholes(parts.features), strict=True)), model


def _features(
    entities: Sequence[str], suggestions: np.ndarray, n_grams: np.ndarray, near: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...], NamesReader]:
    """Return what suggests vectors, and beside it what is seen in the names themselves."""
    blocks = (suggestions, *(column[:, None] for column in seen(entities, n_grams).T), near)
    columns = (
        *(f"guess {dim + 1}" for dim in range(suggestions.shape[1])),
        "log number of n-grams",
        "length",
        "several words",
        *(f"near spellings {dim + 1}" for dim in range(near.shape[1])),
    )
    scales = [_scale(block, suggestions) for block in blocks]
    means = np.concatenate([mean for mean, _ in scales])
    factors = np.repeat([factor for _, factor in scales], [block.shape[1] for block in blocks])
    features = (np.column_stack(blocks) - means) * factors
    return features, columns, NamesReader(means=means, factors=factors)


def _of_letters(entities: Sequence[str], grams: TextRows) -> Domain:
    """Return the n-grams of names: what an ending means may differ among these entities."""
    columns = tuple(f"n-grams {number + 1}" for number in range(grams.vectors.shape[1]))
    names = tuple(compress(entities, grams.is_present))
    return Domain(names, grams.vectors, columns, reader=NamesReader(grams=grams.model))


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
    return _guess_of(PartsOfNames.of(entities, words_of_entities, vocabulary))


def _guess_of(parts: PartsOfNames) -> Domain | None:
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
        tuple(f"from parts {dim + 1}" for dim in range(parts.vocabulary.n_dims)),
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
    note = (
        f"The embedding in memory has {n_others:,} words besides the entities, too few to learn a "
        "spelling model on; the letters of the names are used as they are. Pass the path of the "
        "embedding, so that all of its words teach."
    )
    return replace(_of_letters(entities, grams), notes=_notes(entities, grams.is_present, note))


def _domain(
    entities: Sequence[str],
    rows: np.ndarray,
    is_present: np.ndarray,
    columns: tuple[str, ...],
    note: str,
    reader: NamesReader,
) -> Domain:
    """Return the domain of the names that have a row."""
    vectors = np.asarray(rows, np.float64)
    names, notes = tuple(compress(entities, is_present)), _notes(entities, is_present, note)
    return Domain(names, vectors, columns, "features", notes, reader=reader)


def _notes(entities: Sequence[str], is_present: np.ndarray, note: str) -> tuple[str, ...]:
    """Return a note on a source, and how many names it says nothing about."""
    n_absent = len(entities) - int(is_present.sum())
    if not n_absent:
        return (note,)
    return (note, f"{count(n_absent, 'name has', 'names have')} no known n-gram; left out.")
