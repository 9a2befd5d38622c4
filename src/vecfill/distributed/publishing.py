"""The last step: parts go to the output folder, each checked, and the manifest comes last.

The folder is local, or anything that `fsspec` opens. A folder that has a manifest is complete.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vecfill.distributed import pieces, plan
from vecfill.distributed.dataset import filesystem
from vecfill.errors import InputError
from vecfill.io.atomic import atomic_output
from vecfill.io.provenance import as_json

MANIFEST = "_manifest.json"
"""Readers of Parquet folders pass over names with an underscore."""


def refuse_output(out: str, *, overwrite: bool) -> None:
    """Refuse an output that is a file, or that holds something and may not be replaced."""
    if "://" in out:
        files, inner = filesystem(out)
        is_file, is_filled = files.isfile(inner), files.isdir(inner) and bool(files.ls(inner))
    else:
        is_file = Path(out).is_file()
        is_filled = Path(out).is_dir() and any(Path(out).iterdir())
    if is_file:
        raise InputError(f"{out} is a file. Name a folder to write parts to.")
    if is_filled and not overwrite:
        raise InputError(
            f"{out} exists already and is not empty. Allow overwriting it (overwrite=True), or "
            "choose another name."
        )


def publish(out: str, parts: list[Path], manifest: Mapping[str, Any]) -> None:
    """Copy the parts to the output, and write the manifest with their names and hashes."""
    about = []
    for part in parts:
        pieces.check(part)
        about.append({"name": part.name, **(pieces.piece_about(part) or {})})
    manifest = {**manifest, "parts": about}
    if "://" in out:
        _publish_elsewhere(out, parts, manifest)
    else:
        _publish_here(Path(out), parts, manifest)


def _is_stale(name: str, parts: list[Path]) -> bool:
    is_part = name.startswith("part-") and name.endswith(".parquet")
    return is_part and name not in {part.name for part in parts}


def _publish_here(out: Path, parts: list[Path], manifest: Mapping[str, Any]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / MANIFEST).unlink(missing_ok=True)
    for part in parts:
        with atomic_output(out / part.name, overwrite=True) as file, part.open("rb") as source:
            shutil.copyfileobj(source, file, 1 << 22)
    for each in out.iterdir():
        if _is_stale(each.name, parts):
            each.unlink()
    plan.write_json(out / MANIFEST, manifest)


def _publish_elsewhere(out: str, parts: list[Path], manifest: Mapping[str, Any]) -> None:
    files, inner = filesystem(out)
    inner = inner.rstrip("/")
    try:
        files.makedirs(inner, exist_ok=True)
        if files.exists(f"{inner}/{MANIFEST}"):
            files.rm_file(f"{inner}/{MANIFEST}")
        for part in parts:
            files.put_file(str(part), f"{inner}/{part.name}")
        for each in files.ls(inner, detail=False):
            if _is_stale(Path(each).name, parts):
                files.rm_file(each)
        files.pipe_file(f"{inner}/{MANIFEST}", as_json(manifest).encode("ascii") + b"\n")
    except OSError as error:
        raise InputError(
            f"{out} cannot be written: {error}. Run the same call again when it can: only this "
            "step is left."
        ) from error
