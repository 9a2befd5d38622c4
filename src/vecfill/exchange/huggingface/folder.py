"""A folder of a model: where its parts are, which tensors are tables, and its words and vectors."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.exchange.huggingface.gguf import HEAD, INPUT, TO_FOLDER, gguf_words, is_gguf
from vecfill.exchange.huggingface.tensors import (
    INDEX,
    ITEM_BYTES,
    SINGLE,
    StoredTensor,
    Weights,
    read_json,
)
from vecfill.exchange.huggingface.tokenizer import TokenizerFile
from vecfill.io.sources import refuse_address
from vecfill.wording import count

INPUTS = (
    "word_embeddings.weight", "embed_tokens.weight", "wte.weight", "shared.weight",
    "tok_embeddings.weight", "embed_in.weight", "word_embedding.weight", "embeddings.weight",
    "embedding.weight", "embeddings",
)  # fmt: skip
"""Names of tables that turn ids into vectors, without what stands before the last dots."""

HEADS = (
    "lm_head.weight", "lm_head.decoder.weight", "cls.predictions.decoder.weight",
    "predictions.decoder.weight", "embed_out.weight", "vocab_projector.weight", "lm_loss.weight",
    "generator_lm_head.weight", "decoder.weight", "output.weight", "head.weight",
)  # fmt: skip
"""Names of tables that turn vectors into scores of ids."""

BIASES = (
    "lm_head.bias", "lm_head.decoder.bias", "cls.predictions.bias", "cls.predictions.decoder.bias",
    "predictions.bias", "predictions.decoder.bias", "vocab_projector.bias", "lm_loss.bias",
    "generator_lm_head.bias", "decoder.bias", "final_logits_bias", "embed_out.bias", "weights",
)  # fmt: skip
"""Names of tensors with one number for each id; `weights` is model2vec's."""


@dataclass(frozen=True)
class Tables:
    """The tensors of a model that have a row for each token.

    `inputs` are the input table and its copies under other names, such as a tied head that was
    stored all the same; `heads` are tables with rows of their own.
    """

    inputs: tuple[StoredTensor, ...]
    heads: tuple[StoredTensor, ...] = ()
    biases: tuple[StoredTensor, ...] = ()

    @property
    def n_rows(self) -> int:
        """How many rows each of them has; some may be padding, past the last token."""
        return self.inputs[0].n_rows

    @property
    def all(self) -> tuple[StoredTensor, ...]:
        """Every tensor that must grow when a token is added."""
        return (*self.inputs, *self.heads, *self.biases)


def tables_of(weights: Weights, n_ids: int, *, tensor: str | None = None) -> Tables:
    """Return the tables of a model whose tokenizer has ids below `n_ids`.

    `tensor` names the input table where its name is not a usual one. Refused are tables whose
    numbers are quantised, and tensors as long as the vocabulary whose meaning is not known: rows
    that are missing there would break the model.
    """
    inputs = _inputs(weights, n_ids, tensor)
    n_rows = inputs[0].n_rows
    heads: list[StoredTensor] = []
    biases: list[StoredTensor] = []
    copies = list(inputs)
    for stored in weights.tensors.values():
        is_head = _is_one_of(stored.name, HEADS)
        if stored in inputs or not (n_rows in stored.shape or is_head):
            continue
        if stored.equals(inputs[0]):
            copies.append(stored)
        elif is_head and len(stored.shape) == 2 and stored.shape[0] == n_rows:
            heads.append(_with_numbers(stored))
        elif _is_one_of(stored.name, BIASES) and stored.is_bias and stored.n_rows == n_rows:
            biases.append(_with_numbers(stored))
        else:
            raise InputError(_about_unknown(stored, inputs[0]))
    return Tables(tuple(copies), tuple(heads), tuple(biases))


