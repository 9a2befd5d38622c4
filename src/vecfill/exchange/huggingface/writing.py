"""A copy of a model folder with more tokens: whole or not at all, every other byte as it was."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

from vecfill.errors import FormatError, InputError, MissingExtraError
from vecfill.exchange.huggingface.folder import TOKENIZER, ModelFolder
from vecfill.exchange.huggingface.tensors import INDEX, Grown, read_json
from vecfill.exchange.huggingface.tokenizer import TokenizerFile, load_tokenizer
from vecfill.io.atomic import atomic_folder
from vecfill.io.safetensors import TensorFile, write_header
from vecfill.io.sources import Source
from vecfill.io.targets import naming

COPIES = (
    ".bin", ".pt", ".pth", ".ckpt", ".h5", ".msgpack", ".ot", ".onnx", ".onnx_data", ".gguf",
    ".ggml", ".tflite", ".mlmodel", ".bin.index.json", ".pb", ".xml",
)  # fmt: skip
"""How names of weights in other formats end; such a copy lacks the new rows."""
NOT_WEIGHTS = ("training_args.bin", "optimizer.pt", "scheduler.pt")
COPY_FOLDERS = ("onnx", "openvino", "coreml", "gguf")
SETTINGS = (TOKENIZER, INDEX, "config.json", "tokenizer_config.json", "added_tokens.json")
"""Files that speak of tokens or sizes, so that they may change with the tokens."""
SKIPPED = (".git", ".cache", "__pycache__")
"""Folders that tools keep beside a model."""


def write_model(
    model: ModelFolder, out: str | os.PathLike[str], entries: list[dict[str, Any]], grown: Grown
) -> tuple[str, ...]:
    """Write the folder `out`; return the stale copies of the weights that were left out."""
    settings = new_settings(model, entries)
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
            elif path in settings:
                _write_json(target, settings[path], like=path)
            else:
                shutil.copyfile(path, target)
        _check_loads(place / model.tokenizer.path.relative_to(model.path), model.tokenizer.path)
    return tuple(stale)


def _check_loads(new: Path, old: Path) -> None:
    """Load the tokenizer that was written, by the library itself where it is installed."""
    TokenizerFile(new)
    try:
        load_tokenizer(new)
    except MissingExtraError:
        return
    except FormatError as error:
        raise FormatError(
            f"{old}: with the new tokens added, the library tokenizers cannot load it: "
            f"{error.__cause__}. Save the tokenizer again."
        ) from error


def files_of(folder: Path) -> list[Path]:
    """Return the files of a model in a fixed order, without what tools keep beside it."""
    files: list[Path] = []
    parents = {Path(folder): frozenset({os.path.realpath(folder)})}
    # A folder may be a link, as in caches that share files between versions of a model.
    for place, folders, names in os.walk(folder, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        for path in (Path(place) / name for name in folders):
            real = os.path.realpath(path)
            if real in parents[path.parent]:
                raise InputError(f"{path} is a link to a folder that it lies in. Remove it first.")
            parents[path] = parents[path.parent] | {real}
        files += [Path(place) / name for name in sorted(names)]
    for path in files:
        if not path.exists():
            raise InputError(
                f"{path} is a link to {path.readlink()}, which does not exist. Fetch the folder "
                "again."
            )
    return files


def is_stale(path: Path, model: ModelFolder) -> bool:
    """Tell whether a file holds the weights once more, without the new rows."""
    if path in model.weights.files or path.name in NOT_WEIGHTS:
        return False
    # Other modules of sentence-transformers have weights of their own, in any format.
    is_module = any(module != model.home and module in path.parents for module in model.modules)
    if is_module:
        return False
    if any(part in COPY_FOLDERS for part in path.relative_to(model.path).parts[:-1]):
        return True
    if path.suffix == ".safetensors":
        with Source(path) as source:
            shapes = [place.shape for place in TensorFile(source).places.values()]
        return any(model.tables.n_rows in shape for shape in shapes)
    return path.name.endswith(COPIES)


def new_settings(model: ModelFolder, entries: list[dict[str, Any]]) -> dict[Path, Any]:
    """Return the new content of every JSON file that speaks of tokens or sizes."""
    home, path = model.home, model.home / "tokenizer_config.json"
    settings: dict[Path, Any] = {home / TOKENIZER: model.tokenizer.extended(entries)}
    n_old = model.tables.n_rows
    n_new = max(n_old, model.tokenizer.next_id + len(entries))
    if n_new != n_old and "vocab_size" in json.dumps(model.config):
        settings[home / "config.json"] = _with_size(model, n_old, n_new)
    if model.weights.index is not None:
        settings[home / INDEX] = _with_total(model, n_new - n_old)
    if path.exists():
        settings[path] = _with_decoder(read_json(path, dict), model.tokenizer.added, entries)
    path = home / "added_tokens.json"
    if path.exists():
        ids = {entry["content"]: entry["id"] for entry in entries}
        settings[path] = read_json(path, dict) | ids
    return settings


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


def _with_total(model: ModelFolder, n_more: int) -> dict[str, Any]:
    assert model.weights.index is not None
    index, tables = dict(model.weights.index), model.tables.all
    metadata = dict(index.get("metadata") or {})
    n_bytes = n_more * sum(table.row_bytes for table in tables)
    metadata["total_size"] = model.weights.n_bytes + n_bytes
    if "total_parameters" in metadata:
        n_numbers = sum(math.prod(table.shape) // table.n_rows for table in tables)
        metadata["total_parameters"] += n_more * n_numbers
    return index | {"metadata": metadata}


def _with_decoder(
    config: dict[str, Any], old: list[dict[str, Any]], new: list[dict[str, Any]]
) -> dict[str, Any]:
    """Return `tokenizer_config.json` with the new tokens, by id, as transformers writes them."""
    listed = config.get("added_tokens_decoder")
    entries = new if isinstance(listed, dict) else [*old, *new]
    decoder = dict(listed) if isinstance(listed, dict) else {}
    for entry in entries:
        decoder[str(entry["id"])] = {name: entry[name] for name in entry if name != "id"}
    return config | {"added_tokens_decoder": decoder}


def _write_json(target: Path, content: Any, *, like: Path) -> None:
    text = like.read_text(encoding="utf-8")
    indent = 2 if "\n" in text.strip() else None
    ending = "\n" if text.endswith("\n") else ""
    new = json.dumps(content, ensure_ascii=False, indent=indent) + ending
    target.write_text(new, encoding="utf-8")


def _copy_tensors(model: ModelFolder, file: Path, target: Path, grown: Grown) -> None:
    """Write a file of weights again, with tensors in their order and other rows in some."""
    tensors = [tensor for tensor in model.weights.tensors.values() if tensor.file == file]
    tensors.sort(key=lambda tensor: tensor.first)
    order = [grown.get(tensor.name, tensor) for tensor in tensors]
    header = [
        (old.name, old.dtype, new.shape, new.n_bytes)
        for old, new in zip(tensors, order, strict=True)
    ]
    with target.open("wb") as out:
        write_header(out, header, model.weights.metadata[file.name])
        for tensor in order:
            out.writelines(tensor.blocks())
