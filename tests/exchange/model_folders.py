"""Model folders made by hand: any kind of tokenizer, type, shards, heads and padding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.exchange.huggingface.tensors import to_stored

N_DIMS = 6
INPUT = "model.embed_tokens.weight"
HEAD = "lm_head.weight"
SPACE = "\u0120"  # what stands for a space in byte-level vocabularies
WORDS = ["iron", "gold", "zinc", "lead", "tin", "neon"]


def added(row: int, content: str, *, special: bool) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": row, "content": content, **flags, "special": special}


def word_piece() -> dict[str, Any]:
    tokens = ["[PAD]", "[UNK]", "[unused0]", *WORDS, "r", "##a", "##d", "##ium", "##on", "##n"]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(0, "[PAD]", special=True), added(1, "[UNK]", special=True)],
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {token: row for row, token in enumerate(tokens)}},
    }  # fmt: skip


def _merged(words: list[str], start: str) -> tuple[list[str], list[str]]:
    """Return characters, then the merges that build each word from its left end."""
    characters = sorted({char for word in words for char in start + word})
    tokens, merges = [], []
    for word in words:
        left = start
        for char in word:
            merges.append(f"{left} {char}")
            left += char
            tokens.append(left)
    unique = list(dict.fromkeys([*characters, *tokens]))
    return unique, list(dict.fromkeys(merges))


def byte_level() -> dict[str, Any]:
    tokens, merges = _merged(["iron", "gold", "zinc", "lead", "tin", "neon", "radium"], SPACE)
    tokens = [token for token in tokens if token != SPACE + "radium"]
    merges = [merge for merge in merges if merge != f"{SPACE}radiu m"]
    part = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(len(tokens), "<|end|>", special=True)],
        "normalizer": None, "pre_tokenizer": part, "post_processor": None, "decoder": part,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "byte_fallback": False,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "ignore_merges": False, "merges": merges,
                  "vocab": {token: row for row, token in enumerate(tokens)}},
    }  # fmt: skip


def metaspace(*, by_normalizer: bool = False) -> dict[str, Any]:
    tokens, merges = _merged(["iron", "gold", "zinc", "lead", "tin", "neon"], "▁")
    letters = [char for char in "rauimx" if char not in tokens]
    tokens = ["<unk>", "<s>", "<0x41>", *tokens, *letters]
    split = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    spaces = [
        {"type": "Prepend", "prepend": "▁"},
        {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
    ]
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [added(0, "<unk>", special=True), added(1, "<s>", special=True)],
        "normalizer": {"type": "Sequence", "normalizers": spaces} if by_normalizer else None,
        "pre_tokenizer": None if by_normalizer else split, "post_processor": None,
        "decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always",
                    "split": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "byte_fallback": True,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "ignore_merges": False, "merges": merges,
                  "vocab": {token: row for row, token in enumerate(tokens)}},
    }  # fmt: skip


def unigram() -> dict[str, Any]:
    spec = metaspace()
    tokens = ["<unk>", "<s>", *(f"▁{word}" for word in WORDS), "▁", *"abcdegilmnorstuz", "ium"]
    scores = [[token, 0.0 if row < 2 else -float(row) / 4] for row, token in enumerate(tokens)]
    spec["model"] = {"type": "Unigram", "unk_id": 0, "vocab": scores, "byte_fallback": False}
    return spec


TOKENIZERS = {
    "word_piece": word_piece,
    "byte_level": byte_level,
    "metaspace": metaspace,
    "metaspace_by_normalizer": lambda: metaspace(by_normalizer=True),
    "unigram": unigram,
}


def n_tokens(spec: dict[str, Any]) -> int:
    vocab = spec["model"]["vocab"]
    names = vocab if isinstance(vocab, dict) else [token for token, _ in vocab]
    return len({*names, *(each["content"] for each in spec["added_tokens"])})


def write_safetensors(path: Path, tensors: dict[str, tuple[str, tuple[int, ...], bytes]]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, (dtype, shape, data) in tensors.items():
        offsets = [place, place + len(data)]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        place += len(data)
    text = json.dumps(header).encode()
    body = b"".join(data for _, _, data in tensors.values())
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def stored(array: np.ndarray, dtype: str) -> tuple[str, tuple[int, ...], bytes]:
    return dtype, array.shape, to_stored(array, dtype, "a test's tensor")


def write_folder(
    folder: Path,
    spec: dict[str, Any],
    *,
    dtype: str = "F32",
    head: str = "tied",
    shards: int = 1,
    n_padding: int = 0,
    others: dict[str, tuple[str, tuple[int, ...], bytes]] | None = None,
) -> Path:
    """Write a folder; `head` is tied, stored (a tied one that is stored too), untied, or biased."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    n_rows = n_tokens(spec) + n_padding
    table = rng.normal(size=(n_rows, N_DIMS))
    tensors = {
        "model.layers.0.weight": stored(rng.normal(size=(3, 4)), dtype),
        INPUT: stored(table, dtype),
        "model.norm.weight": stored(rng.normal(size=5), dtype),
    }
    if head == "stored":
        tensors[HEAD] = stored(table, dtype)
    if head in ("untied", "biased"):
        tensors[HEAD] = stored(rng.normal(size=(n_rows, N_DIMS)), dtype)
    if head == "biased":
        tensors["lm_head.bias"] = stored(rng.normal(size=n_rows), dtype)
    tensors |= others or {}
    _write_weights(folder, tensors, shards)
    (folder / "tokenizer.json").write_text(json.dumps(spec, ensure_ascii=False, indent=2))
    (folder / "tokenizer_config.json").write_text('{"model_max_length": 512}\n')
    config = {"vocab_size": n_rows, "text_config": {"vocab_size": n_rows}, "hidden_size": N_DIMS}
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "README.md").write_text("A model made by hand.\n")
    return folder


def _write_weights(folder: Path, tensors: dict[str, Any], shards: int) -> None:
    if shards == 1:
        write_safetensors(folder / "model.safetensors", tensors)
        return
    names = list(tensors)
    places = {}
    for number in range(shards):
        file = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = names[number::shards]
        write_safetensors(folder / file, {name: tensors[name] for name in part})
        places |= dict.fromkeys(part, file)
    total = sum(len(data) for _, _, data in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(places.items()))}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
