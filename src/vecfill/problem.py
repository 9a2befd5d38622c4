"""Table and embedding brought together: a domain row for each entity, a vector for those known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecfill._types import EmbeddingVectors, KnownMask
from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.match_report import MatchReport
from vecfill.inputs.names import Level, match_names
from vecfill.inputs.prepared import Domain
from vecfill.settings import Stages


@dataclass(frozen=True)
class Problem:
    """What is given: rows keep the order of the domain, and an unknown row is all NaN."""

    domain: Domain
    matches: MatchReport
    embedding: EmbeddingVectors
    is_known: KnownMask

    @property
    def n_known(self) -> int:
        """How many entities have a vector."""
        return int(self.is_known.sum())

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say about table and names."""
        return (*self.domain.notes, *self.matches.notes)

    @property
    def known(self) -> Embedding:
        """The known entities, by their names in the table, and their vectors."""
        return Embedding(self._entities[self.is_known].tolist(), self.embedding[self.is_known])

    @property
    def unknown(self) -> np.ndarray:
        """Names of the entities that have no vector."""
        return self._entities[~self.is_known]

    @property
    def _entities(self) -> np.ndarray:
        return np.array(self.domain.entities, dtype=object)

    def stages(self, min_degrees: tuple[int, ...], n_jobs: int | None) -> Stages:
        """Return the stages of the method on this domain."""
        return Stages(
            self.domain.vectors,
            is_distances=self.domain.kind == "distances",
            min_degrees=min_degrees,
            n_jobs=n_jobs,
        )

    def refuse_cut_off(self) -> None:
        """Refuse a graph in which some entities have no path to a known one."""
        cut_off = self.domain.cut_off(set(self.matches.words))
        if cut_off:
            shown = ", ".join(printable(name) for name in cut_off[:3])
            raise InputError(
                f"{len(cut_off)} entities of the graph have no path to a known one ({shown}"
                f"{' ...' if len(cut_off) > 3 else ''}). Leave them out, or add edges."
            )


def problem_of(
    table: Any,
    embedding: Embedding,
    matches: MatchReport | None,
    match: Level,
    aliases: Mapping[str, str] | None,
    exclude: Iterable[str],
    domain_options: Mapping[str, Any],
) -> Problem:
    """Return what is given to `impute` and `evaluate`, whose options these are.

    Examples
    --------
    >>> base = Embedding(["Oslo"], [[1.0, 2.0]])
    >>> problem_of({"oslo": [0.0], "Bern": [1.0]}, base, None, "loose", None, (), {}).embedding
    array([[ 1.,  2.],
           [nan, nan]])
    """
    domain = table if isinstance(table, Domain) else as_domain(table, **domain_options)
    if matches is None:
        matches = match_names(
            domain.entities, embedding.words, level=match, aliases=aliases, exclude=exclude
        )
    matches.require_matches()
    words = matches.words
    is_known = np.array([entity in words for entity in domain.entities])
    vectors = np.full((len(domain), embedding.n_dims), np.nan, embedding.vectors.dtype)
    vectors[is_known] = [embedding[words[e]] for e in domain.entities if e in words]
    return Problem(domain, matches, vectors, is_known)
