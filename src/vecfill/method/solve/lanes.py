"""Sixteen numbers that compiled code holds and computes with at once: a row of a block of columns.

A loop over the columns of a row becomes vector instructions only behind tests that no two arrays
overlap. For sixteen columns these tests cost more than the work, and sums go to memory and back for
each term. Here a row is one value, which stays in registers. Arrays have rows of `N_LANES` numbers
without gaps; see `padded`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, register_model

N_LANES = 16
"""A cache line per row in 32 bits."""


def operation(define: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operation of compiled code; it is called without the first argument of `define`."""
    return intrinsic(define)


def padded(columns: np.ndarray) -> np.ndarray:
    """Return columns as an array that lanes can be loaded from, zeros after the last column.

    Examples
    --------
    >>> padded(np.ones((2, 3))).shape
    (2, 16)
    """
    assert columns.shape[1] <= N_LANES
    wide = np.zeros((len(columns), N_LANES), columns.dtype)
    wide[:, : columns.shape[1]] = columns
    return wide


class _LanesType(types.Type):
    """What Numba takes the sixteen numbers for."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


def _vector(dtype: Any) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if dtype == types.float32 else ir.DoubleType(), N_LANES)


@register_model(_LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _vector(fe_type.dtype))


def _refuse_gaps(array: Any) -> None:
    if array.layout != "C" or array.ndim != 2:
        raise TypingError("lanes are loaded from arrays of two axes without gaps")


def _place(context: Any, builder: Any, kind: Any, array: Any, row: Any) -> Any:
    """Return the address of a row as that of one vector."""
    data = context.make_array(kind)(context, builder, array).data
    first = builder.mul(row, ir.Constant(row.type, N_LANES))
    return builder.bitcast(builder.gep(data, [first]), _vector(kind.dtype).as_pointer())


def _alignment(kind: Any) -> int:
    return kind.dtype.bitwidth // 8


@operation
def load(typing: Any, array: Any, row: Any) -> Any:  # noqa: ARG001
    """Return a row of an array."""
    _refuse_gaps(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        place = _place(context, builder, kind, *arguments)
        return builder.load(place, align=_alignment(kind))

    return _LanesType(array.dtype)(array, types.intp), generate


@operation
def store(typing: Any, array: Any, row: Any, lanes: Any) -> Any:  # noqa: ARG001
    """Write a row of an array, rounded to its precision."""
    _refuse_gaps(array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        place, values = _place(context, builder, kind, *arguments[:2]), arguments[2]
        if kind.dtype != signature.args[2].dtype:
            values = builder.fptrunc(values, _vector(kind.dtype))
        builder.store(values, place, align=_alignment(kind))
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), generate


@operation
def scaled(typing: Any, lanes: Any, factor: Any) -> Any:  # noqa: ARG001
    """Return all lanes times one factor."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0].dtype
        multiplier = context.cast(builder, arguments[1], signature.args[1], kind)
        nothing = ir.Constant(_vector(kind), ir.Undefined)
        first = builder.insert_element(nothing, multiplier, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), N_LANES), [0] * N_LANES)
        return builder.fmul(builder.shuffle_vector(first, nothing, zeros), arguments[0])

    return lanes(lanes, factor), generate


def _lane_by_lane(name: str, instruction: str) -> Any:
    """Return the operation of one instruction on two rows of lanes of the same type."""

    def define(typing: Any, lanes: Any, more_lanes: Any) -> Any:  # noqa: ARG001
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
            return getattr(builder, instruction)(*arguments)

        return lanes(lanes, more_lanes), generate

    define.__name__ = name
    return operation(define)


product = _lane_by_lane("product", "fmul")
"""Lane times lane."""

quotient = _lane_by_lane("quotient", "fdiv")
"""Lane over lane."""

plus = _lane_by_lane("plus", "fadd")
"""Lane plus lane."""


@operation
def widened(typing: Any, lanes: Any) -> Any:  # noqa: ARG001
    """Return the lanes in 64 bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        if signature.args[0].dtype == types.float64:
            return arguments[0]
        return builder.fpext(arguments[0], _vector(types.float64))

    return _LanesType(types.float64)(lanes), generate
