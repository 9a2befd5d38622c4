"""Numbers -> Matplotlib figures, for papers and notebooks.

Every function returns a `Figure` of its own and touches no global state: save it with
``figure.savefig("name.pdf")``, or let a notebook show it. Needs ``pip install 'vecfill[plot]'``.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from vecfill.errors import InputError, MissingExtraError
from vecfill.method.propagation import split_weights
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.trust.compare.migration import MigrationEvaluation
from vecfill.trust.prove.confidence import Confidence
from vecfill.wording import percent

try:
    from matplotlib.figure import Figure as PlainFigure
except ImportError as error:
    raise MissingExtraError(
        "Figures need Matplotlib, which is not installed. Type: pip install 'vecfill[plot]'"
    ) from error

ACCENT = "#0a6e5f"
GREY = "#8b9099"
MOST_ROWS = 3000
"""All eigenvalues of a larger matrix take minutes, and show nothing that a sample does not."""

MOST_WRITTEN_COLUMNS = 20
"""Numbers on the cells of a wider heat map would overlap."""

MOST_LABELS_INSIDE = 5
"""A longer legend would cover the curves, so it stands beside them."""

TITLES = {
    "centred_cosine": "centred cosine",
    "mrr": "mean reciprocal rank",
    "hits_at_10": "hits at 10",
    "cosine": "cosine",
    "norm_ratio": "length over true length",
}


class Figure(PlainFigure):
    """A Matplotlib figure that a notebook shows as a picture, without a magic command."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=100, metadata={"Software": None})
        return content.getvalue()


def _figure(width: float = 6.0, height: float = 4.0) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def comparison(
    evaluation: Evaluation, *, measure: str = "centred_cosine", level: float = 0.95
) -> Figure:
    """Return the mean score of each method on hidden known rows with its interval, best on top."""
    if measure not in TITLES:
        raise InputError(f"measure={measure!r} is not known. Use one of {', '.join(TITLES)}.")
    means = {name: values[measure] for name, values in evaluation.methods.items()}
    order = sorted(means, key=lambda name: means[name], reverse=True)
    scores = {
        evaluation.label(name): (means[name], *evaluation.interval(name, measure, level=level))
        for name in order
    }
    title = f"{TITLES[measure]}, {percent(level)} interval"
    return intervals({title: scores}, accent=(evaluation.label("auto"),))


def intervals(
    panels: Mapping[str, Mapping[str, float | tuple[float, float, float]]],
    *,
    accent: Sequence[str] = (),
    log: bool = False,
) -> Figure:
    """Return a dot for each name, in the order given, with its interval; a panel for each measure.

    A value is a number, or a number with the ends of its interval. A name that a panel lacks, or a
    value that is NaN, leaves its place empty. Names in `accent` are coloured.

    Examples
    --------
    >>> figure = intervals({"cosine": {"graph": (0.4, 0.2, 0.6), "mean": 0.1}}, accent=("graph",))
    >>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
    ['graph', 'mean']
    """
    _refuse_empty(panels, "panels")
    names = list(
        dict.fromkeys(name for values_of_names in panels.values() for name in values_of_names)
    )
    figure = Figure(
        figsize=(max(6.0, 1.5 + 3.0 * len(panels)), 0.6 + 0.35 * len(names)), layout="constrained"
    )
    panels_drawn = figure.subplots(1, len(panels), squeeze=False, sharey=True)[0]
    for axes, (measure, values_of_names) in zip(panels_drawn, panels.items(), strict=True):
        for name, value in values_of_names.items():
            middle, *ends = np.atleast_1d(np.asarray(value, np.float64))
            place, colour = names.index(name), ACCENT if name in accent else GREY
            axes.plot(ends, [place] * len(ends), color=colour, linewidth=2.5, alpha=0.5)
            axes.plot([middle], [place], "o", color=colour, label=name)
        axes.set_xlabel(measure)
        axes.spines[["top", "right"]].set_visible(False)
        if log:
            axes.set_xscale("log")
    panels_drawn[0].set_yticks(range(len(names)), names)
    panels_drawn[0].set_ylim(len(names) - 0.5, -0.5)
    return figure


