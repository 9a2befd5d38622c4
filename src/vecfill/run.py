"""One imputation from a table and an embedding, with everything there is to say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vecfill import checks
from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError, NoSignalError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.match_report import MatchReport
from vecfill.inputs.names import Level, match_names
from vecfill.inputs.prepared import Domain
from vecfill.settings import MIN_DEGREES, PAPER, Imputation, Setting, Stages
from vecfill.trust.choice import FEWEST_KNOWN, Choice, choose
from vecfill.trust.confidence import (
    Confidence,
    Hidden,
    hide_and_impute,
    learn_confidence,
    signals,
    suspicious_rows,
)
from vecfill.trust.explain import Contributions, Explanation, place_of
from vecfill.trust.heldout import HeldoutReport, evaluate_rows
from vecfill.trust.scores import RowScores

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many steps are done, and how many there are."""


@dataclass(frozen=True)
class Suspicion:
    """A known entity whose hidden vector its imputation contradicts."""

    entity: str
    word: str
    centred_cosine: float
    """Between its vector and what its neighbours make of it."""


@dataclass(frozen=True)
class Run:
    """What was imputed, how, from what, and how far to trust it."""

    embedding: Embedding
    """The imputed entities and their vectors."""
    known: Embedding
    """The known entities, by their names in the table, and their vectors."""
    matches: MatchReport
    setting: Setting
    domain: Domain = field(repr=False)
    confidence: Confidence | None = field(repr=False)
    """Aligned with `embedding`; ``None`` when too few entities are known to learn it."""
    heldout: RowScores | None = field(repr=False)
    """Scores of known rows hidden and imputed again under the chosen setting. `evaluate` scores
    the choice itself, against rivals."""
    choice: Choice | None = field(repr=False)
    suspicious: tuple[Suspicion, ...]
    abstained: tuple[str, ...]
    """Entities left out because their confidence was below what was asked for."""
    notes: tuple[str, ...]
    stages: Stages = field(repr=False)
    is_known: np.ndarray = field(repr=False)
    imputation: Imputation = field(repr=False)
    norm_factors: np.ndarray | None = field(repr=False)
    """Factors of a calibration of lengths; ``None`` if there was none."""

    def explain(self, word: str, n: int = 10) -> Explanation:
        """Return the known entities that an imputed one is made of, and their shares.

        The `n` largest are listed; the shares of all known entities sum to one.
        """
        unknown = [self.domain.entities[row] for row in np.flatnonzero(~self.is_known)]
        place = place_of(word, unknown, self.known.words)
        shares = self.contributions([place])[0]
        order = np.argsort(-shares, kind="stable")[:n]
        order = order[shares[order] > 0]
        names = tuple(self.known.words[i] for i in order)
        return Explanation(word, names, shares[order], float(self.trend_shares()[place]))

    def contributions(self, places: Iterable[int]) -> np.ndarray:
        """Return shares of all known entities (across) in some unknown ones (down).

        Unknown entities are numbered in the order of the table, those left out included.
        """
        return self._contributions.of(np.fromiter(places, np.int64))

    @property
    def _contributions(self) -> Contributions:
        # One factorisation serves every explanation of this run.
        kept = self.__dict__.get("_kept_contributions")
        if kept is None:
            kept = Contributions(self.stages.weights(self.setting), self.is_known)
            self.__dict__["_kept_contributions"] = kept
        return kept

    def trend_shares(self) -> np.ndarray:
        """Return the trend's share in each unknown vector's way from the mean of the known ones."""
        n_unknown = int((~self.is_known).sum())
        trend = self.imputation.trend
        if trend is None:
            return np.zeros(n_unknown)
        centre = self.known.vectors.mean(axis=0, dtype=np.float64)
        way = np.linalg.norm(trend.values[~self.is_known] - centre, axis=1)
        rest = np.linalg.norm(self.imputation.vectors - trend.values[~self.is_known], axis=1)
        total = way + rest
        return np.divide(way, total, out=np.ones(n_unknown), where=total > 0)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON and manifests."""
        return {
            "n_known": len(self.known),
            "n_imputed": len(self.embedding),
            "method": self.setting.to_dict(),
            "matched": dict(self.matches.counts),
            "heldout": None if self.heldout is None else self.heldout.means(),
            "p_value": None if self.choice is None else self.choice.p_value,
            "confidence": None
            if self.confidence is None
            else {
                "level": self.confidence.level,
                "coverage": self.confidence.coverage,
                "entities": {
                    word: {"confidence": float(value), "lower_bound": float(bound)}
                    for word, value, bound in zip(
                        self.embedding.words,
                        self.confidence.values,
                        self.confidence.lower_bound,
                        strict=True,
                    )
                },
            },
            "suspicious": [
                {"entity": s.entity, "word": s.word, "centred_cosine": s.centred_cosine}
                for s in self.suspicious
            ],
            "abstained": list(self.abstained),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class _Problem:
    """Table and embedding brought together: a domain row each, a vector for those known."""

    domain: Domain
    matches: MatchReport
    embedding: np.ndarray
    is_known: np.ndarray
    words: dict[str, str]

    def stages(self, min_degrees: tuple[int, ...], n_jobs: int | None) -> Stages:
        return Stages(
            self.domain.vectors,
            is_distances=self.domain.kind == "distances",
            min_degrees=min_degrees,
            n_jobs=n_jobs,
        )


def _problem(
    table: Any,
    embedding: Embedding,
    *,
    matches: MatchReport | None,
    match: Level,
    aliases: Mapping[str, str] | None,
    exclude: Iterable[str],
    domain_options: dict[str, Any],
) -> _Problem:
    domain = table if isinstance(table, Domain) else as_domain(table, **domain_options)
    if matches is None:
        matches = match_names(
            domain.entities, embedding.words, level=match, aliases=aliases, exclude=exclude
        )
    matches.require_matches()
    words = dict(matches.words)
    vectors = np.full((len(domain), embedding.n_dims), np.nan, embedding.vectors.dtype)
    is_known = np.array([entity in words for entity in domain.entities])
    vectors[is_known] = [embedding[words[e]] for e in domain.entities if e in words]
    return _Problem(domain, matches, vectors, is_known, words)


def impute(
    table: Any,
    embedding: Embedding,
    *,
    method: str | Setting = "auto",
    matches: MatchReport | None = None,
    match: Level = "loose",
    aliases: Mapping[str, str] | None = None,
    exclude: Iterable[str] = (),
    level: float = 0.9,
    min_confidence: float | None = None,
    calibrate_norms: bool = False,
    force: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **domain_options: Any,
) -> Run:
    """Return vectors for the entities of a table that an embedding lacks.

    `table` is anything `vecfill.inputs.domain.as_domain` takes (a pandas, polars or Arrow table
    keyed by entity, a file, an edge list ...), with `domain_options` passed on to it. `method` is
    ``"auto"``, which tries settings on hidden known entities and takes the best; ``"paper"``,
    the paper to the letter; or a `Setting`. Entities are matched to words at the level `match`,
    or as `matches` says. With `min_confidence`, entities below it are left out.

    When the domain says nothing about the embedding, `NoSignalError` is raised unless `force`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> places = {f"town{i}": rng.normal(size=2) for i in range(60)}
    >>> known = Embedding(list(places)[:50], np.array(list(places.values()))[:50] @ np.eye(2, 5))
    >>> run = impute(places, known)
    >>> len(run.embedding), bool(run.confidence.values.min() > 0.5)
    (10, True)
    >>> float(run.explain("town55", n=50).shares.sum().round(6))
    1.0
    """
    checks.number(level, "level", low=0, high=1, open_low=True)
    if isinstance(method, str):
        checks.one_of(method, "method", ("auto", "paper"))
    problem = _problem(
        table,
        embedding,
        matches=matches,
        match=match,
        aliases=aliases,
        exclude=exclude,
        domain_options=domain_options,
    )
    vectors, is_known = problem.embedding, problem.is_known
    notes = [*problem.domain.notes, *problem.matches.notes]
    _refuse_cut_off(problem)
    degrees = (method.min_degree,) if isinstance(method, Setting) else MIN_DEGREES
    stages = problem.stages(degrees, n_jobs)
    if degrees[0] > stages.min_degrees[0]:
        notes.append(
            f"There are only {is_known.size} entities, so min_degree is "
            f"{stages.min_degrees[0]} and not {degrees[0]}."
        )
    choice, setting, hidden = None, PAPER if isinstance(method, str) else method, None
    is_checkable = int(is_known.sum()) >= FEWEST_KNOWN and not is_known.all()
    if method == "auto" and not is_known.all() and (is_checkable or not force):

        def step(done: int, of: int) -> None:
            if progress is not None:
                progress("choosing the method", done, of)

        choice = choose(stages, vectors, is_known, seed=seed, progress=step)
        setting = choice.setting
        if not choice.has_signal and not force:
            raise NoSignalError(_no_signal_words(choice))
    setting = _fitting(setting, stages)
    if progress is not None:
        progress("imputing", 0, 2)
    found = stages.impute(vectors, is_known, setting)
    if progress is not None:
        progress("learning confidence", 1, 2)
    confidence, suspicious = None, ()
    if is_checkable:
        hidden = hide_and_impute(stages, vectors, is_known, setting, seed=seed)
        seen = signals(stages, vectors, is_known, setting, found)
        confidence = learn_confidence(hidden, seen, level=level)
        suspicious = _suspicions(problem, hidden)
    if progress is not None:
        progress("done", 2, 2)
    imputed, factors = found.vectors, None
    if calibrate_norms:
        factors = norm_factors(imputed, vectors[is_known])
        imputed = imputed * factors[:, None]
    unknown = np.array(problem.domain.entities, dtype=object)[~is_known]
    is_kept = np.ones(unknown.size, np.bool_)
    if min_confidence is not None:
        if confidence is None:
            raise InputError(
                "min_confidence needs a confidence, and too few entities are known to learn one "
                f"({int(is_known.sum())}; {2 * FEWEST_KNOWN} are needed)."
            )
        is_kept = confidence.values >= min_confidence
        confidence = _kept(confidence, is_kept)
    return Run(
        embedding=Embedding(
            unknown[is_kept].tolist(), np.ascontiguousarray(imputed[is_kept], vectors.dtype)
        ),
        known=Embedding(
            [e for e, known in zip(problem.domain.entities, is_known, strict=True) if known],
            vectors[is_known],
        ),
        matches=problem.matches,
        setting=setting,
        domain=problem.domain,
        confidence=confidence,
        heldout=None if hidden is None else hidden.scores,
        choice=choice,
        suspicious=suspicious,
        abstained=tuple(unknown[~is_kept].tolist()),
        notes=tuple(notes),
        stages=stages,
        is_known=is_known,
        imputation=found,
        norm_factors=factors,
    )


def evaluate(
    table: Any,
    embedding: Embedding,
    *,
    folds: int = 5,
    seed: int = 0,
    matches: MatchReport | None = None,
    match: Level = "loose",
    aliases: Mapping[str, str] | None = None,
    exclude: Iterable[str] = (),
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **domain_options: Any,
) -> HeldoutReport:
    """Return how well hidden known entities come back, under `auto`, the paper and every rival.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> places = {f"town{i}": rng.normal(size=2) for i in range(60)}
    >>> known = Embedding(list(places)[:50], np.array(list(places.values()))[:50] @ np.eye(2, 5))
    >>> report = evaluate(places, known)
    >>> report.n_known, report.n_unknown, report.has_signal
    (50, 10, True)
    """
    problem = _problem(
        table,
        embedding,
        matches=matches,
        match=match,
        aliases=aliases,
        exclude=exclude,
        domain_options=domain_options,
    )
    n_known = int(problem.is_known.sum())
    checks.whole_number(folds, "folds", low=2)
    if n_known < 2 * FEWEST_KNOWN or folds > n_known:
        raise InputError(
            f"Only {n_known} entities are known; {max(folds, 2 * FEWEST_KNOWN)} are needed to "
            f"hide them in {folds} folds and choose a method on the rest."
        )

    def step(done: int, of: int) -> None:
        if progress is not None:
            progress("hiding known entities", done, of)

    stages = problem.stages(MIN_DEGREES, n_jobs)
    return evaluate_rows(
        stages, problem.embedding, problem.is_known, n_folds=folds, seed=seed, progress=step
    )


def norm_factors(imputed: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Return factors that give imputed rows the distribution of lengths of the known ones.

    The order of lengths stays: the k-th shortest imputed row gets the length of the known row
    that stands at the same share of the way.

    Examples
    --------
    >>> norm_factors(np.array([[1.0], [2.0]]), np.array([[2.0], [4.0], [6.0]])).tolist()
    [3.0, 2.5]
    """
    lengths = np.linalg.norm(imputed, axis=1)
    rank = (np.argsort(np.argsort(lengths, kind="stable"), kind="stable") + 0.5) / lengths.size
    wanted = np.quantile(np.linalg.norm(known, axis=1), rank)
    return np.divide(wanted, lengths, out=np.ones(lengths.size), where=lengths > 0)


