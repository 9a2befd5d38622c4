"""An imputed row -> the known rows it is made of, in words.

Where the predictor has a trend, what is mixed are the known rows' residuals, and the trend's own
part is shown apart. The trend is a sum over columns, so its way from the mean of the known vectors
splits exactly: the part of a column is what it adds, measured along that way. The parts sum to one;
a column that pulls the other way has a negative part.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from numbers import Integral
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np

from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.method.scaling import well_scaled
from vecfill.model.fitted import Model
from vecfill.model.prediction import Composition
from vecfill.wording import percent

MOST_ROWS = 4000
"""Known rows from which the trend's slopes are read back; more would give the same ones."""


class KnownNames(Protocol):
    """Names of the known rows, by their number."""

    def __getitem__(self, row: int, /) -> str:
        """Return the name of a known row."""
        ...


@dataclass(frozen=True)
class Explanation:
    """What an imputed vector is made of.

    Examples
    --------
    >>> told = Explanation("osmium", ("iron", "gold"), np.array([0.8, 0.2]), 0.0)
    >>> print(told)
    osmium is made of
       80.0 %  iron
       20.0 %  gold
    """

    word: str
    contributors: tuple[str, ...]
    """Known entities, the largest share first."""
    shares: np.ndarray
    """Their shares of the mix; all known entities' shares sum to one."""
    trend_share: float
    """Share of the trend in the vector's distance from the mean; 0 without a trend."""
    offset_share: float = 0.0
    """Share of the offset of rare entities in it; 0 without one."""
    source_shares: dict[str, float] = field(default_factory=dict)
    """Share of each source, if there were several; they sum to one."""
    drivers: dict[str, float] = field(default_factory=dict)
    """Columns that the trend mostly comes from, with their parts of it."""
    stretch: float = 1.0
    """By what the vector's way from the mean of the known ones was multiplied, so that new vectors
    are as spread as known ones. What it is made of is the same for any length."""
    whitening: float = 0.0
    """By what power of the variance of known vectors rare directions were strengthened, as
    ``goal="rank"`` may do. If not by 0, the vector is a mix of known vectors so changed."""

    def __str__(self) -> str:
        word = printable(self.word)
        parts = []
        if self.whitening:
            word = f"{word} (rare directions strengthened)"
        if self.offset_share > 0:
            parts.append(f"{percent(self.offset_share)} is the offset of rare entities,")
        if self.trend_share > 0:
            drivers = ", ".join(f"{name} {percent(part)}" for name, part in self.drivers.items())
            beside = f" ({drivers} of it)" if drivers else ""
            share = percent(self.trend_share)
            parts.append(f"{share} comes from the linear trend of the domain{beside},")
        remaining = 1.0 - self.offset_share - self.trend_share
        if len(self.source_shares) > 1:
            sources = ", ".join(
                f"{percent(share)} {name}" for name, share in self.source_shares.items()
            )
            word = f"{word} ({sources})"
        # A list of contributors to nothing would look as if they mattered.
        if parts and round(remaining, 2) <= 0:
            return "\n".join([f"{word}:", *parts])[:-1]
        lines = [f"{word} is made of"]
        if parts:
            parts[0] = f"{word}: {parts[0]}"
            lines = [*parts, f"the remaining {percent(remaining)} comes from these known entities:"]
        lines += [
            f"{percent(share, 1):>8}  {printable(name)}"
            for name, share in zip(self.contributors, self.shares, strict=True)
        ]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON.

        Examples
        --------
        >>> Explanation("x", ("iron",), np.array([1.0]), 0.0).to_dict()["contributors"]
        [{'word': 'iron', 'share': 1.0}]
        """
        return {
            "word": self.word,
            "offset_share": self.offset_share,
            "trend_share": self.trend_share,
            "source_shares": self.source_shares,
            "stretch": self.stretch,
            "whitening": self.whitening,
            "drivers": self.drivers,
            "contributors": [
                {"word": name, "share": float(share)}
                for name, share in zip(self.contributors, self.shares, strict=True)
            ],
        }


def explained(
    model: Model,
    word: str,
    place: int,
    known: Sequence[str] | KnownNames,
    *,
    n: int,
    columns: tuple[str, ...] = (),
) -> Explanation:
    """Return the `n` known entities with the largest shares in the unknown row at a place.

    `known` gives names of known rows, `columns` are those of the model's domain.
    """
    if not isinstance(n, Integral) or n < 1:
        raise InputError(f"n={n!r}, but at least one known entity is shown. Use n=1 or more.")
    offset, trend = (float(shares[place]) for shares in model.ways())
    of_trend = trend_drivers(model, columns) if trend > 0 else None
    drivers = {} if of_trend is None else of_trend.largest(place)
    factor = float(model.stretch.factors(model.offsets, model.rows.unknown.size)[place])
    composed = composed_of(
        word, place, model.composition, (offset, trend), known, n=n, drivers=drivers
    )
    return replace(composed, stretch=factor, whitening=model.predictor.whitened)


def composed_of(
    word: str,
    place: int,
    composition: Composition,
    ways: tuple[float, float],
    known: Sequence[str] | KnownNames,
    *,
    n: int,
    drivers: Mapping[str, float] = MappingProxyType({}),
) -> Explanation:
    """Return the same for a row of any composition; `ways` are the shares of offset and trend."""
    shares = composition.mix.shares(np.array([place]))[0]
    order = largest_shares(shares, n)
    names = tuple(known[int(row)] for row in order)
    offset, trend = ways
    sources = composition.source_shares(place)
    return Explanation(word, names, shares[order], trend, offset, sources, dict(drivers))


def largest_shares(shares: np.ndarray, n: int) -> np.ndarray:
    """Return which `n` known rows have the largest shares, none of them zero.

    Examples
    --------
    >>> largest_shares(np.array([0.0, 0.2, 0.8]), 5)
    array([2, 1])
    """
    # Kernel methods have negative shares too: large ones matter as much as positive ones.
    order = np.argsort(-np.abs(shares), kind="stable")[:n]
    return order[shares[order] != 0]


def place_of(word: str, imputed: Sequence[str], known: Sequence[str]) -> int:
    """Return the place of an imputed word, or say what the word is instead.

    Examples
    --------
    >>> place_of("osmium", ["osmium"], ["iron"])
    0
    """
    if not isinstance(word, str):
        raise InputError(f"{word!r} is not the name of an entity. Names are strings.")
    if word in imputed:
        return list(imputed).index(word)
    if word in known:
        raise InputError(
            f"{printable(word)!r} is known: its vector is the embedding's own, and is made of "
            f"nothing else. Ask for an imputed entity, such as {printable(imputed[0])!r}."
            if imputed
            else f"{printable(word)!r} is known, and nothing was imputed."
        )
    near = difflib.get_close_matches(word, [*imputed, *known], n=5, cutoff=0.5)
    hint = f" Near it: {', '.join(printable(name) for name in near)}." if near else ""
    raise InputError(f"{printable(word)!r} is not an entity of the table.{hint}")


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
        # Projected on the whole way, so that parts sum to one even if columns pull in other
        # directions.
        size = (ways**2).sum(axis=1)
        features = rows * (ways @ self.slopes.T) / np.where(size > 0, size, 1.0)[:, None]
        parts = np.zeros((len(rows), len(self.names)))
        np.add.at(parts.T, self.group, features.T)
        return parts

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
    origins = model.space.origins(keys[0].preparation)
    # Wide tables are reduced to main directions: their slopes are those of no column.
    if coordinates.shape[1] != origins.size or model.space.size.n_features != len(columns):
        return None
    known = np.flatnonzero(model.is_known)
    centre, mean = coordinates[known].mean(axis=0), trend.values[known].mean(axis=0)
    sampled_rows = known[:: max(1, known.size // MOST_ROWS)]
    # Only parts of the whole are told, so a scale that squares can bear does as well.
    steps = well_scaled(trend.values[sampled_rows] - mean)
    slopes = np.linalg.lstsq(coordinates[sampled_rows] - centre, steps, rcond=1e-10)[0]
    names = [name.split("=", 1)[0].removesuffix(" (missing)") for name in columns]
    # Rows without column names have numbers, which say nothing by themselves.
    names = [f"column {name}" if name.isdigit() else name for name in names]
    columns_of_table = tuple(dict.fromkeys(names))
    group = np.array([columns_of_table.index(names[origin]) for origin in origins])
    return TrendDrivers(columns_of_table, group, slopes, coordinates[model.rows.unknown] - centre)