def _inputs(weights: Weights, n_ids: int, tensor: str | None) -> list[StoredTensor]:
    if "mapping" in weights.tensors and "embeddings" in weights.tensors:
        raise InputError(
            f"{weights.home}: tokens share rows of 'embeddings' through the tensor 'mapping' (a "
            "quantised vocabulary), so a token has no row of its own. Use the model before its "
            "vocabulary was quantised."
        )
    if tensor is not None:
        if tensor not in weights.tensors or len(weights.tensors[tensor].shape) != 2:
            raise InputError(f"{weights.home} has no table {tensor!r}. {_shown(weights, n_ids)}")
        candidates = [weights.tensors[tensor]]
    else:
        every = weights.tensors.values()
        candidates = [
            table for table in every if _is_one_of(table.name, INPUTS) and len(table.shape) == 2
        ]
    long_enough = [_with_numbers(table) for table in candidates if table.shape[0] >= n_ids]
    if candidates and not long_enough:
        raise InputError(
            f"{weights.home}: the tokenizer has {n_ids} ids, but the table {candidates[0].name!r} "
            f"has {candidates[0].shape[0]} rows, so some tokens have none. Tokenizer and weights "
            "do not belong together, or rows are shared: use the folder as it was first saved."
        )
    if not long_enough or not all(table.equals(long_enough[0]) for table in long_enough[1:]):
        names = ", ".join(repr(table.name) for table in long_enough) or "none"
        raise InputError(
            f"{weights.home}: the input table is not certain; tensors with a usual name: {names}. "
            f"Name the right one with tensor=. {_shown(weights, n_ids)}"
        )
    return long_enough


def _with_numbers(tensor: StoredTensor) -> StoredTensor:
    if tensor.dtype not in ITEM_BYTES:
        raise InputError(
            f"{tensor.file}: the tensor {tensor.name!r} is of type {tensor.dtype}, so it is "
            f"quantised; rows can be added to {', '.join(ITEM_BYTES)}. Add the tokens to the model "
            "before it is quantised."
        )
    return tensor


def _is_one_of(name: str, endings: Iterable[str]) -> bool:
    return any(name == ending or name.endswith(f".{ending}") for ending in endings)


def _about_unknown(tensor: StoredTensor, table: StoredTensor) -> str:
    return (
        f"{tensor.file}: the tensor {tensor.name!r} of shape {tensor.shape} and type "
        f"{tensor.dtype} seems to have an entry for each of the {table.n_rows} rows of "
        f"{table.name!r}, but its meaning is not known, so new tokens would have none there. "
        "A quantised head is such a tensor: add the tokens before the model is quantised."
    )


def _shown(weights: Weights, n_ids: int) -> str:
    long = [
        f"{tensor.name!r} {tensor.shape}"
        for tensor in weights.tensors.values()
        if len(tensor.shape) == 2 and tensor.shape[0] >= n_ids
    ]
    return f"Tables with at least {n_ids} rows: {', '.join(long[:5]) or 'none'}."


TOKENIZER = "tokenizer.json"


