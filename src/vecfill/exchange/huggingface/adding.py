"""Rows for new tokens in every table of a model, and the folder that holds them."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, FloatArray
from vecfill.errors import InputError
from vecfill.exchange.huggingface.fitting import Fitted, Fitting, fitted
from vecfill.exchange.huggingface.folder import ModelFolder
from vecfill.exchange.huggingface.imputing import TokenImputation
from vecfill.exchange.huggingface.level import Frequencies, as_frequencies
from vecfill.exchange.huggingface.tensors import Grown, GrownTensor, StoredTensor, to_stored
from vecfill.exchange.huggingface.writing import write_model
from vecfill.inputs.embeddings import as_embedding
from vecfill.io.targets import check_new_folder
from vecfill.result import Result
from vecfill.run import impute
from vecfill.wording import count


@dataclass(frozen=True)
class AddedTokens:
    """What `add_tokens` did: where the new folder is, and the id of each new token."""

    output: Path
    ids: dict[str, int]
    tables: dict[str, str]
    """How the new rows of each tensor were made."""
    stale: tuple[str, ...]
    """Copies of the weights in other formats, which were not copied: they lack the new rows."""
    notes: tuple[str, ...] = ()
    head: Result | None = field(default=None, repr=False)
    """The result of imputing rows of an untied head, if that was done here."""
    fitted: Fitted | None = field(default=None, repr=False)
    """How rows were distilled and levelled, and whether harm was found."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "output": str(self.output),
            "ids": self.ids,
            "tables": self.tables,
            "stale": list(self.stale),
            "notes": list(self.notes),
            **({} if self.fitted is None else self.fitted.to_dict()),
        }


@dataclass(frozen=True)
class PreparedTokens:
    """New tokens that need only be written."""

    model: ModelFolder
    entries: list[dict[str, Any]]
    grown: Grown
    tables: dict[str, str]
    fitted: Fitted
    head: Result | None

    def written(self, out: str | os.PathLike[str]) -> AddedTokens:
        """Write the folder, whole or not at all."""
        stale = write_model(self.model, out, self.entries, self.grown)
        ids = {entry["content"]: entry["id"] for entry in self.entries}
        notes = (*self.fitted.notes, *_notes(self.model, stale))
        return AddedTokens(Path(out), ids, self.tables, stale, notes, self.head, self.fitted)


def add_tokens(
    folder: str | os.PathLike[str],
    vectors: Any,
    out: str | os.PathLike[str],
    *,
    head: Any = "auto",
    tensor: str | None = None,
    level: str | None = None,
    distil: bool = False,
    check: bool | None = False,
    force: bool = False,
) -> AddedTokens:
    """Write a copy of a model in which each new term is one token with a row of its own.

    Known rows and every other tensor keep their bytes, and texts without new terms keep their ids.
    Rows past the vocabulary, which some models have as padding, are used first. Tokenizer,
    configuration and index are adapted. Copies of the weights in other formats (``.bin``, ONNX,
    GGUF) would lack the new rows, so they are not copied but listed. The new folder appears whole
    or not at all.

    Parameters
    ----------
    folder
        The model: a folder of transformers, model2vec or sentence-transformers.
    vectors
        The new terms and their rows in the input table: what `vecfill.impute_tokens` or
        `vecfill.impute` returned, an `Embedding`, or a mapping from term to vector.
    out
        The folder to write; it must not exist.
    head
        Rows of an output table that is not tied to the input table: ``"auto"`` imputes them in
        that table's own space, from what described the terms in a `Result`; ``"mean"`` takes the
        mean row of whole words; or a `Result`, `Embedding` or mapping with rows of its own.
    tensor
        Name of the input table, if it is not a usual one.
    level
        How likely new tokens are as output, if the table is one: as their ``"counts"`` or their
        ``"rank"`` in the source file say, or ``"off"``. By default by what is known. Levelling,
        like `distil` and `check`, runs the model: ``pip install 'vecfill[lm]'``.
    distil
        Fit the new rows so that the model reads a term as it reads its pieces in context.
    check
        Compare the model before and after, and refuse new tokens that do harm (`HarmError`).
        ``None`` checks if the model can be run here.
    force
        Write tokens that do harm all the same.

    Examples
    --------
    >>> from vecfill.exchange.huggingface.example import write_small_model
    >>> folder = write_small_model()
    >>> rows = {"radon": [0.1, 0.2, 0.3, 0.4], "white gold": [1.0, 0.0, 0.0, 0.0]}
    >>> add_tokens(folder, rows, folder.parent / "new").ids
    {'radon': 12, 'white gold': 13}
    """
    check_new_folder(out)
    fitting = Fitting(level, distil=distil, check=check, force=force)
    return prepared_tokens(folder, vectors, head=head, tensor=tensor, fitting=fitting).written(out)


