"""Trainings in parallel, each kept when it is done, so that an interrupted run goes on."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lstm import Task, train

_MATTERS = (
    "seed", "split_seed", "train_share", "valid_share", "max_train_lines", "max_valid_lines",
    "max_test_lines", "min_count", "claims", "count_bins", "recipe", "word2vec", "setting",
)  # fmt: skip
"""What changes a training; more seeds or more starts leave those that are done as they are."""


def trained(tasks: list[Task], config: dict[str, Any], out: Path) -> Iterator[dict[str, Any]]:
    """Give the result of every task; those already in ``runs`` of `out` are read."""
    folders = {size["name"]: _folder(config, size, out) for size in config["sizes"]}
    waiting = []
    for task in tasks:
        path = _path(folders[task.size], task.start, task.seed)
        if path.is_file():
            yield json.loads(path.read_text())
        else:
            waiting.append(task)
    if not waiting or config["finished"]:
        return
    with multiprocessing.get_context("spawn").Pool(config["n_processes"]) as pool:
        for number, one in enumerate(pool.imap_unordered(train, waiting), start=1):
            _keep(_path(folders[one["size"]], one["start"], one["seed"]), json.dumps(one))
            print(
                f"language-model: {number} of {len(waiting)}: {one['size']}, {one['start']}, seed "
                f"{one['seed']}: test perplexity {one['test']:.2f}",
                file=sys.stderr,
                flush=True,
            )
            yield one


def kept_starts(
    config: dict[str, Any],
    size: dict[str, Any],
    out: Path,
    make: Callable[[list[str]], Iterable[tuple[str, np.ndarray]]],
) -> dict[str, np.ndarray]:
    """Return the vectors of every start; those already in ``runs`` of `out` are read, not made."""
    folder = _folder(config, size, out)
    paths = {start: folder / f"{_file_name(start)}.npy" for start in config["starts"]}
    missing = [start for start, path in paths.items() if not path.is_file()]
    for start, vectors in make(missing) if missing else ():
        partial = paths[start].with_suffix(".partial.npy")
        np.save(partial, vectors)
        partial.replace(paths[start])
    return {start: np.load(path) for start, path in paths.items()}


def _folder(config: dict[str, Any], size: dict[str, Any], out: Path) -> Path:
    """Return where trainings of one size and one configuration are kept."""
    matters = {name: config[name] for name in _MATTERS}
    # The first two starts of a claim say which test tokens are counted apart.
    matters |= {"claims": [claim[:2] for claim in config["claims"]], "size": size}
    chosen = json.dumps(matters, sort_keys=True).encode()
    folder = out / "runs" / hashlib.sha256(chosen).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _path(folder: Path, start: str, seed: int) -> Path:
    return folder / f"{_file_name(start)}-{seed}.json"


def _file_name(start: str) -> str:
    return start.replace(" + ", "_").replace(" ", "-")


def _keep(path: Path, text: str) -> None:
    # Under another name first: a run that is killed here leaves no half file.
    partial = path.with_suffix(".partial")
    partial.write_text(text)
    partial.replace(path)