def _fitting(setting: Setting, stages: Stages) -> Setting:
    """Return the setting with a least degree that the number of rows admits."""
    if setting.preparation not in stages.preparations:
        raise InputError(
            f"preparation={setting.preparation!r} needs domain vectors, and this domain has only "
            f"distances. Use one of {', '.join(stages.preparations)}."
        )
    if stages.is_distances and setting.gamma is not None:
        raise InputError("A trend needs domain vectors, and this domain has only distances.")
    degree = min(setting.min_degree, max(stages.min_degrees))
    return Setting(setting.preparation, degree, setting.ridge, setting.gamma)


def _refuse_cut_off(problem: _Problem) -> None:
    known = {e for e, k in zip(problem.domain.entities, problem.is_known, strict=True) if k}
    cut_off = problem.domain.cut_off(known)
    if cut_off:
        shown = ", ".join(printable(name) for name in cut_off[:3])
        raise InputError(
            f"{len(cut_off)} entities of the graph have no path to a known one ({shown}"
            f"{' ...' if len(cut_off) > 3 else ''}). Leave them out, or add edges."
        )


def _suspicions(problem: _Problem, hidden: Hidden) -> tuple[Suspicion, ...]:
    found = []
    for place in suspicious_rows(hidden):
        entity = problem.domain.entities[hidden.rows[place]]
        cosine = float(hidden.scores.centred_cosine[place])
        found.append(Suspicion(entity, problem.words[entity], cosine))
    return tuple(found)


def _kept(confidence: Confidence, is_kept: np.ndarray) -> Confidence:
    return Confidence(
        confidence.values[is_kept],
        confidence.lower_bound[is_kept],
        confidence.level,
        confidence.expected,
        confidence.actual,
        confidence.coverage,
    )


def _no_signal_words(choice: Choice) -> str:
    return (
        "The domain carries no signal about this embedding: hidden known vectors came back no "
        f"nearer than chance (centred cosine {choice.honest.centred_cosine.mean():.3f}, "
        f"p = {choice.p_value:.2g}). Imputed vectors would be worse than the mean of the known "
        "ones. Check that names and rows belong together, or use another domain; force=True "
        "(--force) imputes all the same."
    )
