"""Which columns of the table the linear trend of an imputed row comes from.

The trend is a sum over columns, so its way from the mean of the known vectors splits exactly: the
part of a column is what it adds, measured along that way. The parts sum to one; a column that pulls
the other way has a negative part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vecfill.method.scaling import well_scaled
from vecfill.model.fitted import Model

MOST_ROWS = 4000
"""Known rows from which the trend's slopes are read back; more would give the same ones."""


@dataclass(frozen=True, eq=False)
class TrendDrivers:
    """The slopes of a trend, with its columns put together by the table's own columns."""

    names: tuple[str, ...]
    """Columns of the table."""
    group: np.ndarray
    """(n_features,) the column that each feature comes from."""
    slopes: np.ndarray
    """(n_features, n_dims)."""
    rows: np.ndarray
    """(n_unknown, n_features) from the centre of the known rows."""

    def parts(self, places: np.ndarray | list[int]) -> np.ndarray:
        """Return the part of each column (across) in the trend of some unknown rows (down)."""
        rows = self.rows[np.asarray(places, np.int64)]
        ways = rows @ self.slopes
        size = (ways**2).sum(axis=1)
        features = rows * (ways @ self.slopes.T) / np.where(size > 0, size, 1.0)[:, None]
        found = np.zeros((len(rows), len(self.names)))
        np.add.at(found.T, self.group, features.T)
        return found

    def largest(self, place: int, n: int = 3, least: float = 0.05) -> dict[str, float]:
        """Return the columns with the largest parts in the trend of one unknown row."""
        parts = self.parts([place])[0]
        order = np.argsort(-parts, kind="stable")[:n]
        return {self.names[at]: float(parts[at]) for at in order if parts[at] >= least}


def trend_drivers(model: Model, columns: Sequence[str]) -> TrendDrivers | None:
    """Return what drives a model's trend; ``None`` without a trend that is one of columns.

    Very wide tables are reduced to their main directions first, which are not columns.

    Examples
    --------
    >>> from vecfill.model.fitted import fit
    >>> from vecfill.model.predictors import LatentSemantic
    >>> from vecfill.model.space import Space
    >>> domain = np.array([[-1.0, 2], [0, 1], [1, 1], [2, 2], [3, 1]])
    >>> embedding = np.array([[-1.0], [0], [1], [2], [np.nan]])
    >>> model = fit(LatentSemantic(min_degree=2, residual_share=0.5), Space(domain), embedding,
    ...             np.arange(5) < 4)
    >>> found = trend_drivers(model, ["size", "colour=red"])
    >>> {name: round(part, 2) for name, part in found.largest(0).items()}
    {'size': 1.0}
    """
    trend, keys = model.composition.trend, model.predictor.weights_keys
    if trend is None or not keys:
        return None
    coordinates = model.space.coordinates(keys[0].preparation)
    if coordinates.shape[1] != len(columns):
        return None
    known = np.flatnonzero(model.is_known)
    centre, mean = coordinates[known].mean(axis=0), trend.values[known].mean(axis=0)
    used = known[:: max(1, known.size // MOST_ROWS)]
    # Only parts of the whole are told, so a scale that squares can bear does as well.
    moved = well_scaled(trend.values[used] - mean)
    slopes = np.linalg.lstsq(coordinates[used] - centre, moved, rcond=1e-10)[0]
    names = [name.split("=", 1)[0].removesuffix(" (missing)") for name in columns]
    # Rows without column names have numbers, which say nothing by themselves.
    names = [f"column {name}" if name.isdigit() else name for name in names]
    own = tuple(dict.fromkeys(names))
    group = np.array([own.index(name) for name in names])
    return TrendDrivers(own, group, slopes, coordinates[model.rows.unknown] - centre)
