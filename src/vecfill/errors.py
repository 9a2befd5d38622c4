"""What can go wrong, drawn as a tree.

::

    VecfillError
    ├── InputError        also a ValueError: what was passed in cannot be used
    │   ├── DtypeError    also a TypeError: values of a kind that cannot be numbers
    │   ├── OptionError   also a TypeError: an option that does not exist or cannot apply
    │   └── FormatError   a file is not what it claims to be, or is damaged
    ├── NoSignalError     the domain says nothing about the embedding
    ├── HarmError         new tokens would make a language model worse
    └── MissingExtraError also an ImportError: an optional package is not installed

    ConvergenceWarning    also scikit-learn's: an iteration stopped before it was done
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning

    class ConvergenceWarning(_SklearnConvergenceWarning):
        """An iteration reached its limit before its tolerance."""


class VecfillError(Exception):
    """Anything vecfill refuses to do; the message says what to do instead."""


class InputError(VecfillError, ValueError):
    """What was passed in cannot be used: a value, a shape, an option."""


class DtypeError(InputError, TypeError):
    """Values of a kind that cannot be turned into real numbers."""


class OptionError(InputError, TypeError):
    """An option that does not exist, or that cannot be used with the others."""


class FormatError(InputError):
    """A file is not what it claims to be; the message names file, place and remedy."""


class NoSignalError(VecfillError):
    """The domain predicts hidden known rows no better than their mean does."""


class CollapseError(NoSignalError):
    """The imputed vectors are nearly one vector, whatever their scores; `force=True` gives them."""


class HarmError(VecfillError):
    """New tokens would make a language model worse; `force=True` writes them all the same."""


class MissingExtraError(VecfillError, ImportError):
    """An optional package is missing; the message gives the line to type."""


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


def __getattr__(name: str) -> Any:
    # Made when first asked for: scikit-learn takes a second to load, and `vecfill --help` needs
    # none of it.
    if name != "ConvergenceWarning":
        raise AttributeError(f"module 'vecfill.errors' has no attribute {name!r}")
    from sklearn import exceptions  # noqa: PLC0415

    text = "An iteration reached its limit before its tolerance."
    warning = type(
        name, (exceptions.ConvergenceWarning,), {"__doc__": text, "__module__": __name__}
    )
    return globals().setdefault(name, warning)
