"""A table and an embedding -> vectors of what the embedding lacks, or how well that would go."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from vecfill import checks
from vecfill._blas import one_blas_thread
from vecfill.errors import InputError, NoSignalError, OptionError
from vecfill.inputs.alignment import Alignment, align
from vecfill.inputs.files import Progress, quiet
from vecfill.inputs.match_report import MatchReport
from vecfill.model.fitted import Model, fit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, LatentSemantic, Predictor
from vecfill.model.space import MIN_DEGREES, Space
from vecfill.requests import Method, Reading, Trust, takes
from vecfill.result import Result
from vecfill.trust.choice import FEWEST_KNOWN, Choice
from vecfill.trust.confidence import Confidence
from vecfill.trust.decision import Decision, decide
from vecfill.trust.evaluation import Evaluation, evaluate_rows
from vecfill.trust.proof import Proof, prove
from vecfill.trust.scores import GOALS


@takes(reading=Reading, how=Method, trust=Trust)
def impute(
    table: Any,
    embedding: Any,
    *,
    matches: MatchReport | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    reading: Reading,
    how: Method,
    trust: Trust,
) -> Result:
    """Return vectors for the entities of a table that an embedding lacks.

    `table` describes the entities: a pandas, polars or Arrow table keyed by entity, a file, an edge
    list, or anything else that `vecfill.inputs.domain.as_domain` takes. `embedding` is an
    `Embedding`, the path of a file of vectors, a mapping from word to vector, or a table. `method`
    is ``"auto"``, which hides known entities and takes the method that imputes them best;
    ``"paper"``, the paper to the letter; or a predictor such as `vecfill.LatentSemantic`.
    `matches` says which entity is which word, instead of matching names here. `n_jobs` is the
    number of threads; the result is the same bits for any number.

    When the table carries no signal about the embedding, `NoSignalError` is raised unless `force`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> places = {f"town{i}": rng.normal(size=2) for i in range(60)}
    >>> known = {name: place @ np.eye(2, 5) for name, place in list(places.items())[:50]}
    >>> result = impute(places, known)
    >>> result.embedding
    Embedding(10 words, 5 dims, float64: 'town50', 'town51', 'town52', 'town53', 'town54', ...)
    >>> result.confidence.values.round(1)[:3]
    array([1., 1., 1.])
    """
    tell = progress or quiet
    alignment = align(table, embedding, reading, matches=matches, progress=progress)
    return impute_aligned(alignment, how, trust, n_jobs=n_jobs, progress=tell)


@one_blas_thread()
def impute_aligned(
    alignment: Alignment,
    how: Method,
    trust: Trust,
    *,
    n_jobs: int | None = None,
    progress: Progress = quiet,
) -> Result:
    """Return what `impute` does, for a table and an embedding that were brought together."""
    alignment.refuse_cut_off()
    asked = _asked(how)
    space = Space.of_domain(
        alignment.domain, min_degrees=_degrees(asked, how.method), n_jobs=n_jobs
    )
    decision = _decided(space, alignment, asked, how, progress)
    progress("imputing", 0, 2)
    model = _fitted(decision, space, alignment)
    progress("learning confidence", 1, 2)
    proof = prove(model, alignment, decision, level=trust.level, seed=how.seed)
    progress("done", 2, 2)
    is_kept = _is_kept(alignment, proof.confidence, trust)
    vectors = model.prediction.vectors
    return Result(
        alignment=alignment,
        model=model,
        decision=decision,
        proof=proof,
        is_kept=is_kept,
        norm_factors=norm_factors(vectors, model.known) if trust.calibrate_norms else None,
        notes=(*alignment.notes, *_degree_notes(asked or PAPER, space), *_said(decision, proof)),
    )


def _said(decision: Decision, proof: Proof) -> tuple[str, ...]:
    """Return what a user should know about rarity and about what cannot be proved."""
    said = []
    if decision.rule is not None:
        before, after = decision.on_block["none"], decision.on_block["offset"]
        said.append(
            "The offset of rare entities was taken into account: on the rarest known entities, "
            f"hidden, the centred cosine rose from {before['centred_cosine']:.2f} to "
            f"{after['centred_cosine']:.2f}."
        )
    said += [f"{each}." for each in proof.strata if each.n_unknown and not each.is_proved]
    return tuple(said)


def _decided(
    space: Space, alignment: Alignment, asked: Predictor | None, how: Method, progress: Progress
) -> Decision:
    """Return how to impute; refuse if nothing in the table speaks of the embedding."""
    if asked is not None:
        asked = asked.fitted_to(space)
    elif alignment.is_known.all() or not _can_choose(alignment, how):
        asked = PAPER.fitted_to(space)
    decision = decide(
        space,
        alignment.embedding,
        alignment.is_known,
        asked=asked,
        rarity=alignment.rarity,
        goal=how.goal,
        seed=how.seed,
        progress=partial(progress, "choosing the method"),
    )
    if decision.choice is not None and not decision.choice.has_signal and not how.force:
        raise NoSignalError(_no_signal(decision.choice))
    return decision


def _fitted(decision: Decision, space: Space, alignment: Alignment) -> Model:
    offsets, rarity = None, alignment.rarity
    if decision.rule is not None and rarity is not None:
        given = KnownRows(alignment.embedding, alignment.is_known)
        offsets = decision.rule.offsets(rarity.values, given)
    return fit(decision.predictor, space, alignment.embedding, alignment.is_known, offsets=offsets)


@takes(reading=Reading)
def evaluate(
    table: Any,
    embedding: Any,
    *,
    folds: int = 5,
    hide: str = "random",
    goal: str = "balanced",
    seed: int = 0,
    matches: MatchReport | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    reading: Reading,
) -> Evaluation:
    """Return how well hidden known entities come back, under `auto`, the paper and every rival.

    `table` and `embedding` are what `vecfill.impute` takes. Known entities are hidden in `folds`
    parts, one after the other; with ``hide="rarest"`` the rarest fifth and the rarest two fifths
    are hidden instead, which is nearer to what unknown entities are.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> places = {f"town{i}": rng.normal(size=2) for i in range(60)}
    >>> known = {name: place @ np.eye(2, 5) for name, place in list(places.items())[:50]}
    >>> report = evaluate(places, known)
    >>> report.n_known, report.n_unknown, report.has_signal
    (50, 10, True)
    """
    alignment = align(table, embedding, reading, matches=matches, progress=progress)
    tell = progress or quiet
    options = {"folds": folds, "hide": hide, "goal": goal, "seed": seed}
    return evaluate_aligned(alignment, **options, n_jobs=n_jobs, progress=tell)


@one_blas_thread()
def evaluate_aligned(
    alignment: Alignment,
    *,
    folds: int = 5,
    hide: str = "random",
    goal: str = "balanced",
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress = quiet,
) -> Evaluation:
    """Return what `evaluate` does, for a table and an embedding that were brought together."""
    n_known = alignment.n_known
    checks.whole_number(folds, "folds", low=2)
    checks.whole_number(seed, "seed", low=0)
    checks.one_of(hide, "hide", ("random", "rarest"))
    checks.one_of(goal, "goal", tuple(GOALS))
    if n_known < 2 * FEWEST_KNOWN or folds > n_known:
        raise InputError(
            f"Only {n_known} entities are known; {max(folds, 2 * FEWEST_KNOWN)} are needed to "
            f"hide them in {folds} folds and choose a method on the rest."
        )
    return evaluate_rows(
        Space.of_domain(alignment.domain, n_jobs=n_jobs),
        alignment.embedding,
        alignment.is_known,
        n_folds=folds,
        hide=hide,
        rarity=alignment.rarity,
        goal=goal,
        seed=seed,
        progress=partial(progress, "hiding known entities"),
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


def _asked(how: Method) -> Predictor | None:
    """Return the predictor that was asked for, or ``None`` if one is to be chosen."""
    if how.setting():
        return LatentSemantic(**how.setting())
    if how.method in (None, "auto"):
        return None
    if how.method == "paper":
        return PAPER
    if not isinstance(how.method, Predictor):
        raise OptionError(
            f"method is an object of type {type(how.method).__name__}. Use 'auto', 'paper' or a "
            "predictor such as LatentSemantic(min_degree=8)."
        )
    return how.method


def _degrees(asked: Predictor | None, method: object) -> tuple[int, ...]:
    """Return the least degrees whose graphs will be wanted."""
    min_degree = getattr(asked, "min_degree", None)
    # Methods by name share graphs with what they are compared with; one predictor needs its own.
    return MIN_DEGREES if min_degree is None or isinstance(method, str) else (min_degree,)


def _can_choose(alignment: Alignment, how: Method) -> bool:
    """Tell whether to choose; too few known entities are refused there unless forced."""
    return alignment.n_known >= FEWEST_KNOWN or not how.force


def _no_signal(choice: Choice) -> str:
    return (
        "The table carries no signal about this embedding: hidden known vectors came back no "
        f"nearer than chance (centred cosine {choice.honest.centred_cosine.mean():.3f}, "
        f"p = {choice.p_value:.2g}). Imputed vectors would be worse than the mean of the known "
        "ones. Check that names and rows belong together, or use another table; force=True "
        "(--force) imputes all the same."
    )


def _degree_notes(asked: Predictor, space: Space) -> tuple[str, ...]:
    """Say so if there are too few rows for the least degree asked for."""
    wanted = getattr(asked, "min_degree", 1)
    degree = space.degree(wanted)
    if degree == wanted:
        return ()
    return (f"There are only {space.n_rows} entities, so min_degree is {degree} and not {wanted}.",)


def _is_kept(alignment: Alignment, confidence: Confidence | None, trust: Trust) -> np.ndarray:
    """Tell which imputed entities have the confidence and the bound that were asked for."""
    n_unknown = int((~alignment.is_known).sum())
    limits = {"min_confidence": trust.min_confidence, "min_bound": trust.min_bound}
    asked = [name for name, limit in limits.items() if limit is not None]
    if not asked or n_unknown == 0:
        return np.ones(n_unknown, np.bool_)
    if confidence is None:
        raise InputError(
            f"{asked[0]} needs a confidence, and too few entities are known to learn one "
            f"({alignment.n_known}; {2 * FEWEST_KNOWN} are needed)."
        )
    is_kept = confidence.values >= (-1.0 if trust.min_confidence is None else trust.min_confidence)
    return is_kept & (
        confidence.lower_bound >= (-1.0 if trust.min_bound is None else trust.min_bound)
    )
