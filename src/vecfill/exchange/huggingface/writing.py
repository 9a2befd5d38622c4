"""A copy of a model folder with more tokens: whole or not at all, every other byte as it was."""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from vecfill.errors import InputError
from vecfill.exchange.huggingface.folder import TOKENIZER, ModelFolder
from vecfill.exchange.huggingface.tensors import INDEX, StoredTensor, read_json
from vecfill.io.atomic import atomic_folder
from vecfill.io.safetensors import TensorFile
from vecfill.io.sources import Source
from vecfill.io.targets import naming

COPIES = (
    ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".ot", ".onnx", ".onnx_data", ".gguf",
    ".ggml", ".tflite", ".mlmodel", ".bin.index.json", ".pb", ".xml",
)  # fmt: skip
"""How names of weights in other formats end; such a copy lacks the new rows."""
NOT_WEIGHTS = ("training_args.bin", "optimizer.pt", "scheduler.pt")
COPY_FOLDERS = ("onnx", "openvino", "coreml", "gguf")
SKIPPED = (".git", ".cache", "__pycache__")
"""Folders that tools keep beside a model."""


@dataclass(frozen=True)
class GrownTensor:
    """A tensor with new rows: over rows past the vocabulary first, then after the last one."""

    tensor: StoredTensor
    first: int
    """The row of the first new token."""
    content: bytes
    """The new rows."""

    @property
    def n_rows(self) -> int:
        """How many rows there are afterwards."""
        return max(self.tensor.n_rows, self.first + len(self.content) // self.tensor.row_bytes)

    @property
    def shape(self) -> tuple[int, ...]:
        """The new shape."""
        old = self.tensor.shape
        return (*old[:-1], self.n_rows) if self.tensor.is_bias else (self.n_rows, *old[1:])

    @property
    def n_bytes(self) -> int:
        """How many bytes it takes."""
        return self.n_rows * self.tensor.row_bytes

    def blocks(self) -> Iterator[bytes]:
        """Return its bytes in pieces: old rows, new rows, and what is left of the padding."""
        start = self.first * self.tensor.row_bytes
        yield from self.tensor.blocks(0, start)
        yield self.content
        yield from self.tensor.blocks(start + len(self.content))


Grown = Mapping[str, GrownTensor]


def write_model(
    model: ModelFolder, out: str | os.PathLike[str], entries: list[dict[str, Any]], grown: Grown
) -> tuple[str, ...]:
    """Write the folder `out`; return the stale copies of the weights that were left out."""
    patches = _patches(model, entries, grown)
    rewritten = {model.tensor_file(name) for name in grown}
    stale: list[str] = []
    with atomic_folder(out) as place, naming(Path(out)):
        for path in files_of(model.path):
            name = path.relative_to(model.path)
            target = place / name
            if is_stale(path, model):
                stale.append(name.as_posix())
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if path in rewritten:
                _copy_tensors(model, path, target, grown)
            elif path in patches:
                _write_json(target, patches[path], like=path)
            else:
                shutil.copyfile(path, target)
    return tuple(stale)


def files_of(folder: Path) -> list[Path]:
    """Return the files of a model in a fixed order, without what tools keep beside it."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        found += [Path(place) / name for name in sorted(names)]
    return found


def is_stale(path: Path, model: ModelFolder) -> bool:
    """Tell whether a file holds the weights once more, without the new rows."""
    if path in model.weights.files or path.name in NOT_WEIGHTS:
        return False
    # Other modules of sentence-transformers have weights of their own, in any format.
    is_module = any(each != model.home and each in path.parents for each in model.modules)
    if is_module:
        return False
    if any(part in COPY_FOLDERS for part in path.relative_to(model.path).parts[:-1]):
        return True
    if path.suffix == ".safetensors":
        with Source(path) as source:
            shapes = [place.shape for place in TensorFile(source).places.values()]
        return any(model.tables.n_rows in shape for shape in shapes)
    return path.name.endswith(COPIES)


def _patches(model: ModelFolder, entries: list[dict[str, Any]], grown: Grown) -> dict[Path, Any]:
    """Return the new content of every JSON file that speaks of tokens or sizes."""
    home = model.home
    patches: dict[Path, Any] = {home / TOKENIZER: model.tokenizer.extended(entries)}
    n_old, n_new = model.tables.n_rows, max(each.n_rows for each in grown.values())
    if n_new != n_old and "vocab_size" in json.dumps(model.config):
        patches[home / "config.json"] = _with_size(model, n_old, n_new)
    if model.weights.index is not None:
        patches[home / INDEX] = _with_total(model, grown)
    path = home / "tokenizer_config.json"
    if path.exists():
        patches[path] = _with_decoder(read_json(path, dict), model.tokenizer.added, entries)
    path = home / "added_tokens.json"
    if path.exists():
        ids = {each["content"]: each["id"] for each in entries}
        patches[path] = read_json(path, dict) | ids
    return patches


def _with_size(model: ModelFolder, n_old: int, n_new: int) -> dict[str, Any]:
    """Return `config.json` with the new number of rows wherever the old one was."""
    n_found = 0

    def changed(part: Any) -> Any:
        nonlocal n_found
        if not isinstance(part, dict):
            return part
        is_size = part.get("vocab_size") == n_old
        n_found += is_size
        new = {name: changed(value) for name, value in part.items()}
        return new | {"vocab_size": n_new} if is_size else new

    config = changed(model.config)
    if not n_found:
        raise InputError(
            f"{model.home / 'config.json'} has a vocab_size, but none of {n_old}, the number of "
            "rows of the table. Which one to change is not certain: set it right first."
        )
    return config


def _with_total(model: ModelFolder, grown: Grown) -> dict[str, Any]:
    assert model.weights.index is not None
    index = dict(model.weights.index)
    more = sum(each.n_bytes - each.tensor.n_bytes for each in grown.values())
    metadata = dict(index.get("metadata") or {})
    metadata["total_size"] = model.weights.n_bytes + more
    if "total_parameters" in metadata:
        n_more = sum(
            math.prod(each.shape) - math.prod(each.tensor.shape) for each in grown.values()
        )
        metadata["total_parameters"] += n_more
    return index | {"metadata": metadata}


def _with_decoder(
    config: dict[str, Any], old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return `tokenizer_config.json` with the new tokens, by id, as transformers writes them."""
    listed = config.get("added_tokens_decoder")
    entries = new if isinstance(listed, dict) else [*old, *new]
    decoder = dict(listed) if isinstance(listed, dict) else {}
    for each in entries:
        decoder[str(each["id"])] = {name: each[name] for name in each if name != "id"}
    return config | {"added_tokens_decoder": decoder}


def _write_json(target: Path, content: Any, *, like: Path) -> None:
    text = like.read_text(encoding="utf-8")
    indent = 2 if "\n" in text.strip() else None
    ending = "\n" if text.endswith("\n") else ""
    new = json.dumps(content, ensure_ascii=False, indent=indent) + ending
    target.write_text(new, encoding="utf-8")


def _copy_tensors(model: ModelFolder, file: Path, target: Path, grown: Grown) -> None:
    """Write a file of weights again, with tensors in their order and other rows in some."""
    tensors = [each for each in model.weights.tensors.values() if each.file == file]
    order = [grown.get(each.name, each) for each in sorted(tensors, key=lambda each: each.first)]
    with target.open("wb") as out:
        _write_header(out, order, model.weights.metadata[file.name])
        for each in order:
            out.writelines(each.blocks())


def _write_header(
    out: BinaryIO, order: list[StoredTensor | GrownTensor], metadata: Mapping[str, str]
) -> None:
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    place = 0
    for each in order:
        stored = each.tensor if isinstance(each, GrownTensor) else each
        offsets = [place, place + each.n_bytes]
        header[stored.name] = {
            "dtype": stored.dtype,
            "shape": list(each.shape),
            "data_offsets": offsets,
        }
        place += each.n_bytes
    text = json.dumps(header, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % 8)
    out.write(len(text).to_bytes(8, "little") + text)
