"""Names of entities -> a domain, by what their spelling says about their vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.names.cache import cached_model
from vecfill.inputs.names.folding import folded, glued
from vecfill.inputs.names.ngrams import ngram_rows
from vecfill.inputs.names.parts import whole_vectors
from vecfill.inputs.names.spelling_model import fit_spelling
from vecfill.inputs.prepared import Domain
from vecfill.inputs.texts.later_texts import NamesReader, NGramModel, PartsModel
from vecfill.inputs.texts.tfidf import TextRows
from vecfill.io.batches import finite_rows
from vecfill.wording import count

FEWEST_WORDS = 2000
"""Words besides those of entities from which a spelling model is worth learning."""

N_COMPONENTS = 100


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
    return _domain_of_names(entities, words_of_entities, vocabulary, names_cache, wholes, parts)


def spelling_domain(
    entities: Sequence[str],
    words_of_entities: Mapping[str, str],
    vocabulary: Embedding,
    *,
    names_cache: Path | None = None,
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

    Examples
    --------
    >>> base = Embedding(["walked", "walking"], [[1.0, 0.0], [0.0, 1.0]])
    >>> spelling_domain(["walked", "talked", "talking"], {"walked": "walked"}, base)
    Domain(3 entities, 3 columns, kind='features', 1 note)
    """
    return _domain_of_names(entities, words_of_entities, vocabulary, names_cache, {})


def _domain_of_names(
    entities: Sequence[str],
    words_of_entities: Mapping[str, str],
    vocabulary: Embedding,
    names_cache: Path | None,
    wholes: Mapping[str, np.ndarray],
    parts: PartsModel | None = None,
) -> Domain:
    if not len(entities):
        raise InputError("there are no entities, so there is no spelling to learn from.")
    rows = rows_of_others(entities, words_of_entities, vocabulary)
    if len(rows) < FEWEST_WORDS:
        return _domain_of_ngrams(entities, len(rows))
    words = [vocabulary.words[row] for row in rows]
    vectors = vocabulary.vectors[rows]
    model = cached_model(names_cache, words, vectors, fit_spelling)
    guesses, n_grams = model.predict(entities)
    note = f"A spelling model was learnt on {len(rows):,} words, none of them an entity."
    for place, name in enumerate(entities):
        if name in wholes:
            guesses[place] = wholes[name]
    if wholes:
        told = count(len(wholes), "name of several words is", "names of several words are")
        note += f" {told} described by the vectors of the parts."
    features, columns, reader = _features(entities, guesses, n_grams)
    reader = replace(reader, spelling=model, parts=parts)
    is_present = (n_grams > 0) | np.array([name in wholes for name in entities], np.bool_)
    return replace(_domain(entities, features, is_present, columns, note), reader=reader)


def _features(
    entities: Sequence[str], guesses: np.ndarray, n_grams: np.ndarray
) -> tuple[np.ndarray, tuple[str, ...], NamesReader]:
    """Return the guessed vectors, and beside them what is seen in the names themselves."""
    # Short names tend to be those of frequent words, and names of several words lie elsewhere.
    lengths = [len(name) for name in entities]
    is_several = ["_" in name for name in folded(entities)]
    seen = np.column_stack([np.log1p(n_grams), lengths, is_several]).astype(np.float64)
    # The n-grams let a later model learn what an ending means among these entities, which may
    # differ from the rest of the vocabulary.
    own = ngram_rows(entities, n_components=N_COMPONENTS)
    grams = np.zeros((len(entities), own.vectors.shape[1]))
    grams[own.is_present] = own.vectors
    blocks = (guesses, *(each[:, None] for each in seen.T), grams)
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
    return features, columns, NamesReader(None, _ngram_model(own), None, means, factors)


def _ngram_model(found: TextRows) -> NGramModel:
    """Return how the n-grams of names that come later are read."""
    if not found.details:
        return NGramModel(np.empty(0, np.uint64), np.empty(0), np.empty((0, 0), np.float32))
    return NGramModel(**found.details)


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
    taken = set(glued(folded(names)))
    keys = glued(folded(vocabulary.words))
    is_finite = finite_rows(vocabulary.vectors)
    is_other = np.array([key not in taken for key in keys], np.bool_)
    return np.flatnonzero(is_other & is_finite)


def _scale(block: np.ndarray, like: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the means and a factor that give columns, on average, the spread of another block."""
    mean = block.mean(axis=0)
    spread = float((block - mean).std(axis=0).mean()) if block.shape[1] else 0.0
    return mean, float(like.std(axis=0).mean()) / spread if spread > 0 else 1.0


def _domain_of_ngrams(entities: Sequence[str], n_others: int) -> Domain:
    found = ngram_rows(entities, n_components=N_COMPONENTS)
    if not found.is_present.any():
        raise InputError(
            f"the names, such as {entities[0]!r}, have no letters in common, so their spelling "
            "says nothing. Use names='off'."
        )
    columns = tuple(f"n-grams {number + 1}" for number in range(found.vectors.shape[1]))
    note = (
        f"The embedding in memory has {n_others:,} words besides the entities, too few to learn a "
        "spelling model on; the letters of the names are used as they are. Pass the path of the "
        "embedding, so that all of its words teach."
    )
    nothing = np.empty(0)
    reader = NamesReader(None, _ngram_model(found), None, nothing, nothing)
    domain = _domain(entities, found.vectors, found.is_present, columns, note)
    return replace(domain, reader=reader)


def _domain(
    entities: Sequence[str],
    vectors: np.ndarray,
    is_present: np.ndarray,
    columns: tuple[str, ...],
    note: str,
) -> Domain:
    """Return the domain of the names that are present; `vectors` may have all rows, or theirs."""
    if len(vectors) == len(entities):
        vectors = vectors[is_present]
    kept = tuple(
        name for name, has_row in zip(entities, is_present.tolist(), strict=True) if has_row
    )
    notes = (note,)
    if n_absent := len(entities) - len(kept):
        notes += (f"{count(n_absent, 'name has', 'names have')} no known n-gram; left out.",)
    return Domain(kept, np.asarray(vectors, np.float64), columns, "features", notes)
