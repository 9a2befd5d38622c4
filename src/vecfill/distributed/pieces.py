"""Pieces: the files that tasks leave for each other, each with its hash beside it.

A piece takes its name in one step when it is whole, and then its hash does: a piece without a hash
was never finished. Whoever reads a piece checks its hash first, once for each process, so damage is
found before it spreads; the driver then has the piece made again. Pieces hold numbers (``.npy``),
names (``.parquet``) or plain values (``.json``). Nothing is ever unpickled.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vecfill.errors import FormatError
from vecfill.io.atomic import atomic_output
from vecfill.io.streams import sha256_of

_checked: dict[str, tuple[int, int]] = {}
"""Pieces that this process has found whole: their time and size."""


class DamagedPieceError(FormatError):
    """A piece is not what was written: it must be made again."""

    def __init__(self, path: str, damage: str) -> None:
        super().__init__(f"{path} is damaged: {damage}. Run the job again: the piece is made anew.")
        self.path = path
        self.damage = damage

    def __reduce__(self) -> tuple[type[DamagedPieceError], tuple[str, str]]:
        return DamagedPieceError, (self.path, self.damage)


class _Hashed(io.RawIOBase):
    """A file that is being written, and the hash of what went into it."""

    def __init__(self, file: Any) -> None:
        super().__init__()
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def writable(self) -> bool:
        """Say yes."""
        return True

    def write(self, data: Any, /) -> int:
        """Write all of `data`."""
        data = memoryview(data).cast("B")
        self._file.write(data)
        self.digest.update(data)
        self.size += len(data)
        return len(data)

    def tell(self) -> int:
        """Return where the next byte goes."""
        return self.size


def hash_path(path: Path) -> Path:
    """Return where the hash of a piece stands."""
    return path.with_name(f"{path.name}.sha256")


@contextmanager
def new_piece(path: Path) -> Iterator[_Hashed]:
    """Give a file to write; it becomes the piece `path` when the block ends well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hash_path(path).unlink(missing_ok=True)
    _checked.pop(str(path), None)
    with atomic_output(path, overwrite=True) as file:
        hashed = _Hashed(file)
        yield hashed
    about = {"sha256": hashed.digest.hexdigest(), "bytes": hashed.size}
    with atomic_output(hash_path(path), overwrite=True) as file:
        file.write(json.dumps(about).encode("ascii"))


def write_array(path: Path, array: np.ndarray) -> None:
    """Write an array as a piece.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "numbers.npy"
    >>> write_array(path, np.arange(3))
    >>> read_array(path)
    array([0, 1, 2])
    """
    with new_piece(path) as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


@contextmanager
def new_array(path: Path, shape: tuple[int, ...], dtype: Any) -> Iterator[_Hashed]:
    """Give a file to write an array to, some rows after others, in order.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "numbers.npy"
    >>> with new_array(path, (3,), np.int32) as file:
    ...     for number in range(3):
    ...         _ = file.write(np.array([number], np.int32))
    >>> read_array(path)
    array([0, 1, 2], dtype=int32)
    """
    with new_piece(path) as file:
        about = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, {**about, "shape": shape})
        yield file


def write_values(path: Path, values: Any) -> None:
    """Write plain values as a piece."""
    with new_piece(path) as file:
        file.write(json.dumps(values, allow_nan=False).encode("ascii"))


def write(path: Path, value: Any) -> None:
    """Write an array, a table or plain values, as the name of the piece says."""
    writers = {".npy": write_array, ".parquet": write_table, ".json": write_values}
    writers[path.suffix](path, value)


def write_table(path: Path, table: pa.Table) -> None:
    """Write an Arrow table as a piece."""
    with new_piece(path) as file:
        # Names and numbers hardly repeat, so looking for repeats would only cost time.
        pq.write_table(table, file, use_dictionary=False)


def is_whole(path: Path) -> bool:
    """Tell whether a piece was finished; its size must be right, its hash is checked on reading."""
    about = piece_about(path)
    try:
        return about is not None and path.stat().st_size == about["bytes"]
    except OSError:
        return False


def piece_about(path: Path) -> dict[str, Any] | None:
    """Return the hash and size that a piece must have; ``None`` if it was not finished."""
    try:
        about = json.loads(hash_path(path).read_bytes())
        return {"sha256": str(about["sha256"]), "bytes": int(about["bytes"])}
    except (OSError, ValueError, KeyError, TypeError):
        return None


def discard(path: Path) -> None:
    """Forget a piece, so that it is made again."""
    hash_path(path).unlink(missing_ok=True)
    path.unlink(missing_ok=True)
    _checked.pop(str(path), None)


def check(path: Path) -> None:
    """Refuse a piece that is not what was written; a second look at the same file is free."""
    about = piece_about(path)
    if about is None:
        raise DamagedPieceError(str(path), "it or its hash is missing")
    try:
        status = path.stat()
        version = (status.st_mtime_ns, status.st_size)
        if _checked.get(str(path)) == version:
            return
        digest = sha256_of(path)
    except OSError as error:
        raise DamagedPieceError(str(path), f"it cannot be read ({error})") from error
    if digest != about["sha256"]:
        raise DamagedPieceError(str(path), "its hash is not the one that was recorded")
    _checked[str(path)] = version


def _reading(path: Path, read: Callable[[], Any]) -> Any:
    check(path)
    try:
        return read()
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DamagedPieceError(str(path), f"it cannot be read ({error})") from error


def read_array(path: Path) -> Any:
    """Return the array of a piece, mapped from disk."""
    # A plain view of the map: compiled code and checks know arrays, not maps.
    return _reading(path, lambda: _mapped(path)).view(np.ndarray)


def _mapped(path: Path) -> Any:
    # A map whose changes would stay in this process counts as writable, so it needs no second
    # compilation of what the path in memory has compiled. Systems refuse one larger than memory.
    try:
        return np.load(path, mmap_mode="c", allow_pickle=False)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        return np.load(path, mmap_mode="r", allow_pickle=False)


def read_values(path: Path) -> Any:
    """Return the plain values of a piece."""
    return _reading(path, lambda: json.loads(path.read_bytes()))


def read_n_rows(path: Path) -> int:
    """Return how many rows the Arrow table of a piece has."""
    return _reading(path, lambda: pq.read_metadata(path).num_rows)


def read_table(path: Path) -> pa.Table:
    """Return the Arrow table of a piece."""
    return _reading(path, lambda: pq.read_table(path))
