"""Libraries that need not be installed, imported when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from vecfill.errors import MissingExtraError


def library(module: str, *, extra: str) -> Any:
    """Import a module of an optional library, or say what to type to have it.

    Examples
    --------
    >>> library("json", extra="none").dumps([1])
    '[1]'
    >>> library("no_such_library", extra="gensim")
    Traceback (most recent call last):
    vecfill.errors.MissingExtraError: no_such_library is not installed. Type: pip install ...
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        # A library that is there and lacks something itself must say what it lacks.
        is_absent = getattr(error, "name", None) in (name, module)
        why = "is not installed" if is_absent else f"cannot be imported: {error}"
        raise MissingExtraError(f"{name} {why}. Type: pip install 'vecfill[{extra}]'") from error
