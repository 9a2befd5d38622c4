"""Rows that can be compared, by vectors or by distances, computed here or stored in a model.

Whether a domain has vectors or only distances is decided here and nowhere else. Prepared rows,
graphs and weights do not depend on which rows are known, so a space computes each of them once,
when first asked, and all predictors and folds share them. A model stores those that its predictor
needs, and a stored space reads them instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_array

from vecfill.errors import InputError
from vecfill.inputs.prepared import Domain
from vecfill.method.graph import (
    SpanningGraph,
    measured_neighbor_graphs,
    spanning_neighbor_graph_of_distances,
)
from vecfill.method.search.among import nearest_fitted, nearest_of_distances
from vecfill.method.trend import reduced
from vecfill.method.weights import convex_weights, convex_weights_of_distances
from vecfill.model.known import KnownRows
from vecfill.model.preparation import (
    PREPARATIONS,
    FittedPreparation,
    base_of,
    prepared_by,
    unit_rows,
)
from vecfill.model.smooth import Smooth, has_numbers

MIN_DEGREES = (8, 20)
"""Least degrees whose graphs are built together, because they share one search for neighbours. 8 is
the paper's delta; 20 is a guess at what noisy domains need."""

LARGE = 10_000_000
"""Entries above which memory counts more than time: 80 MB for each preparation that is kept."""

Rows = Any
"""A dense array or a CSR array."""

Value = TypeVar("Value")

Span = tuple[str, int, int]
"""A column of a table: its name, and the first and the end of its columns in a domain."""


@dataclass(frozen=True)
class WeightsKey:
    """What the weights of a space depend on."""

    preparation: str = "as_given"
    min_degree: int = 8
    ridge: float = 0.0
    weight_rule: str = "simplex"
    weight_floor: float = 0.1


@dataclass(frozen=True)
class SpaceSize:
    """How large a space is, and how its neighbours are searched."""

    n_rows: int
    n_features: int
    has_vectors: bool
    min_degrees: tuple[int, ...]
    neighbors: str


