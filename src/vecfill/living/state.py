"""One state of a model at a time: who reads sees one, and a change puts another in its place.

A state never changes, so threads need no lock to read. Changes wait for each other.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from threading import Lock
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from vecfill.living.file import Kept, fitting_parts
from vecfill.model.sources import AnySpace

Arguments = ParamSpec("Arguments")
Value = TypeVar("Value")


@dataclass(frozen=True, eq=False)
class State:
    """A model at one moment; only what is derived from it is added later."""

    parts: Kept
    space: AnySpace
    about: dict[str, Any]
    path: str | os.PathLike[str] | None
    """The file that the model was loaded from."""
    derived: dict[str, Any] = field(default_factory=dict)


class Stateful(Protocol):
    """What has a state."""

    _state: State
    _changes: Lock

    def _now(self) -> Self:
        """Return the same with the state of now; changes of either do not show in the other."""
        ...


class derived(Generic[Value]):  # noqa: N801 - used like `cached_property`
    """A property that is computed once for each state of a model."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute = compute
        self.name = compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, model: None, owner: type) -> Self: ...
    @overload
    def __get__(self, model: Stateful, owner: type) -> Value: ...
    def __get__(self, model: Stateful | None, owner: type) -> Self | Value:
        if model is None:
            return self
        # Two threads may both compute a value: it is the same, and nobody has to wait.
        values = model._state.derived
        if self.name not in values:
            values[self.name] = self.compute(model)
        return values[self.name]


def fitting(
    method: Callable[Concatenate[Any, Arguments], Value],
) -> Callable[Concatenate[Any, Arguments], Value]:
    """Return a method that reads one state of the model, whatever other threads do meanwhile.

    It refuses the model's file if parts of it do not fit together.
    """

    @wraps(method)
    def guarded(self: Stateful, *args: Arguments.args, **options: Arguments.kwargs) -> Value:
        now = self._now()
        with fitting_parts(now._state.path):
            return method(now, *args, **options)

    return guarded


def changing(
    method: Callable[Concatenate[Any, Arguments], Value],
) -> Callable[Concatenate[Any, Arguments], Value]:
    """Return a method that changes the model: one at a time, and as a whole or not at all."""

    @wraps(method)
    def changed(self: Stateful, *args: Arguments.args, **options: Arguments.kwargs) -> Value:
        with self._changes:
            model = self._now()
            with fitting_parts(model._state.path):
                result = method(model, *args, **options)
            self._state = model._state
        return result

    return changed


def changing_if_kept(
    method: Callable[Concatenate[Any, Arguments], Value],
) -> Callable[Concatenate[Any, Arguments], Value]:
    """Return a method that changes the model with ``keep=True``, and only reads it otherwise."""
    reading, writing = fitting(method), changing(method)

    @wraps(method)
    def chosen(self: Stateful, *args: Arguments.args, **options: Arguments.kwargs) -> Value:
        return (writing if options.get("keep") else reading)(self, *args, **options)

    return chosen
