"""Encoders of texts: objects and functions of users, and models in a local folder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.errors import InputError, MissingExtraError
from vecfill.inputs.entities import listed
from vecfill.io.vector_cache import VectorCache, user_cache

Progress = Callable[[str, int, int], None]

_PROBES = ("a soft silvery metal", "Paris is a city.", "0 7 x")
"""What an encoder makes of these tells it from all others."""

_BATCH = 1024
"""Texts encoded before their vectors are saved: what an interrupt may cost."""

_HOW_TO_INSTALL = "pip install 'vecfill[encoders]'"


def encoded(
    texts: Sequence[str],
    encoder: Any,
    *,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """Return the vectors that `encoder` gives to `texts`, from the cache where they are there.

    An encoder is an object with ``encode(list of texts)`` or a function of a list of texts. The
    cache knows it by what it makes of three fixed sentences, so another model, or the same one
    trained further, does not get the vectors of the first.

    Examples
    --------
    >>> import tempfile
    >>> def lengths(texts): return [[len(text), text.count(" ")] for text in texts]
    >>> encoded(["soft metal", "gas"], lengths, cache=tempfile.mkdtemp())
    array([[10.,  1.],
           [ 3.,  0.]], dtype=float32)
    """
    encode = function_of(encoder)
    probes = _vectors(encode, _PROBES)
    n_dims = probes.shape[1]
    folder = user_cache() / "texts" if cache is None else Path(cache)
    vector_cache = VectorCache.of_probes(folder, _PROBES, probes)
    vector_of = vector_cache.load(n_dims)
    keys = [VectorCache.key(text) for text in texts]
    missing = list(
        dict.fromkeys(text for text, key in zip(texts, keys, strict=True) if key not in vector_of)
    )
    for first in range(0, len(missing), _BATCH):
        batch = missing[first : first + _BATCH]
        vectors = _vectors(encode, batch, n_dims=n_dims)
        vector_cache.add(batch, vectors)
        vector_of.update(zip(map(VectorCache.key, batch), vectors, strict=True))
        if progress is not None:
            progress("Encoding texts", first + len(batch), len(missing))
    return np.array([vector_of[key] for key in keys], np.float32).reshape(len(texts), n_dims)


def load_encoder(folder: str | os.PathLike[str]) -> Any:
    """Return the sentence-transformers or model2vec model in a local folder.

    Nothing is fetched from a network, no code from the folder is run, and weights that are pickled
    are refused. The packages come with ``pip install 'vecfill[encoders]'``.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(
            f"{folder} is not a folder. An encoder is a local folder with a model of "
            "sentence-transformers or model2vec; download one first."
        )
    kind = _kind_of_model(path)
    with _offline():
        package = _package(kind)
        try:
            if kind == "model2vec":
                return package.StaticModel.from_pretrained(str(path))
            local = {"device": "cpu", "local_files_only": True}
            return package.SentenceTransformer(
                str(path), model_kwargs={"use_safetensors": True}, **local
            )
        except Exception as error:
            raise InputError(
                f"{path}: {kind} cannot load the model ({type(error).__name__}: {error}). It may "
                "be incomplete: download it again."
            ) from error


@contextmanager
def _offline() -> Iterator[None]:
    """Let no package ask a network for files while a model is loaded."""
    name = "HF_HUB_OFFLINE"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _kind_of_model(path: Path) -> str:
    names = {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}
    if not any(name.endswith(".safetensors") for name in names):
        raise InputError(
            f"{path} holds no .safetensors file but {listed(sorted(names))}. Pickled weights can "
            "run code and are never loaded; save the model again as safetensors."
        )
    try:
        config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        config = {}
    if isinstance(config, dict) and config.get("model_type") == "model2vec":
        return "model2vec"
    if "modules.json" in names:
        return "sentence_transformers"
    raise InputError(
        f"{path} holds neither a sentence-transformers model (there is no modules.json) nor a "
        "model2vec model (config.json does not say so). Save it with one of these packages, or "
        "pass an object with encode() to vecfill.text(encoder=...)."
    )


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"This encoder needs the package {name}, which cannot be imported ({error}). "
            f"Type: {_HOW_TO_INSTALL}"
        ) from error


def function_of(encoder: Any) -> Callable[[list[str]], Any]:
    """Return what turns texts into vectors; refuse what cannot."""
    encode = getattr(encoder, "encode", None)
    if callable(encode) and not isinstance(encoder, str):
        return encode
    if callable(encoder):
        return encoder
    raise InputError(
        f"encoder={encoder!r} has no encode() and cannot be called. Pass a model with "
        "encode(list of texts), or a function from a list of texts to their vectors."
    )


def _numbers(values: Any) -> np.ndarray:
    """Return real numbers as float32; what else can be cast to numbers is none."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise TypeError(f"its values are of type {array.dtype}")
    if np.ma.is_masked(values):
        raise TypeError("some of its values are masked")
    with np.errstate(over="ignore"):
        return array.astype(np.float32)


def _vectors(
    encode: Callable[[list[str]], Any], texts: Sequence[str], *, n_dims: int | None = None
) -> np.ndarray:
    """Return what the encoder gives, checked: a row of finite numbers for each text."""
    try:
        output = encode(list(texts))
    except Exception as error:
        raise InputError(
            f"the encoder failed on {len(texts)} texts, such as {texts[0][:60]!r}: "
            f"{type(error).__name__}: {error}"
        ) from error
    try:
        vectors = _numbers(output)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"the encoder returned an object of type {type(output).__name__}, of which no array of "
            f"numbers can be made ({error}). Return one vector a text, all of one length."
        ) from error
    if vectors.ndim != 2 or len(vectors) != len(texts) or vectors.shape[1] == 0:
        raise InputError(
            f"the encoder returned an array of shape {vectors.shape} for {len(texts)} texts. "
            f"Return shape ({len(texts)}, n_dims)."
        )
    if n_dims is not None and vectors.shape[1] != n_dims:
        raise InputError(
            f"the encoder returned {n_dims} numbers a text for one list of texts and "
            f"{vectors.shape[1]} for another. The vector of a text may not depend on other texts."
        )
    if not np.isfinite(vectors).all():
        row = int((~np.isfinite(vectors).all(axis=1)).argmax())
        raise InputError(
            f"the encoder returned NaN or infinity for {texts[row][:60]!r}. Use another encoder, "
            "or leave this text empty."
        )
    return vectors
