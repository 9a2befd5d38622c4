"""Columns of too many values for one indicator each -> a few dense columns."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecfill.inputs.table.columns import Categories
from vecfill.inputs.texts.tfidf import TextModel, text_rows, words_of

MOST_INDICATORS = 256
"""Categories of one column that get an indicator each."""

N_SIGNS = 128
"""Columns that stand for more categories than that."""

N_TEXT_COMPONENTS = 64

FEWEST_TEXTS = 20
FEWEST_WORDS = 3.0
"""Words of a cell, on average, from which a column may be text."""

USUAL = 0.05
"""Share of the fitted rows that make a category of their own, or a text that shares no word with
others, nothing unusual in later rows."""

_LOOKED_AT = 1000


@dataclass(frozen=True, eq=False)
class Compact:
    """Dense columns that stand for one column of a table."""

    names: list[str]
    values: np.ndarray
    """(n_rows, n_columns); together they have variance 1. Rows without a value are zero."""
    note: str
    scale: float = 1.0
    """By what values were multiplied to have that variance."""
    text: TextModel | None = None
    """How texts became rows, if these are texts."""
    frequent: tuple[str, ...] = ()
    """Categories of more than one row, if these are categories."""
    share_alone: float = 0.0
    """Share of the rows whose category or text has nothing in common with any other row."""

    @property
    def expects_new(self) -> bool:
        """Whether later rows that have nothing in common with the fitted ones are usual."""
        return self.share_alone >= USUAL


def compacted(column: Categories) -> Compact | None:
    """Return a column of text or of very many categories as a few columns, or None.

    None means that the column can be used as it is.
    """
    if not column.is_asked and (found := _as_text(column)) is not None:
        return found
    n_present = int((column.codes >= 0).sum())
    is_identifier = len(column.labels) == n_present
    if len(column.labels) <= MOST_INDICATORS or is_identifier:
        return None
    return _as_signs(column)


def _as_text(column: Categories) -> Compact | None:
    """Return TF-IDF of a column if nearly every cell is another text of several words."""
    rows = np.flatnonzero(column.codes >= 0)
    if len(column.labels) < max(FEWEST_TEXTS, len(rows) / 2):
        return None
    step = -(-len(column.labels) // _LOOKED_AT)
    n_words = np.mean([len(words_of(label)) for label in column.labels[::step]])
    if n_words < FEWEST_WORDS:
        return None
    texts = ["" if code < 0 else column.labels[code] for code in column.codes.tolist()]
    found = text_rows(texts, n_components=N_TEXT_COMPONENTS)
    # Identifiers of several words each, such as keys and addresses, share none.
    if 2 * found.is_present.sum() < len(rows) or not found.vectors.size:
        return None
    values = np.zeros((len(texts), found.vectors.shape[1]))
    values[found.is_present] = found.vectors
    names = [f"{column.name} (text) {number + 1}" for number in range(values.shape[1])]
    note = (
        f"Column {column.name!r} holds text ({len(column.labels):,} values of {n_words:.0f} words "
        f"on average): used as TF-IDF of {values.shape[1]} components, which together count as "
        "much as one category. Name it in categorical= or ignore= if it is no text."
    )
    alone = 1.0 - found.is_present.sum() / len(rows)
    return _scaled(names, values, note, text=found.model, share_alone=float(alone))


def _as_signs(column: Categories) -> Compact | None:
    """Return random signs for each category, made from its label alone.

    Any two categories are then about equally far apart, as they are with indicators. A
    decomposition of the indicators would not do: they are orthogonal, so it would keep the most
    frequent categories and mix up all others. A category of one row cannot be shared, so all such
    are pooled.
    """
    times = np.bincount(column.codes[column.codes >= 0], minlength=len(column.labels))
    is_rare = times == 1
    n_rare = int(is_rare.sum())
    signs = np.array(
        [
            signs_of("" if is_alone else f"={label}")
            for label, is_alone in zip(column.labels, is_rare.tolist(), strict=True)
        ]
    )
    values = np.zeros((len(column.codes), N_SIGNS))
    values[column.codes >= 0] = signs[column.codes[column.codes >= 0]]
    names = [f"{column.name} (hashed) {number + 1}" for number in range(N_SIGNS)]
    pooled = f" {n_rare:,} that occur once are taken as one." if n_rare else ""
    note = (
        f"Column {column.name!r} has {len(column.labels):,} categories: they are encoded in "
        f"{N_SIGNS} columns, which together count as much as one category.{pooled}"
    )
    frequent = tuple(column.labels[place] for place in np.flatnonzero(~is_rare))
    alone = n_rare / max(1, int(times.sum()))
    return _scaled(names, values, note, frequent=frequent, share_alone=alone)


def signs_of(label: str) -> np.ndarray:
    """Return the random signs that stand for a category."""
    digest = hashlib.blake2b(label.encode("utf-8", "surrogatepass"), digest_size=N_SIGNS // 8)
    return np.unpackbits(np.frombuffer(digest.digest(), np.uint8)) * 2.0 - 1.0


def _scaled(names: list[str], values: np.ndarray, note: str, **details: Any) -> Compact | None:
    variance = float(values.var(axis=0).sum())
    if not variance > 0:
        return None
    scale = float(1.0 / np.sqrt(variance))
    return Compact(names, values / np.sqrt(variance), note, scale=scale, **details)
