"""What can go wrong, drawn as a tree.

::

    VecfillError
    ├── InputError        also a ValueError: what was passed in cannot be used
    │   ├── DtypeError    also a TypeError: values of a kind that cannot be numbers
    │   └── FormatError   a file is not what it claims to be, or is damaged
    ├── NoSignalError     the domain says nothing about the embedding
    └── MissingExtraError also an ImportError: an optional package is not installed

    ConvergenceWarning    also scikit-learn's: an iteration stopped before it was done
"""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning as _SklearnConvergenceWarning


class VecfillError(Exception):
    """Anything vecfill refuses to do; the message says what to do instead."""


class InputError(VecfillError, ValueError):
    """What was passed in cannot be used: a value, a shape, an option."""


class DtypeError(InputError, TypeError):
    """Values of a kind that cannot be turned into real numbers."""


class FormatError(InputError):
    """A file is not what it claims to be; the message names file, place and remedy."""


class NoSignalError(VecfillError):
    """The domain predicts hidden known rows no better than their mean does."""


class MissingExtraError(VecfillError, ImportError):
    """An optional package is missing; the message gives the line to type."""


class ConvergenceWarning(_SklearnConvergenceWarning):
    """An iteration reached its limit before its tolerance."""
