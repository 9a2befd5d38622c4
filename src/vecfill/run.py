"""A table and an embedding -> vectors of what the embedding lacks, or how well that would go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from vecfill import checks
from vecfill._blas import one_blas_thread
from vecfill.embedding import Embedding
from vecfill.errors import InputError, NoSignalError
from vecfill.inputs.files import Progress, quiet
from vecfill.inputs.match_report import MatchReport
from vecfill.inputs.names import Level
from vecfill.problem import Problem, problem_of
from vecfill.result import Run, Suspicion
from vecfill.settings import MIN_DEGREES, PAPER, Setting, Stages
from vecfill.trust.choice import FEWEST_KNOWN, Choice, choose
from vecfill.trust.confidence import (
    Confidence,
    Hidden,
    hide_and_impute,
    learn_confidence,
    signals,
    suspicious_rows,
)
from vecfill.trust.heldout import HeldoutReport, evaluate_rows


@one_blas_thread()
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
    tell = progress or quiet
    problem = problem_of(table, embedding, matches, match, aliases, exclude, domain_options)
    problem.refuse_cut_off()
    vectors, is_known = problem.embedding, problem.is_known
    asked = PAPER if isinstance(method, str) else method
    stages = problem.stages(MIN_DEGREES if isinstance(method, str) else (asked.min_degree,), n_jobs)

    choice, is_checkable = None, problem.n_known >= FEWEST_KNOWN and not is_known.all()
    if method == "auto" and not is_known.all() and (is_checkable or not force):
        step = partial(tell, "choosing the method")
        choice = choose(stages, vectors, is_known, seed=seed, progress=step)
        if not choice.has_signal and not force:
            raise NoSignalError(_no_signal_words(choice))
    setting = _fitting(asked if choice is None else choice.setting, stages)

    tell("imputing", 0, 2)
    found = stages.impute(vectors, is_known, setting)
    tell("learning confidence", 1, 2)
    hidden, confidence = None, None
    if is_checkable:
        hidden = hide_and_impute(stages, vectors, is_known, setting, seed=seed)
        seen = signals(stages, vectors, is_known, setting, found)
        confidence = learn_confidence(hidden, seen, level=level)
    tell("done", 2, 2)

    factors = norm_factors(found.vectors, vectors[is_known]) if calibrate_norms else None
    imputed = found.vectors if factors is None else found.vectors * factors[:, None]
    unknown, is_kept = problem.unknown, _is_kept(problem, confidence, min_confidence)
    return Run(
        embedding=Embedding(
            unknown[is_kept].tolist(), np.ascontiguousarray(imputed[is_kept], vectors.dtype)
        ),
        known=problem.known,
        matches=problem.matches,
        setting=setting,
        domain=problem.domain,
        confidence=_confidence_of(is_kept, confidence),
        heldout=None if hidden is None else hidden.scores,
        choice=choice,
        suspicious=() if hidden is None else _suspicions(problem, hidden),
        abstained=tuple(unknown[~is_kept].tolist()),
        notes=(*problem.notes, *_degree_notes(asked, stages)),
        stages=stages,
        is_known=is_known,
        imputation=found,
        norm_factors=factors,
    )


@one_blas_thread()
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
    problem = problem_of(table, embedding, matches, match, aliases, exclude, domain_options)
    n_known = problem.n_known
    checks.whole_number(folds, "folds", low=2)
    if n_known < 2 * FEWEST_KNOWN or folds > n_known:
        raise InputError(
            f"Only {n_known} entities are known; {max(folds, 2 * FEWEST_KNOWN)} are needed to "
            f"hide them in {folds} folds and choose a method on the rest."
        )
    return evaluate_rows(
        problem.stages(MIN_DEGREES, n_jobs),
        problem.embedding,
        problem.is_known,
        n_folds=folds,
        seed=seed,
        progress=partial(progress or quiet, "hiding known entities"),
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


def _degree_notes(asked: Setting, stages: Stages) -> tuple[str, ...]:
    """Say so if there are too few rows for the least degree asked for."""
    degree, n_rows = stages.min_degrees[0], stages.domain.shape[0]
    if degree == asked.min_degree:
        return ()
    return (
        f"There are only {n_rows} entities, so min_degree is {degree} and not {asked.min_degree}.",
    )


def _is_kept(
    problem: Problem, confidence: Confidence | None, min_confidence: float | None
) -> np.ndarray:
    """Tell which imputed entities have the confidence that was asked for."""
    if min_confidence is None or problem.unknown.size == 0:
        return np.ones(problem.unknown.size, np.bool_)
    if confidence is None:
        raise InputError(
            "min_confidence needs a confidence, and too few entities are known to learn one "
            f"({problem.n_known}; {2 * FEWEST_KNOWN} are needed)."
        )
    return confidence.values >= min_confidence


def _confidence_of(rows: np.ndarray, confidence: Confidence | None) -> Confidence | None:
    if confidence is None:
        return None
    values, lower_bound = confidence.values[rows], confidence.lower_bound[rows]
    return replace(confidence, values=values, lower_bound=lower_bound)


def _suspicions(problem: Problem, hidden: Hidden) -> tuple[Suspicion, ...]:
    words, found = problem.matches.words, []
    for place in suspicious_rows(hidden):
        entity = problem.domain.entities[hidden.rows[place]]
        cosine = float(hidden.scores.centred_cosine[place])
        found.append(Suspicion(entity, words[entity], cosine))
    return tuple(found)


def _no_signal_words(choice: Choice) -> str:
    return (
        "The domain carries no signal about this embedding: hidden known vectors came back no "
        f"nearer than chance (centred cosine {choice.honest.centred_cosine.mean():.3f}, "
        f"p = {choice.p_value:.2g}). Imputed vectors would be worse than the mean of the known "
        "ones. Check that names and rows belong together, or use another domain; force=True "
        "(--force) imputes all the same."
    )