def prepared_tokens(
    folder: str | os.PathLike[str],
    vectors: Any,
    *,
    head: Any = "auto",
    tensor: str | None = None,
    fitting: Fitting,
) -> PreparedTokens:
    """Return everything that `add_tokens` writes; refuse what would do harm."""
    model = ModelFolder(folder, tensor=tensor)
    frequencies: dict[str, Frequencies] = {}
    if isinstance(vectors, TokenImputation):
        words = vectors.result.embedding.words
        amounts = {"counts": vectors.counts, "rank": vectors.ranks}
        frequencies = {by: as_frequencies(by, of, words) for by, of in amounts.items() if of}
        is_default = isinstance(head, str) and head == "auto"
        head = vectors.head if is_default and vectors.head is not None else head
        vectors = vectors.result
    new = vectors.embedding if isinstance(vectors, Result) else as_embedding(vectors)
    if not len(new):
        raise InputError("There are no new terms to add. Pass a vector for at least one term.")
    entries = model.tokenizer.entries(new.words)
    heads, head_result = _head_rows(model, vectors, new, head)
    own_head = next(iter(heads.values()))[0] if len(heads) == 1 else None
    rows_fitted = fitted(model, entries, new.vectors, own_head, frequencies, fitting)
    if rows_fitted.head is not None:
        heads = {name: (rows_fitted.head, how) for name, (_, how) in heads.items()}
    grown: dict[str, GrownTensor] = {}
    tables: dict[str, str] = {}
    for table in model.tables.inputs:
        tables[table.name] = "as given"
        grown[table.name] = _grown(table, rows_fitted.rows, new, model)
    for name, (rows, how) in heads.items():
        tables[name] = how
        grown[name] = _grown(model.weights.tensors[name], rows, new, model)
    for bias in model.tables.biases:
        tables[bias.name] = "mean of whole words"
        grown[bias.name] = _grown(bias, _mean_rows(model, bias, len(new)), new, model)
    return PreparedTokens(model, entries, grown, tables, rows_fitted, head_result)


def _grown(
    table: StoredTensor, rows: FloatArray, new: Embedding, model: ModelFolder
) -> GrownTensor:
    n_dims = 1 if table.is_bias else table.shape[1]
    if rows.shape != (len(new), n_dims):
        raise InputError(
            f"{table.name!r} has rows of {n_dims} numbers, but the vectors of the new terms have "
            f"{rows.shape[1]}. Impute into the space of vecfill.read_model(folder)."
        )
    content = b"".join(
        to_stored(row, table.dtype, f"The row of {word!r} for {table.name!r}")
        for word, row in zip(new.words, rows, strict=True)
    )
    return GrownTensor(table, model.tokenizer.next_id, content)


def _head_rows(
    model: ModelFolder, vectors: Any, new: Embedding, head: Any
) -> tuple[dict[str, tuple[FloatArray, str]], Result | None]:
    """Return rows for each output table that has its own, and how they were made."""
    tables = list(model.tables.heads)
    is_default = isinstance(head, str) and head == "auto"
    if not tables:
        if not is_default:
            raise InputError(
                f"head= cannot be used here: {model.path} has no output table with rows of its "
                "own. Leave it out."
            )
        return {}, None
    if isinstance(head, str) and head == "mean":
        means = {table.name: _mean_rows(model, table, len(new)) for table in tables}
        return {name: (rows, "mean of whole words") for name, rows in means.items()}, None
    if len(tables) > 1:
        names = ", ".join(table.name for table in tables)
        raise InputError(
            f"{model.path} has {len(tables)} output tables ({names}). Use head='mean'."
        )
    name = tables[0].name
    if not is_default:
        if isinstance(head, str):
            raise InputError(f"head={head!r} is neither 'auto' nor 'mean', nor vectors.")
        head_rows = head.embedding if isinstance(head, Result) else as_embedding(head)
        return {name: (_all_rows(head_rows, new, name), "as given")}, None
    if not isinstance(vectors, Result):
        raise InputError(
            f"The output table {name!r} is not tied to the input table, so new tokens need rows of "
            "their own there. Pass them as head=, pass head='mean', or pass the Result of "
            "vecfill.impute, from which they can be imputed."
        )
    result = impute(vectors.domain, model.embedding(tables[0]), matches=vectors.matches)
    return {name: (_all_rows(result.embedding, new, name), "imputed in its own space")}, result


def _all_rows(head_rows: Embedding, new: Embedding, name: str) -> FloatArray:
    missing = [word for word in new.words if word not in head_rows]
    if missing:
        raise InputError(
            f"{count(len(missing), 'new term has', 'new terms have')} no row for {name!r}, such as "
            f"{missing[0]!r}. Pass one for each term."
        )
    return head_rows[list(new.words)]


def _mean_rows(model: ModelFolder, table: StoredTensor, n_new: int) -> FloatArray:
    words = model.tokenizer.whole_words
    places = np.fromiter(words.values(), np.int64, len(words)) if words else np.arange(table.n_rows)
    rows = table.rows(places).astype(np.float64)
    is_finite = np.isfinite(rows).all(axis=1)
    if not is_finite.any():
        raise InputError(f"{table.file}: {table.name!r} has no finite row. Fetch it again.")
    mean = rows[is_finite].mean(axis=0)
    return np.repeat(mean[None], n_new, axis=0)


def _notes(model: ModelFolder, stale: tuple[str, ...]) -> tuple[str, ...]:
    notes: list[str] = []
    if stale:
        copies = count(
            len(stale),
            "copy of the weights in another format was",
            "copies of the weights in other formats were",
        )
        notes.append(
            f"{copies} not copied, for lack of the new rows "
            f"({', '.join(stale[:3])}{' ...' if len(stale) > 3 else ''}). Export them again from "
            "the new folder."
        )
    old = [
        name
        for name in ("vocab.txt", "vocab.json", "merges.txt", "tokenizer.model", "spiece.model")
        if (model.home / name).exists()
    ]
    if old:
        notes.append(
            f"{', '.join(old)} {'lists' if len(old) == 1 else 'list'} the tokens of the original "
            "model. New tokens are in tokenizer.json, which transformers reads."
        )
    if model.tokenizer.style in ("bytes", "metaspace"):
        notes.append(
            "A new token takes in the space before it, so a text that is decoded from ids lacks "
            "that space."
        )
    return tuple(notes)
