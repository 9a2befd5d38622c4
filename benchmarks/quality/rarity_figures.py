"""Pictures of the page on rare entities: where rare vectors lie, and confidence against the truth.

    python benchmarks/quality/rarity.py                      # writes benchmarks/results/rarity.json
    python benchmarks/quality/rarity_figures.py [--json FILE] [--out FOLDER]

Needs Matplotlib: pip install 'vecfill[plot]'
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from downloads import wink_glove
from matplotlib.figure import Figure

from vecfill.inputs.rarity import RankSample, VocabularyMeans

ACCENT, WARM, GREY = "#0a6e5f", "#c4541a", "#8b9099"
LABELLED_RANKS = {
    100: (0, -22),
    1_000: (0, -30),
    10_000: (-8, -30),
    100_000: (38, -12),
    300_000: (0, 42),
}
"""Ranks named in the picture, and where their labels stand, in points from their dots."""
N_DRAWN = 600
"""Words drawn as dots in each of two groups."""
GROUPS = {
    "words of rank 1 to 10,000": (0, 10_000, ACCENT),
    "words of rank 200,000 and beyond": (200_000, None, WARM),
}

PANELS = {"before": "before", "auto": "now, without counts", "counts": "now, with counts"}
NEAR_ONE = "words"
"""A set that is left out: all its values are near 0.9."""

FAR = 0.12
"""Dots farther than this from the diagonal carry the name of their set."""


def where_rare_vectors_lie() -> Figure:
    """Draw the path of GloVe's mean vector from frequent to rare words, and how far it goes."""
    _, vectors = wink_glove()
    found = means_by_rank(vectors)
    centre = found.means.mean(axis=0)
    plane = np.linalg.svd(found.means - centre, full_matrices=False)[2][:2].T
    # The sign of a principal component is arbitrary: let the path run from left to right.
    plane *= np.sign((found.means[-1] - found.means[0]) @ plane)
    figure = Figure(figsize=(9.6, 4.3), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.3, 1))
    draw_words(left, vectors, centre, plane)
    draw_path(left, found, (found.means - centre) @ plane)
    draw_distance(right, found, vectors)
    return figure


def means_by_rank(vectors: np.ndarray) -> VocabularyMeans:
    """Return the mean vector by rank, sampled as vecfill does it."""
    sample = RankSample()
    places = sample.places(first_row=0, n_rows=len(vectors))
    sample.add(first_row=0, places=places, vectors=np.asarray(vectors[places]))
    return sample.means(n_words=len(vectors))


def draw_words(axes: Any, vectors: np.ndarray, centre: np.ndarray, plane: np.ndarray) -> None:
    """Draw some frequent and some rare words as dots."""
    rng = np.random.default_rng(0)
    for label, (low, high, colour) in GROUPS.items():
        rows = np.sort(rng.choice(np.arange(low, high or len(vectors)), N_DRAWN, replace=False))
        x, y = ((vectors[rows] - centre) @ plane).T
        axes.plot(x, y, ".", color=colour, alpha=0.3, ms=4, mew=0, label=label)
    legend = axes.legend(loc="upper right", frameon=False, fontsize=8, markerscale=2.5)
    for handle in legend.legend_handles:
        handle.set_alpha(1.0)


def draw_path(axes: Any, found: VocabularyMeans, path: np.ndarray) -> None:
    """Draw the mean vector of each bin of ranks, joined in their order."""
    axes.plot(*path.T, "-", color="black", lw=1.5)
    axes.plot(*path.T, "o", color="black", ms=3)
    for rank, shift in LABELLED_RANKS.items():
        place = int(np.abs(found.rarity - np.log(rank)).argmin())
        axes.annotate(
            f"rank {rank:,}",
            path[place],
            xytext=shift,
            textcoords="offset points",
            ha="center",
            fontsize=8,
            arrowprops={"arrowstyle": "-", "lw": 0.6, "color": "black"},
            bbox={"boxstyle": "round,pad=0.15", "fc": "white", "ec": "none", "alpha": 0.8},
        )
    axes.set_title("GloVe, seen along the path of its mean vector", fontsize=10, loc="left")
    axes.set_xlabel("first principal component of the means")
    axes.set_ylabel("second")
    axes.set_aspect("equal", adjustable="datalim")
    hide_frame(axes)


def draw_distance(axes: Any, found: VocabularyMeans, vectors: np.ndarray) -> None:
    """Draw how far the mean at each rank is from the mean of frequent words."""
    frequent = np.asarray(vectors[:10_000], np.float64)
    centre = frequent.mean(axis=0)
    typical = float(np.linalg.norm(frequent - centre, axis=1).mean())
    moved = np.linalg.norm(found.means - centre, axis=1)
    axes.plot(np.exp(found.rarity), moved / typical, "-o", color=ACCENT, ms=3)
    axes.set_xscale("log")
    axes.set_ylim(0, None)
    axes.set_title("How far the mean is from that of ranks 1 to 10,000", fontsize=10, loc="left")
    axes.set_xlabel("rank")
    axes.set_ylabel("1 = a typical word's distance from it")
    hide_frame(axes)


def confidence_and_truth(results: list[dict]) -> Figure:
    """Draw mean confidence against mean truth: a dot for each set and each way to hide rows."""
    figure = Figure(figsize=(9.6, 3.7), layout="constrained")
    for axes, (way, title) in zip(
        figure.subplots(1, 3, sharex=True, sharey=True), PANELS.items(), strict=True
    ):
        axes.plot([0, 0.7], [0, 0.7], "-", color=GREY, lw=1)
        for name, hidden, said, true in points(results, way):
            is_rare = hidden == "rarest"
            style = {"color": WARM} if is_rare else {"color": ACCENT, "mfc": "white"}
            axes.plot(said, true, "o", ms=5.5, **style)
            if abs(said - true) > FAR:
                left = true > said
                axes.annotate(
                    name,
                    (said, true),
                    xytext=(-6 if left else 6, -3),
                    textcoords="offset points",
                    ha="right" if left else "left",
                    fontsize=8,
                )
        axes.set_title(title, fontsize=10, loc="left")
        axes.set_xlabel("mean confidence")
        axes.set_aspect("equal")
        axes.set(xlim=(0, 0.72), ylim=(0, 0.72))
        hide_frame(axes)
    first = figure.axes[0]
    first.set_ylabel("true mean centred cosine")
    first.plot([], [], "o", color=WARM, label="rarest rows hidden")
    first.plot([], [], "o", color=ACCENT, mfc="white", label="random rows hidden")
    first.legend(loc="upper left", frameon=False, fontsize=8)
    return figure


def points(results: list[dict], way: str) -> list[tuple[str, str, float, float]]:
    """Return set, way of hiding, mean confidence and truth of every dot of a panel."""
    return [
        (each["set"], each["hidden"], each["confidence"], each["centred_cosine"])
        for each in results
        if each["way"] == way and each["set"] != NEAR_ONE
    ]


def hide_frame(axes: Any) -> None:
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/rarity.json"))
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    options = parser.parse_args()
    results = json.loads(options.json.read_text())
    where_rare_vectors_lie().savefig(options.out / "rarity-path.png", dpi=110)
    confidence_and_truth(results).savefig(options.out / "rarity-confidence.png", dpi=110)


if __name__ == "__main__":
    main()
