"""Objects <-> JSON and named arrays, for the few classes that a caller allows.

Nothing is executed that is not in the caller's list of classes: a file can name a class, but not
bring one along. What does not fit is refused by place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from vecfill.errors import FormatError, InputError, VecfillError

_STORED = {"f8", "f4", "f2", "i8", "i4", "u1"}
"""Types that the file has; others are stored as whole numbers of the same size."""

_MOST_NESTED = 60


class Packer:
    """Takes objects apart; `arrays` has what is not JSON.

    Examples
    --------
    >>> packer = Packer({})
    >>> packer.pack({"x": (1, np.zeros(2))}, "row")
    {'#': 'dict', 'items': [['x', {'#': 'tuple', 'items': [1, {'#': 'array', 'name': 'row.x.1',
    'dtype': '<f8'}]}]]}
    >>> packer.arrays["row.x.1"]
    array([0., 0.])
    """

    def __init__(self, classes: Mapping[str, type]) -> None:
        self.classes = classes
        self.arrays: dict[str, np.ndarray] = {}
        self._packed: dict[int, tuple[np.ndarray, dict[str, Any]]] = {}

    def pack(self, value: Any, place: str) -> Any:
        """Return a value as JSON; `place` names the arrays in it."""
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, bool | int | str):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"#": "float", "is": str(value)}
        if isinstance(value, np.ndarray):
            return self._array(value, place)
        if issparse(value):
            parts = (value.data, value.indices, value.indptr)
            named = zip(("data", "indices", "indptr"), parts, strict=True)
            packed = {name: self.pack(item, f"{place}.{name}") for name, item in named}
            return {"#": "csr", "shape": list(value.shape), **packed}
        if isinstance(value, list | tuple):
            items = [self.pack(item, f"{place}.{n}") for n, item in enumerate(value)]
            return {"#": type(value).__name__, "items": items}
        if isinstance(value, Mapping):
            strange = [key for key in value if not isinstance(key, str)]
            if strange:
                raise InputError(f"{place} has the key {strange[0]!r}; only names can be saved.")
            items = [[key, self.pack(value[key], f"{place}.{key}")] for key in value]
            return {"#": "dict", "items": items}
        name = type(value).__name__
        if self.classes.get(name) is not type(value):
            raise InputError(
                f"{place} is an object of the class {name!r}, which no model file can hold, so "
                "the model could not be loaded again. Use the classes of vecfill, such as its "
                "predictors; or keep the vectors: save result.embedding."
            )
        return {"#": "object", "class": name, "fields": self._fields(value, place)}

    def _fields(self, value: Any, place: str) -> dict[str, Any]:
        return {
            item.name: self.pack(getattr(value, item.name), f"{place}.{item.name}")
            for item in fields(value)
            if item.init and not item.name.startswith("_")
        }

    def _array(self, value: np.ndarray, place: str) -> dict[str, Any]:
        # Two readers may hold one large model; kept beside its number, the array stays alive.
        if id(value) in self._packed:
            return self._packed[id(value)][1]
        original, kind = value, value.dtype.str
        if kind[1:] not in _STORED:
            if value.dtype.kind not in "biu":
                raise InputError(f"{place} is an array of {value.dtype}, which cannot be saved.")
            value = value.view({1: np.uint8, 4: np.int32, 8: np.int64}[value.dtype.itemsize])
        assert place not in self.arrays
        self.arrays[place] = value
        packed = {"#": "array", "name": place, "dtype": kind}
        self._packed[id(original)] = original, packed
        return packed


class Unpacker:
    """Puts objects together again; `array` gives an array by name.

    Examples
    --------
    >>> packed = {"#": "tuple", "items": [1, {"#": "array", "name": "x", "dtype": "<f8"}]}
    >>> Unpacker({}, {"x": np.zeros(2)}.__getitem__).unpack(packed)
    (1, array([0., 0.]))
    """

    def __init__(
        self,
        classes: Mapping[str, Callable[..., Any]],
        array: Callable[[str], np.ndarray],
        label: str = "it",
    ) -> None:
        self.classes = classes
        self.array = array
        self.label = label

    def unpack(self, packed: Any, place: str = "the model", depth: int = 0) -> Any:
        """Return the value, or refuse with the place at which something does not fit."""
        if depth > _MOST_NESTED:
            raise self._refused(place, "it is nested too deeply")
        if packed is None or isinstance(packed, bool | int | float | str):
            return packed
        try:
            return self._unpacked(packed, place, depth)
        except VecfillError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise self._refused(place, f"it is not what it should be ({error!r})") from error

    def _unpacked(self, packed: Any, place: str, depth: int) -> Any:
        kind = packed["#"]
        if kind == "float":
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[packed["is"]]
        if kind == "array":
            return self._array(packed, place)
        if kind in ("list", "tuple"):
            items = enumerate(packed["items"])
            unpacked = [self.unpack(item, f"{place}.{n}", depth + 1) for n, item in items]
            return unpacked if kind == "list" else tuple(unpacked)
        if kind == "dict":
            return {
                str(key): self.unpack(item, f"{place}.{key}", depth + 1)
                for key, item in packed["items"]
            }
        if kind == "csr":
            return self._sparse(packed, place, depth)
        if kind == "object" and packed["class"] in self.classes:
            values = {
                name: self.unpack(item, f"{place}.{name}", depth + 1)
                for name, item in packed["fields"].items()
            }
            return self.classes[packed["class"]](**values)
        raise self._refused(place, f"it is of a kind that is not known ({packed.get('class')!r})")

    def _array(self, packed: Any, place: str) -> np.ndarray:
        array, dtype = self.array(packed["name"]), np.dtype(str(packed["dtype"]))
        if array.dtype == dtype:
            return array
        if dtype.itemsize != array.dtype.itemsize or dtype.kind not in "biu":
            raise self._refused(place, f"its type is {array.dtype} and not {dtype}")
        return array.view(dtype)

    def _sparse(self, packed: Any, place: str, depth: int) -> csr_array:
        parts = [
            self.unpack(packed[name], f"{place}.{name}", depth + 1)
            for name in ("data", "indices", "indptr")
        ]
        n_rows, n_columns = (int(size) for size in packed["shape"])
        data, indices, indptr = parts
        is_good = (
            data.ndim == indices.ndim == indptr.ndim == 1
            and indptr.size == n_rows + 1
            and data.size == indices.size
            and data.dtype.kind == "f"
            and indices.dtype.kind == indptr.dtype.kind == "i"
            and indptr[0] == 0
            and indptr[-1] == indices.size
            and bool((np.diff(indptr) >= 0).all())
            and (not indices.size or (indices.min() >= 0 and indices.max() < n_columns))
        )
        if not is_good:
            raise self._refused(place, "its rows and columns do not fit together")
        return csr_array((data, indices, indptr), shape=(n_rows, n_columns))

    def _refused(self, place: str, why: str) -> FormatError:
        return FormatError(
            f"{self.label}, {place}: {why}. The file is damaged or was changed: save the model "
            "again."
        )
