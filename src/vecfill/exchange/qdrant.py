"""Qdrant: fill the vectors that points of a collection lack; payloads describe the points."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.errors import InputError, library
from vecfill.exchange import stores

_KEY = "id"
_BATCH = 1000
_ROUNDING = 2e-3
"""How far float16, the coarsest type of a collection that we fill, moves a number up to 1."""


def fill_qdrant(client: Any, collection: str, **options: Any) -> stores.Filled:
    """Fill the vectors that points of a Qdrant collection lack: `fill` of a `QdrantCollection`.

    Parameters
    ----------
    client, collection
        As in `QdrantCollection`.
    options
        As in `vecfill.fill`; `vector` is the name of a vector of the collection.

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
    return stores.fill(QdrantCollection(client, collection), **options)


@dataclass(frozen=True)
class QdrantCollection(stores.Store):
    """A collection with named vectors; the payload describes the points, and ids are the keys."""

    client: Any
    """A `qdrant_client.QdrantClient`."""
    collection: str
    """The name of the collection."""

    key = _KEY

    def __post_init__(self) -> None:
        library("qdrant_client.models", extra="qdrant")
        stores.refuse_object(self.client, ["update_vectors"], "a QdrantClient. Pass one")

    @property
    def name(self) -> str:
        """The name of the collection."""
        return f"collection {self.collection!r}"

    def errors(self) -> tuple[type[Exception], ...]:
        """Return what the client raises; one without a server raises plain errors and SQLite's."""
        exceptions = library("qdrant_client.http.exceptions", extra="qdrant")
        remote = library("grpc", extra="qdrant").RpcError
        plain = (ValueError, RuntimeError, KeyError, OSError, sqlite3.Error)
        return (exceptions.ApiException, remote, *plain)

    def read(self, columns: stores.Columns) -> pa.Table:
        """Return all points; a field of the payload is a column."""
        vector = columns.vector
        names = self.client.get_collection(self.collection).config.params.vectors
        if not isinstance(names, dict) or vector not in names:
            have = f"the vectors {', '.join(map(repr, names))}" if isinstance(names, dict) else (
                "one vector without a name, which every point has"
            )  # fmt: skip
            raise InputError(
                f"{self.name} has no vector {vector!r} that points may lack: it has "
                f"{have}. Name one of a collection with named vectors (vector=)."
            )
        if str(getattr(names[vector], "datatype", None)).lower().endswith("uint8"):
            raise InputError(
                f"{self.name}: the vector {vector!r} holds whole numbers up to 255, to which "
                "imputed ones would be rounded. Name a vector of another datatype (vector=)."
            )
        points = list(self._points(vector))
        fields = dict.fromkeys(name for point in points for name in point.payload or {})
        clashing = {_KEY, vector} & {*fields}
        if clashing:
            raise InputError(
                f"the payload has a field {clashing.pop()!r}, which is the name of the id or of "
                "the vector as well. Rename the field."
            )
        vectors = [(point.vector or {}).get(vector) for point in points]
        if columns.confidence in fields:
            _forget_unfinished(points, vectors, str(columns.confidence))
        cells: dict[str, Any] = {_KEY: _ids([point.id for point in points])}
        cells |= {
            name: _payload([(point.payload or {}).get(name) for point in points], name)
            for name in fields
        }
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

    def write(self, cells: stores.NewCells, columns: stores.Columns) -> None:
        """Write all vectors; without transactions, an error removes those that are still ours."""
        ids = [_id(key) for key in cells.keys.to_pylist()]
        confidences = {}
        if columns.confidence is not None:
            confidences = dict(zip(ids, cells.confidence_cells().to_pylist(), strict=True))
        new = _NewPoints(dict(zip(ids, cells.vectors, strict=True)), confidences, columns)
        missing = new.without_vector(self._retrieved(new))
        stores.refuse_changed(len(missing), len(ids), self.name)
        try:
            # Confidences first: a vector without one, after a kill, would be taken for a true one.
            self._note(new)
            self._update(new)
            ours = new.with_our_vector(self._retrieved(new))
            stores.refuse_changed(len(ours), len(ids), self.name)
        except BaseException:
            try:
                self._remove(new)
            except self.errors() as error:
                raise InputError(
                    f"{self.name} failed while vectors were written and while they were removed "
                    f"again: {stores.first_line(error)} Some of {len(ids):,} may be there; run "
                    "again for the others."
                ) from error
            raise

    def _retrieved(self, new: _NewPoints) -> list[Any]:
        """Return the points to be written as they are now, without those that are gone."""
        ids, confidence = [*new.vectors], new.columns.confidence
        options: dict[str, Any] = {"with_vectors": [new.columns.vector]}
        options["with_payload"] = False if confidence is None else [confidence]
        return [
            point
            for first in range(0, len(ids), _BATCH)
            for point in self.client.retrieve(
                self.collection, ids[first : first + _BATCH], **options
            )
        ]

    def _update(self, new: _NewPoints) -> None:
        models = library("qdrant_client.models", extra="qdrant")
        name = new.columns.vector
        points = [
            models.PointVectors(id=key, vector={name: vector.tolist()})
            for key, vector in new.vectors.items()
        ]
        has_vector = models.HasVectorCondition(has_vector=name)
        # A server that knows this condition checks it in the step that writes.
        lacks_vector = {"update_filter": models.Filter(must_not=[has_vector])}
        options = lacks_vector if "update_filter" in models.UpdateVectors.model_fields else {}
        for first in range(0, len(points), _BATCH):
            batch = points[first : first + _BATCH]
            self.client.update_vectors(self.collection, points=batch, **options)

    def _note(self, new: _NewPoints) -> None:
        models, name = library("qdrant_client.models", extra="qdrant"), new.columns.confidence
        changes = [
            models.SetPayloadOperation(
                set_payload=models.SetPayload(payload={name: confidence}, points=[key])
            )
            for key, confidence in new.confidences.items()
            if confidence is not None
        ]
        for first in range(0, len(changes), _BATCH):
            self.client.batch_update_points(self.collection, changes[first : first + _BATCH])

    def _remove(self, new: _NewPoints) -> None:
        """Remove what was written before an error, and nothing of another client."""
        points = self._retrieved(new)
        ours = new.with_our_vector(points)
        if ours:
            self.client.delete_vectors(self.collection, vectors=[new.columns.vector], points=ours)
        noted = new.with_our_confidence(points)
        if noted:
            names = [new.columns.confidence]
            self.client.delete_payload(self.collection, keys=names, points=noted)


