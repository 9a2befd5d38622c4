"""How a result was made, as a small JSON file beside it: versions, options, hashes, counts."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.errors import InputError
from vecfill.io.sources import file_name

_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "pyarrow", "narwhals")
_BLOCK = 1 << 22


def manifest_path(output: str | os.PathLike[str]) -> Path:
    """Return where the manifest of `output` stands.

    Examples
    --------
    >>> manifest_path("enriched.vec").name
    'enriched.vec.manifest.json'
    """
    return Path(f"{os.fspath(file_name(output))}.manifest.json")


def provenance(version: str) -> dict[str, Any]:
    """Return what a result was made with, and when: versions, platform, time."""
    return {
        "vecfill": version,
        "made_at": utc_time(time.time()),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
    }


def utc_time(seconds: float) -> str:
    """Return a time as text; a clock beyond all calendars gives its seconds instead.

    Examples
    --------
    >>> utc_time(0.0), utc_time(-86400.0), utc_time(1e18)
    ('1970-01-01T00:00:00Z', '1969-12-31T00:00:00Z', '1000000000000000000 s after 1970')
    """
    try:
        moment = datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.0f} s after 1970"
    return moment.isoformat().replace("+00:00", "Z")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


class Fingerprint:
    """Size and SHA-256 of a file, computed on the side while other work goes on, if not known."""

    def __init__(self, path: str | os.PathLike[str], sha256: str | None = None) -> None:
        self.path = Path(path)
        self._stop = threading.Event()
        self._status = self.path.stat()
        self._sha256 = sha256 or ""
        self._error: OSError | None = None
        self._thread: threading.Thread | None = None
        if sha256 is not None:  # known already, from the pass that read the file
            return
        # A daemon, so that an interrupted run need not wait for the rest of a large file.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        digest = hashlib.sha256()
        try:
            with self.path.open("rb") as file:
                while not self._stop.is_set() and (block := file.read(_BLOCK)):
                    digest.update(block)
        except OSError as error:
            self._error = error
        self._sha256 = digest.hexdigest()

    def __enter__(self) -> Fingerprint:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def result(self) -> dict[str, Any]:
        """Wait for the hash; refuse if the file changed since we began."""
        if self._thread is not None:
            self._thread.join()
        now = self.path.stat()
        is_same = (now.st_size, now.st_mtime_ns) == (self._status.st_size, self._status.st_mtime_ns)
        if self._error is not None or not is_same:
            raise InputError(
                f"{self.path} changed while it was being used. Wait until nobody writes to it, "
                "then run again."
            )
        return {"path": str(self.path), "bytes": now.st_size, "sha256": self._sha256}


_LONG = 1000
"""Items from which on a list or a mapping has one line for each."""


def as_json(value: Any) -> str:
    r"""Return any of our results as JSON text: ASCII, and never NaN.

    Examples
    --------
    >>> print(as_json({"score": np.float32(0.5), "none": float("nan"), "names": ("caf\udce9",)}))
    {
      "score": 0.5,
      "none": null,
      "names": [
        "caf\udce9"
      ]
    }
    """
    return _indented(_plain(value), "")


def _indented(value: Any, margin: str) -> str:
    """Return JSON with an indent of two; each item of what is long stands on one line.

    Python's own encoder is many times slower with an indent than without one.
    """
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, allow_nan=False)
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    inner, lines = margin + "  ", []
    for name, item in pairs:
        is_short = len(value) <= _LONG
        text = _indented(item, inner) if is_short else json.dumps(item, allow_nan=False)
        lines.append(
            f"{inner}{json.dumps(name)}: {text}" if isinstance(value, dict) else inner + text
        )
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n" + ",\n".join(lines) + f"\n{margin}{closing}"


def _plain(value: Any) -> Any:
    # A result has millions of these, so they come before all that may be asked of a value.
    if type(value) in (str, int, bool):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    elif isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if hasattr(value, "to_dict"):
        return _plain(value.to_dict())
    return str(value)
