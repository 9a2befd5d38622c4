"""News headlines of companies: read, split by line with a seed, and counted into a vocabulary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

UNKNOWN = "<unk>"
END = "<eos>"
_FILES = ("authors_finance_ptb.valid.txt", "authors_finance_ptb.test.txt")

Lines = list[list[str]]


@dataclass(frozen=True)
class Headlines:
    """Three parts of the headlines, a list of words a line."""

    train: Lines
    valid: Lines
    test: Lines


def read_headlines(data: Path, *, seed: int, train_share: float, valid_share: float) -> Headlines:
    """Return the joined headlines, shuffled by line and split.

    The files are sorted by company, so that without the shuffle the parts would share no names.
    """
    lines = []
    for file in _FILES:
        text = (data / "finance" / file).read_text(encoding="utf-8")
        lines += [line.split() for line in text.splitlines() if line.strip()]
    order = np.random.default_rng(seed).permutation(len(lines))
    lines = [lines[number] for number in order]
    first, second = (
        round(len(lines) * share) for share in (train_share, train_share + valid_share)
    )
    return Headlines(lines[:first], lines[first:second], lines[second:])


def vocabulary(train: Lines, *, min_count: int) -> list[str]:
    """Return the words of `train` seen at least `min_count` times, the most frequent first."""
    counts = Counter(word for line in train for word in line)
    counts[END] = len(train)
    counts.setdefault(UNKNOWN, 0)
    kept = [word for word, n in counts.items() if n >= min_count or word == UNKNOWN]
    return sorted(kept, key=lambda word: (-counts[word], word))


def as_numbers(lines: Lines, words: list[str]) -> np.ndarray:
    """Return the lines as one stream of word numbers, each line closed by ``<eos>``."""
    number = {word: row for row, word in enumerate(words)}
    unknown = number[UNKNOWN]
    stream = [number.get(word, unknown) for line in lines for word in (*line, END)]
    return np.array(stream, dtype=np.int64)
