"""Check that a database loses nothing while another client writes to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.errors import InputError
from vecfill.exchange.stores import Columns, Filled, NewCells, Store, fill
from vecfill.testing.made import N_DIMS, N_KNOWN, made


@dataclass(frozen=True)
class Change:
    """What another client does to one row of a store."""

    action: str
    """``"insert"``, ``"update"``, ``"delete"``, or ``"fill"``: update if the vector is null."""
    cells: dict[str, Any]
    """The key, and the cells to insert or to update."""


Client = Callable[[Change], int | None]
"""Another client; it returns how many rows it changed, at least for a fill.

It raises `TimeoutError` if the store has locked the row.
"""


class Interrupted:
    """A client of a database, or what one of its methods returned, interrupted before each call."""

    def __init__(self, client: Any, meanwhile: Callable[[], None]) -> None:
        self._client, self._meanwhile = client, meanwhile

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **options: Any) -> Any:
            self._meanwhile()
            returned = attribute(*args, **options)
            # Cursors, transactions and builders talk to the database as well.
            is_client = any(hasattr(returned, word) for word in ("execute", "__enter__"))
            return Interrupted(returned, self._meanwhile) if is_client else returned

        return call

    def __enter__(self) -> Any:
        self._meanwhile()
        return Interrupted(self._client.__enter__(), self._meanwhile)

    def __exit__(self, *about: object) -> Any:
        self._meanwhile()
        return self._client.__exit__(*about)


Place = Callable[[pa.Table, Callable[[], None]], tuple[Store, Client]]

_COLUMNS = Columns("id", "embedding", "sure")
_LACKING = range(4)  # ids of the rows that lack a vector
_FOREIGN = [0.5] * N_DIMS
_HARMLESS = (
    Change("insert", {"id": 900, "x": 0.1, "y": 0.2, "z": 0.3, "embedding": _FOREIGN}),
    Change("insert", {"id": 901, "x": 0.4, "y": 0.5, "z": 0.6, "embedding": None}),
    Change("update", {"id": _LACKING[0], "x": 7.5}),
    Change("update", {"id": 20, "embedding": _FOREIGN}),
    Change("delete", {"id": 21}),
)
_OVERLAPPING = (
    Change("fill", {"id": _LACKING[1], "embedding": _FOREIGN}),
    Change("delete", {"id": _LACKING[2]}),
)


def check_store(place: Place) -> None:
    """Check that a store loses nothing while another client writes to it.

    The other client inserts, fills, changes and deletes rows between reading and writing, and
    before each call while vectors are written. Nothing of its rows may be lost, none of ours may
    be half there, what an error says must be true, and a second run must finish the job.

    Parameters
    ----------
    place
        A function of an Arrow table (columns ``id``, ``x``, ``y``, ``z``, ``embedding``) and of a
        function `meanwhile`. It makes a new place that holds the table and returns a `Store` of it
        and another client: a function of a `Change`. The store calls `meanwhile` whenever it talks
        to the database; `Interrupted` does this for the client that the store is made of.

    Examples
    --------
    >>> def place(table, meanwhile):
    ...     connection = duckdb.connect()
    ...     ...
    ...     store = DuckDBTable(Interrupted(connection, meanwhile), "items")
    ...     return store, other_client
    >>> check_store(place)  # doctest: +SKIP
    """
    for changes in (_HARMLESS, *((*_HARMLESS, change) for change in _OVERLAPPING)):
        call, is_reached = 0, True
        while is_reached:
            is_reached = _StoreCheck(place, changes, call).passes()
            call += 1


class _StoreCheck:
    """One job on a store while another client makes changes before one of the calls."""

    def __init__(self, place: Place, changes: tuple[Change, ...], call: int) -> None:
        rows, vectors = made()
        cells = [None if row in _LACKING else vectors[row].tolist() for row in range(N_KNOWN)]
        table = pa.table(
            {
                "id": pa.array(range(N_KNOWN), pa.int64()),
                **{name: rows[:N_KNOWN, column] for column, name in enumerate("xyz")},
                "embedding": pa.array(cells, pa.list_(pa.float32(), N_DIMS)),
            }
        )
        self.made: list[Change] = []
        self.waiting, self.call = list(changes), call
        self.is_writing, self.n_calls = False, 0
        self.store, self.other = place(table, self._meanwhile)
        self.before = self._rows()
        self.where = f"another client writes before call {call} of a write: "

    def passes(self) -> bool:
        """Run the job twice; tell whether the store makes so many calls in a write."""
        keys, message = None, ""
        try:
            keys = self._filled(_Observed(self)).keys
        except InputError as error:
            message = str(error)
        is_reached = self.n_calls >= self.call
        self._act(is_last=True)
        self._check(keys, message)
        self._filled(self.store)
        self._check(None, "")
        is_whole = all(row["embedding"] is not None for row in self._rows().values())
        assert is_whole, f"{self.where}a second run leaves rows without a vector"
        assert self._filled(self.store).result is None, f"{self.where}a third run is not idle"
        return is_reached

    def _filled(self, store: Store) -> Filled:
        key, vector, confidence = vars(_COLUMNS).values()
        return fill(store, key=key, vector=vector, confidence=confidence, method="paper")

    def _meanwhile(self) -> None:
        if self.is_writing:
            self.n_calls += 1
            if self.n_calls == self.call:
                self._act()

    def _act(self, *, is_last: bool = False) -> None:
        """Make the changes that are not made yet; those that are locked out wait for the end."""
        self.is_writing = False  # the other client is not interrupted
        blocked = []
        for change in self.waiting:
            try:
                n_changed = self.other(change)
            except TimeoutError:
                assert not is_last, f"{self.where}rows stay locked"
                blocked.append(change)
            else:
                self.made += [] if change.action == "fill" and not n_changed else [change]
        self.waiting = blocked
        self.is_writing = not is_last

    def _rows(self) -> dict[int, dict[str, Any]]:
        table = self.store.read(_COLUMNS).to_pylist()
        return {int(row["id"]): row for row in table}

    def _check(self, keys: tuple[Any, ...] | None, message: str) -> None:
        """Compare the store with what both clients wrote."""
        rows, foreign = self._rows(), {key: dict(row) for key, row in self.before.items()}
        for change in self.made:
            key = change.cells["id"]
            foreign[key] = foreign.get(key, {}) | change.cells
            if change.action == "delete":
                del foreign[key]
        assert rows.keys() == foreign.keys(), f"{self.where}rows are lost, or come back"
        theirs = {key for key, row in foreign.items() if row["embedding"] is not None}
        for key, row in foreign.items():
            for name, value in row.items():
                if name != "embedding" or key in theirs:
                    _check_cell(rows[key][name], value, f"{self.where}{name} of row {key} is lost")
        ours = {key for key, row in rows.items() if row["embedding"] is not None} - theirs
        sure = {key for key, row in rows.items() if row.get("sure") is not None}
        assert ours == sure, f"{self.where}vector or confidence is there without the other"
        if keys is not None:
            filled = {int(key) for key in keys} & rows.keys()
            assert filled == ours, f"{self.where}other rows are filled than were named"
        elif message and ours:
            # What cannot be taken back must at least be counted.
            assert f"Written: {len(ours)} " in message, f"{self.where}wrong message {message!r}"


def _check_cell(value: Any, expected: Any, message: str) -> None:
    if expected is None:
        assert value is None, message
    else:
        assert value is not None, message
        np.testing.assert_allclose(value, expected, rtol=1e-6, err_msg=message)


class _Observed(Store):
    """A store that says when it writes."""

    def __init__(self, check: _StoreCheck) -> None:
        self.check, self.store = check, check.store
        self.key = check.store.key

    @property
    def name(self) -> str:
        return self.store.name

    def errors(self) -> tuple[type[Exception], ...]:
        return self.store.errors()

    def read(self, columns: Columns) -> pa.Table:
        return self.store.read(columns)

    def write(self, cells: NewCells, columns: Columns) -> None:
        if self.check.call == 0:
            self.check._act()
        self.check.is_writing = True
        try:
            self.store.write(cells, columns)
        finally:
            self.check.is_writing = False
