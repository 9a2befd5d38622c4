"""What a user should know about an imputation, in sentences; and why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from vecfill.errors import NoSignalError
from vecfill.inputs.alignment import Alignment
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.requests import Method
from vecfill.trust.choose.choice import Choice
from vecfill.trust.choose.decision import FEWEST_FOR_BLOCK, Decision
from vecfill.trust.prove.leaks import Leak
from vecfill.trust.prove.proof import Proof
from vecfill.trust.prove.sanity import Sanity
from vecfill.wording import count, percent


def notes_on_trust(decision: Decision, proof: Proof) -> tuple[str, ...]:
    """Return what to know about rarity, about dropped sources, and about what is not proved."""
    notes = []
    if decision.too_few_for_rarity is not None:
        known = count(decision.too_few_for_rarity, "known entity tells", "known entities tell")
        notes.append(
            f"Rarity was not taken into account: only {known} what it does to vectors, and "
            f"{FEWEST_FOR_BLOCK} are needed. If the unknown entities are rarer than the known "
            "ones, expect them to be farther from the truth than their confidence says."
        )
    if decision.rule is not None:
        # An offset raises every cosine, also that of the offset alone. Told without it, the gain
        # would look like knowledge about single entities.
        before, after, alone = (
            decision.on_block[name] for name in ("none", "offset", "offset_alone")
        )
        change = _change(before["centred_cosine"], after["centred_cosine"])
        notes.append(
            "The offset of rare entities was taken into account: on the rarest known entities, "
            f"hidden, the centred cosine {change}. The offset alone, the same vector for all, has "
            f"{alone['centred_cosine']:.2f}, so ranks show better whether entities are told apart: "
            f"{percent(before['hits_at_10'])} were found among the ten nearest without the offset, "
            f"{percent(after['hits_at_10'])} with it."
        )
    if len(proof.readings) > 1:
        notes.append(_both_readings(decision, proof.readings))
    if decision.choice is not None:
        dropped = [report for report in decision.choice.sources if not report.is_kept]
        notes += [f"Source {report.name!r} was dropped: {report.why}." for report in dropped]
    if unusual := list(proof.unusual.values()):
        entities = count(len(unusual), "unknown entity has", "unknown entities have")
        notes.append(
            f"{entities} no bound: each {unusual[0]}. Their confidence is what they can reach at "
            "most, so min_confidence= leaves them out."
        )
    unproved = [kind for kind in proof.strata if kind.n_unknown and not kind.is_proved]
    return (*notes, *(f"{kind}." for kind in unproved))


def _both_readings(decision: Decision, readings: Mapping[str, float]) -> str:
    """Return what to expect if unknown entities are rare and if not, where nothing settles it.

    Examples
    --------
    >>> _both_readings(Decision(None, odds_of_rare=0.8), {"rare": 0.214, "like_known": 0.48})
    'Nothing settles whether the unknown entities are rarer than the known ones (odds 0.8 ...
    """
    is_rare = decision.proof == "rarest"
    return (
        "Nothing settles whether the unknown entities are rarer than the known ones (odds "
        f"{decision.odds_of_rare:.2g} to 1). If they are, their mean confidence is "
        f"{readings['rare']:.2f}; if they are like the known ones, {readings['like_known']:.2f}. "
        f"They were {'taken for rare ones' if is_rare else 'not taken for rare ones'}, and bounds "
        'are those of the worse case. If you know, say so with assume="rare" or '
        'assume="like_known", or pass counts=.'
    )


def _change(before: float, after: float) -> str:
    """Return how a score changed, as far as two decimals show it.

    Examples
    --------
    >>> _change(0.31, 0.44), _change(0.441, 0.4449)
    ('rose from 0.31 to 0.44', 'stayed at 0.44')
    """
    first, last = f"{before:.2f}", f"{after:.2f}"
    if first == last:
        return f"stayed at {first}"
    return f"{'rose' if after > before else 'fell'} from {first} to {last}"


def leak_notes(leaks: Sequence[Leak], *, is_void: bool) -> tuple[str, ...]:
    """Return what gives known entities away, and what follows for the new vectors."""
    outcome = " It was not used."
    if is_void:
        outcome = " Hidden entities prove nothing here: no confidence and no bounds are given."
    return tuple(f"{leak}{outcome if leak.lowers_trust else ''}" for leak in leaks)


def degree_notes(predictor: Predictor, space: Space) -> tuple[str, ...]:
    """Say so if there are too few rows for the least degree asked for."""
    min_degree = getattr(predictor, "min_degree", 1)
    degree = space.degree(min_degree)
    if degree == min_degree:
        return ()
    return (
        f"There are only {space.n_rows} entities, so min_degree is {degree} and not {min_degree}.",
    )


def counts_notes(alignment: Alignment, folds: int) -> tuple[str, ...]:
    """Say so if too few rows stay known beside hidden ones for counts to tell anything."""
    rarity = alignment.rarity
    if rarity is None or rarity.basis != "counts":
        return ()
    n_known = int(rarity.may_be_rare(alignment.is_known).sum())
    n_seen = n_known - n_known // folds
    if n_seen >= FEWEST_FOR_BLOCK:
        return ()
    return (
        f"The counts make no difference: {n_seen} known entities are left beside the hidden ones, "
        f"and {FEWEST_FOR_BLOCK} are needed to learn what rarity does.",
    )


def undescribed_notes(is_described: np.ndarray) -> tuple[str, ...]:
    """Say so if only sources that were dropped describe some entities."""
    if is_described.all():
        return ()
    entities = count(int((~is_described).sum()), "entity is", "entities are")
    return (f"{entities} described only by sources that were dropped; left out.",)


def sanity_notes(sanity: Sanity | None) -> tuple[str, ...]:
    """Say first if the vectors cannot be told apart as they should."""
    warning = None if sanity is None else sanity.warning
    return () if warning is None else (warning,)


def collapsed(sanity: Sanity) -> str:
    """Return why collapsed vectors are not given."""
    examples = "; ".join(map(str, sanity.examples[:3]))
    return (
        f"{sanity.warning} Examples: {examples}. A search among such vectors finds the same "
        "words for every entity. Use goal='rank', other columns or sources, or method='paper'; "
        "force=True gives the vectors anyway."
    )


def refuse_without_signal(choice: Choice | None, how: Method, leaks: Sequence[Leak] = ()) -> None:
    """Refuse to impute what hidden known rows show to be chance, unless it was asked for."""
    if choice is not None and not choice.has_signal and not how.force:
        # What gives known entities away may be all there seemed to be.
        raise NoSignalError(" ".join([no_signal(choice), *map(str, leaks)]))


def no_signal(choice: Choice) -> str:
    """Return why nothing is imputed if hidden known rows came back by chance."""
    return (
        "The table carries no signal about this embedding: hidden known vectors came back no "
        f"nearer than chance (centred cosine {choice.honest.centred_cosine.mean():.3f}, "
        f"p = {choice.p_value:.2g}). Imputed vectors would be worse than the mean of the known "
        "ones. Check that names and rows belong together, or use another table; force=True "
        "imputes anyway."
    )
