"""A GGUF file: the whole words of its vocabulary and their rows, as numbers.

Such a file can describe words, and words of it can be a source. New tokens are written to folders
with safetensors files only, because a GGUF file is made from such a folder and not the other way.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import FloatArray
from vecfill.errors import FormatError, InputError, library
from vecfill.exchange.huggingface.tokenizer import Style, word_of

SUFFIX = ".gguf"
INPUT, HEAD = "token_embd.weight", "output.weight"
_STYLES: dict[str, Style] = {"gpt2": "bytes", "llama": "metaspace", "bert": "metaspace"}
"""How each kind of vocabulary shows that a token begins a word; that of BERT is rewritten so."""
_WORDS = (1, 4)
"""Types of tokens that can be words: normal, and defined by the user."""
TO_FOLDER = (
    "model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name); "
    "model.hf_quantizer = None; del model.config.quantization_config; "
    "model.save_pretrained(new); "
    "AutoTokenizer.from_pretrained(folder, gguf_file=name).save_pretrained(new)"
)
"""Python that makes a folder of a GGUF file, with transformers, torch, gguf and accelerate."""


def is_gguf(path: Any) -> bool:
    """Tell whether something is the path of a GGUF file.

    Examples
    --------
    >>> is_gguf("model.Q4_1.gguf"), is_gguf("glove.txt")
    (True, False)
    """
    return isinstance(path, str | Path) and Path(path).suffix.lower() == SUFFIX


def gguf_words(path: Path, *, tensor: str) -> tuple[list[str], FloatArray]:
    """Return the whole words of a GGUF file and their rows in a table, in the order of ids.

    Quantised rows are what the file says they are: block after block, scale times integer.
    """
    gguf = library("gguf", extra="gguf")
    try:
        reader = gguf.GGUFReader(path)
        fields = {name: reader.fields[f"tokenizer.ggml.{name}"] for name in ("model", "tokens")}
        kind, tokens = (field.contents() for field in fields.values())
        types = reader.fields.get("tokenizer.ggml.token_type")
        tables = {stored.name: stored for stored in reader.tensors}
    except FileNotFoundError:
        raise InputError(f"{path} does not exist. Check the spelling and the folder.") from None
    except Exception as error:  # the library checks little, so damage shows as any error
        raise FormatError(
            f"{path} cannot be read as a GGUF file with a vocabulary ({error!r}). Fetch it again."
        ) from error
    if kind not in _STYLES:
        raise InputError(
            f"{path}: its vocabulary is of the kind {kind!r}. Those of {', '.join(_STYLES)} can "
            "be used."
        )
    if tensor not in tables:
        raise InputError(f"{path} has no table {tensor!r}.")
    can_be_words = [True] * len(tokens)
    if types is not None:
        can_be_words = [number in _WORDS for number in types.contents()]
    rows: dict[str, int] = {}
    for row, (token, can_be_word) in enumerate(zip(tokens, can_be_words, strict=True)):
        word = word_of(token, _STYLES[kind]) if can_be_word else None
        if word:
            rows.setdefault(word, row)
    table = tables[tensor]
    places = np.fromiter(rows.values(), np.int64, len(rows))
    try:
        # Rows are stored one after the other, so those of pieces need not be unpacked.
        vectors = gguf.quants.dequantize(table.data[places], table.tensor_type)
    except (NotImplementedError, IndexError, ValueError) as error:
        raise FormatError(
            f"{path}: {tensor!r} cannot be read as {table.tensor_type.name} ({error}). Use a file "
            "of another type, such as Q8_0 or F16."
        ) from error
    return list(rows), np.asarray(vectors, np.float32)
