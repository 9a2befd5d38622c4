"""A small causal transformer over words, with one table for input and output."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

Recipe = dict[str, Any]


class Transformer(nn.Module):
    """Predicts each word from the words before it in its window."""

    def __init__(self, n_words: int, recipe: Recipe) -> None:
        super().__init__()
        n_dims, self.n_steps = recipe["n_dims"], recipe["n_steps"]
        self.words = nn.Embedding(n_words, n_dims)
        self.places = nn.Embedding(self.n_steps, n_dims)
        layer = nn.TransformerEncoderLayer(
            n_dims, recipe["n_heads"], 4 * n_dims, dropout=0.1, batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, recipe["n_layers"], enable_nested_tensor=False)
        self.norm = nn.LayerNorm(n_dims)
        nn.init.normal_(self.words.weight, std=0.05)
        nn.init.normal_(self.places.weight, std=0.05)
        self.register_buffer("mask", nn.Transformer.generate_square_subsequent_mask(self.n_steps))

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return a score of every word at every place."""
        n_steps = numbers.shape[1]
        hidden = self.words(numbers) + self.places.weight[:n_steps]
        hidden = self.layers(hidden, mask=self.mask[:n_steps, :n_steps], is_causal=True)
        return self.norm(hidden) @ self.words.weight.T

    def with_rows(self, rows: np.ndarray) -> Transformer:
        """Return a copy whose table has further rows."""
        old = self.words.weight.detach()
        recipe = {
            "n_dims": old.shape[1],
            "n_steps": self.n_steps,
            "n_layers": len(self.layers.layers),
            "n_heads": self.layers.layers[0].self_attn.num_heads,
        }
        new = Transformer(len(old) + len(rows), recipe)
        state = self.state_dict()
        state["words.weight"] = torch.cat([old, torch.tensor(rows, dtype=old.dtype)])
        new.load_state_dict(state)
        return new


def trained(model: Transformer, stream: np.ndarray, n_epochs: int, recipe: Recipe) -> Transformer:
    """Train `model` in place on a stream of word numbers, and return it."""
    torch.manual_seed(recipe["seed"])
    n_batches = sum(1 for _ in _batches(stream, model.n_steps, recipe["batch"], None))
    optimizer = torch.optim.AdamW(model.parameters(), lr=recipe["learning_rate"])
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe["learning_rate"], total_steps=n_epochs * n_batches
    )
    model.train()
    rng = np.random.default_rng(recipe["seed"])
    for _ in range(n_epochs):
        for seen, following in _batches(stream, model.n_steps, recipe["batch"], rng):
            loss = cross_entropy(model(seen).flatten(0, 1), following.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return model


@torch.no_grad()
def losses(model: Transformer, stream: np.ndarray, batch: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the loss of each word of a stream, and the words, in the same order."""
    model.eval()
    found, words = [], []
    for seen, following in _batches(stream, model.n_steps, batch, None):
        scores = model(seen).flatten(0, 1)
        found.append(cross_entropy(scores, following.flatten(), reduction="none").numpy())
        words.append(following.flatten().numpy())
    return np.concatenate(found), np.concatenate(words)


def _batches(
    stream: np.ndarray, n_steps: int, batch: int, rng: np.random.Generator | None
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield windows of a stream and the same windows one word later."""
    n_windows = (len(stream) - 1) // n_steps
    starts = n_steps * np.arange(n_windows)
    if rng is not None:
        rng.shuffle(starts)
    steps = np.arange(n_steps)
    for first in range(0, n_windows, batch):
        places = starts[first : first + batch, None] + steps
        yield torch.from_numpy(stream[places]), torch.from_numpy(stream[places + 1])
