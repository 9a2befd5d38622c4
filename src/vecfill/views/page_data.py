"""A result -> the plain values that its page shows, of bounded size and cost.

Numbers that the page only rounds are sent as whole thousandths, which keeps it small. Entities go
in the order of their confidence, so that whatever is bounded is there for the best of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.inputs.match_report import MatchReport
from vecfill.model.directions import unit
from vecfill.provenance import provenance
from vecfill.result import Result
from vecfill.trust.confidence import Confidence
from vecfill.trust.evaluation import Evaluation
from vecfill.views.made import how_made

MOST_EXPLAINED = 2000
MOST_EXPLAINED_OF_MANY = 200
"""Where an explanation is an iteration, not a look into a factorisation."""
MANY_UNKNOWN = 20_000
MOST_WITH_NEAREST = 20_000
MOST_PRODUCTS = 5e10
"""Multiplications that the search for nearest known entities may take."""
MOST_POINTS = 20_000
MOST_MATCHES = 5000
MOST_LISTED = 2000
MOST_NOTES = 200
N_NEAREST = 5
N_CONTRIBUTORS = 8
N_BINS = 20
N_RELIABILITY_BINS = 10
GRID = 9999

MEASURES = ("centred_cosine", "mrr", "hits_at_10")

Coordinates = Mapping[str, Sequence[float]] | np.ndarray
"""Two numbers for each entity: by name, or a row for each row of the table."""


def page_data(
    result: Result,
    *,
    evaluation: Evaluation | None = None,
    coordinates: Coordinates | None = None,
    manifest: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return everything that the page of a result shows, as plain values."""
    order = _by_confidence(result)
    places = _places(result)[order]
    return {
        "version": version("vecfill"),
        "n_known": len(result.known),
        "n_imputed": len(result.embedding),
        "n_abstained": len(result.abstained),
        "n_dims": result.embedding.n_dims,
        "domain": f"{len(result.domain):,} entities, {len(result.domain.columns):,} columns",
        "setting": result.predictor.to_dict(),
        "setting_text": str(result.predictor),
        "residual": float(result.model.composition.relative_residual),
        "means": None if result.heldout is None else result.heldout.means(),
        "proofs": _proofs(result),
        "strata": [str(each) for each in result.strata if each.n_unknown],
        "verdict": verdict(result, evaluation),
        "heldout": _comparison(evaluation),
        "confidence": _calibration(result.confidence),
        "known": [printable(word) for word in result.known.words],
        "entities": _entities(result, order, places),
        "map": _map(result, order, coordinates),
        "matches": _matches(result.matches),
        "suspicious": [
            [printable(s.entity), printable(s.word), round(float(s.centred_cosine), 3)]
            for s in result.suspicious
        ],
        "abstained": [printable(name) for name in result.abstained[:MOST_LISTED]],
        "notes": [printable(note) for note in result.notes[:MOST_NOTES]],
        "how": how_made(provenance(version("vecfill")) if manifest is None else manifest),
    }


def verdict(result: Result, evaluation: Evaluation | None) -> dict[str, Any]:
    """Return a word for how it went (good, none, unchecked) and a sentence."""
    if len(result.embedding) == 0 and not result.abstained:
        return {"kind": "unchecked", "text": "Every entity is known; there was nothing to impute."}
    if evaluation is not None:
        kind = "good" if evaluation.has_signal else "none"
        return {"kind": kind, "text": evaluation.verdict}
    if result.heldout is None:
        text = "Too few entities are known to hide some and check; take these vectors on faith."
        return {"kind": "unchecked", "text": text}
    means = result.heldout.means()
    p_value = None if result.choice is None else result.choice.p_value
    if means["centred_cosine"] <= 0 or (p_value is not None and p_value >= 1e-3):
        text = "The domain carries no signal about this embedding: hidden vectors came back no "
        return {"kind": "none", "text": text + "nearer than chance would bring them."}
    return {
        "kind": "good",
        "text": "Imputation works here: hidden known vectors came back with a centred cosine of "
        f"{means['centred_cosine']:.2f} (the mean of the known vectors has 0).",
    }


def _proofs(result: Result) -> list[dict[str, Any]]:
    """Return what hiding known rows showed, the proof that speaks for the unknown ones first."""
    names = {"random": "hidden at random", "rarest": "the rarest third, hidden as one block"}
    order = sorted(result.proof.scores, key=lambda name: name != result.proof.speaks)
    return [
        {
            "name": names[name],
            "speaks": name == result.proof.speaks,
            "n_hidden": int(result.proof.scores[name].cosine.size),
            **{key: round(value, 4) for key, value in result.proof.scores[name].means().items()},
        }
        for name in order
    ]


