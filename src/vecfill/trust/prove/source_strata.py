"""Kinds of entities that several sources tell apart: by which describe them, and by their names."""

from __future__ import annotations

import numpy as np

from vecfill.inputs.describing import NAMES, PARTS
from vecfill.inputs.names.siblings import SEVERAL_WORDS
from vecfill.model.fitted import Model
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import SourcesSpace


def kinds_by_source(model: Model) -> list[np.ndarray]:
    """Return the kind of each row in two respects; none if there is one source.

    Which of the sources that were kept describe it, if that differs between rows; and whether
    another form of its name is in the vocabulary, if names are a source that was kept. Names of
    several words are a kind of their own elsewhere, so they have none here.
    """
    space, predictor = model.space, model.predictor
    if not (isinstance(space, SourcesSpace) and isinstance(predictor, Fused)):
        return []
    kept = [place for place, each in enumerate(predictor.members) if each is not None]
    # Which names have parts, their own kinds say.
    kept = [place for place in kept if space.names[place] != PARTS]
    presence = space.of_variants(predictor.variants).presence[:, kept]
    names = [space.names[place] for place in kept]
    found = [_presence_kinds(presence, names)] if (presence != presence[0]).any() else []
    if space.kinds and NAMES in names:
        kinds = np.array(space.kinds, dtype=object)
        kinds[kinds == SEVERAL_WORDS] = None
        found.append(kinds)
    return found


def _presence_kinds(presence: np.ndarray, names: list[str]) -> np.ndarray:
    """Return by which sources each row is described, in words."""
    found = np.empty(len(presence), dtype=object)
    for pattern in np.unique(presence, axis=0):
        here = [name for name, has_row in zip(names, pattern, strict=True) if has_row]
        rows = (presence == pattern).all(axis=1)
        if here:
            only = " only" if len(here) == 1 else ""
            found[rows] = f"a description by {' + '.join(here)}{only}"
    return found