class Space:
    """One domain as a space: rows, and on demand their preparations, graphs and weights.

    Parameters
    ----------
    rows
        Domain vectors, dense or CSR; or the square matrix of distances.
    is_distances
        Whether `rows` holds distances.
    min_degrees
        Least degrees whose graphs are wanted; they are built together.
    links
        Of a large graph, who is joined to whom: see `measured_neighbor_graphs`.
    columns
        Columns of the table, and where they are in `rows`.
    neighbors
        ``"auto"``, ``"exact"`` or ``"approximate"``, see `spanning_neighbor_graph`.
    n_jobs
        Threads.

    Examples
    --------
    >>> space = Space(np.array([[0.0], [1.0], [4.0]]))
    >>> space.weights(WeightsKey(min_degree=2, weight_floor=0.0)).toarray()[1]
    array([0.75, 0.  , 0.25])
    """

    def __init__(
        self,
        rows: Rows,
        *,
        is_distances: bool = False,
        min_degrees: Sequence[int] = MIN_DEGREES,
        links: csr_array | None = None,
        columns: Sequence[Span] = (),
        neighbors: str = "auto",
        n_jobs: int | None = None,
    ) -> None:
        n_rows, n_features = rows.shape
        degrees = tuple(min_degrees)
        self.size = SpaceSize(n_rows, n_features, not is_distances, degrees, neighbors)
        self.links = links
        self.columns = tuple(columns)
        self.may_leave_out = True
        self.n_jobs = n_jobs
        self._stored: Callable[[str], Any] | None = None
        self._kept: dict[Hashable, Any] = {("rows", "as_given"): rows}

    @classmethod
    def of_domain(
        cls,
        domain: Domain,
        *,
        min_degrees: Sequence[int] = MIN_DEGREES,
        may_leave_out: bool = True,
        n_jobs: int | None = None,
    ) -> Space:
        """Return the space of a domain that was read from a table, graph or matrix.

        `may_leave_out` says whether columns of its table that seem to hurt may be left out.
        """
        space = cls(
            domain.vectors,
            is_distances=domain.kind == "distances",
            min_degrees=min_degrees,
            links=domain.links,
            columns=() if domain.reader is None else domain.reader.spans(),
            n_jobs=n_jobs,
        )
        space.may_leave_out = may_leave_out
        return space

    @classmethod
    def stored(cls, part: Callable[[str], Any], *, n_jobs: int | None = None) -> Space:
        """Return a stored space, which asks for a `part` by name when it is first needed."""
        space = cls.__new__(cls)
        space.size, space.links, space.columns, space.n_jobs = part("size"), None, (), n_jobs
        space.may_leave_out = False
        space._stored, space._kept = part, {}
        return space

    @property
    def rows(self) -> Rows:
        """The domain as given; a stored space has it only if the predictor uses it so."""
        return self.prepared("as_given")

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return self.size.n_rows

    @property
    def has_vectors(self) -> bool:
        """Whether there are vectors, or only distances."""
        return self.size.has_vectors

    @property
    def min_degrees(self) -> tuple[int, ...]:
        """Least degrees whose graphs are wanted."""
        return self.size.min_degrees

    @property
    def is_large(self) -> bool:
        """Whether memory counts more than time."""
        return self.size.n_rows * self.size.n_features > LARGE

    @property
    def n_threads(self) -> int | None:
        """As many threads as `n_jobs` says: one where other processes do the work."""
        return 1 if isinstance(self.n_jobs, Executor) else self.n_jobs

    @property
    def n_beside(self) -> int | None:
        """Threads for things that each keep threads and memory busy: one for a large space."""
        return 1 if self.is_large else self.n_threads

    @property
    def preparations(self) -> tuple[str, ...]:
        """The preparations that this space admits: without vectors, nothing can be prepared."""
        return tuple(PREPARATIONS) if self.has_vectors else ("as_given",)

    @property
    def worth_trying(self) -> tuple[str, ...]:
        """The preparations that can make a difference: without numbers, none is smooth."""
        if not self.has_vectors or self.once("has numbers", lambda: has_numbers(self.rows)):
            return self.preparations
        return tuple(name for name in self.preparations if name != "smooth")

    @property
    def is_joint(self) -> bool:
        """Whether its rows are those of several sources, be it only one of them."""
        return False

    @property
    def members(self) -> tuple[Member, ...]:
        """The sources of which it consists: it is its own only one."""
        return (Member("table", self, np.arange(self.n_rows), self.n_rows),)

    def with_members(self, members: Sequence[Member]) -> Space:
        """Return a space of the same kind that consists of other sources."""
        (member,) = members
        return member.space

    def new_rows(self, rows: Any) -> Any:
        """Return what `New` holds for rows of its sources that came later, `SourceRows`."""
        return rows.rows.get(0)

    def degree(self, min_degree: int) -> int:
        """Return the least degree that the number of rows admits."""
        return min(min_degree, max(1, self.n_rows - 1))

    def prepared(self, preparation: str) -> Rows:
        """Return the rows under a preparation."""
        assert base_of(preparation) in self.preparations
        return self.once(("rows", preparation), lambda: self._prepared(preparation))

    def _prepared(self, preparation: str) -> Rows:
        # Sorting every column is most of the work, and both preparations by rank begin with it.
        if preparation == "rank_normal_unit_rows" and ("rows", "rank_normal") in self._kept:
            return unit_rows(self.prepared("rank_normal"))
        return prepared_by(preparation, self.rows)

    def release(self, preparations_used: Collection[str]) -> None:
        """Forget other prepared rows, if the space is large; they can be made again."""
        # What is small is worth more than the memory: it may be asked for again.
        if not self.is_large:
            return
        stay = {("rows", preparation) for preparation in ("as_given", *preparations_used)}
        for key in [key for key in self._kept if isinstance(key, tuple) and key[0] == "rows"]:
            if key not in stay:
                del self._kept[key]

    def keep_only(self, preparations: Collection[str]) -> None:
        """Forget rows, graphs and weights of other preparations, if the space is large.

        For when the predictor is chosen. What is asked for again is computed again.
        """
        if not self.is_large:
            return
        for key in set(self._kept) - {("rows", "as_given")}:
            if _preparation_of(key) not in {None, *preparations}:
                del self._kept[key]

    def coordinates(self, preparation: str) -> np.ndarray:
        """Return prepared rows along the leading directions of the domain, for a linear trend."""
        return self.once(("coordinates", preparation), lambda: reduced(self.prepared(preparation)))

    def graph(self, preparation: str, min_degree: int) -> SpanningGraph:
        """Return who may explain whom, and the share of the true nearest rows in it."""
        degree = self.degree(min_degree)
        # Built together if it is one of those that are wanted anyway: the search is most of it.
        planned = tuple(
            dict.fromkeys(self.degree(planned_degree) for planned_degree in self.min_degrees)
        )
        degrees = planned if degree in planned else (degree,)
        graphs = self.once(
            ("graphs", preparation, degrees), lambda: self._graphs(preparation, degrees)
        )
        return graphs[degrees.index(degree)]

    def _graphs(self, preparation: str, degrees: tuple[int, ...]) -> list[SpanningGraph]:
        rows = self.prepared(preparation)
        if self.has_vectors:
            options = {"links": self.links, "neighbors": self.size.neighbors, "n_jobs": self.n_jobs}
            return measured_neighbor_graphs(rows, min_degrees=degrees, **options)
        graphs = [
            spanning_neighbor_graph_of_distances(rows, min_degree=degree) for degree in degrees
        ]
        return [SpanningGraph(graph, 1.0) for graph in graphs]

    def weights(self, key: WeightsKey) -> csr_array:
        """Return each row as a convex mix of its neighbours; rows sum to one."""
        return self.once(key, lambda: self._weights(key))

    def _weights(self, key: WeightsKey) -> csr_array:
        rows, graph = self.prepared(key.preparation), self.graph(key.preparation, key.min_degree)
        options = {"ridge": key.ridge, "weight_floor": key.weight_floor, "n_jobs": self.n_jobs}
        if self.has_vectors:
            return convex_weights(rows, graph.graph, form=key.weight_rule, **options)
        if key.weight_rule != "simplex":
            self.refuse_without_vectors(f"weight_rule={key.weight_rule!r}")
        return convex_weights_of_distances(rows, graph.graph, **options)

    def preparing(self, preparation: str) -> FittedPreparation:
        """Return what a preparation learnt from the rows, to prepare others in the same way."""
        return self.once(
            ("preparing", preparation), lambda: FittedPreparation.of(preparation, self.rows)
        )

    def origins(self, preparation: str) -> np.ndarray:
        """Return the column of the domain that each prepared column was made of."""
        if base_of(preparation) != "smooth":
            return np.arange(self.size.n_features)
        return Smooth(**self.preparing(preparation).arrays).origins(self.size.n_features)

    def prepared_new(self, preparation: str, new_rows: Rows) -> Rows:
        """Return rows of new entities under a preparation."""
        return self.preparing(preparation).applied(new_rows) if self.has_vectors else new_rows

    def mixes_of_new(
        self, new_rows: Rows, key: WeightsKey, *, weight_floor: float = 0.0
    ) -> tuple[csr_array, Any]:
        """Return new rows as convex mixes of their nearest rows here, and which rows they equal.

        The rows are prepared already.
        """
        fitted = self.prepared(key.preparation)
        # No spanning tree here: a new row is explained by fitted ones, and nothing through it.
        n_neighbors = min(key.min_degree, self.n_rows)
        options = {"ridge": key.ridge, "weight_floor": weight_floor, "n_jobs": self.n_jobs}
        if self.has_vectors:
            nearest = nearest_fitted(new_rows, fitted, n_neighbors=n_neighbors, n_jobs=self.n_jobs)
            # Only the rows that are used: there may be millions of others.
            near_rows, places = np.unique(nearest.graph.indices, return_inverse=True)
            graph = csr_array(
                (nearest.graph.data, places, nearest.graph.indptr),
                (new_rows.shape[0], near_rows.size),
            )
            weights = convex_weights(new_rows, graph, fitted=fitted[near_rows], **options)
            mixes = csr_array(
                (weights.data, near_rows[weights.indices], weights.indptr), nearest.graph.shape
            )
            return mixes, nearest
        nearest = nearest_of_distances(new_rows, n_neighbors=n_neighbors)
        mixes = convex_weights_of_distances(new_rows, nearest.graph, between=fitted, **options)
        return mixes, nearest

    def refuse_without_vectors(self, option: str) -> None:
        """Refuse something that needs domain vectors if there are only distances."""
        if not self.has_vectors:
            raise InputError(f"{option} needs domain vectors, and this domain has only distances.")

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what was computed under a key before or is stored, or compute it."""
        if key not in self._kept:
            # What a stored space should have and has not is an error: computed from the rows that
            # it has by now, a unit or a mean would be another than that of the fit.
            if self._stored is not None and (name := stored_name(key)) is not None:
                self._kept[key] = self._stored(name)
            else:
                self._kept[key] = compute()
        return self._kept[key]


@dataclass(frozen=True, eq=False)
class Member:
    """One source as a space, and which rows of the whole it describes."""

    name: str
    space: Space = field(repr=False)
    rows: np.ndarray = field(repr=False)
    """(n_member_rows,) the row in the whole of each of its rows."""
    n_all: int
    """How many rows the whole has."""
    is_guess: bool = False
    """Whether its rows are guesses of the vectors themselves, learnt on other words."""
    is_leaking: bool = False
    """Whether it holds the answer for known rows alone, and is not to be used."""

    @property
    def is_present(self) -> np.ndarray:
        """(n_all,) which rows it describes."""
        is_present = np.zeros(self.n_all, np.bool_)
        is_present[self.rows] = True
        return is_present

    def given(self, rows: KnownRows) -> KnownRows:
        """Return what is known of its own rows."""
        return KnownRows(rows.embedding[self.rows], rows.is_known[self.rows])


_STORED = ("rows", "preparing", "kernel centre", "kernel unit")
"""What a model stores of each preparation."""


def stored_name(key: Hashable) -> str | None:
    """Return the name under which a part is stored, if it is.

    Examples
    --------
    >>> stored_name(WeightsKey()), stored_name(("coordinates", "as_given")) is None
    ('weights as_given|8|0.0|simplex|0.1', True)
    """
    if isinstance(key, WeightsKey):
        return f"weights {'|'.join(str(option) for option in vars(key).values())}"
    return " ".join(key) if isinstance(key, tuple) and key[0] in _STORED else None


def _preparation_of(key: Hashable) -> str | None:
    """Return the preparation that something was computed for, if it was for one."""
    about = key[1] if isinstance(key, tuple) and len(key) > 1 else key
    if isinstance(about, WeightsKey):
        return about.preparation
    return about if isinstance(about, str) and base_of(about) in PREPARATIONS else None
