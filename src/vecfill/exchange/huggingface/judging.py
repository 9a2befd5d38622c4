"""Do new tokens harm? The model before and after, on the terms and on ordinary text.

A new token is read well if sentences with it mean to the model what they meant when it read the
pieces. How near both can come, words of the vocabulary show: their own tokens against the pieces
that they would be split into without them. New tokens that are farther from their pieces than
that are not better words but noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from vecfill.exchange.huggingface.folder import ModelFolder
from vecfill.exchange.huggingface.level import OutputSample
from vecfill.exchange.huggingface.pieces import PieceFinder
from vecfill.exchange.huggingface.running import Ids, RunningModel
from vecfill.exchange.huggingface.sentences import JUDGED, ORDINARY

MOST_JUDGED = {"encoder": 100, "causal": 40}
"""Terms, and whole words, that are looked at; means are known to a few percent by then, and causal
models are larger."""
MOST_LOSS, MOST_LOSS_EACH = 0.02, 1e-4
"""Loss that ordinary text may gain, in nats, by probability that goes to new tokens: in all, or for
each of many. Of 200 hidden words of SmolLM2, the true rows take about as much."""
FEWEST_WORDS = 20
"""Whole words that say how near a token is to its pieces."""
MOST_FARTHER = {"encoder": 1.0, "causal": 1.5}
"""How many times as far as whole words new tokens may be from their pieces. Medical terms of MiniLM
that agreed less with people than their pieces were 1.2 and 1.5 times as far, distilled ones .3. In
SmolLM2, rows of hidden words that are good by their losses were 1.3 times as far."""
CLEAR = 2.0
"""Standard errors by which a difference is beyond chance."""
SHORTEST = 4
"""Letters of a whole word that is compared with its pieces."""


@dataclass(frozen=True)
class HarmCheck:
    """The model before and after, in figures."""

    harms: tuple[str, ...]
    """What the new tokens make worse; nothing, if they are read as well as whole words are."""
    n_terms: int
    agreement: float
    """Mean cosine between readings of sentences by new tokens and by pieces."""
    usual: float | None
    """The same for whole words of the vocabulary; ``None`` if too few of them can be split."""
    tokens_saved: float
    """Tokens that a term takes less, on average."""
    is_unchanged: bool
    """Whether ordinary sentences have the same ids, and so the same readings to the bit."""
    mass: float | None = None
    """Probability of all new tokens together in ordinary sentences; of causal models."""
    loss: float | None = None
    """What ordinary sentences lose by that, in nats for a token."""

    def __str__(self) -> str:
        verdict = "no harm found"
        if self.harms:
            verdict = f"the new tokens harm, as {' and '.join(self.harms)}"
        usual = "" if self.usual is None else f" ({self.usual:.2f} for whole words and theirs)"
        line = (
            f"{verdict}: {self.tokens_saved:.1f} tokens fewer a term, read like the pieces with a "
            f"cosine of {self.agreement:.2f}{usual}; ordinary text "
            f"{'keeps' if self.is_unchanged else 'does not keep'} its ids"
        )
        if self.mass is None:
            return line
        return f"{line} and gives {self.mass:.2g} of its probability away ({self.loss:.4f} nats)"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def harm_of(running: RunningModel, model: ModelFolder, sample: OutputSample | None) -> HarmCheck:
    """Compare readings by new tokens, which must be in the tables, with those by pieces."""
    places = _some(len(running.terms), MOST_JUDGED[str(running.kind)])
    terms = [running.terms[place] for place in places]
    sentences = [running.joined(text.format(term)) for text in JUDGED for term in terms]
    split = [running.split(text.format(term)) for text in JUDGED for term in terms]
    of_terms = _agreement(running, sentences, split).reshape(len(JUDGED), -1).mean(axis=0)
    of_words = _agreement(running, *_words(running, model)).reshape(len(JUDGED), -1).mean(axis=0)
    harms: list[str] = []
    if of_words.size >= FEWEST_WORDS:
        farther = MOST_FARTHER[str(running.kind)]
        difference = float((1 - of_terms).mean() - farther * (1 - of_words).mean())
        errors = [part.std() / np.sqrt(part.size) for part in (of_terms, farther * of_words)]
        if difference > CLEAR * float(np.hypot(*errors)):
            harms.append("they are farther from the reading of the pieces than whole words are")
    is_unchanged = _is_unchanged(running)
    if not is_unchanged:
        harms.append("ordinary sentences change their ids")
    mass = loss = None
    if sample is not None:
        mass, loss = sample.taken(running.head[running.ids].numpy())
        if loss > max(MOST_LOSS, MOST_LOSS_EACH * len(running.terms)):
            harms.append("ordinary text gives them too much probability")
    return HarmCheck(
        tuple(harms),
        len(terms),
        float(of_terms.mean()),
        float(of_words.mean()) if of_words.size >= FEWEST_WORDS else None,
        float(np.mean([len(a) - len(b) for a, b in zip(split, sentences, strict=True)])),
        is_unchanged,
        mass,
        loss,
    )


def _some(n: int, n_most: int) -> list[int]:
    """Return places spread evenly over all."""
    return np.unique(np.linspace(0, n - 1, min(n, n_most)).round().astype(int)).tolist()


def _words(running: RunningModel, model: ModelFolder) -> tuple[list[Ids], list[Ids]]:
    """Return sentences with whole words, read by their tokens and by their pieces."""
    finder = PieceFinder(model)
    pieces: dict[str, tuple[int, Ids]] = {}
    for word, row in model.tokenizer.whole_words.items():
        if len(word) >= SHORTEST and word.isalpha() and word.islower():
            ids = finder.ids(word)
            if len(ids) > 1 and row not in ids:
                pieces[word] = (row, ids)
    words = list(pieces)
    joined, split = [], []
    for text in JUDGED:
        for place in _some(len(words), MOST_JUDGED[str(running.kind)]):
            row, ids = pieces[words[place]]
            whole = running.split(text.format(words[place]))
            joined.append(whole)
            at = whole.index(row) if row in whole else None
            split.append(whole if at is None else [*whole[:at], *ids, *whole[at + 1 :]])
    return joined, split


def _agreement(running: RunningModel, joined: Sequence[Ids], split: Sequence[Ids]) -> np.ndarray:
    """Return the cosine of both readings of each text."""
    if not running.is_causal:
        return (running.vectors(joined) * running.vectors(split)).sum(axis=1)
    torch = running.torch
    cosines = []
    for states, other_states, ids, other_ids in zip(
        running.hidden(joined), running.hidden(split), joined, split, strict=True
    ):
        # From the end back, texts are the same up to the term.
        n = next(
            (i for i in range(min(len(ids), len(other_ids))) if ids[-1 - i] != other_ids[-1 - i]), 0
        )
        n = max(n, 1)
        similarity = torch.nn.functional.cosine_similarity(states[-n:], other_states[-n:], dim=1)
        cosines.append(float(similarity.mean()))
    return np.array(cosines)


def _is_unchanged(running: RunningModel) -> bool:
    """Tell whether ordinary sentences keep their ids; rows of these keep their bytes."""
    is_new = set(running.ids).intersection
    texts = [text for text in ORDINARY if not is_new(running.joined(text))]
    return all(running.joined(text) == running.split(text) for text in texts)
