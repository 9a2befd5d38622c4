"""Files of names, one per line."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from vecfill.errors import InputError


def read_names(path: str | PathLike[str]) -> list[str]:
    r"""Read a file of names, one per line; blank lines are skipped.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "names.txt"
    >>> _ = path.write_text("Oslo\n\nBern\n")
    >>> read_names(path)
    ['Oslo', 'Bern']
    """
    try:
        # Not `splitlines`, which also splits at characters that a name may hold.
        lines = Path(path).read_text("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeError as error:
        raise InputError(
            f"{path}: cannot be read as UTF-8 text: {error}. Save it as UTF-8."
        ) from error
    return [line.strip() for line in lines if line.strip()]
