# ruff: noqa: ARG001, ARG002
"""STAND-IN, to be replaced by merging main: the interface alone, the paper's setting."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError, NoSignalError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.match_report import MatchReport
from vecfill.inputs.names import match_names
from vecfill.inputs.prepared import Domain
from vecfill.settings import PAPER, Setting, Stages


@dataclass(frozen=True)
class Confidence:
    """Stand-in."""

    values: np.ndarray
    lower_bound: np.ndarray
    level: float


@dataclass(frozen=True)
class Explanation:
    """Stand-in."""

    word: str

    def to_dict(self) -> dict[str, Any]:
        """Stand-in."""
        return {"word": self.word}

    def __str__(self) -> str:
        return f"{self.word} is made of others"


@dataclass(frozen=True)
class Run:
    """Stand-in."""

    embedding: Embedding
    confidence: Confidence | None
    matches: MatchReport
    heldout: Any
    setting: Setting
    suspicious: tuple[Any, ...]
    abstained: tuple[str, ...]
    known: Embedding
    notes: tuple[str, ...]

    def explain(self, word: str, n: int = 10) -> Explanation:
        """Stand-in."""
        if word not in self.embedding:
            raise InputError(f"{word!r} was not imputed.")
        return Explanation(word)

    def to_dict(self) -> dict[str, Any]:
        """Stand-in."""
        return {"notes": list(self.notes), "suspicious": []}

    def report(self, path: Any, *, overwrite: bool = False) -> None:
        """Stand-in."""
        raise InputError("there is no report yet")


@dataclass(frozen=True)
class HeldoutReport:
    """Stand-in."""

    verdict: str

    def to_dict(self) -> dict[str, Any]:
        """Stand-in."""
        return {"verdict": self.verdict}

    def __str__(self) -> str:
        return f"method  mrr\n{self.verdict}"


def impute(
    table: Any,
    embedding: Embedding,
    *,
    method: str | Setting = "auto",
    matches: MatchReport | None = None,
    match: str = "loose",
    aliases: Any = None,
    exclude: Any = (),
    level: float = 0.9,
    min_confidence: float | None = None,
    calibrate_norms: bool = False,
    force: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    **domain_options: Any,
) -> Run:
    """Stand-in."""
    domain = table if isinstance(table, Domain) else as_domain(table, **domain_options)
    matches = matches or match_names(domain.entities, embedding.words)
    matches.require_matches()
    words = matches.words
    is_known = np.array([name in words for name in domain.entities])
    if is_known.sum() < 3 and not force:
        raise InputError(f"{is_known.sum()} known entities are too few. Pass force (--force).")
    known = Embedding(list(words), embedding[list(words.values())])
    values = np.full((len(domain), embedding.n_dims), np.nan)
    values[is_known] = known.vectors
    if not force and known.vectors.std() == 0:
        raise NoSignalError("The domain says nothing about this embedding.")
    setting = method if isinstance(method, Setting) else PAPER
    stages = Stages(
        domain.vectors,
        is_distances=domain.kind == "distances",
        min_degrees=(setting.min_degree,),
        n_jobs=n_jobs,
    )
    setting = Setting(min_degree=stages.min_degrees[0])
    if progress:
        progress("Imputing", 0, 1)
    found = stages.impute(values, is_known, setting)
    unknown = [name for name in domain.entities if name not in words]
    imputed = Embedding(unknown, found.vectors)
    ones = np.ones(len(unknown))
    return Run(
        imputed, Confidence(ones, ones - 0.5, level), matches, None, setting, (), (), known, ()
    )


def evaluate(
    table: Any,
    embedding: Embedding,
    *,
    folds: int = 5,
    seed: int = 0,
    matches: MatchReport | None = None,
    match: str = "loose",
    aliases: Any = None,
    exclude: Any = (),
    n_jobs: int | None = None,
    **domain_options: Any,
) -> HeldoutReport:
    """Stand-in."""
    assert matches is not None
    if folds > len(matches.words):
        raise InputError(f"folds={folds}, but there are only {len(matches.words)} known rows.")
    return HeldoutReport("good")