def _by_confidence(result: Result) -> np.ndarray:
    if result.confidence is None:
        return np.arange(len(result.embedding))
    return np.argsort(-result.confidence.values, kind="stable")


def _places(result: Result) -> np.ndarray:
    """Return where the imputed entities stand among all unknown ones, left out or not."""
    names = [result.domain.entities[row] for row in np.flatnonzero(~result.model.is_known)]
    place = {name: number for number, name in enumerate(names)}
    return np.array([place[word] for word in result.embedding.words], np.int64)


def _thousandths(values: np.ndarray) -> list[int]:
    return np.round(np.asarray(values, np.float64) * 1000).astype(np.int64).tolist()


def _comparison(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None:
        return None
    means = evaluation.methods
    methods = []
    for name in sorted(means, key=lambda each: -means[each]["mrr"]):
        values = {}
        for measure in MEASURES:
            low, high = evaluation.interval(name, measure)
            values[measure] = [round(v, 4) for v in (means[name][measure], low, high)]
        methods.append({"name": name, **values})
    return {
        "methods": methods,
        "folds": evaluation.folds,
        "n_hidden": int(evaluation.scores["auto"].cosine.size),
        "p_value": evaluation.p_value,
    }


def _calibration(confidence: Confidence | None) -> dict[str, Any] | None:
    if confidence is None:
        return None
    counts, edges = np.histogram(confidence.values, bins=N_BINS, range=(0.0, 1.0))
    return {
        "level": confidence.level,
        "coverage": round(float(confidence.coverage), 4),
        "counts": counts.tolist(),
        "edges": np.round(edges, 4).tolist(),
        "bins": reliability_bins(confidence.expected, confidence.actual),
    }


def reliability_bins(
    expected: np.ndarray, actual: np.ndarray, n_bins: int = N_RELIABILITY_BINS
) -> list[dict[str, float]]:
    """Return bins of equally many hidden rows: what was expected of them, what came out.

    `low` and `high` bound the mean of the bin at 95 %.

    Examples
    --------
    >>> found = reliability_bins(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0.2, 0.8, 1.0]), 2)
    >>> [(one["n"], round(one["expected"], 2), round(one["actual"], 2)) for one in found]
    [(2, 0.15, 0.1), (2, 0.85, 0.9)]
    """
    order = np.argsort(expected, kind="stable")
    bins = []
    for rows in np.array_split(order, min(n_bins, max(1, order.size))):
        if rows.size == 0:
            continue
        mean = float(actual[rows].mean())
        spread = 1.96 * float(actual[rows].std()) / np.sqrt(rows.size)
        bins.append(
            {
                "n": int(rows.size),
                "expected": round(float(expected[rows].mean()), 4),
                "actual": round(mean, 4),
                "low": round(mean - spread, 4),
                "high": round(mean + spread, 4),
            }
        )
    return bins


def _entities(result: Result, order: np.ndarray, places: np.ndarray) -> dict[str, Any]:
    words = result.embedding.words
    found: dict[str, Any] = {"name": [printable(words[row]) for row in order]}
    if result.confidence is not None:
        found["confidence"] = _thousandths(result.confidence.values[order])
        found["lower"] = _thousandths(result.confidence.lower_bound[order])
    found["trend"] = _thousandths(result.model.trend_shares()[places]) if places.size else []
    found["offset"] = _thousandths(result.model.offset_shares()[places]) if places.size else []
    found.update(_nearest(result, order))
    found.update(_contributors(result, places))
    return found


def _nearest(result: Result, order: np.ndarray) -> dict[str, Any]:
    """Return the nearest known entities by cosine, as places, and their cosines."""
    known = unit(result.known.vectors.astype(np.float32))
    n_known = len(known)
    n_rows = min(order.size, MOST_WITH_NEAREST, int(MOST_PRODUCTS / max(1, known.size)))
    n_nearest = min(N_NEAREST, n_known)
    nearest, cosines = [], []
    for start in range(0, n_rows, 512):
        rows = order[start : min(start + 512, n_rows)]
        likeness = unit(result.embedding.vectors[rows].astype(np.float32)) @ known.T
        best = np.argpartition(-likeness, n_nearest - 1, axis=1)[:, :n_nearest]
        value = np.take_along_axis(likeness, best, axis=1)
        inner = np.argsort(-value, axis=1, kind="stable")
        nearest += np.take_along_axis(best, inner, axis=1).tolist()
        cosines += [_thousandths(row) for row in np.take_along_axis(value, inner, axis=1)]
    return {"nearest": nearest, "cosine": cosines}


def _contributors(result: Result, places: np.ndarray) -> dict[str, Any]:
    """Return the largest shares of known entities; what is missing to 1000 is all the others."""
    n_unknown = int((~result.model.is_known).sum())
    most = MOST_EXPLAINED if n_unknown <= MANY_UNKNOWN else MOST_EXPLAINED_OF_MANY
    contributors, shares = [], []
    for start in range(0, min(places.size, most), 256):
        block = result.contributions(places[start : min(start + 256, most)])
        best = np.argsort(-block, axis=1, kind="stable")[:, :N_CONTRIBUTORS]
        for row, columns in zip(block, best, strict=True):
            listed = columns[row[columns] >= 0.0005]
            parts = _thousandths(row[listed])
            # Rounding up may exceed the whole; the largest share can spare it.
            parts[0] -= max(0, sum(parts) - 1000)
            contributors.append(listed.tolist())
            shares.append(parts)
    return {"contributors": contributors, "shares": shares}


def _map(result: Result, order: np.ndarray, coordinates: Coordinates | None) -> dict[str, Any]:
    known, imputed = _points(result, coordinates)
    imputed = imputed[order]
    shown_known = _evenly(np.flatnonzero(np.isfinite(known).all(axis=1)))
    shown = np.flatnonzero(np.isfinite(imputed).all(axis=1))[:MOST_POINTS]
    both = np.vstack([known[shown_known], imputed[shown]])
    if not both.size:
        return {"kind": "none", "known": [], "imputed": [], "aspect": 1.0}
    low = both.min(axis=0)
    span = both.max(axis=0) - low
    size = float(span.max()) or 1.0
    grid = np.round((both - low) / size * GRID).astype(np.int64)
    return {
        "kind": "principal components" if coordinates is None else "given",
        "known": np.column_stack([shown_known, grid[: shown_known.size]]).ravel().tolist(),
        "imputed": np.column_stack([shown, grid[shown_known.size :]]).ravel().tolist(),
        "width": int(grid[:, 0].max()),
        "height": int(grid[:, 1].max()),
    }


def _evenly(rows: np.ndarray) -> np.ndarray:
    step = max(1, int(np.ceil(rows.size / MOST_POINTS)))
    return rows[::step]


def _points(result: Result, coordinates: Coordinates | None) -> tuple[np.ndarray, np.ndarray]:
    if coordinates is None:
        known = result.known.vectors.astype(np.float64)
        centre = known.mean(axis=0)
        _, axes = np.linalg.eigh((known - centre).T @ (known - centre))
        two = axes[:, ::-1][:, :2]
        if two.shape[1] < 2:
            two = np.hstack([two, np.zeros((len(two), 1))])
        return (known - centre) @ two, (result.embedding.vectors.astype(np.float64) - centre) @ two
    if isinstance(coordinates, Mapping):
        table = {str(name): tuple(place) for name, place in coordinates.items()}
    else:
        places = np.asarray(coordinates, np.float64)
        if places.shape != (len(result.domain), 2):
            raise InputError(
                f"coordinates have shape {places.shape}; the table has {len(result.domain)} "
                f"entities. Pass shape ({len(result.domain)}, 2), or two numbers by entity name."
            )
        table = dict(zip(result.domain.entities, map(tuple, places.tolist()), strict=True))
    nowhere = (np.nan, np.nan)

    def of(words: tuple[str, ...]) -> np.ndarray:
        found = np.array([table.get(word, nowhere) for word in words], np.float64)
        if found.shape[1:] not in ((2,), ()):
            raise InputError("Each entity's coordinates must be two numbers.")
        return found.reshape(-1, 2)

    return of(result.known.words), of(result.embedding.words)


def _matches(report: MatchReport) -> dict[str, Any]:
    """Return how names were matched, the loosest first: those deserve a look."""
    rank = {"alias": 0, "loose": 1, "excluded": 2, "case": 3, "exact": 4}
    listed = sorted(
        (m for m in report.matches if m.how != "none"), key=lambda m: rank.get(m.how, 5)
    )
    return {
        "level": report.level,
        "n_words": report.n_words,
        "counts": report.counts,
        "n_listed": len(listed),
        "rows": [
            [printable(m.entity), "" if m.word is None else printable(m.word), m.how]
            for m in listed[:MOST_MATCHES]
        ],
    }
