"""What the columns of the fitted table were like, and how columns that come later differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecfill.inputs.entities import did_you_mean, listed
from vecfill.inputs.table.columns import Categories, Numbers
from vecfill.wording import percent

FEWEST_OF_BATCH = 20
"""New entities from which a column is compared with the fitted one as a whole; a guess. By chance,
the mean of so many differs by a quarter of a spread or more once in four times."""

SHIFTED = 1.0
"""Spreads by which the mean of a batch differs from that of the fit if the column is another one. A
guess: chance gives a quarter."""

MULTIPLE = 2.0
"""Ratio from which on values are said to be so many times what they were; a guess."""

ALIKE = 1.5
"""How far the ratios of means and of spreads may differ if both come from another unit; a guess."""

RARELY = 0.01
"""Share of the fitted entities that lacked a fact, below which lacking it is unusual; a guess."""

MORE_OFTEN = 0.2
"""By how much more of a batch may lack a fact before that is said; a guess."""

MOST_CATEGORIES = 50
"""Categories that are kept by name; a guess at what a person reads."""


@dataclass(frozen=True)
class ColumnFacts:
    """What a column of the fitted table was like."""

    name: str
    kind: str
    """``"number"``, ``"category"`` or ``"text"``."""
    missing: float
    """Share of the fitted entities that lacked it."""
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    spread: float | None = None
    categories: tuple[str, ...] = ()
    """The categories, if they are at most `MOST_CATEGORIES`."""
    n_categories: int = 0

    @classmethod
    def of(cls, column: Numbers | Categories, *, is_text: bool = False) -> ColumnFacts:
        """Return what a column that was read is like.

        Examples
        --------
        >>> facts = ColumnFacts.of(Numbers("mass", np.array([1.0, 3.0, np.nan, np.nan])))
        >>> facts.missing, facts.low, facts.high, facts.mean
        (0.5, 1.0, 3.0, 2.0)
        """
        missing = float(column.is_missing.mean())
        if isinstance(column, Numbers):
            mean, spread = column.mean_and_spread
            low, high = float(column.present.min()), float(column.present.max())
            return cls(column.name, "number", missing, low, high, mean, spread)
        if is_text:
            return cls(column.name, "text", missing)
        n_categories = len(column.labels)
        labels = tuple(column.labels) if n_categories <= MOST_CATEGORIES else ()
        return cls(column.name, "category", missing, categories=labels, n_categories=n_categories)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: type, share missing, and range or categories."""
        about: dict[str, Any] = {"type": self.kind, "missing": self.missing}
        if self.kind == "number":
            return {**about, "low": self.low, "high": self.high}
        if self.kind == "category":
            named = {"categories": list(self.categories)} if self.categories else {}
            return {**about, "n_categories": self.n_categories, **named}
        return about

    def lacking(self) -> str:
        """Return why lacking this fact is unusual; empty if it is not."""
        if self.missing >= RARELY:
            return ""
        few = "hardly any fitted entity lacked" if self.missing else "no fitted entity lacked"
        return f"{self.name} is missing, which {few}"

    def shift(self, values: np.ndarray) -> str:
        """Return how numbers of a batch differ from the fitted ones as a whole; empty if alike.

        Examples
        --------
        >>> price = ColumnFacts("price", "number", 0.0, 80.0, 120.0, mean=100.0, spread=10.0)
        >>> price.shift(np.linspace(640, 960, 30))
        'price is 8 times what it was'
        >>> price.shift(np.linspace(105, 135, 30))
        'price is 2.0 spreads higher than it was'
        """
        values = values[np.isfinite(values)]
        if values.size < FEWEST_OF_BATCH or not self.spread or self.mean is None:
            return ""
        largest = max(float(np.abs(values).max()), abs(self.mean), self.spread)
        scaled = values / largest
        mean, spread = float(scaled.mean()), float(scaled.std())
        fitted_mean, fitted_spread = self.mean / largest, self.spread / largest
        apart = (mean - fitted_mean) / fitted_spread
        stretch = spread / fitted_spread
        if abs(fitted_mean) > fitted_spread and mean * fitted_mean > 0 and stretch > 0:
            times = mean / fitted_mean
            is_unit = 1 / ALIKE < times / stretch < ALIKE
            if is_unit and max(times, 1 / times) >= MULTIPLE:
                how_much = f"{times:.3g} times" if times > 1 else f"1/{1 / times:.3g} of"
                return f"{self.name} is {how_much} what it was"
        if abs(apart) >= SHIFTED:
            side = "higher" if apart > 0 else "lower"
            return f"{self.name} is {abs(apart):.1f} spreads {side} than it was"
        if max(stretch, 1 / max(stretch, 1e-9)) >= 2 * MULTIPLE and stretch > 1:
            return f"{self.name} spreads {stretch:.3g} times as far as it did"
        return ""

    def drift(self, is_lacking: np.ndarray) -> str:
        """Return whether a batch lacks the fact far more often than the fit; empty if not."""
        share = float(is_lacking.mean())
        if is_lacking.size < FEWEST_OF_BATCH or share < self.missing + MORE_OFTEN:
            return ""
        return (
            f"{self.name} is missing or unknown for {percent(share)} of the new entities, and was "
            f"for {percent(self.missing)} of the fitted ones"
        )


def refusal_of_absent(
    label: str, fitted: Sequence[str], ignored: Sequence[str], present: Sequence[str]
) -> str:
    """Return why a table that lacks fitted columns is refused; empty if it lacks none.

    Examples
    --------
    >>> refusal_of_absent("the table", ["price", "city"], [], ["Price", "city"])
    "the table lacks 'price', which the model was fitted with. Did you mean 'Price'? ..."
    """
    absent = [name for name in fitted if name not in present]
    if not absent:
        return ""
    extra = [name for name in present if name not in fitted and name not in ignored]
    questions = {name: did_you_mean(name, extra) for name in absent[:5]}
    said = "".join(
        f" For {name!r}:{question}" if len(absent) > 1 else question
        for name, question in questions.items()
        if question
    )
    return (
        f"{label} lacks {listed(absent, 5)}, which the model was fitted with.{said} Without them "
        "vectors are worse: rename the columns, add them with null cells where nothing is known, "
        "or pass missing='allow'."
    )
