"""Examples in docstrings and pages that need an extra: run with the tests that need extras."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent

# The example's file -> the library without which it is skipped.
NEEDED = {
    "docs/howto/databases.md": "duckdb",
    "docs/howto/gensim.md": "gensim",
    "docs/howto/spacy.md": "spacy",
    "docs/howto/torch.md": "torch",
    "src/vecfill/exchange/duckdb.py": "duckdb",
    "src/vecfill/exchange/gensim.py": "gensim",
    "src/vecfill/exchange/lancedb.py": "lancedb",
    "src/vecfill/exchange/qdrant.py": "qdrant_client",
    "src/vecfill/exchange/spacy.py": "spacy",
    "src/vecfill/exchange/torch.py": "torch",
    "src/vecfill/jobs/migrate_columns.py": "duckdb",
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark these examples `extra`; without the library they are skipped."""
    for item in items:
        if not isinstance(item, pytest.DoctestItem) or not item.path.is_relative_to(ROOT):
            continue
        library = NEEDED.get(item.path.relative_to(ROOT).as_posix())
        if library is not None:
            item.add_marker(pytest.mark.extra)
            if find_spec(library) is None:
                item.add_marker(pytest.mark.skip(reason=f"{library} is not installed"))
