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
        lines = Path(path).read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeError) as error:
        raise InputError(f"{path}: cannot be read as UTF-8 text: {error}.") from error
    return [line.strip() for line in lines if line.strip()]
