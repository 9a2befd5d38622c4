"""A table and an embedding -> vectors of what the embedding lacks, or how well that would go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vecfill import checks
from vecfill.errors import CollapseError, InputError, OptionError
from vecfill.inputs.alignment import Alignment, align
from vecfill.inputs.files import Progress, forget, quiet, shared_table
from vecfill.inputs.groups import read_groups
from vecfill.inputs.interactions import Tastes
from vecfill.inputs.names.match_report import MatchReport
from vecfill.inputs.prepared import Domain
from vecfill.machine.blas import one_blas_thread
from vecfill.machine.memory import give_back
from vecfill.model.fitted import Model, fit
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, LatentSemantic, Predictor
from vecfill.model.sources import AnySpace, space_of
from vecfill.model.space import MIN_DEGREES
from vecfill.requests import Ask, Method, Reading, Trust, described, takes
from vecfill.result import Result
from vecfill.trust.choose.choice import FEWEST_KNOWN
from vecfill.trust.choose.columns import column_notes, column_reports
from vecfill.trust.choose.decision import Decision, decide
from vecfill.trust.choose.recommending import goal_of, tastes_for
from vecfill.trust.choose.scores import GOALS
from vecfill.trust.compare.evaluation import Comparing, Evaluation, evaluate_rows
from vecfill.trust.lengths import true_lengths
from vecfill.trust.notes import (
    collapsed,
    counts_notes,
    degree_notes,
    leak_notes,
    notes_on_trust,
    refuse_without_signal,
    sanity_notes,
    undescribed_notes,
)
from vecfill.trust.prove.confidence import within_limits
from vecfill.trust.prove.leaks import Leak, is_used, leaks_of, without_leaks
from vecfill.trust.prove.proof import prove
from vecfill.trust.prove.sanity import sanity_of_result
from vecfill.wording import count


@takes(Reading, Method, Trust)
def impute(
    table: Any,
    embedding: Any = None,
    *,
    matches: MatchReport | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ask: Ask,
) -> Result:
    """Return vectors for the entities of a table that an embedding lacks.

    If the table carries no signal about the embedding, `NoSignalError` is raised unless `force`; if
    the new vectors are nearly one vector, `CollapseError`.

    Parameters
    ----------
    table
        What describes the entities: a pandas, polars or Arrow table keyed by entity, a file, an
        edge list, or anything else that `vecfill.as_domain` takes. Pass several
        descriptions as a mapping from name to source, or as a list. They are weighted by how well
        they predict hidden entities, and an entity may be missing from any of them.
    embedding
        An `Embedding`, the path of a file of vectors, a gensim `KeyedVectors`, a spaCy pipeline, a
        pair of words and an array or torch layer, a mapping from word to vector, or a table.
        Without it, the table has a column of vectors (`vector`), and `Result.to_table` fills those
        that are null.
    matches
        Which word each entity is matched to. By default names are matched here.
    n_jobs
        Number of threads. By default all cores; the result is the same.
    progress
        What to call as the work goes on, for example `vecfill.ProgressBar()`.

    Examples
    --------
    >>> from vecfill.sample import towns
    >>> places, known = towns()
    >>> result = impute(places, known)
    >>> result.embedding
    Embedding(10 words, 5 dims, float64: 'town50', 'town51', 'town52', 'town53', 'town54', ...)
    >>> result.confidence.values.round(1)[:3]
    array([1., 1., 1.])
    """
    tell = progress or quiet
    fuses = fuses_sources(ask)
    reading, table = ask.reading, shared_table(table, ask.reading)
    alignment = align(table, embedding, reading, matches=matches, fuses=fuses, progress=progress)
    forget(table)
    return impute_aligned(alignment, ask, table=table, n_jobs=n_jobs, progress=tell)


@one_blas_thread()
def impute_aligned(
    alignment: Alignment,
    ask: Ask,
    *,
    table: Any = None,
    n_jobs: int | None = None,
    progress: Progress = quiet,
) -> Result:
    """Return what `impute` does, for a table and an embedding that were brought together.

    The `table` is needed only if a column of it names groups.
    """
    alignment.refuse_cut_off()
    if ask.trust.groups is not None:
        entities = alignment.domain.entities
        groups = read_groups(table, ask.trust.groups, ask.reading, entities)
        alignment = replace(alignment, groups=groups)
    how, trust = ask.method, ask.trust
    requested = _requested(how)
    _refuse_one_method(alignment.domain, requested, how)
    min_degrees = MIN_DEGREES
    # Methods by name share graphs with what they are compared with; one predictor needs its own.
    if requested is not None and not isinstance(how.method, str):
        min_degrees = requested.min_degrees or MIN_DEGREES
    options: dict[str, Any] = {"min_degrees": min_degrees}
    options["may_leave_out"] = how.columns == "auto"
    space = space_of(alignment.domain, **options, n_jobs=n_jobs)
    progress("Looking for leaks", 0, 0)
    leaks = leaks_of(space, alignment.domain, alignment.embedding, alignment.is_known)
    space = without_leaks(space, leaks)
    give_back()
    progress("Choosing the method", 0, 0)
    decision = _decided(space, alignment, requested, ask, leaks, progress)
    is_void = is_used(leaks, decision.predictor, space)
    _forget_others(space, decision.predictor)
    give_back()
    progress("Imputing", 0, 2)
    applied = decision
    if trust.calibrate_norms:
        applied = replace(decision, stretch=true_lengths(space, alignment, decision, seed=how.seed))
    model = _fitted(applied, space, alignment)
    columns = column_reports(space, alignment.embedding, alignment.is_known, decision.predictor)
    give_back()
    progress("Learning confidence", 1, 2)
    proof = prove(model, alignment, applied, level=trust.level, seed=how.seed, is_void=is_void)
    progress("Learning confidence", 2, 2)
    is_described = model.predictor.is_described(model.space, model.rows)
    is_kept = within_limits(proof.confidence, trust, alignment.is_known) & is_described
    progress("Looking at the vectors", 0, 0)
    sanity = sanity_of_result(model, alignment, proof, is_described)
    progress("Looking at the vectors", 1, 1)
    if sanity is not None and sanity.verdict == "collapsed" and not how.force:
        raise CollapseError(" ".join([collapsed(sanity), *map(str, leaks)]))
    return Result(
        alignment=alignment.with_few_words(),
        model=model,
        decision=decision,
        proof=replace(proof, shown=None),
        sanity=sanity,
        is_kept=is_kept,
        leaks=leaks,
        columns=columns,
        notes=(
            *sanity_notes(sanity),
            *leak_notes(leaks, is_void=is_void),
            *alignment.notes,
            *degree_notes(requested or PAPER, space),
            *notes_on_trust(decision, proof),
            *column_notes(columns),
            *undescribed_notes(is_described),
        ),
    )


def fuses_sources(ask: Ask) -> bool:
    """Tell whether sources may be added to the table: not to a predictor that was asked for."""
    requested = _requested(ask.method)
    return (
        requested is None or requested.is_for_sources or ask.reading.name_mode not in (None, "off")
    )


def _refuse_one_method(domain: Domain, requested: Predictor | None, how: Method) -> None:
    """Refuse a method that knows of one source if there are several."""
    if domain.is_joint and requested is not None and not requested.is_for_sources:
        names = ", ".join(source.name for source in domain.sources)
        raise OptionError(
            f"method={how.method!r} is for one table, and the sources here are: {names}. Use "
            "method='auto', or pass one table and names='off'."
        )


def _decided(
    space: AnySpace,
    alignment: Alignment,
    requested: Predictor | None,
    ask: Ask,
    leaks: Sequence[Leak],
    progress: Progress,
) -> Decision:
    """Return how to impute; refuse if nothing in the table speaks of the embedding."""
    how, goal = ask.method, goal_of(ask, alignment.domain.entities, alignment.matches.words)

    def chosen(n_done: int, n_steps: int) -> None:
        progress("Choosing the method", n_done, n_steps)
        if n_done >= n_steps:
            progress("Weighing rarity", 0, 0)

    if requested is not None:
        requested = requested.fitted_to(space)
    elif not _can_choose(alignment, how):
        requested = PAPER.fitted_to(space)
    if isinstance(how.method, Decision):
        how.refuse_unused((), ("assume",), "method= is a decision that was made before")
        assert requested is not None
        decision = replace(how.method, predictor=requested)
    else:
        decision = decide(
            space,
            alignment.embedding,
            alignment.is_known,
            asked=requested,
            rarity=alignment.rarity,
            offset=how.offset,
            assume=how.assume,
            words=alignment.words_besides,
            goal=goal,
            candidates=how.candidates,
            seed=how.seed,
            progress=chosen,
        )
    if not alignment.is_known.all():
        refuse_without_signal(decision.choice, how, leaks)
    return decision


def _forget_others(space: AnySpace, predictor: Predictor) -> None:
    """Free what was computed for predictors that were not chosen."""
    for member, predictor_used in predictor.by_source(space):
        if predictor_used is not None:
            member.space.keep_only(predictor_used.preparations)


def _fitted(decision: Decision, space: AnySpace, alignment: Alignment) -> Model:
    offsets, rarity = None, alignment.rarity
    if decision.rule is not None and rarity is not None:
        known_rows = KnownRows(alignment.embedding, alignment.is_known)
        offsets = decision.rule.offsets(rarity.values, known_rows, rarity.spared)
    return fit(
        decision.predictor,
        space,
        alignment.embedding,
        alignment.is_known,
        offsets=offsets,
        stretch=decision.stretch,
    )


@takes(Reading)
def evaluate(
    table: Any,
    embedding: Any = None,
    *,
    folds: int = 5,
    hide: str = "random",
    goal: str | None = None,
    candidates: str = "all",
    seed: int = 0,
    matches: MatchReport | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ask: Ask,
) -> Evaluation:
    """Compare `auto`, the paper's method and every rival on hidden known entities.

    Known entities are hidden, imputed from the rest, and compared with their true vectors. Each
    rival has its preparation and its parameters chosen without the hidden entities, as `auto` has.

    Parameters
    ----------
    table, embedding
        As in `vecfill.impute`.
    folds
        Number of parts in which the known entities are hidden, one part after the other.
    hide
        ``"random"`` parts, or ``"rarest"``: the rarest fifth and the rarest two fifths of the known
        entities, which are more like the unknown ones.
    goal, candidates, seed
        How `auto` chooses, as in `vecfill.impute`. With `interactions` the goal is to recommend.
    matches, n_jobs, progress
        As in `vecfill.impute`.

    Examples
    --------
    >>> from vecfill.sample import towns
    >>> places, known = towns()
    >>> report = evaluate(places, known)
    >>> report.n_known, report.n_unknown, report.has_signal
    (50, 10, True)
    """
    alignment = align(table, embedding, ask.reading, matches=matches, fuses=True, progress=progress)
    options: dict[str, Any] = {"folds": folds, "hide": hide, "goal": goal, "seed": seed}
    options |= {"candidates": candidates, "interactions": ask.reading.interactions}
    return evaluate_aligned(alignment, **options, n_jobs=n_jobs, progress=progress or quiet)


@one_blas_thread()
def evaluate_aligned(
    alignment: Alignment,
    *,
    folds: int = 5,
    hide: str = "random",
    goal: str | None = None,
    candidates: str = "all",
    seed: int = 0,
    interactions: Any = None,
    n_jobs: int | None = None,
    progress: Progress = quiet,
) -> Evaluation:
    """Return what `evaluate` does, for a table and an embedding that were brought together."""
    n_known = alignment.n_known
    checks.whole_number(folds, "folds", low=2)
    checks.whole_number(seed, "seed", low=0)
    checks.one_of(hide, "hide", ("random", "rarest"))
    goal = goal or ("balanced" if interactions is None else "recommend")
    checks.one_of(goal, "goal", tuple(GOALS))
    tastes: Tastes | None = None
    if interactions is not None or goal == "recommend":
        words = alignment.matches.words
        tastes = tastes_for(interactions, alignment.domain.entities, words)
    checks.one_of(candidates, "candidates", described(Method, "candidates").choices)
    if n_known < 2 * FEWEST_KNOWN or folds > n_known:
        raise InputError(
            f"Only {count(n_known, 'entity is', 'entities are')} known; "
            f"{max(folds, 2 * FEWEST_KNOWN)} are needed to hide them in {folds} folds and choose a "
            "method on the rest."
        )
    space = space_of(alignment.domain, n_jobs=n_jobs)
    leaks = leaks_of(space, alignment.domain, alignment.embedding, alignment.is_known)
    evaluation = evaluate_rows(
        without_leaks(space, leaks),
        alignment.embedding,
        alignment.is_known,
        Comparing(n_folds=folds, hide=hide, goal=goal, candidates=candidates, seed=seed),
        rarity=alignment.rarity,
        words=alignment.words_besides,
        tastes=tastes,
        progress=partial(progress, "Comparing methods"),
    )
    notes = () if hide == "rarest" else counts_notes(alignment, folds)
    known_rows = alignment.embedding, alignment.is_known
    columns = column_reports(space, *known_rows, evaluation.chosen)
    return replace(evaluation, leaks=leaks, notes=notes, columns=columns)


def check_evaluated(ask: Ask) -> None:
    """Refuse to compare methods where none is chosen: the comparison is about what auto takes."""
    if ask.output.evaluate and _requested(ask.method) is not None:
        raise OptionError(
            "evaluate=True compares the method that auto chooses with others, and here one "
            "setting is asked for. Leave out the method or setting, or leave out evaluate."
        )


def evaluate_result(result: Result, ask: Ask, n_jobs: int | None, progress: Progress) -> Evaluation:
    """Return how the method that was chosen for a result compares with others."""
    how, options = ask.method, {"interactions": ask.reading.interactions}
    options |= {"goal": how.goal, "candidates": how.candidates, "seed": how.seed}
    return evaluate_aligned(result.alignment, **options, n_jobs=n_jobs, progress=progress)


def _requested(how: Method) -> Predictor | None:
    """Return the predictor that was asked for, or ``None`` if one is to be chosen."""
    if how.setting():
        return LatentSemantic(**how.setting())
    if how.method in (None, "auto"):
        return None
    if how.method == "paper":
        return PAPER
    if isinstance(how.method, Decision):
        return how.method.predictor
    if not isinstance(how.method, Predictor):
        raise OptionError(
            f"method is an object of type {type(how.method).__name__}. Use 'auto', 'paper' or a "
            "predictor such as LatentSemantic(min_degree=8)."
        )
    return how.method


def _can_choose(alignment: Alignment, how: Method) -> bool:
    """Tell whether to choose; too few known entities are refused there unless forced.

    If nothing is unknown, a method is chosen for the entities that may be added later.
    """
    is_refused = not (how.force or alignment.is_known.all())
    return alignment.n_known >= FEWEST_KNOWN or is_refused
