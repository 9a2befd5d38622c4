"""Names of several words -> a domain, by the vectors of these words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from vecfill.embedding import Embedding
from vecfill.inputs.names.folding import folded, glued
from vecfill.inputs.prepared import Domain
from vecfill.inputs.texts.later_texts import NamesReader, PartsModel
from vecfill.io.batches import finite_rows
from vecfill.machine.blas import one_blas_thread
from vecfill.wording import count

FEWEST_COMPOUNDS = 1000
"""Words of several parts in the vocabulary from which a map of parts is worth learning."""

MOST_COMPOUNDS = 50_000
MOST_KEPT = 100_000
"""Words that are kept for the parts of names that come later: the most frequent ones."""

RIDGE = 0.02
"""Added to the diagonal of the correlations of the features, relative to their mean."""


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
    known = _Parts.of(vocabulary)
    own = [{words_of_entities.get(name, name), name} for name in entities]
    rows = [known.rows(name, leave_out=words) for name, words in zip(entities, own, strict=True)]
    kept = [place for place, found in enumerate(rows) if found]
    features = known.features([rows[place] for place in kept])
    compounds = _compounds(known, entities, words_of_entities)
    note = f"Names of several words, some of them known: {len(kept):,} of {len(entities):,}."
    columns = [f"{which} {dim + 1}" for which in _BLOCKS for dim in range(vocabulary.n_dims)]
    model = _kept(known)
    if len(compounds) >= FEWEST_COMPOUNDS and kept:
        slopes, shift = _map_of(known, compounds)
        model = replace(model, slopes=slopes, shift=shift)
        features = np.hstack([features @ slopes + shift, features])
        columns = [*(f"whole {dim + 1}" for dim in range(vocabulary.n_dims)), *columns]
        note += f" How parts make a whole was learnt on {len(compounds):,} words of several parts."
    chosen = tuple(entities[place] for place in kept)
    nothing = np.empty(0)
    reader = NamesReader(None, None, model, nothing, nothing)
    return Domain(chosen, features, tuple(columns), "features", (note,), reader=reader)


def _kept(known: _Parts) -> PartsModel:
    """Return the most frequent words, for names that come later, in half precision."""
    words = tuple(islice(known.row_of, MOST_KEPT))
    rows = np.array([known.row_of[word] for word in words], np.int64)
    return PartsModel(words, rows, known.vocabulary.vectors[rows].astype(np.float16))


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
    domain = parts_domain(entities, words_of_entities, vocabulary)
    if len(domain.columns) == len(_BLOCKS) * vocabulary.n_dims:
        return {}, None
    vectors = domain.vectors[:, : vocabulary.n_dims]
    return dict(zip(domain.entities, vectors, strict=True)), domain.reader.parts


def rows_of_parts(names: Sequence[str], words: Sequence[str]) -> dict[str, int]:
    """Return the row of each part of the names of several words, of those that are words.

    Examples
    --------
    >>> rows_of_parts(["Fort Worth", "Oslo"], ["the", "fort", "oslo", "Fort"])
    {'fort': 1}
    """
    parts = {part for name in folded(names) if "_" in name for part in name.split("_")}
    row_of: dict[str, int] = {}
    for row, token in enumerate(folded(words)):
        if token in parts:
            row_of.setdefault(token, row)
    return row_of


def means_of_parts(names: Sequence[str], model: PartsModel) -> dict[str, np.ndarray]:
    """Return the mean vector of the parts of each name of which all have one; rare ones count more.

    Examples
    --------
    >>> model = PartsModel(("fort", "worth"), np.array([7, 7]), np.eye(2))
    >>> means_of_parts(["Fort Worth", "Fort Knox"], model)
    {'Fort Worth': array([0.5, 0.5])}
    """
    words = set(model.words)
    wholes = [
        name
        for name, token in zip(names, folded(names), strict=True)
        if "_" in token and words.issuperset(token.split("_"))
    ]
    features, _ = model.features(wholes)
    return dict(zip(wholes, features[:, : model.vectors.shape[1]], strict=True))


MEAN_SHARE = 0.3
"""How much of the mean of the parts is added to what a map makes of them. On 3,000 hyphenated words
of GloVe, hidden, .3 brings the median rank of the truth from 2,645 to 340 and centred cosine from
.40 to .39; the mean alone has 800 and .30. People look for the parts of a name, too."""

MEAN_ALONE = 0.27
"""How much of the mean of the parts there is in a whole, where no map can be learnt. Measured on
the same words."""

TAUGHT = 0.8
"""Share of the compounds on which a map is learnt whose length the others tell."""


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
    known = _Parts.of(vocabulary)
    own = [{words_of_entities.get(name, name), name} for name in entities]
    rows = [known.rows(name, leave_out=words) for name, words in zip(entities, own, strict=True)]
    places = [place for place, parts in enumerate(rows) if parts]
    if not places:
        return None
    features = known.features([rows[place] for place in places])
    slopes = _slopes_of_steps(known, _compounds(known, entities, words_of_entities))
    # Steps from the mean of these names: what all have in common, the mean of the known has too.
    shift = -features.mean(axis=0) @ slopes
    model = replace(_kept(known), slopes=slopes, shift=shift)
    nothing = np.empty(0)
    return Domain(
        tuple(entities[place] for place in places),
        features @ slopes + shift,
        tuple(f"from parts {dim + 1}" for dim in range(vocabulary.n_dims)),
        notes=(f"Names of several words, some of them known: {count(len(places), 'entity')}.",),
        reader=NamesReader(None, None, model, nothing, nothing, is_guess=True),
        is_guess=True,
    )


def _slopes_of_steps(known: _Parts, compounds: Sequence[tuple[int, list[int]]]) -> np.ndarray:
    """Return the map from the features of parts to steps of the whole, in their true length."""
    n_dims = known.vocabulary.n_dims
    mean_of_parts = np.eye(3 * n_dims, n_dims)
    if len(compounds) < FEWEST_COMPOUNDS:
        return MEAN_ALONE * mean_of_parts
    order = np.random.default_rng(0).permutation(len(compounds))
    cut = int(TAUGHT * len(compounds))
    slopes = _map_of(known, [compounds[at] for at in order[:cut]])[0] + MEAN_SHARE * mean_of_parts
    others = [compounds[at] for at in order[cut:]]
    steps = known.features([parts for _, parts in others]) @ slopes
    wholes = known.vocabulary.vectors[[row for row, _ in others]].astype(np.float64)
    steps, wholes = steps - steps.mean(axis=0), wholes - wholes.mean(axis=0)
    length = float((steps * wholes).sum() / max(float((steps**2).sum()), 1e-300))
    return max(length, 0.0) * slopes


_BLOCKS = ("mean of parts", "first part", "last part")


@dataclass(frozen=True, eq=False)
class _Parts:
    """The vocabulary, so that parts of names can be looked up."""

    vocabulary: Embedding
    tokens: list[str]
    """Each word of the vocabulary folded, its parts joined by ``_``."""
    row_of: dict[str, int]
    """Row of each word of one part."""

    @classmethod
    def of(cls, vocabulary: Embedding) -> _Parts:
        tokens = folded(vocabulary.words)
        is_finite = finite_rows(vocabulary.vectors).tolist()
        row_of: dict[str, int] = {}
        for row, (token, is_good) in enumerate(zip(tokens, is_finite, strict=True)):
            if is_good and token and "_" not in token:
                row_of.setdefault(token, row)
        return cls(vocabulary, tokens, row_of)

    def rows(self, name: str, leave_out: set[str]) -> list[int]:
        """Return the rows of the parts of a name; none if it has one part only."""
        parts = folded([name])[0].split("_")
        if len(parts) < 2:
            return []
        whole = set(glued(folded(sorted(leave_out))))
        return [self.row_of[part] for part in parts if part in self.row_of and part not in whole]

    def features(self, rows: Sequence[Sequence[int]]) -> np.ndarray:
        """Return mean, first and last vector of the parts of each name."""
        n_dims = self.vocabulary.n_dims
        found = np.zeros((len(rows), 3 * n_dims))
        for place, parts in enumerate(rows):
            vectors = self.vocabulary.vectors[list(parts)].astype(np.float64)
            # By log rank: "of" and "the" say less about a name than its rare words do.
            weights = np.log(np.array(parts) + 2.0)
            found[place, :n_dims] = (weights / weights.sum()) @ vectors
            found[place, n_dims : 2 * n_dims] = vectors[0]
            found[place, 2 * n_dims :] = vectors[-1]
        return found


def _compounds(
    known: _Parts, entities: Sequence[str], words_of_entities: Mapping[str, str]
) -> list[tuple[int, list[int]]]:
    """Return words of the vocabulary all of whose parts are words too, and that are no entity."""
    taken = set(glued(folded([*entities, *words_of_entities.values()])))
    found: list[tuple[int, list[int]]] = []
    for row, token in enumerate(known.tokens):
        if "_" not in token or token.replace("_", "").replace("'", "") in taken:
            continue
        parts = [known.row_of.get(part, -1) for part in token.split("_")]
        if min(parts) >= 0 and np.isfinite(known.vocabulary.vectors[row]).all():
            found.append((row, parts))
            if len(found) == MOST_COMPOUNDS:
                break
    return found


@one_blas_thread()
def _map_of(
    known: _Parts, compounds: Sequence[tuple[int, list[int]]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return slopes and shift of a ridge regression from parts to wholes, learnt on compounds."""
    wholes = known.vocabulary.vectors[[row for row, _ in compounds]].astype(np.float64)
    parts = known.features([rows for _, rows in compounds])
    mean, center = wholes.mean(axis=0), parts.mean(axis=0)
    parts -= center
    gram = parts.T @ parts
    gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) / len(gram)
    slopes = np.linalg.solve(gram, parts.T @ (wholes - mean))
    return slopes, mean - center @ slopes
