"""Spelling models kept in files: found again by the words and vectors they were learnt from."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from vecfill.errors import InputError, VecfillError
from vecfill.inputs.names.spelling_model import FEWEST_TIMES, N_STEPS, RIDGE, SpellingModel
from vecfill.io.arrays import DAMAGE, as_tensor
from vecfill.io.atomic import atomic_output
from vecfill.io.safetensors import TensorFile, write_tensors
from vecfill.io.sources import Source
from vecfill.io.vector_cache import user_cache

_TENSORS = ("keys", "rows", "vectors", "mean")


def names_cache_of(embedding: Path, *, is_asked: bool) -> Path:
    """Return where the spelling model of an embedding file is kept.

    Beside the file if a user `is_asked` for names. Otherwise in the cache folder of the account:
    nobody expects a new file beside their data. There is one model for each embedding file.

    Examples
    --------
    >>> names_cache_of(Path("glove.txt"), is_asked=True).name
    'glove.txt.spelling.safetensors'
    """
    if is_asked:
        return embedding.with_name(embedding.name + ".spelling.safetensors")
    place = hashlib.sha256(os.fsencode(embedding.absolute())).hexdigest()[:32]
    return user_cache() / "spelling" / f"{place}.safetensors"


def cached_model(
    path: Path | None,
    words: Sequence[str],
    vectors: np.ndarray,
    fit: Callable[[Sequence[str], np.ndarray], SpellingModel],
) -> SpellingModel:
    """Return the model kept in `path` if it is that of these words and vectors; fit it otherwise.

    A file that is damaged, or belongs to other words, is replaced. A folder that cannot be written
    to is no reason to stop: the model is then made again the next time.
    """
    if path is None:
        return fit(words, vectors)
    identity = _identity(words, vectors)
    if (kept := _read(path, identity)) is not None:
        return kept
    model = fit(words, vectors)
    _write(path, identity, model)
    return model


def _identity(words: Sequence[str], vectors: np.ndarray) -> str:
    setting = f"1 {RIDGE} {N_STEPS} {FEWEST_TIMES} {vectors.dtype} {vectors.shape}\n"
    digest = hashlib.sha256(setting.encode())
    digest.update("\n".join(words).encode("utf-8", "surrogateescape"))
    digest.update(np.ascontiguousarray(vectors).data)
    return digest.hexdigest()


def _write(path: Path, identity: str, model: SpellingModel) -> None:
    tensors = {name: getattr(model, name) for name in _TENSORS}
    tensors["keys"] = model.keys.view(np.int64)
    about = {"made_by": "vecfill", "identity": identity, "scale": repr(model.scale)}
    about["checksum"] = _checksum(model)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_output(path, overwrite=True, waits=False) as file:
            write_tensors(file, {name: as_tensor(each) for name, each in tensors.items()}, about)
    except (OSError, InputError):
        return


def _read(path: Path, identity: str) -> SpellingModel | None:
    try:
        with Source(path) as source:
            file = TensorFile(source)
            if file.metadata.get("identity") != identity:
                return None
            keys, rows, vectors, mean = (file.read(name) for name in _TENSORS)
            scale = float(file.metadata["scale"])
            model = SpellingModel(keys.view(np.uint64), rows, vectors, mean, scale)
            return model if file.metadata["checksum"] == _checksum(model) else None
    except (VecfillError, *DAMAGE):
        return None


def _checksum(model: SpellingModel) -> str:
    digest = hashlib.sha256(repr(model.scale).encode())
    for name in _TENSORS:
        digest.update(np.ascontiguousarray(getattr(model, name)).data)
    return digest.hexdigest()
