"""Qdrant: fill the vectors that points of a collection lack; payloads describe the points."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.errors import InputError
from vecfill.exchange.extras import library
from vecfill.exchange.stores import Columns, NewCells, Store, filling, refuse_changed

_KEY = "id"
_BATCH = 1000


@filling
@contextmanager
def fill_qdrant(client: Any, collection: str) -> Iterator[Store]:
    """Fill the vectors that points of a Qdrant collection lack.

    `vector` is the name of a vector of the collection. The payload describes the points, unless
    `ignore` names a field. Points that have the vector are not changed, so a second run finds
    nothing to do. Qdrant has no transactions: if writing fails, the new vectors are removed again.

    Parameters
    ----------
    client
        A `qdrant_client.QdrantClient`.
    collection
        Name of the collection.

    Examples
    --------
    >>> from qdrant_client import QdrantClient, models
    >>> client = QdrantClient(":memory:")
    >>> size = {"hue": models.VectorParams(size=1, distance=models.Distance.DOT)}
    >>> _ = client.create_collection("colours", vectors_config=size)
    >>> waves, hues = (680, 610, 580, 595), ({"hue": [1.0]}, {"hue": [2.0]}, {"hue": [3.0]}, {})
    >>> points = [models.PointStruct(id=i, payload={"wave": waves[i]}, vector=hues[i])
    ...           for i in range(4)]
    >>> _ = client.upsert("colours", points)
    >>> fill_qdrant(client, "colours", vector="hue", method="paper").keys
    (3,)
    """
    models = library("qdrant_client.models", extra="qdrant")
    if not hasattr(client, "update_vectors"):
        raise InputError(
            f"an object of type {type(client).__name__} is not a QdrantClient. Pass one."
        )
    yield _Qdrant(client, models, collection)


@dataclass(frozen=True)
class _Qdrant(Store):
    client: Any
    models: Any
    collection: str

    key = _KEY

    def read(self, columns: Columns) -> pa.Table:
        """Return all points; a field of the payload is a column."""
        vector = columns.vector
        names = self.client.get_collection(self.collection).config.params.vectors
        if not isinstance(names, dict) or vector not in names:
            have = f"the vectors {', '.join(map(repr, names))}" if isinstance(names, dict) else (
                "one vector without a name, which every point has"
            )  # fmt: skip
            raise InputError(
                f"{self.collection} has no vector {vector!r} that points may lack: it has "
                f"{have}. Name one of a collection with named vectors (vector=)."
            )
        points = list(self._points(vector))
        fields = dict.fromkeys(name for point in points for name in point.payload or {})
        taken = {_KEY, vector} & {*fields}
        if taken:
            raise InputError(
                f"the payload has a field {taken.pop()!r}, which is the name of the id or of the "
                "vector as well. Rename the field."
            )
        cells: dict[str, Any] = {_KEY: _ids([point.id for point in points])}
        cells |= {
            name: _payload([(point.payload or {}).get(name) for point in points], name)
            for name in fields
        }
        vectors = [(point.vector or {}).get(vector) for point in points]
        cells[vector] = pa.array(vectors, pa.list_(pa.float32()))
        return pa.table(cells)

    def _points(self, vector: str) -> Iterator[Any]:
        place = None
        while True:
            points, place = self.client.scroll(
                self.collection,
                limit=_BATCH,
                offset=place,
                with_payload=True,
                with_vectors=[vector],
            )
            yield from points
            if place is None:
                return

    def write(self, cells: NewCells, columns: Columns) -> None:
        """Write all vectors; what was written before an error is removed again."""
        vector, confidence = columns.vector, columns.confidence
        ids = [_id(key) for key in cells.keys.to_pylist()]
        now = self.client.retrieve(self.collection, ids, with_payload=False, with_vectors=[vector])
        lacking = [point for point in now if not (point.vector or {}).get(vector)]
        refuse_changed(len(lacking), len(ids), self.collection)
        try:
            self._update(ids, cells.vectors, vector)
            if confidence is not None and cells.confidence is not None:
                self._note(ids, cells.confidence, confidence)
        except BaseException:
            self.client.delete_vectors(self.collection, vectors=[vector], points=ids)
            if confidence is not None:
                self.client.delete_payload(self.collection, keys=[confidence], points=ids)
            raise

    def _update(self, ids: list[Any], vectors: np.ndarray, vector: str) -> None:
        for first in range(0, len(ids), _BATCH):
            part = zip(ids[first : first + _BATCH], vectors[first : first + _BATCH], strict=True)
            points = [
                self.models.PointVectors(id=key, vector={vector: row.tolist()}) for key, row in part
            ]
            self.client.update_vectors(self.collection, points=points)

    def _note(self, ids: list[Any], values: np.ndarray, field: str) -> None:
        for key, value in zip(ids, values.tolist(), strict=True):
            if value == value:  # noqa: PLR0124 - NaN: too few points are known to learn it
                payload = {field: value}
                self.client.set_payload(self.collection, payload=payload, points=[key])


def _ids(ids: list[Any]) -> pa.Array:
    """Return ids; as text if some are UUIDs, for a collection may have both kinds."""
    are_numbers = all(isinstance(key, int) for key in ids)
    return pa.array(ids, pa.uint64()) if are_numbers else pa.array([str(key) for key in ids])


def _id(key: int | str) -> int | str:
    return int(key) if isinstance(key, int) or key.isdecimal() else key


def _payload(values: list[Any], name: str) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        kinds = {type(value).__name__ for value in values if value is not None}
        if kinds <= {"int", "float"}:
            return pa.array(values, pa.float64())
        raise InputError(
            f"the payload field {name!r} mixes values of the types {', '.join(sorted(kinds))}. "
            "Leave it out of the payload, or give it one type."
        ) from None
