"""A folder of a model: where its parts are, and its words and vectors."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.exchange.huggingface.tables import Tables, tables_of
from vecfill.exchange.huggingface.tensors import INDEX, SINGLE, StoredTensor, Weights, read_json
from vecfill.exchange.huggingface.tokenizer import TokenizerFile
from vecfill.io.sources import refuse_address
from vecfill.wording import count

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
            what = "is a file" if self.path.exists() else "does not exist"
            raise InputError(f"{self.path} {what}. Pass the folder of a model, as saved to disk.")
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
            "model.save_pretrained(folder, safe_serialization=True)."
        )

    @cached_property
    def modules(self) -> tuple[Path, ...]:
        """Folders of the modules of sentence-transformers, in their order, without this folder."""
        path = self.path / "modules.json"
        if not path.exists():
            return ()
        listed = read_json(path, list)
        names = [str(each.get("path", "")) for each in listed if isinstance(each, dict)]
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
        kept = [word for word, is_kept in zip(words, is_good.tolist(), strict=True) if is_kept]
        notes = []
        if len(kept) < len(words):
            left_out = count(len(words) - len(kept), "token was", "tokens were")
            notes.append(f"{left_out} left out: not finite.")
        provenance = {"model": self.path.name, "tensor": table.name}
        return Embedding(kept, vectors[is_good], notes=notes, provenance=provenance)


def read_model(
    folder: str | os.PathLike[str], *, head: bool = False, tensor: str | None = None
) -> Embedding:
    """Return the whole words of a language model and their vectors, in the order of their ids.

    Folders of transformers, of model2vec (`StaticModel`) and of sentence-transformers can be read,
    with weights in safetensors files and a ``tokenizer.json``. A word is a token that stands for a
    whole word in text; pieces of words and special tokens are left out. float16 stays float16, and
    bfloat16 becomes float32.

    Parameters
    ----------
    folder
        Where the model was saved.
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
    model = ModelFolder(folder, tensor=tensor)
    if not head:
        return model.embedding(model.tables.inputs[0])
    if len(model.tables.heads) != 1:
        raise InputError(
            f"{folder} has {len(model.tables.heads)} output tables with rows of their own; one is "
            "needed. A tied head has the rows of the input table: leave head= out."
        )
    return model.embedding(model.tables.heads[0])
