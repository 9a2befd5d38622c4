"""Proof that a model folder with new tokens is the original in everything else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.exchange.huggingface.folder import TOKENIZER, ModelFolder
from vecfill.exchange.huggingface.tensors import StoredTensor, read_json
from vecfill.exchange.huggingface.writing import SETTINGS, files_of, is_stale, new_settings
from vecfill.wording import count

_BLOCK = 1 << 22
"""Bytes of two files that are compared at once."""


@dataclass(frozen=True)
class ModelVerification:
    """Whether a folder differs from the original by added tokens only, and what was added."""

    ok: bool
    n_identical: int
    """Tensors with the same bytes."""
    n_grown: int
    """Tensors with the same bytes in every known row, and more rows."""
    added: dict[str, int]
    """New tokens and their ids."""
    n_files: int
    """Other files with the same bytes."""
    not_copied: tuple[str, ...]
    """Copies of the weights in other formats, which the new folder lacks."""
    difference: str | None = None
    """Where the folders first differ in anything else."""

    def __str__(self) -> str:
        files = count(self.n_files, "other file")
        lines = [
            f"{count(self.n_identical, 'tensor')} unchanged, {self.n_grown:,} with rows added",
            f"{files} unchanged, {count(len(self.added), 'token')} added",
        ]
        lines += [f"+ {token} ({row})" for token, row in self.added.items()]
        lines += [f"not copied: {name}" for name in self.not_copied]
        return "\n".join(lines)


class _DifferenceError(Exception):
    """The folders differ in something that adding tokens does not change."""


def verify_model(
    original: str | os.PathLike[str],
    enriched: str | os.PathLike[str],
    *,
    tensor: str | None = None,
) -> ModelVerification:
    """Compare a model folder with the one that `add_tokens` made of it.

    Every tensor must have the same bytes, but for rows of new tokens, which must be finite. The
    tokenizer must differ by added tokens with the next free ids, the configuration by its number
    of rows, and every other file not at all. Claims of the new folder are never trusted.

    Parameters
    ----------
    original, enriched
        The folder before tokens were added, and the new one.
    tensor
        Name of the input table, if it is not a usual one.

    Examples
    --------
    >>> from vecfill.exchange.huggingface.adding import add_tokens
    >>> from vecfill.exchange.huggingface.example import write_small_model
    >>> folder = write_small_model()
    >>> new = folder.parent / "new"
    >>> _ = add_tokens(folder, {"radon": [0.1, 0.2, 0.3, 0.4]}, new)
    >>> print(verify_model(folder, new))
    1 tensor unchanged, 1 with rows added
    0 other files unchanged, 1 token added
    + radon (12)
    """
    old = ModelFolder(original, tensor=tensor)
    new = ModelFolder(enriched, tensor=tensor)
    added: dict[str, int] = {}
    n_grown = n_files = 0
    stale = tuple(
        path.relative_to(old.path).as_posix() for path in files_of(old.path) if is_stale(path, old)
    )
    difference = None
    try:
        entries = _new_entries(old, new)
        added = {entry["content"]: entry["id"] for entry in entries}
        n_grown = _compare_tensors(old, new, len(added))
        n_files = _compare_files(old, new, entries)
    except _DifferenceError as found:
        difference = str(found)
    n_identical = len(old.weights.tensors) - n_grown if difference is None else 0
    is_same = difference is None
    return ModelVerification(is_same, n_identical, n_grown, added, n_files, stale, difference)


def _new_entries(old: ModelFolder, new: ModelFolder) -> list[dict[str, Any]]:
    """Return the added tokens that the original lacks."""
    before, after = old.tokenizer, new.tokenizer
    n_old = len(before.added)
    entries = after.added[n_old:]
    if before.extended(entries) != after.spec:
        raise _DifferenceError(f"{new.home / TOKENIZER} differs by more than added tokens.")
    expected = list(range(before.next_id, before.next_id + len(entries)))
    if [entry["id"] for entry in entries] != expected:
        raise _DifferenceError(f"{new.home / TOKENIZER}: new tokens do not have the next free ids.")
    for entry in entries:
        if not entry.get("single_word") or entry.get("special"):
            raise _DifferenceError(
                f"{new.home / TOKENIZER}: the new token {entry['content']!r} is not limited to "
                "whole words, so other texts may change."
            )
    return entries


def _compare_tensors(old: ModelFolder, new: ModelFolder, n_added: int) -> int:
    """Compare all tensors; return how many have more rows or other rows past the vocabulary."""
    if old.weights.tensors.keys() != new.weights.tensors.keys():
        names = old.weights.tensors.keys() ^ new.weights.tensors.keys()
        raise _DifferenceError(f"the tensor {min(names)!r} is in one of the folders only.")
    if old.weights.metadata != new.weights.metadata:
        raise _DifferenceError("files of weights have other names or other metadata.")
    tables = {table.name for table in old.tables.all} if n_added else set()
    for name, before in old.weights.tensors.items():
        after = new.weights.tensors[name]
        if (before.dtype, before.file.name) != (after.dtype, after.file.name):
            raise _DifferenceError(f"the tensor {name!r} has another type or is in another file.")
        if name in tables:
            _compare_rows(before, after, old.tokenizer.next_id, n_added)
        elif not before.equals(after):
            raise _DifferenceError(f"the tensor {name!r} is not the same.")
    return len(tables)


def _compare_rows(before: StoredTensor, after: StoredTensor, first: int, n_added: int) -> None:
    n_rows = max(before.n_rows, first + n_added)
    old = before.shape
    shape = (*old[:-1], n_rows) if before.is_bias else (n_rows, *old[1:])
    if after.shape != shape:
        raise _DifferenceError(
            f"the tensor {before.name!r} has shape {after.shape}; {shape} is expected."
        )
    start, end = first * before.row_bytes, (first + n_added) * before.row_bytes
    known = [(before.blocks(0, start), after.blocks(0, start))]
    if end < before.n_bytes:
        known.append((before.blocks(end), after.blocks(end)))
    if not all(_are_same(*pair) for pair in known):
        raise _DifferenceError(f"rows of known tokens in {before.name!r} are not the same.")
    if not np.isfinite(after.rows(np.arange(first, first + n_added))).all():
        raise _DifferenceError(f"rows of new tokens in {before.name!r} are not finite.")


def _are_same(blocks: Iterator[bytes], other_blocks: Iterator[bytes]) -> bool:
    return all(a == b for a, b in zip_longest(blocks, other_blocks))


def _compare_files(old: ModelFolder, new: ModelFolder, entries: list[dict[str, Any]]) -> int:
    """Compare all other files; return how many have the same bytes."""
    settings = new_settings(old, entries) if entries else {}
    files = {file.relative_to(old.path): file for file in files_of(old.path)}
    files = {name: file for name, file in files.items() if not is_stale(file, old)}
    present = {file.relative_to(new.path) for file in files_of(new.path)}
    if files.keys() != present:
        name = min(files.keys() ^ present, key=str)
        raise _DifferenceError(f"the file {name} is in one of the folders only.")
    n_same = 0
    for name, file in files.items():
        if file in settings:
            if read_json(new.path / name, dict) != settings[file]:
                raise _DifferenceError(f"{new.path / name} differs by more than added tokens.")
        elif file not in old.weights.files:
            if not _same_bytes(file, new.path / name):
                raise _DifferenceError(f"the file {name} is not the same.")
            n_same += file.name not in SETTINGS
    return n_same


def _same_bytes(path: Path, other_path: Path) -> bool:
    with path.open("rb") as first, other_path.open("rb") as second:
        while True:
            block = first.read(_BLOCK)
            if block != second.read(_BLOCK):
                return False
            if not block:
                return True
