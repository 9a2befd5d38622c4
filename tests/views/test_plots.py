"""Figures hold the numbers they were given: the artists are looked at, not pixels."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy.sparse import csr_array

from vecfill import Embedding, InputError, impute
from vecfill.model.space import Space, WeightsKey
from vecfill.trust.compare.evaluation import Comparing, evaluate_rows
from vecfill.views import plots


@pytest.fixture(scope="module")
def evaluation():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(60, 3))
    return evaluate_rows(
        Space(np.tanh(latent)),
        latent @ rng.normal(size=(3, 5)),
        np.ones(60, bool),
        Comparing(n_folds=2),
    )


def drawn(figure, tmp_path):
    """Save the figure, so that what is lazy happens, and return its axes."""
    figure.savefig(tmp_path / "figure.png")
    return figure.axes[0]


def test_the_comparison_shows_every_method_at_its_mean(evaluation, tmp_path):
    axes = drawn(plots.comparison(evaluation, measure="mrr"), tmp_path)
    shown = {
        line.get_label(): line.get_xdata()[0]
        for line in axes.lines
        if not line.get_label().startswith("_")
    }
    assert shown == {
        evaluation.label(name): values["mrr"] for name, values in evaluation.methods.items()
    }
    assert "kernel ridge regression" in shown
    intervals = [line.get_xdata() for line in axes.lines if line.get_label().startswith("_")]
    assert any(tuple(ends) == evaluation.interval("auto", "mrr") for ends in intervals)


def test_intervals_stand_in_the_order_given_one_panel_a_measure(tmp_path):
    panels = {
        "cosine": {"graph": (0.4, 0.2, 0.6), "mean": 0.1},
        "hits": {"mean": float("nan"), "spelling": (0.3, 0.1, 0.5)},
    }
    figure = plots.intervals(panels, accent=["graph"], log=True)
    drawn(figure, tmp_path)
    left, right = figure.axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["graph", "mean", "spelling"]
    dots = {line.get_label(): line for line in left.lines if line.get_marker() == "o"}
    assert dots["graph"].get_color() == plots.ACCENT
    assert dots["mean"].get_color() == plots.GREY
    assert list(left.lines[0].get_xdata()) == [0.2, 0.6]
    assert list(right.lines[-1].get_ydata()) == [2]
    assert right.get_xlabel() == "hits"
    assert left.get_xscale() == "log"
    assert left.get_ylim()[0] > left.get_ylim()[1]


def test_an_unknown_measure_is_refused_with_those_there_are(evaluation):
    with pytest.raises(InputError, match="mrr"):
        plots.comparison(evaluation, measure="beauty")


def test_the_curve_of_kept_entities_shows_share_quality_and_threshold(small_run, tmp_path):
    axes = drawn(plots.kept_share(small_run.confidence, n_points=8), tmp_path)
    points = small_run.confidence.curve(8)
    x, y = axes.lines[0].get_data()
    assert list(x) == [each["share"] for each in points]
    assert list(y) == [each["centred_cosine"] for each in points]
    (top,) = axes.child_axes
    told = [f"{points[place]['threshold']:.2f}" for place in (1, 3, 5, 7)]
    assert [label.get_text() for label in top.get_xticklabels()] == told


def test_the_reliability_diagram_shows_bins_around_the_line(small_run, tmp_path):
    axes = drawn(plots.reliability(small_run.confidence, n_bins=5), tmp_path)
    right, bins = axes.lines[0], axes.lines[1]
    assert np.array_equal(right.get_xdata(), right.get_ydata())
    assert len(bins.get_xdata()) == 5
    assert np.mean(bins.get_ydata()) == pytest.approx(small_run.confidence.actual.mean(), abs=0.01)


def test_fixing_known_rows_gives_each_an_eigenvalue_of_one(small_run, tmp_path):
    # Which method is chosen does not matter here, but only a graph has weights.
    known = Embedding(small_run.known.words, small_run.known.vectors)
    model = impute(small_run.domain, known, match="exact", method="paper").model
    axes = drawn(plots.spectrum(model.composition.mix.weights, model.is_known), tmp_path)
    before, after = (line.get_ydata() for line in axes.lines)
    assert before[0] == pytest.approx(1.0)
    assert np.sum(after > 1 - 1e-12) == model.is_known.sum()
    assert after[model.is_known.sum()] < 1


def test_a_spectrum_of_many_rows_is_refused():
    with pytest.raises(InputError, match="at most 3000"):
        plots.spectrum(csr_array((5000, 5000)), np.ones(5000, bool))


def test_convergence_has_a_line_for_each_run_and_the_tolerance(tmp_path):
    axes = drawn(plots.convergence({"a": [0.1, 0.01], "b": [0.2]}, tol=1e-3), tmp_path)
    assert [line.get_label() for line in axes.lines] == ["a", "b", "tol 0.001"]
    assert axes.lines[0].get_ydata().tolist() == [0.1, 0.01]
    assert axes.get_yscale() == "log"


def test_sensitivity_takes_means_of_repetitions(tmp_path):
    curves = {"ours": {8: [0.2, 0.4], 4: 0.1}, "paper": {4: 0.1, 8: 0.2}}
    axes = drawn(plots.sensitivity(curves, parameter="min_degree", measure="hits"), tmp_path)
    assert axes.lines[0].get_xdata().tolist() == [4, 8]
    assert axes.lines[0].get_ydata() == pytest.approx([0.1, 0.3])
    assert len(axes.collections) == 1


def test_a_long_legend_stands_beside_the_curves(tmp_path):
    for n_curves, inside in ((5, True), (6, False)):
        curves = {str(number): {1: 0.1, 10: 1.0} for number in range(n_curves)}
        figure = plots.sensitivity(curves, parameter="k", measure="hits", log=True)
        axes = drawn(figure, tmp_path)
        assert (axes.get_legend() is not None) == inside
        assert len(figure.legends) == (0 if inside else 1)
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")


def test_a_reference_curve_is_dotted_in_the_color_of_its_own(tmp_path):
    ours = {"a": {1: 0.1, 2: 0.2}, "b": {1: 0.3, 2: 0.4}}
    figure = plots.sensitivity(
        ours, parameter="k", measure="hits", reference={"b": {2: 0.5, 1: 0.35}}
    )
    axes = drawn(figure, tmp_path)
    _, own, dotted, _ = axes.lines
    assert own.get_color() == dotted.get_color()
    assert dotted.get_linestyle() == ":"
    assert dotted.get_ydata().tolist() == [0.35, 0.5]
    with pytest.raises(InputError, match="'c', which is not among the curves"):
        plots.sensitivity(ours, parameter="k", measure="hits", reference={"c": {1: 0.1}})


def test_several_heat_maps_share_one_scale(tmp_path):
    tables = {"one": np.full((2, 30), 0.1), "two": np.full((2, 30), 0.9)}
    figure = plots.heat_map(tables, rows=(2, 5), columns=range(30))
    drawn(figure, tmp_path)
    first, second = (axes.images[0] for axes in figure.axes[:2])
    assert first.get_clim() == second.get_clim() == (0.1, 0.9)
    assert not figure.axes[0].texts
    assert len(figure.axes[0].get_xticks()) == 5


def test_a_spectrum_shows_another_matrix_beside(tmp_path):
    weights, other = csr_array(np.eye(2)[::-1]), csr_array(np.array([[0.5, 0.5], [0.5, 0.5]]))
    figure = plots.spectrum(weights, np.array([True, False]), reference=other)
    lines = drawn(figure, tmp_path).lines
    assert lines[2].get_ydata() == pytest.approx([1.0, 0.0])
    with pytest.raises(InputError, match="at most 3000"):
        plots.spectrum(weights, np.ones(2, bool), reference=csr_array((5000, 5000)))


def test_a_heat_map_has_its_numbers_and_refuses_labels_that_do_not_fit(tmp_path):
    values = np.array([[0.1, 0.25], [np.nan, 0.9]])
    figure = plots.heat_map(values, rows=("rare", "common"), columns=(8, 20), measure="hits")
    axes = drawn(figure, tmp_path)
    assert [text.get_text() for text in axes.texts] == ["0.10", "0.25", "0.90"]
    assert np.array_equal(axes.images[0].get_array().filled(np.nan), values, equal_nan=True)
    with pytest.raises(InputError, match="one label for each"):
        plots.heat_map(values, rows=("rare",), columns=(8, 20))


@pytest.mark.parametrize("draw", [plots.convergence, lambda each: plots.sensitivity(
    each, parameter="x", measure="y")])  # fmt: skip
def test_nothing_to_draw_is_refused(draw):
    with pytest.raises(InputError, match="nothing to draw"):
        draw({})


def test_without_matplotlib_the_line_to_type_is_given():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import vecfill, vecfill.run\n"
        "try:\n    import vecfill.views.plots\n"
        "except vecfill.MissingExtraError as error:\n    print(error)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'vecfill[plot]'" in found.stdout


def test_settings_can_be_drawn_from_stages():
    rows = np.random.default_rng(0).normal(size=(30, 3))
    weights = Space(rows).weights(WeightsKey())
    assert plots.spectrum(weights, np.arange(30) < 10).axes
