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
from vecfill.inputs.names.match_report import MatchReport
from vecfill.io.provenance import provenance
from vecfill.machine.lengths import unit
from vecfill.method.scaling import well_scaled
from vecfill.result import Result
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.trust.explain import trend_drivers
from vecfill.views.columns import MOST_COLUMNS, ShownColumn, places_on_earth, shown_columns
from vecfill.views.made import how_made
from vecfill.views.map_data import Coordinates, map_data
from vecfill.views.trust_data import (
    comparison_data,
    confidence_data,
    offset_data,
    proof_data,
    sanity_data,
    source_data,
    strata_data,
    verdict,
)
from vecfill.wording import count

MOST_EXPLAINED = 2000
MOST_EXPLAINED_OF_MANY = 200
"""Where an explanation is an iteration, not a look into a factorisation."""
MANY_UNKNOWN = 20_000
MOST_WITH_NEAREST = 20_000
MOST_PRODUCTS = 5e10
"""Multiplications that the search for nearest known entities may take."""
MOST_MATCHES = 5000
MOST_LISTED = 2000
MOST_NOTES = 200
N_NEAREST = 5
N_CONTRIBUTORS = 8
N_DRIVERS = 3


def page_data(
    result: Result,
    *,
    evaluation: Evaluation | None = None,
    columns: Any = None,
    coordinates: Coordinates | None = None,
    geography: bool | None = None,
    manifest: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return everything that the page of a result shows, as plain values."""
    order = _by_confidence(result)
    places = _places(result)[order]
    table_columns = () if columns is None else shown_columns(columns)
    if coordinates is None and geography is not False:
        coordinates = places_on_earth(table_columns)
        geography = coordinates is not None
    entities = _entities(result, order, places, table_columns)
    return {
        "version": version("vecfill"),
        "n_known": len(result.known),
        "n_imputed": len(result.embedding),
        "n_abstained": len(result.abstained),
        "n_dims": result.embedding.n_dims,
        "domain": ", ".join(
            [count(len(result.domain), "entity"), count(len(result.domain.columns), "column")]
        ),
        "setting": result.predictor.to_dict(),
        "setting_text": result.predictor.in_words(),
        "setting_short": printable(result.predictor.in_short()),
        "setting_exact": str(result.predictor),
        "residual": float(result.model.composition.relative_residual),
        "means": None if result.heldout is None else result.heldout.means(),
        "verdict": verdict(result, evaluation),
        "sanity": sanity_data(result.sanity),
        "proofs": proof_data(result),
        "heldout": comparison_data(evaluation),
        "sources": source_data(result),
        "strata": strata_data(result),
        "confidence": confidence_data(result.confidence),
        "offset_scores": offset_data(result),
        "known": [printable(word) for word in result.known.words],
        "columns": [
            {"name": column.name, "is_numeric": column.is_numeric} for column in table_columns
        ][:MOST_COLUMNS],
        "driver_names": entities.pop("driver_names", []),
        "entities": entities,
        "telling": _telling(entities),
        "map": map_data(result, order, coordinates, is_geography=bool(geography)),
        "matches": _matches(result.matches),
        "suspicious": [
            [printable(s.entity), printable(s.word), *_in_thousandths(s.centred_cosine, s.expected)]
            for s in result.suspicious
        ],
        "abstained": [printable(name) for name in result.abstained[:MOST_LISTED]],
        "notes": [printable(note) for note in result.notes[:MOST_NOTES]],
        "how": how_made(provenance(version("vecfill")) if manifest is None else manifest),
    }


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


def _in_thousandths(*values: float) -> list[int]:
    return _thousandths(np.array(values))


def _entities(
    result: Result, order: np.ndarray, places: np.ndarray, columns: Sequence[ShownColumn]
) -> dict[str, Any]:
    words = [result.embedding.words[row] for row in order]
    data: dict[str, Any] = {"name": [printable(word) for word in words]}
    if result.confidence is not None:
        data["confidence"] = _thousandths(result.confidence.values[order])
        data["lower"] = _thousandths(result.confidence.lower_bound[order])
    data["trend"] = _thousandths(result.model.trend_shares()[places]) if places.size else []
    data["offset"] = _thousandths(result.model.offset_shares()[places]) if places.size else []
    data["columns"] = [column.of(words) for column in columns[:MOST_COLUMNS]]
    data.update(_nearest(result, order))
    data.update(_contributors(result, places))
    data.update(_drivers(result, places, len(data["contributors"])))
    return data


def _nearest(result: Result, order: np.ndarray) -> dict[str, Any]:
    """Return the nearest known entities by cosine, as places, and their cosines."""
    known = unit(well_scaled(result.known.vectors).astype(np.float32))
    n_known = len(known)
    n_rows = min(order.size, MOST_WITH_NEAREST, int(MOST_PRODUCTS / max(1, known.size)))
    n_nearest = min(N_NEAREST, n_known)
    nearest, cosines = [], []
    for start in range(0, n_rows, 512):
        rows = order[start : min(start + 512, n_rows)]
        queries = well_scaled(result.embedding.vectors[rows]).astype(np.float32)
        likeness = unit(queries) @ known.T
        best = np.argpartition(-likeness, n_nearest - 1, axis=1)[:, :n_nearest]
        value = np.take_along_axis(likeness, best, axis=1)
        inner = np.argsort(-value, axis=1, kind="stable")
        nearest += np.take_along_axis(best, inner, axis=1).tolist()
        cosines += [_thousandths(row) for row in np.take_along_axis(value, inner, axis=1)]
    return {"nearest": nearest, "cosine": cosines}


def _contributors(result: Result, places: np.ndarray) -> dict[str, Any]:
    """Return the largest shares of known entities; what is missing to 1000 is all the others."""
    n_unknown = int((~result.model.is_known).sum())
    limit = MOST_EXPLAINED if n_unknown <= MANY_UNKNOWN else MOST_EXPLAINED_OF_MANY
    contributors, shares = [], []
    for start in range(0, min(places.size, limit), 256):
        block = result.contributions(places[start : min(start + 256, limit)])
        best = np.argsort(-block, axis=1, kind="stable")[:, :N_CONTRIBUTORS]
        for row, columns in zip(block, best, strict=True):
            listed = columns[row[columns] >= 0.0005]
            parts = _thousandths(row[listed])
            if parts:
                # Rounding up may exceed the whole; the largest share can spare it.
                parts[0] -= max(0, sum(parts) - 1000)
            contributors.append(listed.tolist())
            shares.append(parts)
    data = {"contributors": contributors, "shares": shares}
    if result.sources:
        composition = result.model.composition
        shares_by_source = [composition.source_shares(int(place)) for place in places[:limit]]
        names = [source.name for source in result.sources]
        data["by_source"] = [
            _in_thousandths(*(share.get(name, 0.0) for name in names)) for share in shares_by_source
        ]
    return data


def _drivers(result: Result, places: np.ndarray, n_explained: int) -> dict[str, Any]:
    """Return which columns drive the trend of each explained entity: places and thousandths."""
    drivers_of_trend = trend_drivers(result.model, result.domain.columns)
    if drivers_of_trend is None or not places.size:
        return {}
    drivers = []
    for parts in drivers_of_trend.parts(places[:n_explained]):
        best = np.argsort(-parts, kind="stable")[:N_DRIVERS]
        drivers.append([[int(at), round(1000 * float(parts[at]))] for at in best if parts[at] > 0])
    return {
        "drivers": drivers,
        "driver_names": [printable(name) for name in drivers_of_trend.names],
    }


def _telling(entities: dict[str, Any]) -> int:
    """Return an entity that explains itself: a mix of several known ones, with a high bound."""
    mixes = [
        row
        for row, shares in enumerate(entities["shares"][:200])
        if len(shares) >= 3 and 120 <= shares[0] <= 600 and shares[2] >= 40
        if len(entities["name"][row]) <= 30
    ]
    if not mixes:
        return 0 if entities["name"] else -1
    bounds = entities.get("lower")
    return mixes[0] if bounds is None else max(mixes, key=lambda row: bounds[row])


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
