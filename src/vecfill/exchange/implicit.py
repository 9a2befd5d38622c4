"""Imputed vectors -> the item factors of a recommender."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vecfill.errors import InputError
from vecfill.exchange.rows import Found, all_rows


class Factors(NamedTuple):
    """A recommender with factors for cold items, and which row is which item.

    Examples
    --------
    >>> Factors(None, ("tea",), np.ones((1, 2))).items
    ('tea',)
    """

    model: Any
    """A copy of the model that was passed; ``None`` if there was none."""
    items: tuple[str, ...]
    """Names of the rows of the factors."""
    factors: np.ndarray
    """(n_items, n_factors)."""


def to_implicit(result: Found, model: Any = None, items: Sequence[str] | None = None) -> Factors:
    """Return the item factors of a recommender with imputed ones for cold items.

    A model of the library implicit is copied, and its `recommend` and `similar_items` know the new
    items at once. Any other model takes the factors by itself: they are an array in the order of
    the names. Factors that the model has keep their bits and their rows. Rows of zeros are those of
    items that nobody took, and are filled.

    Parameters
    ----------
    result
        What `vecfill.impute` or `add` returned, or an `Embedding`.
    model
        A fitted model of implicit with `item_factors`. By default, the known and the imputed
        vectors are returned without one.
    items
        Names of the rows of its item factors.

    Examples
    --------
    >>> from vecfill import Embedding
    >>> class Model:
    ...     item_factors = np.array([[1.0, 2.0], [0.0, 0.0]])
    >>> new = Embedding(["rum", "gin"], [[3.0, 4.0], [5.0, 6.0]])
    >>> filled = to_implicit(new, Model(), ["tea", "gin"])
    >>> filled.items, filled.model.item_factors.tolist()
    (('tea', 'gin', 'rum'), [[1.0, 2.0], [5.0, 6.0], [3.0, 4.0]])
    """
    rows = all_rows(result)
    if model is None:
        return Factors(None, rows.words, rows.vectors)
    factors = _factors(model, rows.n_dims)
    names = [str(name) for name in items or ()]
    if len(names) != len(factors) or len(set(names)) != len(names):
        raise InputError(
            f"items= has {len(names):,} names, {len(set(names)):,} of them different, and the "
            f"model {len(factors):,} item factors. Pass the name of each row, in its order."
        )
    place = {name: number for number, name in enumerate(names)}
    is_blank = (factors == 0).all(axis=1)
    new = [name for name in rows.words if name not in place]
    all_factors = np.vstack([factors, np.zeros((len(new), factors.shape[1]), factors.dtype)])
    place |= {name: len(names) + number for number, name in enumerate(new)}
    for name, vector in zip(rows.words, rows.vectors, strict=True):
        if place[name] >= len(names) or is_blank[place[name]]:
            all_factors[place[name]] = vector
    return Factors(_with_items(model, all_factors), (*names, *new), all_factors)


def _factors(model: Any, n_dims: int) -> np.ndarray:
    factors: Any = getattr(model, "item_factors", None)
    # Models on a GPU have a matrix of their own.
    factors = factors.to_numpy() if hasattr(factors, "to_numpy") else factors
    if not isinstance(factors, np.ndarray) or factors.ndim != 2:
        raise InputError(
            f"model= is an object of type {type(model).__name__} without item_factors. Pass a "
            "fitted model of implicit, or leave it out to get names and factors."
        )
    if factors.shape[1] != n_dims:
        raise InputError(
            f"the model's item factors have {factors.shape[1]} dimensions, and the imputed vectors "
            f"{n_dims}. Impute from the factors of this model."
        )
    return factors


def _with_items(model: Any, factors: np.ndarray) -> Any:
    """Return a copy of a model with other item factors, and without what was made of the old."""
    changed = copy.copy(model)
    changed.item_factors = factors
    for name in ("_item_norms", "_YtY", "_item_factors_index"):
        if hasattr(changed, name):
            setattr(changed, name, None)
    return changed
