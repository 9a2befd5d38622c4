"""Files <-> Embedding: a codec for each format, and the one atomic writer.

`codecs` lists the formats; `reading`, `scanning`, `writing`, `appending` and `verifying` ask them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vecfill.io.codecs import FORMAT_NAMES

if TYPE_CHECKING:
    from vecfill.io.appending import append_rows
    from vecfill.io.atomic import atomic_output
    from vecfill.io.reading import iter_words, read_embedding
    from vecfill.io.scanning import Scan
    from vecfill.io.verifying import Verification, verify
    from vecfill.io.writing import write_embedding

__all__ = [
    "FORMAT_NAMES",
    "Scan",
    "Verification",
    "append_rows",
    "atomic_output",
    "iter_words",
    "read_embedding",
    "verify",
    "write_embedding",
]

# Loaded when first asked for: the command line lists formats before it loads NumPy and Arrow.
_HOMES = {
    "Scan": "scanning",
    "Verification": "verifying",
    "append_rows": "appending",
    "atomic_output": "atomic",
    "iter_words": "reading",
    "read_embedding": "reading",
    "verify": "verifying",
    "write_embedding": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vecfill.io' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"vecfill.io.{_HOMES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
