"""A model small enough to read, for examples and tests."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from vecfill.io.arrays import as_tensor
from vecfill.io.safetensors import write_tensors

WORDS = ("iron", "gold", "zinc", "lead", "ra", "tin")
PIECES = ("##ium", "##n", "##d", "##on")


def write_small_model() -> Path:
    """Write a folder with a WordPiece tokenizer of twelve tokens and a table of four dimensions.

    Examples
    --------
    >>> sorted(path.name for path in write_small_model().iterdir())
    ['config.json', 'model.safetensors', 'tokenizer.json']
    """
    folder = Path(tempfile.mkdtemp()) / "model"
    folder.mkdir()
    special = ("[PAD]", "[UNK]")
    tokens = (*special, *WORDS, *PIECES)
    added = [
        {"id": row, "content": token, "single_word": False, "lstrip": False, "rstrip": False,
         "normalized": False, "special": True}
        for row, token in enumerate(special)
    ]  # fmt: skip
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {token: row for row, token in enumerate(tokens)}},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "vocab_size": 12}))
    table = np.random.default_rng(0).normal(size=(len(tokens), 4)).astype(np.float32)
    tensors = {
        "embeddings.word_embeddings.weight": as_tensor(table),
        "encoder.weight": as_tensor(np.eye(4, dtype=np.float32)),
    }
    with (folder / "model.safetensors").open("wb") as file:
        write_tensors(file, tensors, {"format": "pt"})
    return folder
