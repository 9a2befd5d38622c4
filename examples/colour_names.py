"""Colours for colour names that a survey lacks, from how the names are spelt.

In a survey, people named 949 colours (the xkcd survey, public domain, included in Matplotlib). CSS,
the style language of the web, has names that the survey lacks: mediumorchid, lemonchiffon,
gainsboro. Here an entity is a colour name. Its vector is the colour itself (lightness, green to
red, blue to yellow). The domain is not a table but a square matrix of distances between spellings.

The example measures whether spelling predicts colour and imputes the colours of the CSS names. CSS
defines these colours, so the example can then compare the imputed colours with the true ones, which
is seldom possible. It writes only the colours whose confidence is high enough.

    python examples/colour_names.py OUT

Needs Matplotlib: pip install 'vecfill[plot]'
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from matplotlib.colors import CSS4_COLORS, XKCD_COLORS, to_rgb
from matplotlib.figure import Figure
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_distances

import vecfill as vf
from vecfill.inputs.names.matching import match_names
from vecfill.io import verify

SURVEY = {name.removeprefix("xkcd:"): XKCD_COLORS[name] for name in reversed(XKCD_COLORS)}
"""The names that most people used come first. Matplotlib has them last, and vecfill takes the first
words of an embedding for the most frequent ones."""
CSS = {name: colour for name, colour in CSS4_COLORS.items() if "gray" not in name}
"""CSS spells each grey in two ways; the survey uses "grey"."""
LEAST_CONFIDENCE = 0.5


def main(out: Path) -> None:
    """Do the whole example and write its files into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    survey = vf.Embedding(list(SURVEY), lab(SURVEY.values()))
    vf.write_embedding(survey, out / "survey.csv", overwrite=True)

    matches = match_names(list(CSS), survey.words)
    new = list(matches.unmatched)
    counts = matches.counts
    print(
        f"1. The survey has {len(survey)} names. Of the {len(CSS)} CSS names it has "
        f"{counts['exact']} exactly"
    )
    print(f"   and {counts['loose']} written as two words. It lacks {len(new)}.")

    print("2. Does spelling predict colour? Hide names of the survey and impute them:")
    names = [*survey.words, *new]
    distances = spelling_distances(names)
    domain = {"kind": "distances", "names": names, "match": "exact"}
    evaluation = vf.evaluate(distances, survey, **domain)
    print(indented(evaluation))

    result = vf.impute(distances, survey, method=evaluation.decision, **domain)
    print(f"3. {len(result.embedding)} colours imputed. Two of them:")
    for name in ("mediumorchid", "firebrick"):
        print(indented(result.explain(name, n=3)))

    print("4. Compare with the true colours from CSS, in thirds from high to low confidence:")
    table = compared(result)
    for rows in np.array_split(table, 3):
        expected, found = rows["confidence"].mean(), rows["centred_cosine"].mean()
        some = ", ".join(rows["name"][:3])
        print(f"   centred cosine {expected:.2f} expected, {found:.2f} found: {some} ...")
    held = np.mean(table["centred_cosine"] >= table["lower_bound"])
    print(f"   Lower bounds, at a coverage level of 90 %, held for {100 * held:.0f} %. By kind:")
    for stratum in result.strata:
        print(f"   {stratum}")
    print("   Names that resemble no survey name (linen, peru) are even worse than their low")
    print("   confidence suggests. They are left out of the file.")

    done = vf.enrich(
        out / "survey.csv", distances, out / "enriched.csv", method=evaluation.decision,
        min_confidence=LEAST_CONFIDENCE, report=out / "report.html", overwrite=True, **domain,
    )  # fmt: skip
    proof = verify(out / "survey.csv", done.output)
    same = "unchanged" if proof.ok else "CHANGED"
    print(f"5. {proof.n_known} rows {same}, {proof.n_added} added with confidence")
    print(f"   {LEAST_CONFIDENCE} or more; {done.counts['abstained']} left out.")
    swatches(result, table).savefig(out / "colours.png", dpi=110)
    print("6. Open report.html and colours.png.")


def spelling_distances(names: list[str]) -> np.ndarray:
    """Return the distances between spellings, from their runs of three to six letters."""
    runs = TfidfVectorizer(analyzer="char", ngram_range=(3, 6), sublinear_tf=True)
    counts = runs.fit_transform([name.replace(" ", "") for name in names])
    distances = np.sqrt(2 * cosine_distances(counts))
    return (distances + distances.T) / 2


def lab(colours: Iterable[str]) -> np.ndarray:
    """Return colours in CIELAB, where equal steps look equally large."""
    rgb = np.array([to_rgb(each) for each in colours])
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = linear @ np.array(to_xyz).T / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def rgb_of(vectors: np.ndarray) -> np.ndarray:
    """Return the inverse of `lab`, clipped to colours that a screen can show."""
    lightness, green_red, blue_yellow = vectors.T
    y = (lightness + 16) / 116
    rough = np.column_stack([y + green_red / 500, y, y - blue_yellow / 200])
    xyz = np.where(rough > 6 / 29, rough**3, (rough - 16 / 116) / 7.787) * [0.9505, 1.0, 1.089]
    to_rgb_ = [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.204, 1.057]]
    linear = np.clip(xyz @ np.array(to_rgb_).T, 0, 1)
    return np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)


def compared(result: vf.Result) -> np.ndarray:
    """Return imputed names with their true values, highest confidence first."""
    truth, found = lab(CSS[name] for name in result.embedding.words), result.embedding.vectors
    centre = result.known.vectors.mean(axis=0)
    rows = zip(
        result.embedding.words,
        result.confidence.values,
        result.confidence.lower_bound,
        cosines(found - centre, truth - centre),
        strict=True,
    )
    kinds = [("name", "U40")]
    kinds += [(n, float) for n in ("confidence", "lower_bound", "centred_cosine")]
    table = np.array(list(rows), dtype=kinds)
    return table[np.argsort(-table["confidence"], kind="stable")]


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each row of one matrix with the same row of the other."""
    return (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def swatches(result: vf.Result, table: np.ndarray) -> Figure:
    """Return a figure with each name, its imputed colour and its CSS colour."""
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for part, half in zip(axes, np.array_split(table, 2), strict=True):
        for row, name in enumerate(half["name"]):
            colours = (rgb_of(result.embedding[[str(name)]])[0], to_rgb(CSS[str(name)]))
            for place, colour in enumerate(colours):
                part.barh(-row, 1, left=place, height=0.92, color=colour)
        part.set_yticks(-np.arange(len(half)), [str(name) for name in half["name"]], fontsize=8)
        part.set_xticks([0.5, 1.5], ["imputed", "CSS"])
        part.xaxis.tick_top()
        part.tick_params(length=0)
        part.spines[:].set_visible(False)
        part.margins(0)
    return figure


def indented(told: object) -> str:
    """Return the text of an object, indented."""
    return "\n".join(f"   {line}" for line in str(told).splitlines())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "colour-names"))
