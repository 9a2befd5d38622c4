"""Numbers -> Matplotlib figures, for papers and notebooks.

Every function returns a `Figure` of its own and touches no global state: save it with
``figure.savefig("name.pdf")``, or let a notebook show it. Needs ``pip install 'vecfill[plot]'``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vecfill.errors import InputError, MissingExtraError
from vecfill.method.propagation import split_weights
from vecfill.trust.confidence import Confidence
from vecfill.trust.evaluation import Evaluation
from vecfill.views.page_data import reliability_bins

try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise MissingExtraError(
        "Figures need Matplotlib, which is not installed. Type: pip install 'vecfill[plot]'"
    ) from error

ACCENT = "#0a6e5f"
GREY = "#8b9099"
MOST_ROWS = 3000
"""All eigenvalues of a larger matrix take minutes, and show nothing that a sample does not."""

TITLES = {
    "centred_cosine": "centred cosine",
    "mrr": "mean reciprocal rank",
    "hits_at_10": "hits at 10",
    "cosine": "cosine",
    "norm_ratio": "length over true length",
}


def _figure(width: float = 6.0, height: float = 4.0) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def comparison(
    evaluation: Evaluation, *, measure: str = "centred_cosine", level: float = 0.95
) -> Figure:
    """Return each method's mean on hidden known rows with its interval, the best on top."""
    if measure not in TITLES:
        raise InputError(f"measure={measure!r} is not known. Use one of {', '.join(TITLES)}.")
    means = {name: values[measure] for name, values in evaluation.methods.items()}
    order = sorted(means, key=lambda name: means[name])
    figure, axes = _figure(height=0.6 + 0.35 * len(order))
    for place, name in enumerate(order):
        low, high = evaluation.interval(name, measure, level=level)
        colour = ACCENT if name == "auto" else GREY
        axes.plot([low, high], [place, place], color=colour, linewidth=2.5, alpha=0.5)
        axes.plot([means[name]], [place], "o", color=colour, label=name)
    axes.set_yticks(range(len(order)), order)
    axes.set_xlabel(f"{TITLES[measure]}, {level:.0%} interval")
    return figure


def reliability(confidence: Confidence, *, n_bins: int = 10) -> Figure:
    """Return what was expected of hidden known rows against what came out; the line is right."""
    bins = reliability_bins(confidence.expected, confidence.actual, n_bins)
    expected = [each["expected"] for each in bins]
    actual = [each["actual"] for each in bins]
    figure, axes = _figure(4.5, 4.5)
    ends = [min(0.0, *expected, *actual), max(*expected, *actual) * 1.1]
    axes.plot(ends, ends, "--", color=GREY, linewidth=1, label="right")
    errors = [
        [each["actual"] - each["low"] for each in bins],
        [each["high"] - each["actual"] for each in bins],
    ]
    axes.errorbar(expected, actual, yerr=errors, fmt="o", color=ACCENT, label="hidden rows")
    axes.set_xlabel("expected centred cosine")
    axes.set_ylabel("actual centred cosine")
    axes.legend(frameon=False)
    return figure


def spectrum(weights: csr_array, is_known: np.ndarray) -> Figure:
    """Return the eigenvalues of W by size, as it is and with the known rows fixed.

    Fixing a known row gives it an eigenvalue of 1; the others, those of W_qq, lie below 1, which
    is why the iteration converges.
    """
    n_rows = weights.shape[0]
    if n_rows > MOST_ROWS:
        raise InputError(
            f"The spectrum of {n_rows} rows would take minutes. Use at most {MOST_ROWS} of them."
        )
    _, on_unknown = split_weights(weights, is_known)
    before = np.sort(np.abs(np.linalg.eigvals(weights.toarray())))[::-1]
    inner = np.abs(np.linalg.eigvals(on_unknown.toarray())) if on_unknown.shape[0] else np.empty(0)
    after = np.sort(np.concatenate([np.ones(int(is_known.sum())), inner]))[::-1]
    figure, axes = _figure()
    axes.plot(np.arange(1, n_rows + 1), before, color=GREY, label="W")
    axes.plot(np.arange(1, n_rows + 1), after, color=ACCENT, label="W with known rows fixed")
    axes.set_xlabel("eigenvalue, by size")
    axes.set_ylabel("absolute value")
    axes.legend(frameon=False)
    return figure


def convergence(changes: Mapping[str, Sequence[float]], *, tol: float | None = None) -> Figure:
    """Return the relative change of each iteration, a line for each named run."""
    _refuse_empty(changes, "changes")
    figure, axes = _figure()
    for name, values in changes.items():
        axes.semilogy(np.arange(1, len(values) + 1), np.asarray(values, np.float64), label=name)
    if tol is not None:
        axes.axhline(tol, linestyle="--", color=GREY, linewidth=1, label=f"tol {tol:g}")
    axes.set_xlabel("iteration")
    axes.set_ylabel("relative change")
    axes.legend(frameon=False)
    return figure


def sensitivity(
    curves: Mapping[str, Mapping[float, float | Sequence[float]]],
    *,
    parameter: str,
    measure: str,
) -> Figure:
    """Return a measure against a parameter, a line for each name.

    A value may be several, one for each repetition; the line is then their mean and the band their
    range.
    """
    _refuse_empty(curves, "curves")
    figure, axes = _figure()
    for name, curve in curves.items():
        at = sorted(curve)
        values = [np.atleast_1d(np.asarray(curve[x], np.float64)) for x in at]
        (line,) = axes.plot(at, [each.mean() for each in values], "o-", markersize=4, label=name)
        if any(each.size > 1 for each in values):
            low, high = [each.min() for each in values], [each.max() for each in values]
            axes.fill_between(at, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_xlabel(parameter)
    axes.set_ylabel(measure)
    axes.legend(frameon=False)
    return figure


def heat_map(
    values: np.ndarray,
    *,
    rows: Sequence[Any],
    columns: Sequence[Any],
    row_title: str = "",
    column_title: str = "",
    measure: str = "",
) -> Figure:
    """Return a table of numbers as colours with the numbers on them, such as score by frequency."""
    table = np.asarray(values, np.float64)
    if table.shape != (len(rows), len(columns)):
        raise InputError(
            f"values have shape {table.shape}, but there are {len(rows)} rows and {len(columns)} "
            "columns. Give one label for each."
        )
    figure, axes = _figure(1.5 + 0.7 * len(columns), 1.2 + 0.45 * len(rows))
    image = axes.imshow(table, cmap="viridis", aspect="auto")
    axes.set_xticks(range(len(columns)), [str(each) for each in columns])
    axes.set_yticks(range(len(rows)), [str(each) for each in rows])
    axes.set_xlabel(column_title)
    axes.set_ylabel(row_title)
    middle = (np.nanmin(table) + np.nanmax(table)) / 2 if np.isfinite(table).any() else 0.0
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)
    figure.colorbar(image, ax=axes, label=measure)
    return figure


def _refuse_empty(what: Mapping[str, Any], title: str) -> None:
    if not what:
        raise InputError(f"{title} is empty: there is nothing to draw. Pass at least one.")
