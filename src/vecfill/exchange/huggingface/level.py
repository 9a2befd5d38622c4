"""How likely new tokens are as output: as likely as their counts or their ranks say.

A row that is imputed points where its word belongs, but it says little of how often the word comes.
The mean hidden state says that: a step along it, made small by the covariance of hidden states,
raises the score of a token by nearly the same amount everywhere. So each row takes the step with
which its mean probability is what it should be, and stays as it is otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecfill.embedding import FloatArray
from vecfill.errors import InputError
from vecfill.exchange.huggingface.running import Ids, RunningModel

LEVELS = ("counts", "rank", "off")
FEWEST_KNOWN = 50
"""Known words with a count or a rank from which the level of new ones is learnt."""
LEAST_CORRELATION = 0.3
"""Correlation of log rank or log count with log probability below which neither tells a level; in
SmolLM2 it is .6 to .7 with the ranks of GloVe."""
SMOOTHING = 0.1
"""Share of the mean variance of hidden states that is added in each direction."""
MOST_SCORES = 12.0
"""Largest step, in units that add one to the mean score; frequencies of words differ by less."""
N_HALVINGS = 40
BLOCK = 256
"""Hidden states whose scores over the whole vocabulary are held at once."""


@dataclass(frozen=True)
class Levelled:
    """Rows that are as likely as they should be, and their mean probability before."""

    rows: FloatArray
    by: str
    """What said how likely: counts or rank."""
    before: float
    """Mean probability of the new tokens together, in text of the model's own kind."""
    after: float

    def to_dict(self) -> dict[str, Any]:
        """Return figures as plain values, for JSON."""
        names = ("by", "before", "after")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return (
            f"by {self.by}: all new tokens together have a probability of {self.after:.2g} in "
            f"ordinary text, {self.before:.2g} as imputed"
        )


@dataclass(frozen=True)
class Frequencies:
    """How frequent words are, as logarithms: of the known ones, and of the new terms."""

    by: str
    known: Mapping[str, float]
    new: Mapping[str, float]


class OutputSample:
    """Hidden states of texts, and what the model makes of them."""

    def __init__(self, running: RunningModel, texts: Sequence[Ids]) -> None:
        torch = running.torch
        self.running = running
        # What stands before the first token is nothing, and tells of no text.
        states = torch.cat([hidden[1:] for hidden in running.hidden(texts) if len(hidden) > 1])
        self.states = states
        head = running.head[: running.n_rows]
        bias = getattr(running.network.get_output_embeddings(), "bias", None)
        normalizers, total = [], torch.zeros(running.n_rows, dtype=torch.float64)
        with running.quiet():
            for block in states.split(BLOCK):
                scores = block @ head.T
                scores = scores if bias is None else scores + bias[: running.n_rows]
                normalizer = torch.logsumexp(scores, dim=1)
                total = total + (scores - normalizer[:, None]).exp().sum(dim=0, dtype=torch.float64)
                normalizers.append(normalizer)
        self.normalizers = torch.cat(normalizers)
        self.mean_chances = (total / len(states)).numpy()

    def taken(self, rows: FloatArray) -> tuple[float, float]:
        """Return the mean probability that goes to some new rows together, and the mean loss by it.

        The loss is what every other token gives up, in nats.
        """
        torch = self.running.torch
        with self.running.quiet():
            scores = self.states @ torch.tensor(np.asarray(rows, np.float32)).T
            log_odds = torch.logsumexp((scores - self.normalizers[:, None]).double(), dim=1)
            mass = torch.sigmoid(log_odds).mean()
            return float(mass), float(torch.nn.functional.softplus(log_odds).mean())

    def direction(self) -> np.ndarray:
        """Return the step that adds one to the mean score, and as evenly as can be."""
        states = self.states.double().numpy()
        mean = states.mean(axis=0)
        covariance = np.cov(states.T)
        ridge = SMOOTHING * np.trace(covariance) / len(mean)
        step = np.linalg.solve(covariance + ridge * np.eye(len(mean)), mean)
        return step / float(step @ mean)

    def moved(self, rows: FloatArray, targets: np.ndarray) -> FloatArray:
        """Return rows whose mean probabilities are the targets, or as near as steps can bring them.

        The logarithm of a mean probability is a convex function of the step. Where it falls, the
        row is on its way to states that are unlike the mean one, so only its rising part is used.
        """
        step = self.direction()
        states = self.states.double().numpy()
        scores = states @ rows.astype(np.float64).T - self.normalizers.double().numpy()[:, None]
        along = (states @ step)[:, None]

        def falls(steps: np.ndarray) -> np.ndarray:
            shares = np.exp(scores + steps * along)
            return (shares * along).sum(axis=0) < 0

        def is_too_low(steps: np.ndarray) -> np.ndarray:
            return np.exp(scores + steps * along).mean(axis=0) < targets

        high = np.full(len(rows), MOST_SCORES)
        lowest = _last(falls, -high, high)
        return (rows + _last(is_too_low, lowest, high)[:, None] * step).astype(rows.dtype)


