"""A small LSTM language model, as in the small Penn Treebank setting."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn


@dataclass(frozen=True)
class Task:
    """One training: where the embedding layer starts, from which seed, on which streams."""

    start: str
    seed: int
    vectors: np.ndarray
    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    recipe: dict[str, Any]
    groups: dict[str, np.ndarray] = field(default_factory=dict)
    """Kinds of test tokens to be judged apart: a mask over the test stream each."""
    size: str = ""
    """Name of the share of the training lines that it learns from."""


class LanguageModel(nn.Module):
    """Words -> embedding -> two LSTM layers -> the next word.

    `cutoffs` cuts the output layer into groups of words by frequency: first the group, then the
    word in it. The probabilities of all words still sum to one, so perplexity is exact; rare
    words only cost less. Without cutoffs the output is one plain softmax.
    """

    def __init__(self, n_words: int, n_dims: int, recipe: dict[str, Any]) -> None:
        super().__init__()
        n_units = recipe["n_units"]
        self.embedding = nn.Embedding(n_words, n_dims, sparse=True)
        self.lstm = nn.LSTM(n_dims, n_units, num_layers=recipe["n_layers"])
        cutoffs = [cut for cut in recipe["cutoffs"] if cut < n_words - 1] or [n_words - 1]
        self.output = (
            nn.AdaptiveLogSoftmaxWithLoss(n_units, n_words, cutoffs, div_value=1.0, head_bias=True)
            if recipe["cutoffs"]
            else nn.Linear(n_units, n_words)
        )
        scale = recipe["init_scale"]
        for name, parameter in [*self.lstm.named_parameters(), *self.output.named_parameters()]:
            if "bias" in name:
                nn.init.zeros_(parameter)
            else:
                nn.init.uniform_(parameter, -scale, scale)

    def loss(self, inputs: torch.Tensor, targets: torch.Tensor, state: Any) -> tuple[Any, Any]:
        """Return the mean negative log-probability of a target, and the state after."""
        losses, state = self.losses(inputs, targets, state)
        return losses.mean(), state

    def losses(self, inputs: torch.Tensor, targets: torch.Tensor, state: Any) -> tuple[Any, Any]:
        """Return the negative log-probability of every target, and the state after."""
        hidden, state = self.lstm(self.embedding(inputs), state)
        flat, wanted = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)
        if isinstance(self.output, nn.AdaptiveLogSoftmaxWithLoss):
            losses = -self.output(flat, wanted).output
        else:
            losses = nn.functional.cross_entropy(self.output(flat), wanted, reduction="none")
        return losses.reshape(targets.shape), state


def train(task: Task) -> dict[str, Any]:
    """Train until the validation perplexity rises or the epochs are over; test the best epoch."""
    torch.set_num_threads(1)
    torch.manual_seed(task.seed)
    recipe = task.recipe
    n_words, n_dims = task.vectors.shape
    model = LanguageModel(n_words, n_dims, recipe)
    with torch.no_grad():
        model.embedding.weight.copy_(_filled(task.vectors, recipe["missing_std"], task.seed))

    best, best_valid, epochs = copy.deepcopy(model.state_dict()), float("inf"), []
    for epoch in range(recipe["n_epochs"]):
        wall, processor = time.perf_counter(), time.process_time()
        rate = recipe["learning_rate"] * 0.5 ** max(0, epoch + 1 - recipe["full_rate_epochs"])
        fit = _epoch(model, task.train, recipe, rate=rate)
        valid = perplexity(model, task.valid, recipe)
        epochs.append(
            {
                "train": fit,
                "valid": valid,
                "seconds": time.perf_counter() - wall,
                "processor seconds": time.process_time() - processor,
            }
        )
        if valid >= best_valid:
            break
        best, best_valid = copy.deepcopy(model.state_dict()), valid
    model.load_state_dict(best)
    losses = token_losses(model, task.test, recipe)
    # The first token of the stream is given, not predicted, and the last few fill no column.
    masks = {name: mask[1 : len(losses) + 1] for name, mask in task.groups.items()}
    return {
        "start": task.start,
        "size": task.size,
        "seed": task.seed,
        "test": float(np.exp(losses.mean())),
        "groups": {
            name: [float(losses[mask].sum()), int(mask.sum())] for name, mask in masks.items()
        },
        "valid": best_valid,
        "epochs": epochs,
    }


def perplexity(model: LanguageModel, stream: np.ndarray, recipe: dict[str, Any]) -> float:
    """Return the exact perplexity of a stream, cut into as many columns as in training."""
    return float(np.exp(token_losses(model, stream, recipe).mean()))


def token_losses(model: LanguageModel, stream: np.ndarray, recipe: dict[str, Any]) -> np.ndarray:
    """Return the negative log-probability of each token of a stream from the second on, in order.

    Tokens at the end that fill no column are left out.
    """
    found, state = [], None
    with torch.no_grad():
        for inputs, targets in _pieces(stream, recipe["batch"], 5 * recipe["n_steps"]):
            losses, state = model.losses(inputs, targets, state)
            found.append(losses.numpy())
    return np.concatenate(found).T.ravel().astype(np.float64)


def _epoch(
    model: LanguageModel, stream: np.ndarray, recipe: dict[str, Any], *, rate: float
) -> float:
    total, count, state = 0.0, 0, None
    parameters = list(model.parameters())
    for inputs, targets in _pieces(stream, recipe["batch"], recipe["n_steps"]):
        loss, state = model.loss(inputs, targets, state)
        state = tuple(part.detach() for part in state)
        for parameter in parameters:
            parameter.grad = None
        # The setting's loss is a sum over the steps; its learning rate is meant for that.
        (loss * len(inputs)).backward()
        _descend(parameters, rate, recipe["max_norm"])
        total += float(loss.detach()) * targets.numel()
        count += targets.numel()
    return float(np.exp(total / count))


def _descend(parameters: list[nn.Parameter], rate: float, max_norm: float) -> None:
    """Take one step of gradient descent, the gradient's length cut at `max_norm`."""
    # A group of words that a piece of text does not use gets no gradient.
    parameters = [p for p in parameters if p.grad is not None]
    with torch.no_grad():
        gradients = [p.grad.coalesce() if p.grad.is_sparse else p.grad for p in parameters]
        squares = [(g.values() if g.is_sparse else g).square().sum() for g in gradients]
        norm = float(torch.stack(squares).sum().sqrt())
        step = rate * min(1.0, max_norm / max(norm, 1e-12))
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.add_(gradient, alpha=-step)


def _pieces(stream: np.ndarray, batch: int, n_steps: int) -> Any:
    """Cut a stream into `batch` columns and these into pieces, each with what comes next."""
    length = (len(stream) - 1) // batch
    inputs = torch.from_numpy(stream[: length * batch].reshape(batch, length).T.copy())
    targets = torch.from_numpy(stream[1 : length * batch + 1].reshape(batch, length).T.copy())
    for first in range(0, length, n_steps):
        yield inputs[first : first + n_steps], targets[first : first + n_steps]


def _filled(vectors: np.ndarray, std: float, seed: int) -> torch.Tensor:
    """Words without a vector start from noise, a word from the same noise under every start."""
    noise = np.random.default_rng(seed).normal(0.0, std, size=vectors.shape)
    return torch.from_numpy(np.where(np.isnan(vectors), noise, vectors).astype(np.float32))
