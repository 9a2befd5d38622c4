"""Where entities lie on the map of a page, and which of them belong together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.machine.lengths import unit
from vecfill.method.scaling import scaled_together
from vecfill.result import Result

MOST_POINTS = 20_000
MOST_GROUPED = 5000
"""Known vectors from which groups are learnt."""
MOST_GROUPS = 8
FEWEST_IN_GROUP = 12
N_ROUNDS = 25
N_LABELS = 2
LONGEST_LABEL = 24
GRID = 9999
COASTLINE_UNIT = 0.1
"""Degrees; the coastline's numbers are whole multiples of it."""

Coordinates = Mapping[str, Sequence[float]] | np.ndarray
"""Two numbers for each entity: by name, or a row for each row of the table."""


def map_data(
    result: Result,
    order: np.ndarray,
    coordinates: Coordinates | None,
    *,
    is_geography: bool = False,
) -> dict[str, Any]:
    """Return points of known and imputed entities on a grid, their groups, and a coastline.

    Imputed entities are numbered in the given order. Without coordinates the map shows the two
    directions in which the groups differ most.
    """
    groups = Groups(result)
    known, imputed = groups.points() if coordinates is None else given_points(result, coordinates)
    if is_geography:
        _refuse_off_earth(np.vstack([known, imputed]))
    imputed = imputed[order]
    shown_known = _evenly(np.flatnonzero(np.isfinite(known).all(axis=1)))
    places_shown = np.flatnonzero(np.isfinite(imputed).all(axis=1))[:MOST_POINTS]
    points = np.vstack([known[shown_known], imputed[places_shown]])
    if not points.size:
        return {"kind": "none", "known": [], "imputed": []}
    low = points.min(axis=0)
    size = float((points.max(axis=0) - low).max()) or 1.0
    grid = np.round((points - low) / size * GRID).astype(np.int64)
    of_known, of_imputed = groups.of_known, groups.of_imputed[order]
    kind = "earth" if is_geography else "groups" if coordinates is None else "given"
    data = {
        "kind": kind,
        "known": np.column_stack([shown_known, grid[: shown_known.size]]).ravel().tolist(),
        "imputed": np.column_stack([places_shown, grid[shown_known.size :]]).ravel().tolist(),
        "width": int(grid[:, 0].max()),
        "height": int(grid[:, 1].max()),
        "groups": groups.labels(),
        "known_group": of_known[shown_known].tolist(),
        "imputed_group": of_imputed[places_shown].tolist(),
    }
    if kind == "groups":
        spots = [np.median(grid[: shown_known.size][of_known[shown_known] == group], axis=0)
                 for group in range(len(data["groups"]))]  # fmt: skip
        data["spots"] = [[int(x), int(y)] for x, y in spots if np.isfinite(x)]
    if is_geography:
        data["coast"] = _coastline()
        data["coast_from"] = [round(float(-group) / size * GRID, 2) for group in low]
        data["coast_step"] = round(COASTLINE_UNIT / size * GRID, 5)
    return data


class Groups:
    """Known vectors in groups of similar direction, and imputed ones in the nearest of them.

    Groups are those of k-means on vectors of unit length, always from the same start.
    """

    def __init__(self, result: Result) -> None:
        known, imputed = scaled_together(
            result.known.vectors.astype(np.float64), result.embedding.vectors.astype(np.float64)
        )
        self.words = result.known.words
        centre = known.mean(axis=0)
        self.known, self.imputed = unit(known - centre), unit(imputed - centre)
        self.raw = known - centre, imputed - centre
        n_groups = min(MOST_GROUPS, max(1, len(known) // FEWEST_IN_GROUP))
        self.centres = _centres(self.known[_evenly(np.arange(len(known)), MOST_GROUPED)], n_groups)
        self.of_known = _nearest_centre(self.known, self.centres)
        self.of_imputed = _nearest_centre(self.imputed, self.centres)

    def labels(self) -> list[str]:
        """Return what each group is called: the known entities nearest to its centre."""
        labels = []
        for number, centre in enumerate(self.centres):
            members = np.flatnonzero(self.of_known == number)
            near = members[np.argsort(-(self.known[members] @ centre), kind="stable")]
            names = [printable(self.words[row]) for row in near[:N_LABELS]]
            labels.append(", ".join(_short(name) for name in names))
        return labels

    def points(self) -> tuple[np.ndarray, np.ndarray]:
        """Return known and imputed entities along the two directions that part the groups most."""
        sizes = np.sqrt(np.bincount(self.of_known, minlength=len(self.centres)))
        axes = np.linalg.svd(sizes[:, None] * self.centres, full_matrices=False)[2][:2]
        if len(axes) < 2 or len(self.centres) < 3:
            known = self.raw[0]
            axes = np.linalg.eigh(known.T @ known)[1][:, ::-1][:, :2].T
        if len(axes) < 2:
            axes = np.vstack([axes, np.zeros_like(axes)])
        # A sign is arbitrary; this one does not depend on the machine's linear algebra.
        signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)])
        axes = axes * np.where(signs == 0, 1.0, signs)[:, None]
        return self.raw[0] @ axes.T, self.raw[1] @ axes.T


def _short(name: str) -> str:
    return name if len(name) <= LONGEST_LABEL else f"{name[: LONGEST_LABEL - 1].rstrip()}…"


def _centres(rows: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the centres of k-means, begun with rows that are far from each other."""
    rng = np.random.default_rng(0)
    chosen = [0]
    far = ((rows - rows[0]) ** 2).sum(axis=1)
    while len(chosen) < n_groups and far.max() > 1e-12:
        chosen.append(int(rng.choice(len(rows), p=far / far.sum())))
        far = np.minimum(far, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
    centres = rows[chosen]
    for _ in range(N_ROUNDS):
        group = _nearest_centre(rows, centres)
        sums = np.zeros_like(centres)
        np.add.at(sums, group, rows)
        counts = np.bincount(group, minlength=len(centres))
        means = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        if np.allclose(means, centres):
            break
        centres = means
    return centres[np.bincount(_nearest_centre(rows, centres), minlength=len(centres)) > 0]


def _nearest_centre(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    away = (centres**2).sum(axis=1) - 2 * rows @ centres.T
    return away.argmin(axis=1)


def given_points(result: Result, coordinates: Coordinates) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of known and imputed entities; NaN for those that have none."""
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
        points = np.array([table.get(word, nowhere) for word in words], np.float64)
        if points.shape[1:] not in ((2,), ()):
            raise InputError("Each entity's coordinates must be two numbers.")
        return points.reshape(-1, 2)

    return of(result.known.words), of(result.embedding.words)


def _refuse_off_earth(points: np.ndarray) -> None:
    far = np.flatnonzero((np.abs(np.nan_to_num(points)) > [180.0, 90.0]).any(axis=1))
    if far.size:
        x, y = points[far[0]]
        raise InputError(
            f"geography=True takes coordinates as longitude and latitude in degrees, and ({x:g}, "
            f"{y:g}) is not a place on the Earth. Swap the two numbers if latitude comes first."
        )


def _coastline() -> list[list[int]]:
    """Return rings of whole tenths of degrees: a first point, then steps."""
    source = files("vecfill.views") / "assets" / "coastline.json"
    return json.loads(source.read_text(encoding="utf-8"))


def _evenly(rows: np.ndarray, limit: int = MOST_POINTS) -> np.ndarray:
    step = max(1, int(np.ceil(rows.size / limit)))
    return rows[::step]
