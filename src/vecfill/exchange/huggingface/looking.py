"""What new terms are near, among each other and among words that people know."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vecfill.embedding import Embedding
from vecfill.machine.lengths import unit
from vecfill.trust.prove.sanity import Example

N_EXAMPLES = 5
N_NEAREST = 5
FAMILIAR = 0.5
"""Share of the whole words that people know, the most frequent ones. What a vocabulary has last are
names that a few texts are full of."""
SHORTEST = 3
"""Letters of a word that says something by itself."""


def familiar_words(words: Embedding, ranks: Mapping[str, int]) -> Embedding:
    """Return the words that people know: frequent by their ranks, or by the order of the ids.

    Examples
    --------
    >>> words = Embedding(["gold", "of", "iron", "zaqar", "##x"], np.eye(5))
    >>> familiar_words(words, {}).words
    ('gold',)
    >>> familiar_words(words, {"zaqar": 90, "gold": 3, "iron": 2}).words
    ('iron',)
    """
    listed = [word for word in words.words if len(word) >= SHORTEST and word.isalpha()]
    if ranks:
        listed = sorted((word for word in listed if word in ranks), key=lambda word: ranks[word])
    n_familiar = max(1, int(FAMILIAR * len(listed)))
    return Embedding(listed[:n_familiar], words[listed[:n_familiar]]) if listed else words


def examples_of(new: Embedding, familiar: Embedding) -> tuple[Example, ...]:
    """Return some of the terms with the nearest terms and familiar words, the nearest first.

    What all rows have in common is left out, as it makes everything near to everything.

    Examples
    --------
    >>> words = Embedding(["gold", "iron", "milk"], [[2.0, 1, 0], [2, 1, 0.2], [-4, 1, 0]])
    >>> print(*examples_of(Embedding(["silver"], [[2.0, 1, 0]]), words))
    silver: gold, iron, milk
    """
    names = [*new.words, *familiar.words]
    rows = np.concatenate([new.vectors, familiar.vectors]).astype(np.float64)
    directions = unit(rows - familiar.vectors.mean(axis=0, dtype=np.float64))
    shown = np.unique(np.linspace(0, len(new) - 1, min(N_EXAMPLES, len(new))).round().astype(int))
    examples = []
    for place in shown.tolist():
        nearness = directions @ directions[place]
        nearness[place] = -np.inf
        order = np.argsort(-nearness, kind="stable")[: min(N_NEAREST, len(names) - 1)]
        examples.append(Example(names[place], tuple(names[at] for at in order.tolist())))
    return tuple(examples)