def reliability(confidence: Confidence, *, n_bins: int = 10) -> Figure:
    """Return the actual against the expected centred cosine of hidden known rows, in bins."""
    bins = confidence.groups(n_bins)
    expected = [bin_of_rows["expected"] for bin_of_rows in bins]
    actual = [bin_of_rows["actual"] for bin_of_rows in bins]
    figure, axes = _figure(4.5, 4.5)
    ends = [min(0.0, *expected, *actual), max(*expected, *actual) * 1.1]
    axes.plot(ends, ends, "--", color=GREY, linewidth=1, label="right")
    errors = [
        [bin_of_rows["actual"] - bin_of_rows["low"] for bin_of_rows in bins],
        [bin_of_rows["high"] - bin_of_rows["actual"] for bin_of_rows in bins],
    ]
    axes.errorbar(expected, actual, yerr=errors, fmt="o", color=ACCENT, label="hidden rows")
    axes.set_xlabel("expected centred cosine")
    axes.set_ylabel("actual centred cosine")
    axes.legend(frameon=False)
    return figure


def kept_share(confidence: Confidence, *, n_points: int = 20) -> Figure:
    """Return the quality of hidden known rows against the share that a threshold keeps.

    The values along the top are thresholds for `min_confidence`.
    """
    points = confidence.curve(n_points)
    figure, axes = _figure()
    shares = [point["share"] for point in points]
    axes.plot(shares, [point["centred_cosine"] for point in points], "o-", color=ACCENT, ms=4)
    axes.set_xlabel("share of entities kept")
    axes.set_ylabel("mean centred cosine of those kept")
    top = axes.secondary_xaxis("top")
    ticks = points[len(points) // 4 - 1 :: max(1, len(points) // 4)] if len(points) > 3 else points
    top.set_xticks(
        [point["share"] for point in ticks], [f"{point['threshold']:.2f}" for point in ticks]
    )
    top.set_xlabel("min_confidence")
    return figure


def recall_by_share(evaluation: MigrationEvaluation) -> Figure:
    """Return how recall grows with the share re-embedded, the rest translated; beside staying."""
    figure, axes = _figure()
    names = {"gain": "most to gain first", "mahalanobis": "oddest first", "random": "at random"}
    styles = {"gain": (ACCENT, "-"), "mahalanobis": (GREY, "--"), "random": (GREY, ":")}
    for order, (colour, style) in styles.items():
        shares, recalls = zip(*evaluation.curve(order), strict=True)
        axes.plot(
            100 * np.array(shares), recalls, style, color=colour, marker="o", markersize=3,
            label=names[order],
        )  # fmt: skip
    axes.axhline(evaluation.mean("stay"), color="#b3541e", linewidth=1, label="stay")
    axes.set_xlabel("documents re-embedded, per cent")
    axes.set_ylabel(f"recall at {evaluation.k}")
    axes.legend(frameon=False)
    return figure


def spectrum(
    weights: csr_array,
    is_known: np.ndarray,
    *,
    reference: csr_array | None = None,
    reference_name: str = "reference",
) -> Figure:
    """Return the eigenvalues of W by size, as it is and with the known rows fixed.

    Fixing a known row gives it an eigenvalue of 1; the others, those of W_qq, lie below 1, which
    is why the iteration converges. `reference` is another W, such as that of a paper; it is dotted.

    Examples
    --------
    >>> weights = csr_array(np.array([[0.5, 0.5], [1.0, 0.0]]))
    >>> figure = spectrum(weights, np.array([True, False]), reference=weights)
    >>> [line.get_label() for line in figure.axes[0].lines]
    ['W', 'W with known rows fixed', 'W, reference']
    """
    n_rows = weights.shape[0]
    largest = max(n_rows, 0 if reference is None else reference.shape[0])
    if largest > MOST_ROWS:
        raise InputError(
            f"The spectrum of {largest} rows would take minutes. Use at most {MOST_ROWS} of them."
        )
    _, on_unknown = split_weights(weights, is_known)
    before = _moduli(weights)
    inner = np.abs(np.linalg.eigvals(on_unknown.toarray())) if on_unknown.shape[0] else np.empty(0)
    after = np.sort(np.concatenate([np.ones(int(is_known.sum())), inner]))[::-1]
    figure, axes = _figure()
    axes.plot(np.arange(1, n_rows + 1), before, color=GREY, label="W")
    axes.plot(np.arange(1, n_rows + 1), after, color=ACCENT, label="W with known rows fixed")
    if reference is not None:
        theirs = _moduli(reference)
        axes.plot(np.arange(1, len(theirs) + 1), theirs, ":", label=f"W, {reference_name}")
    axes.set_xlabel("eigenvalue, by size")
    axes.set_ylabel("absolute value")
    axes.legend(frameon=False)
    return figure


def _moduli(weights: csr_array) -> np.ndarray:
    return np.sort(np.abs(np.linalg.eigvals(weights.toarray())))[::-1]


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
    reference: Mapping[str, Mapping[float, float]] | None = None,
    reference_name: str = "reference",
    log: bool = False,
) -> Figure:
    """Return a measure against a parameter, a line for each name, both on `log` scales if asked.

    A value may be a sequence with one number per repetition. The line is then their mean and the
    band their range. `reference` has curves of the same names from elsewhere, such as a paper; they
    are dotted, in the colour of the line of the same name.

    Examples
    --------
    >>> ours, theirs = {"GloVe": {2: 0.83, 5: 0.76}}, {"GloVe": {2: 0.83, 5: 0.77}}
    >>> figure = sensitivity(ours, parameter="k", measure="accuracy", reference=theirs)
    >>> [line.get_linestyle() for line in figure.axes[0].lines[:2]]
    ['-', ':']
    """
    _refuse_empty(curves, "curves")
    unknown = sorted(set(reference or {}) - set(curves))
    if unknown:
        raise InputError(
            f"reference has {unknown[0]!r}, which is not among the curves. Use the same names."
        )
    figure, axes = _figure()
    for name, curve in curves.items():
        at = sorted(curve)
        values = [np.atleast_1d(np.asarray(curve[x], np.float64)) for x in at]
        (line,) = axes.plot(
            at, [values_at_x.mean() for values_at_x in values], "o-", markersize=4, label=name
        )
        if any(values_at_x.size > 1 for values_at_x in values):
            low, high = (
                [values_at_x.min() for values_at_x in values],
                [values_at_x.max() for values_at_x in values],
            )
            axes.fill_between(at, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
        if reference is not None and name in reference:
            at = sorted(reference[name])
            axes.plot(at, [reference[name][x] for x in at], ":", color=line.get_color())
    if reference is not None:
        axes.plot([], [], ":", color=GREY, label=f"dotted: {reference_name}")
    axes.set_xlabel(parameter)
    axes.set_ylabel(measure)
    if log:
        axes.loglog()
    if len(axes.get_legend_handles_labels()[1]) > MOST_LABELS_INSIDE:
        figure.legend(frameon=False, loc="outside right upper")
    else:
        axes.legend(frameon=False)
    return figure


def heat_map(
    values: np.ndarray | Mapping[str, np.ndarray],
    *,
    rows: Sequence[Any],
    columns: Sequence[Any],
    row_title: str = "",
    column_title: str = "",
    measure: str = "",
) -> Figure:
    """Return a table of numbers as colours, such as score by frequency.

    Several tables, given by title, are drawn side by side with one colour scale. With at most 20
    columns, the numbers are written in the cells.

    Examples
    --------
    >>> tables = {"before": np.array([[0.1, 0.2]]), "after": np.array([[0.3, 0.4]])}
    >>> figure = heat_map(tables, rows=["k=2"], columns=["rare", "frequent"])
    >>> [axes.get_title() for axes in figure.axes[:2]]
    ['before', 'after']
    """
    tables_by_title = values if isinstance(values, Mapping) else {"": values}
    _refuse_empty(tables_by_title, "values")
    tables = {title: np.asarray(table, np.float64) for title, table in tables_by_title.items()}
    for table in tables.values():
        if table.shape != (len(rows), len(columns)):
            raise InputError(
                f"values have shape {table.shape}, but there are {len(rows)} rows and "
                f"{len(columns)} columns. Give one label for each."
            )
    is_wide = len(columns) > MOST_WRITTEN_COLUMNS
    width = 3.0 if is_wide else 0.7 * len(columns)
    figure = Figure(
        figsize=(1.5 + width * len(tables), 1.2 + (0.2 if is_wide else 0.45) * len(rows)),
        layout="constrained",
    )
    panels = figure.subplots(1, len(tables), squeeze=False, sharey=True)[0]
    finite = np.concatenate([table[np.isfinite(table)] for table in tables.values()])
    low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
    images = []
    for axes, (title, table) in zip(panels, tables.items(), strict=True):
        images.append(
            axes.imshow(
                table, cmap="viridis", aspect="auto", vmin=low, vmax=high, interpolation="nearest"
            )
        )
        axes.set_title(title)
        axes.set_xlabel(column_title)
        ticks = np.linspace(0, len(columns) - 1, 5).astype(int) if is_wide else range(len(columns))
        axes.set_xticks(ticks, [str(columns[tick]) for tick in ticks])
        if not is_wide:
            _write_numbers(axes, table, (low + high) / 2)
    panels[0].set_yticks(range(len(rows)), [str(row) for row in rows])
    panels[0].set_ylabel(row_title)
    figure.colorbar(images[-1], ax=list(panels), label=measure)
    return figure


def _write_numbers(axes: Any, table: np.ndarray, middle: float) -> None:
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=colour)


def _refuse_empty(content: Mapping[str, Any], title: str) -> None:
    if not content:
        raise InputError(f"{title} is empty: there is nothing to draw. Pass at least one.")
