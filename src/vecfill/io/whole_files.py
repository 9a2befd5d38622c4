"""All bytes of a table file, which is read into memory as a whole."""

from __future__ import annotations

from pathlib import Path

from vecfill.errors import FormatError
from vecfill.io.sources import refuse_address

_HEAD = 65_536
"""Bytes that are looked at before the rest is read into memory."""


def whole_file(path: Path) -> bytes:
    """Return all bytes of a table file; refuse what is no file, or empty, or empty space.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "t.csv"
    >>> path.write_bytes(b"name,x")
    6
    >>> whole_file(path)
    b'name,x'
    """
    try:
        # Asked before reading: a pipe or a device could be read without end.
        is_other = path.exists() and not path.is_file()
        is_directory = path.is_dir()
        data = b"" if is_other else _read_all(path)
    except FormatError:
        raise
    except FileNotFoundError:
        refuse_address(path)
        raise FormatError(f"{path} does not exist. Check the path.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FormatError(f"{path} cannot be read ({reason}). Check its permissions.") from error
    except MemoryError:
        raise FormatError(
            f"{path} has {path.stat().st_size} bytes, and there is not enough memory to read it as "
            "a table. Keep only the columns you need."
        ) from None
    if is_other:
        kind = "a directory" if is_directory else "not a regular file"
        raise FormatError(f"{path} is {kind}. Give the path of one table file.")
    if not data:
        raise FormatError(f"{path} is empty. A table needs a header and rows.")
    return data


def _read_all(path: Path) -> bytes:
    """Return all bytes of a file, unless it begins with empty space.

    A file that was preallocated and never written can have any size, and would be read into memory.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    if len(head) == _HEAD and not head.strip(b"\0"):
        raise FormatError(
            f"{path} begins with {_HEAD:,} NUL bytes, so it is empty space and no table. Fetch it "
            "again."
        )
    return path.read_bytes()
