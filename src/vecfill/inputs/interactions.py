"""What users took, read or rated: a table of user and item, or a matrix, and its entities' part.

The entities of a table are the items, or else the users. Those on the other side are called
*others* here: users to whom new items are recommended, or items that are recommended to new users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import coo_array, csr_array, issparse

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.embeddings import as_embedding
from vecfill.inputs.entities import did_you_mean, listed
from vecfill.inputs.table.columns import read_numbers
from vecfill.inputs.table.frames import Frame, frame_of, objects

SIDES = ("items", "users")

RATINGS = ("rating", "ratings", "stars", "score")
"""What a third column is called that holds ratings."""


@dataclass(frozen=True, eq=False)
class Tastes:
    """What the others took of the entities of a table, row by row as the table has them.

    Examples
    --------
    >>> interactions([("ann", "tea"), ("ben", "tea")]).tastes(("tea", "rum")).taken.toarray()
    array([[1., 0.],
           [1., 0.]])
    """

    taken: csr_array
    """(n_others, n_rows) 1 for what was taken, or the rating."""
    is_rated: bool = False
    are_users: bool = False
    """Whether the entities are users, and the others items."""
    vectors: np.ndarray | None = None
    """(n_others, n_dims) vectors of the others, if they were passed."""

    @property
    def relevant(self) -> csr_array:
        """(n_others, n_rows) what was liked: all that was taken, or rated no worse than the mean.

        The mean is that of all ratings of the same user.
        """
        if not self.is_rated:
            return self.taken
        liked = self.taken.tocoo()
        user, n_users = liked.coords[int(self.are_users)], self.taken.shape[int(self.are_users)]
        n_rated = np.bincount(user, minlength=n_users)
        mean = np.bincount(user, liked.data, minlength=n_users) / np.maximum(n_rated, 1)
        is_liked = liked.data >= mean[user]
        places = (liked.row[is_liked], liked.col[is_liked])
        return csr_array(coo_array((np.ones(int(is_liked.sum())), places), self.taken.shape))


@dataclass(frozen=True, eq=False)
class Interactions:
    """Who took what.

    Examples
    --------
    >>> interactions([("ann", "tea"), ("ben", "tea"), ("ben", "rum")])
    Interactions(2 users, 2 items, 3 taken)
    """

    users: tuple[str, ...] | None
    """Names; ``None`` if a matrix has none."""
    items: tuple[str, ...] | None
    matrix: csr_array
    """(n_users, n_items) 1 for what was taken, or the rating."""
    is_rated: bool = False
    entities: str | None = None
    """Whether the entities of the table are ``"items"`` or ``"users"``; ``None``: names decide."""
    vectors: Embedding | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        n_users, n_items = self.matrix.shape
        verb = "rated" if self.is_rated else "taken"
        return f"Interactions({n_users:,} users, {n_items:,} items, {self.matrix.nnz:,} {verb})"

    def to_dict(self) -> dict[str, Any]:
        """Return sizes, for manifests."""
        n_users, n_items = self.matrix.shape
        return {"users": n_users, "items": n_items, "taken": int(self.matrix.nnz)}

    def tastes(self, entities: Sequence[str], words: Mapping[str, str] | None = None) -> Tastes:
        """Return the part about some entities, under their names or the words they match."""
        sides = SIDES if self.entities is None else (self.entities,)
        for side in sides:
            places = self._places(side, entities, words or {})
            if (places >= 0).any():
                return self._tastes(side == "users", places)
        known = self.items if sides[0] == "items" else self.users
        raise InputError(
            f"interactions name none of the {len(entities):,} entities of the table, such as "
            f"{listed(entities[:3])}. Their {sides[0]} are {listed((known or ())[:3])} and so on. "
            "Use the same names in both."
        )

    def _places(self, side: str, entities: Sequence[str], words: Mapping[str, str]) -> np.ndarray:
        """Return the column or row of each entity; -1 if nobody took it."""
        names = self.items if side == "items" else self.users
        n_names = self.matrix.shape[1 if side == "items" else 0]
        if names is None:
            return np.arange(n_names) if n_names == len(entities) else np.full(len(entities), -1)
        place = {name: number for number, name in enumerate(names)}
        by_name = np.array([place.get(entity, -1) for entity in entities])
        by_word = np.array([place.get(words.get(entity, ""), -1) for entity in entities])
        # All by the same: names and words may both be numbers and mean different things.
        return by_name if (by_name >= 0).sum() >= (by_word >= 0).sum() else by_word

    def _tastes(self, are_users: bool, places: np.ndarray) -> Tastes:
        of_entities = csr_array(self.matrix.T if are_users else self.matrix)
        n_others, n_names = of_entities.shape
        # A last column without anything, for entities that nobody took.
        wide = csr_array((of_entities.data, of_entities.indices, of_entities.indptr),
                         shape=(n_others, n_names + 1))  # fmt: skip
        ratings = csr_array(wide[:, np.where(places >= 0, places, n_names)])
        other_names = self.items if are_users else self.users
        vectors = None
        if self.vectors is not None:
            n_lacking = sum(name not in self.vectors for name in other_names or ())
            if other_names is None or n_lacking:
                side = "items" if are_users else "users"
                raise InputError(
                    "vectors= has none for "
                    + ("interactions without names. Name both sides."
                       if other_names is None
                       else f"{n_lacking:,} of {len(other_names):,} {side}. "
                       "Pass one for each, or leave vectors= out: they are solved then.")
                )  # fmt: skip
            vectors = np.asarray(self.vectors[list(other_names)], np.float64)
        return Tastes(ratings, self.is_rated, are_users, vectors)


def interactions(
    data: Any,
    *,
    user: str | None = None,
    item: str | None = None,
    rating: str | None = None,
    users: Sequence[str] | None = None,
    items: Sequence[str] | None = None,
    entities: str | None = None,
    vectors: Any = None,
) -> Interactions:
    """Return who took what, for ``vecfill.evaluate`` and ``vecfill.impute(goal="recommend")``.

    Parameters
    ----------
    data
        A table with a row for each time that a user took an item (a file or a pandas, polars or
        Arrow table, or a list of pairs), or a SciPy sparse matrix of users x items.
    user, item
        Columns of both; by default the first and the second.
    rating
        Column of ratings; by default a third column that is called rating. Without one, everything
        that is listed was liked. With one, an item was liked if it got no less than the user's
        mean.
    users, items
        Names of the rows and columns of a matrix. By default its columns are the rows of the table,
        in that order.
    entities
        Whether the table describes ``"items"`` or ``"users"``. By default the names decide, items
        first.
    vectors
        Vectors of those that the table does not describe (users, or items if it describes users),
        as `vecfill.impute` takes an embedding. By default they are solved from the known vectors by
        ridge regression, as a recommender does, without what is hidden. Vectors that are passed
        have seen what will be hidden, unless they come from other interactions.

    Examples
    --------
    >>> interactions({"who": ["ann", "ben"], "what": ["tea", "tea"], "rating": [4, 1]})
    Interactions(2 users, 1 items, 2 rated)
    """
    if entities is not None and entities not in SIDES:
        raise InputError(f"entities={entities!r} is none of {', '.join(SIDES)}.")
    other_vectors = None if vectors is None else as_embedding(vectors)
    if issparse(data):
        return _of_matrix(data, users, items, entities, other_vectors)
    if users is not None or items is not None:
        raise InputError("users= and items= name the rows and columns of a matrix, and a table has "
                         "its own names. Leave them out.")  # fmt: skip
    frame = _frame(data)
    names, columns = _columns(frame, user, item), frame.columns
    codes, sides = [], []
    for name in names:
        cells = columns[name]
        texts = pa.array([str(value) for value in objects(cells)], pa.large_string())
        if any(value is None for value in objects(cells)):
            raise InputError(
                f"{frame.label}, column {name!r} has empty cells. Leave those rows out."
            )
        side = pc.unique(texts)
        codes.append(pc.index_in(texts, value_set=side).to_numpy(zero_copy_only=False))
        sides.append(tuple(side.to_pylist()))
    title = _rating(frame, rating, names)
    values = np.ones(frame.n_rows)
    if title is not None:
        pairs = [f"{sides[0][a]} - {sides[1][b]}" for a, b in zip(*codes, strict=True)]
        numbers = read_numbers(
            frame.label, title, columns[title], pairs, advice="Rate with numbers."
        )
        values = np.asarray(numbers, np.float64)
        if not np.isfinite(values).all() or (values <= 0).any():
            raise InputError(f"{frame.label}, column {title!r}: ratings are numbers above 0.")
    shape = (len(sides[0]), len(sides[1]))
    matrix = _counted_once(coo_array((values, tuple(codes)), shape))
    return Interactions(sides[0], sides[1], matrix, title is not None, entities, other_vectors)


def _of_matrix(
    matrix: Any,
    users: Sequence[str] | None,
    items: Sequence[str] | None,
    entities: str | None,
    vectors: Embedding | None,
) -> Interactions:
    for names, length, side in (
        (users, matrix.shape[0], "users"),
        (items, matrix.shape[1], "items"),
    ):
        if names is not None and len(names) != length:
            raise InputError(f"{side}= has {len(names):,} names, and the matrix {length:,} {side}.")
    entries = coo_array(matrix).astype(np.float64)
    if not np.isfinite(entries.data).all() or (entries.data < 0).any():
        raise InputError("the matrix of interactions holds numbers below 0 or not finite ones.")
    entries.eliminate_zeros()
    # Counts of plays are no ratings: a matrix says what was taken, and a table may say how liked.
    entries.data = np.ones(len(entries.data))
    return Interactions(
        None if users is None else tuple(map(str, users)),
        None if items is None else tuple(map(str, items)),
        csr_array(entries),
        False,
        entities,
        vectors,
    )


def _frame(data: Any) -> Frame:
    if isinstance(data, Mapping):
        data = pa.table({name: list(cells) for name, cells in data.items()})
    elif isinstance(data, list | tuple) and data and all(len(row) == 2 for row in data):
        data = pa.table({"user": [row[0] for row in data], "item": [row[1] for row in data]})
    frame = frame_of(data)
    if frame is None:
        raise InputError(
            f"interactions are an object of type {type(data).__name__}. Pass a file or a table "
            "with a column of users and one of items, a list of pairs, or a SciPy sparse matrix."
        )
    if frame.n_rows == 0:
        raise InputError(f"{frame.label} has no rows, so nobody took anything.")
    return frame


def _columns(frame: Frame, user: str | None, item: str | None) -> tuple[str, str]:
    if len(frame.names) < 2:
        raise InputError(
            f"{frame.label} has one column only. Interactions have a user and an item."
        )
    names = (frame.names[0] if user is None else user, frame.names[1] if item is None else item)
    for name in names:
        _refuse_unknown(frame, name)
    return names


def _rating(frame: Frame, rating: str | None, names: tuple[str, str]) -> str | None:
    if rating is not None:
        _refuse_unknown(frame, rating)
        return rating
    rating_names = [name for name in frame.names if name not in names and name.lower() in RATINGS]
    return rating_names[0] if rating_names else None


def _refuse_unknown(frame: Frame, name: str) -> None:
    if name not in frame.names:
        raise InputError(
            f"{frame.label} has no column {name!r}.{did_you_mean(name, frame.names)} Its columns "
            f"are {listed(frame.names, 10)}."
        )


def _counted_once(values: coo_array) -> csr_array:
    """Return the matrix in which a pair that is listed again has the mean of its values."""
    total, times = csr_array(values), csr_array(coo_array((np.ones(values.nnz), values.coords)))
    total.sum_duplicates()
    times.sum_duplicates()
    total.data /= times.data
    return total


def read_tastes(source: Any, entities: Sequence[str], words: Mapping[str, str]) -> Tastes:
    """Return what others took of some entities, from whatever holds it.

    Examples
    --------
    >>> read_tastes([("ann", "tea")], ("rum", "tea"), {}).taken.toarray()
    array([[0., 1.]])
    """
    return (source if isinstance(source, Interactions) else interactions(source)).tastes(
        entities, words
    )
