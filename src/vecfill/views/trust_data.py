"""What a page says about trust: the verdict, proofs, sources, kinds of entities, confidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vecfill.embedding import printable
from vecfill.result import Result
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.sanity import Example, Look, Sanity
from vecfill.wording import percent

N_BINS = 20
MEASURES = ("centred_cosine", "mrr", "hits_at_10")
CHANCE = 1e-3
PROOFS = {
    "random": "Known entities hidden at random",
    "rarest": "The rarest third of the known entities, hidden as one block",
}


def verdict(result: Result, evaluation: Evaluation | None) -> dict[str, str]:
    """Return a word for how it went (good, none, unchecked), a headline and a sentence."""
    if len(result.embedding) == 0 and not result.abstained:
        return _said("unchecked", "Nothing was imputed", "Every entity already has a vector.")
    if result.sanity is not None and result.sanity.warning is not None:
        kind = "none" if result.sanity.verdict == "collapsed" else "unchecked"
        return _said(kind, "Look at the vectors before you use them", result.sanity.warning)
    leaking = [str(leak) for leak in result.leaks if leak.lowers_trust]
    if leaking and result.proof.teachers is not None and result.proof.teachers.is_void:
        return _said("none", "These vectors are not proved: a source leaks", " ".join(leaking))
    if evaluation is not None:
        means = evaluation.methods["auto"]
        if not evaluation.has_signal:
            return _said("none", NO_SIGNAL, evaluation.verdict)
        return _said("good", _headline(means["centred_cosine"]), evaluation.verdict)
    if result.heldout is None:
        return _said(
            "unchecked",
            "These vectors are not checked",
            "Too few entities are known to hide some of them and compare. Use the vectors with "
            "care.",
        )
    means = result.heldout.means()
    p_value = None if result.choice is None else result.choice.p_value
    if means["centred_cosine"] <= 0 or (p_value is not None and p_value >= CHANCE):
        return _said("none", NO_SIGNAL, "Hidden known vectors came back no better than by chance.")
    hidden = "The rarest known" if result.proof.speaks == "rarest" else "Hidden known"
    return _said(
        "good",
        _headline(means["centred_cosine"]),
        f"{hidden} vectors came back with a centred cosine of {means['centred_cosine']:.2f} (the "
        f"mean of the known vectors has 0); {percent(means['hits_at_10'])} of them are among the "
        "ten vectors nearest to the imputed one.",
    )


NO_SIGNAL = "The table says nothing about this embedding"


def _said(kind: str, headline: str, text: str) -> dict[str, str]:
    return {"kind": kind, "headline": headline, "text": text}


def _headline(cosine: float) -> str:
    if cosine >= 0.5:
        return "Imputation works well on this data"
    return "Imputation works on this data" if cosine >= 0.2 else "Imputation helps a little here"


def sanity_data(sanity: Sanity | None) -> dict[str, Any] | None:
    """Return what a person sees of new vectors, of hidden known ones and of the truth."""
    if sanity is None:
        return None
    looks = {"new": sanity.imputed, "hidden": sanity.hidden, "true": sanity.true}
    return {
        "verdict": sanity.verdict,
        "warning": sanity.warning,
        "looks": [{"of": of, **_look(look)} for of, look in looks.items() if look is not None],
        "stand_for": _rounded(sanity.stand_for),
        "examples": _examples(sanity.examples),
        "hidden_examples": _examples(sanity.hidden_examples),
        "is_whole_file": sanity.is_whole_file,
    }


def _look(look: Look) -> dict[str, Any]:
    return {
        "n_vectors": look.n_vectors,
        "spread": _rounded(look.spread),
        "n_nearest": look.n_nearest,
        "hub": printable(look.hub),
        "largest_hub": _rounded(look.largest_hub),
    }


def _examples(examples: Sequence[Example]) -> list[list[Any]]:
    return [
        [printable(example.entity), [printable(word) for word in example.nearest]]
        for example in examples
    ]


def offset_data(result: Result) -> dict[str, float | None] | None:
    """Return what the rarest known entities score without offset, with it, and by it alone."""
    if result.decision.rule is None:
        return None
    scores = result.decision.on_block
    return {
        name: _rounded(scores[key]["centred_cosine"])
        for name, key in (("none", "none"), ("offset", "offset"), ("alone", "offset_alone"))
        if key in scores
    }


def proof_data(result: Result) -> list[dict[str, Any]]:
    """Return what hiding known rows showed, the proof that speaks for the unknown ones first."""
    order = sorted(result.proof.scores, key=lambda name: name != result.proof.speaks)
    return [
        {
            "name": PROOFS.get(name, name),
            "speaks": name == result.proof.speaks,
            "n_hidden": int(result.proof.scores[name].cosine.size),
            **{key: round(value, 4) for key, value in result.proof.scores[name].means().items()},
        }
        for name in order
    ]


def source_data(result: Result) -> list[dict[str, Any]]:
    """Return each source: how many it describes, how good it is alone, and its weight."""
    return [
        {
            "name": printable(source.name),
            "is_kept": source.is_kept,
            "why": printable(source.why),
            "weight": round(float(source.weight), 3),
            "n_known": int(source.n_known),
            "n_unknown": int(source.n_unknown),
            "centred_cosine": _rounded(source.score.get("centred_cosine")),
            "hits_at_10": _rounded(source.score.get("hits_at_10")),
            "method": "" if source.predictor is None else source.predictor.in_words(),
        }
        for source in result.sources
    ]


def strata_data(result: Result) -> list[dict[str, Any]]:
    """Return each kind of entity that has unknown ones, and what is proved about it."""
    level = None if result.confidence is None else result.confidence.level
    return [
        {
            "name": stratum.name,
            "is_proved": stratum.is_proved,
            "falls_short": level is not None and stratum.falls_short_of(level),
            "n_unknown": stratum.n_unknown,
            "n_known": stratum.n_known,
            "n_hidden": stratum.n_hidden,
            "centred_cosine": _rounded(stratum.centred_cosine),
            "hits_at_10": _rounded(stratum.hits_at_10),
            "coverage": _rounded(stratum.coverage),
        }
        for stratum in result.strata
        if stratum.n_unknown
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else round(float(value), 4)


def comparison_data(evaluation: Evaluation | None) -> dict[str, Any] | None:
    """Return every method's means with their intervals, and its difference from `auto`."""
    if evaluation is None:
        return None
    means = evaluation.methods
    methods = []
    for name in sorted(means, key=lambda each: -means[each]["mrr"]):
        about: dict[str, Any] = {"name": name, "label": evaluation.label(name), "gap": {}}
        for measure in MEASURES:
            mean = means[name][measure]
            interval = evaluation.interval(name, measure)
            about[measure] = [round(v, 4) for v in (mean, *interval)]
            gap = (mean - means["auto"][measure], *evaluation.difference(name, "auto", measure))
            about["gap"][measure] = [round(v, 4) for v in gap]
        methods.append(about)
    return {
        "methods": methods,
        "folds": evaluation.folds,
        "hide": evaluation.hide,
        "n_hidden": int(evaluation.scores["auto"].cosine.size),
        "p_value": evaluation.p_value,
    }


def _range(values: np.ndarray) -> tuple[float, float]:
    """Return where a histogram begins and ends: at whole twentieths around the values.

    Examples
    --------
    >>> _range(np.array([0.17, 0.33])), _range(np.array([0.2]))
    ((0.15, 0.35), (0.2, 0.25))
    """
    low = np.floor(20 * values.min(initial=1.0)) / 20
    high = np.ceil(20 * values.max(initial=-1.0)) / 20
    return float(low), float(max(high, low + 0.05))


def confidence_data(confidence: Confidence | None) -> dict[str, Any] | None:
    """Return the histogram, the reliability bins and the curve of a confidence."""
    if confidence is None:
        return None
    counts, edges = np.histogram(confidence.values, bins=N_BINS, range=_range(confidence.values))
    return {
        "level": confidence.level,
        "coverage": round(float(confidence.coverage), 4),
        "n_hidden": int(confidence.actual.size),
        "proof": confidence.proof,
        "counts": counts.tolist(),
        "edges": np.round(edges, 4).tolist(),
        "bins": [
            {name: round(value, 4) for name, value in group.items()}
            for group in confidence.groups()
        ],
        "curve": [
            {name: round(float(value), 4) for name, value in point.items()}
            for point in confidence.curve()
        ],
    }
