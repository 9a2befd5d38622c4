"""Inflected siblings: words of the vocabulary that are another form of an entity's name.

Known and unknown entities differ in how their names relate to the vocabulary, and what names say
is worth more for some kinds than for others. So the kinds are told apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vecfill.inputs.names.folding import folded, glued

ENDINGS = ("", "s", "es", "e", "ed", "d", "ing", "er", "ers", "y", "ies", "al", "ic", "'s")
"""Endings of English words that change little of what they mean."""

SHORT_ENDINGS = ("s", "es")
"""Endings of the other forms of a name that is too short to have a stem."""

SEVERAL_WORDS = "names of several words"
INFLECTED = "names of one word with another form in the vocabulary"
ONE_WORD = "names of one word without another form in the vocabulary"

_SHORTEST_STEM = 4


def kinds_of_names(entities: Sequence[str], vocabulary: Iterable[str]) -> tuple[str, ...]:
    """Return how the name of each entity relates to the vocabulary.

    Examples
    --------
    >>> kinds_of_names(["sofa", "Fort Worth"], ["sofas"])
    ('names of one word with another form in the vocabulary', 'names of several words')
    """
    siblings = inflected_siblings(entities, vocabulary)
    of_one = {True: INFLECTED, False: ONE_WORD}
    return tuple(
        SEVERAL_WORDS if "_" in name else of_one[entity in siblings]
        for entity, name in zip(entities, folded(list(entities)), strict=True)
    )


def inflected_siblings(entities: Sequence[str], vocabulary: Iterable[str]) -> dict[str, str]:
    """Return, for each entity that has one, a word that shares its stem and differs in its ending.

    Such a word all but tells the vector of the entity by its spelling. Most known entities have
    one and few unknown ones do, so the two kinds are to be judged apart. Only names of one word are
    looked at, and the first sibling in the vocabulary counts.

    Examples
    --------
    >>> inflected_siblings(["antibody", "sofa", "Lisbon"], ["antibodies", "sofas", "lisbon", "so"])
    {'antibody': 'antibodies', 'sofa': 'sofas'}
    """
    names = folded(list(entities))
    by_stem: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        if "_" not in name:
            for stem in _stems(name):
                by_stem.setdefault(stem, []).append(place)
    sibling_of: dict[int, str] = {}
    words = list(vocabulary)
    # Most words begin like no entity, and to take fourteen endings off each would take a second.
    beginnings = {stem[:_SHORTEST_STEM] for stem in by_stem}
    for word, token in zip(words, folded(words), strict=True):
        if token[:_SHORTEST_STEM] not in beginnings:
            continue
        for stem in _stems(token):
            for place in by_stem.get(stem, ()):
                if names[place] != token:
                    sibling_of.setdefault(place, word)
    return {entities[place]: sibling_of[place] for place in sorted(sibling_of)}


def besides_own(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the words of a text that are no spelling and no other form of its entity's `names`.

    The vector of such a word all but tells that of the entity, and an unknown entity has none. A
    part of a name of several words says something of its own, and stays.

    Examples
    --------
    >>> besides_own(["soft", "sofas", "são", "tomé", "cats"], ["sofa", "São", "cat"])
    ['soft', 'tomé']
    """
    keys = [glued([name])[0] for name in folded(list(names))]
    own = {key for key in keys if key}
    # Stems are for long names. Of a short one only the plural and the possessive are sure to be
    # its own: "cared" is not of "car".
    own |= {key + ending for key in own for ending in SHORT_ENDINGS}
    own_stems = {stem for key in keys for stem in _stems(key)}
    # Few words of a text begin like the name, so few are taken apart.
    beginnings = {stem[:_SHORTEST_STEM] for stem in own_stems}
    tokens = glued(folded(list(words)))
    return [
        word
        for word, token in zip(words, tokens, strict=True)
        if token not in own
        and (token[:_SHORTEST_STEM] not in beginnings or own_stems.isdisjoint(_stems(token)))
    ]


def _stems(word: str) -> list[str]:
    """Return what may be left of a word when an ending is taken off."""
    return [
        word[: len(word) - len(ending)]
        for ending in ENDINGS
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM
    ]