@dataclass(frozen=True, eq=False)
class _NewPoints:
    """What is written to points, by id."""

    vectors: dict[Any, np.ndarray]
    confidences: dict[Any, float | None]
    columns: stores.Columns

    def without_vector(self, points: list[Any]) -> list[Any]:
        """Return the ids of points that lack the vector."""
        return [point.id for point in points if self._vector(point) is None]

    def with_our_vector(self, points: list[Any]) -> list[Any]:
        """Return the ids of points with our vector, which Qdrant may have scaled and rounded."""
        return [point.id for point in points if self._has_ours(point)]

    def with_our_confidence(self, points: list[Any]) -> list[Any]:
        """Return the ids of points with our confidence."""
        name = self.columns.confidence
        return [
            point.id
            for point in points
            if name in (point.payload or {})
            and point.payload[name] == self.confidences.get(point.id)
        ]

    def _vector(self, point: Any) -> list[float] | None:
        return (point.vector or {}).get(self.columns.vector)

    def _has_ours(self, point: Any) -> bool:
        vector = self._vector(point)
        return vector is not None and bool(
            np.allclose(_unit(vector), _unit(self.vectors[point.id]), atol=_ROUNDING)
        )


def _unit(vector: Any) -> np.ndarray:
    row = np.asarray(vector, np.float64)
    return row / max(float(np.linalg.norm(row)), np.finfo(np.float64).tiny)


def _forget_unfinished(points: list[Any], vectors: list[Any], confidence: str) -> None:
    """Drop confidences that a run noted and was killed before it wrote the vectors."""
    for point, vector in zip(points, vectors, strict=True):
        value = (point.payload or {}).get(confidence)
        if vector is None and isinstance(value, float) and 0.0 <= value <= 1.0:
            point.payload[confidence] = None


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
