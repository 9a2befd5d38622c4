"""What `add` gives: vectors of entities that came after the fit, and how far to trust them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.entities import listed
from vecfill.trust.explain import Explanation
from vecfill.trust.prove.confidence import Confidence
from vecfill.wording import count

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Added:
    """New entities with vectors, confidence and reasons.

    Examples
    --------
    >>> from vecfill import impute
    >>> from vecfill.sample import towns
    >>> places, known = towns()
    >>> added = impute(places, known).to_model().add({"newtown": [0.1, 0.2], "town3": [0.0, 0.0]})
    >>> added
    Added: 1 new entity; confidence 1.00
      already known  'town3'
    >>> added.embedding["newtown"].round(1)
    array([0.1, 0.2, 0. , 0. , 0. ])
    """

    embedding: Embedding
    """The new entities and their vectors."""
    confidence: Confidence | None
    """How far to trust each of them; ``None`` if the model has learnt no confidence."""
    unusual: dict[str, tuple[str, ...]]
    """New entities unlike anything fitted, and why; their bounds are cautious."""
    already_known: tuple[str, ...]
    """Entities of the new table whose vectors the model knows; they were not imputed."""
    already_imputed: tuple[str, ...]
    """Entities of the new table that the model has imputed before."""
    undescribed: tuple[str, ...]
    """Entities that no source describes that the model uses; they got no vector."""
    notes: tuple[str, ...]
    _explained: Callable[[int, int], Explanation] = field(repr=False)

    def explain(self, word: str, n: int = 10) -> Explanation:
        """Return the `n` known entities that contribute most to a new one."""
        if word not in self.embedding:
            raise InputError(
                f"{printable(word)!r} is not among the {len(self.embedding)} new entities."
            )
        return self._explained(self.embedding.row(word), n)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "added": [self._about(row) for row in range(len(self.embedding))],
            "already_known": list(self.already_known),
            "already_imputed": list(self.already_imputed),
            "undescribed": list(self.undescribed),
            "notes": list(self.notes),
        }

    def _about(self, row: int) -> dict[str, Any]:
        word = self.embedding.words[row]
        about: dict[str, Any] = {"entity": word, "unusual": list(self.unusual.get(word, ()))}
        if self.confidence is not None:
            about["confidence"] = float(self.confidence.values[row])
            about["lower_bound"] = float(self.confidence.lower_bound[row])
        return about

    def to_pandas(self) -> pd.DataFrame:
        """Return one row for each new entity: vector, confidence, bound, what is unusual."""
        import pandas  # noqa: PLC0415

        sure = self.confidence
        words = self.embedding.words
        columns = {
            "confidence": None if sure is None else sure.values,
            "lower_bound": None if sure is None else sure.lower_bound,
            "unusual": ["; ".join(self.unusual.get(word, ())) for word in words],
            "vector": list(self.embedding.vectors),
        }
        return pandas.DataFrame(columns, index=pandas.Index(words, name="entity"))

    def __repr__(self) -> str:
        n_new = len(self.embedding)
        head = f"Added: {count(n_new, 'new entity')}"
        if self.confidence is not None and n_new:
            head += f"; confidence {float(np.median(self.confidence.values)):.2f}"
        lines = [head]
        for title, names in (
            ("already known", self.already_known),
            ("already imputed", self.already_imputed),
            ("not described", self.undescribed),
            ("unusual", tuple(self.unusual)),
        ):
            if names:
                lines.append(f"  {title:13}  {listed(names)}")
        return "\n".join(lines)
