"""Files <-> Embedding: a codec for each format, and the one atomic writer.

`codecs` lists the formats; `reading`, `scanning`, `writing`, `appending`, `replacing` and
`verifying` ask them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vecfill.io.codecs import FORMAT_NAMES

if TYPE_CHECKING:
    from vecfill.io.appending import append_rows
    from vecfill.io.atomic import atomic_output
    from vecfill.io.patching import RowChange
    from vecfill.io.reading import iter_words, read_embedding
    from vecfill.io.replacing import replace_rows
    from vecfill.io.scanning import Scan
    from vecfill.io.verifying import Verification, verify
    from vecfill.io.writing import write_embedding

__all__ = [
    "FORMAT_NAMES",
    "RowChange",
    "Scan",
    "Verification",
    "append_rows",
    "atomic_output",
    "iter_words",
    "read_embedding",
    "replace_rows",
    "verify",
    "write_embedding",
]

# Loaded when first asked for: the command line lists formats before it loads NumPy and Arrow.
_HOMES = {
    "RowChange": "patching",
    "Scan": "scanning",
    "Verification": "verifying",
    "append_rows": "appending",
    "atomic_output": "atomic",
    "iter_words": "reading",
    "read_embedding": "reading",
    "replace_rows": "replacing",
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