def _last(holds: Any, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return where a condition that holds below some value ceases to hold, by halving."""
    for _ in range(N_HALVINGS):
        middle = (low + high) / 2
        is_below = holds(middle)
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return (low + high) / 2


def levelled(
    sample: OutputSample,
    rows: FloatArray,
    terms: Sequence[str],
    ids_of_words: Mapping[str, int],
    frequencies: Frequencies,
) -> Levelled | str:
    """Return rows at the level that counts or ranks say; or why those say nothing."""
    words = [word for word in frequencies.known if word in ids_of_words]
    if len(words) < FEWEST_KNOWN:
        return (
            f"{frequencies.by} are known for {len(words)} whole words of the model, and "
            f"{FEWEST_KNOWN} are needed to learn what they mean"
        )
    amounts = np.array([frequencies.known[word] for word in words])
    chances = sample.mean_chances[[ids_of_words[word] for word in words]]
    logs = np.log(np.maximum(chances, 1e-30))
    correlation = float(np.corrcoef(amounts, logs)[0, 1]) if np.ptp(amounts) > 0 else 0.0
    if not correlation >= LEAST_CORRELATION:
        return (
            f"{frequencies.by} do not go with how likely words of the model are (correlation "
            f"{correlation:.2f})"
        )
    slope, base = np.polyfit(amounts, logs, 1)
    usual = float(np.median(list(frequencies.new.values()) or amounts))
    of_terms = np.array([frequencies.new.get(term, usual) for term in terms])
    # The line goes through logarithms, so it gives a typical word. Words that are likelier than
    # that have most of the probability, so the mean over words lies above.
    above = float(np.exp(logs - (base + slope * amounts)).mean())
    rows_at_level = sample.moved(rows, above * np.exp(base + slope * of_terms))
    masses = [sample.taken(part)[0] for part in (rows, rows_at_level)]
    return Levelled(rows_at_level, frequencies.by, *masses)


def checked_level(level: str | None) -> str | None:
    """Return a level that exists, or ``None`` for what is known."""
    if level is not None and level not in LEVELS:
        raise InputError(f"level={level!r} is none of {', '.join(LEVELS)}.")
    return level


def as_frequencies(by: str, amounts: Mapping[str, Any], terms: Sequence[str]) -> Frequencies:
    """Return counts, or ranks from 1, as logarithms that grow with frequency.

    Examples
    --------
    >>> round(as_frequencies("rank", {"the": 1, "radon": 100}, ["radon"]).new["radon"], 1)
    -4.6
    """
    sign = 1.0 if by == "counts" else -1.0
    logs = {word: sign * float(np.log(amount)) for word, amount in amounts.items() if amount > 0}
    new = set(terms)
    return Frequencies(
        by,
        {word: value for word, value in logs.items() if word not in new},
        {word: value for word, value in logs.items() if word in new},
    )