class ModelFolder:
    """A model of transformers, model2vec or sentence-transformers, saved to a folder.

    `home` is where weights and tokenizer are: the folder itself, or the folder of the first module
    of sentence-transformers. `tensor` names the input table if its name is not a usual one.
    """

    def __init__(self, path: str | os.PathLike[str], *, tensor: str | None = None) -> None:
        self.path = Path(path)
        if not self.path.is_dir():
            refuse_address(self.path)
            if is_gguf(self.path) and self.path.exists():
                raise InputError(
                    f"{self.path} is a GGUF file. Tokens are added to a folder with safetensors "
                    f"files; this makes one, in Python with transformers: {TO_FOLDER}."
                )
            state = "is a file" if self.path.exists() else "does not exist"
            raise InputError(f"{self.path} {state}. Pass the folder of a model, as saved to disk.")
        self.home = self._home()
        self.weights = Weights(self.home)
        self.tokenizer = TokenizerFile(self.home / TOKENIZER)
        self._tensor = tensor

    def _home(self) -> Path:
        places = [self.path, *self.modules]
        for place in places:
            if (place / SINGLE).exists() or (place / INDEX).exists():
                return place
        raise InputError(
            f"{self.path} has neither {SINGLE} nor {INDEX}. Save the model with safetensors: "
            "model.save_pretrained(folder, safe_serialization=True). From a GGUF file, in Python "
            f"with transformers: {TO_FOLDER}."
        )

    @cached_property
    def modules(self) -> tuple[Path, ...]:
        """Folders of the modules of sentence-transformers, in their order, without this folder."""
        path = self.path / "modules.json"
        if not path.exists():
            return ()
        listed = read_json(path, list)
        names = [str(module.get("path", "")) for module in listed if isinstance(module, dict)]
        return tuple(self.path / Path(name).name for name in names if name)

    @cached_property
    def tables(self) -> Tables:
        """The tensors that have a row for each token."""
        return tables_of(self.weights, self.tokenizer.next_id, tensor=self._tensor)

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of `config.json`; empty if there is none."""
        path = self.home / "config.json"
        return read_json(path, dict) if path.exists() else {}

    def tensor_file(self, name: str) -> Path:
        """Return the file that a tensor is in."""
        return self.weights.tensors[name].file

    def embedding(self, table: StoredTensor) -> Embedding:
        """Return the whole words of the vocabulary and their rows in a table, in order of ids."""
        words = self.tokenizer.whole_words
        rows = np.fromiter(words.values(), np.int64, len(words))
        vectors = table.rows(rows)
        is_good = np.asarray(np.isfinite(vectors).all(axis=1))
        finite_words = [
            word for word, is_kept in zip(words, is_good.tolist(), strict=True) if is_kept
        ]
        notes = []
        if len(finite_words) < len(words):
            left_out = count(len(words) - len(finite_words), "token was", "tokens were")
            notes.append(f"{left_out} left out: not finite.")
        provenance = {"model": self.path.name, "tensor": table.name}
        return Embedding(finite_words, vectors[is_good], notes=notes, provenance=provenance)


def read_model(
    folder: str | os.PathLike[str], *, head: bool = False, tensor: str | None = None
) -> Embedding:
    """Return the whole words of a language model and their vectors, in the order of their ids.

    Folders of transformers, of model2vec (`StaticModel`) and of sentence-transformers can be read,
    with weights in safetensors files and a ``tokenizer.json``, and GGUF files, whose quantised rows
    become float32 (``pip install 'vecfill[gguf]'``). A word is a token that stands for a
    whole word in text; pieces of words and special tokens are left out. float16 stays float16, and
    bfloat16 becomes float32.

    Parameters
    ----------
    folder
        Where the model was saved, or a GGUF file.
    head
        Read the output table instead of the input table, if it has rows of its own.
    tensor
        Name of the input table, if it is not a usual one.

    Examples
    --------
    >>> from vecfill.exchange.huggingface.example import write_small_model
    >>> folder = write_small_model()
    >>> read_model(folder)
    Embedding(6 words, 4 dims, float32: 'iron', 'gold', 'zinc', 'lead', 'ra', ...)
    """
    if is_gguf(folder):
        return _read_gguf(Path(folder), tensor or (HEAD if head else INPUT))
    model = ModelFolder(folder, tensor=tensor)
    if not head:
        return model.embedding(model.tables.inputs[0])
    if len(model.tables.heads) != 1:
        raise InputError(
            f"{folder} has {len(model.tables.heads)} output tables with rows of their own; one is "
            "needed. A tied head has the rows of the input table: leave head= out."
        )
    return model.embedding(model.tables.heads[0])


def _read_gguf(path: Path, tensor: str) -> Embedding:
    refuse_address(path)
    words, vectors = gguf_words(path, tensor=tensor)
    return Embedding(words, vectors, provenance={"model": path.name, "tensor": tensor})
