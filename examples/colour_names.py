"""Colours for names that nobody was asked about, from how the names are spelt.

In a survey people named 949 colours (the xkcd survey, public domain, which Matplotlib carries). The
standard of the web, CSS, has names that the survey lacks: mediumorchid, lemonchiffon, gainsboro.
Here an entity is a name, its vector is the colour itself (lightness, green to red, blue to yellow),
and the domain is no table but a square matrix of distances: how differently two names are spelt.

The example measures whether spelling tells colours, imputes those of CSS names, and does what is
seldom possible: it looks up the truth, since CSS defines its colours. Then it writes what is sure.

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
from vecfill.inputs.names import match_names
from vecfill.io import verify

SURVEY = {name.removeprefix("xkcd:"): colour for name, colour in XKCD_COLORS.items()}
CSS = {name: colour for name, colour in CSS4_COLORS.items() if "gray" not in name}
"""Each grey has two spellings, and the survey's is grey."""
LEAST_CONFIDENCE = 0.6


def main(out: Path) -> None:
    """Do the whole example and write its files into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    survey = vf.Embedding(list(SURVEY), lab(SURVEY.values()))
    vf.write_embedding(survey, out / "survey.csv", overwrite=True)

    matches = match_names(list(CSS), survey.words)
    new = list(matches.unmatched)
    counts = matches.counts
    print(
        f"1. The survey has {len(survey)} names. Of the {len(CSS)} in CSS it has {counts['exact']},"
    )
    print(f"   and {counts['loose']} in two words; it lacks {len(new)}.")

    print("2. Does spelling tell colours? Names of the survey, hidden and imputed:")
    names = [*survey.words, *new]
    distances = spelling_distances(names)
    domain = {"kind": "distances", "names": names, "match": "exact"}
    heldout = vf.evaluate(distances, survey, **domain)
    print(indented(heldout))

    run = vf.impute(distances, survey, method=heldout.chosen, **domain)
    print(f"3. {len(run.embedding)} colours imputed. Two of them:")
    for name in ("mediumorchid", "firebrick"):
        print(indented(run.explain(name, n=3)))

    print("4. The truth, which CSS has. Names by thirds, from the surest down:")
    table = compared(run)
    for rows in np.array_split(table, 3):
        expected, found = rows["confidence"].mean(), rows["centred_cosine"].mean()
        some = ", ".join(rows["name"][:3])
        print(f"   centred cosine {expected:.2f} expected, {found:.2f} found: {some} ...")
    held = np.mean(table["cosine"] >= table["lower_bound"])
    print(f"   Lower bounds meant for 90 % of cases held for {held:.0%}.")
    print(
        "   Names that resemble none of the survey (linen, peru) come out worse than even their low"
    )
    print("   confidence says. They are left out of the file.")

    done = vf.enrich(
        out / "survey.csv", distances, out / "enriched.csv", method=heldout.chosen,
        min_confidence=LEAST_CONFIDENCE, report=out / "report.html", overwrite=True, **domain,
    )  # fmt: skip
    proof = verify(out / "survey.csv", done.output)
    print(
        f"5. {proof.n_known} rows unchanged: {proof.ok}; {proof.n_added} added whose confidence is"
    )
    print(f"   {LEAST_CONFIDENCE} or more, {done.counts['abstained']} left out.")
    swatches(run, table).savefig(out / "colours.png", dpi=110)
    print("6. Look at report.html and colours.png.")


def spelling_distances(names: list[str]) -> np.ndarray:
    """Return how differently names are spelt: by their runs of three to six letters."""
    runs = TfidfVectorizer(analyzer="char", ngram_range=(3, 6), sublinear_tf=True)
    counts = runs.fit_transform([name.replace(" ", "") for name in names])
    distances = np.sqrt(2 * cosine_distances(counts))
    return (distances + distances.T) / 2


def lab(colours: Iterable[str]) -> np.ndarray:
    """Return colours as people see them (CIELAB): equal steps look equally large."""
    rgb = np.array([to_rgb(each) for each in colours])
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = linear @ np.array(to_xyz).T / [0.9505, 1.0, 1.089]
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.column_stack([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def rgb_of(vectors: np.ndarray) -> np.ndarray:
    """Return what a screen shows: the way back from `lab`, cut to what it can show."""
    lightness, green_red, blue_yellow = vectors.T
    y = (lightness + 16) / 116
    rough = np.column_stack([y + green_red / 500, y, y - blue_yellow / 200])
    xyz = np.where(rough > 6 / 29, rough**3, (rough - 16 / 116) / 7.787) * [0.9505, 1.0, 1.089]
    to_rgb_ = [[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.204, 1.057]]
    linear = np.clip(xyz @ np.array(to_rgb_).T, 0, 1)
    return np.where(linear > 0.0031308, 1.055 * linear ** (1 / 2.4) - 0.055, 12.92 * linear)


def compared(run: vf.Run) -> np.ndarray:
    """Return imputed names beside the truth, those of highest confidence first."""
    truth, found = lab(CSS[name] for name in run.embedding.words), run.embedding.vectors
    centre = run.known.vectors.mean(axis=0)
    rows = zip(
        run.embedding.words,
        run.confidence.values,
        run.confidence.lower_bound,
        cosines(found, truth),
        cosines(found - centre, truth - centre),
        strict=True,
    )
    kinds = [("name", "U40")]
    kinds += [(n, float) for n in ("confidence", "lower_bound", "cosine", "centred_cosine")]
    table = np.array(list(rows), dtype=kinds)
    return table[np.argsort(-table["confidence"], kind="stable")]


def cosines(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the cosine of each row with its partner."""
    return (one * other).sum(1) / np.linalg.norm(one, axis=1) / np.linalg.norm(other, axis=1)


def swatches(run: vf.Run, table: np.ndarray) -> Figure:
    """Return a picture: each name, the colour imputed for it and the one CSS means."""
    figure = Figure(figsize=(9, 6.2), layout="constrained")
    axes = figure.subplots(1, 2)
    for part, half in zip(axes, np.array_split(table, 2), strict=True):
        for row, name in enumerate(half["name"]):
            colours = (rgb_of(run.embedding[[str(name)]])[0], to_rgb(CSS[str(name)]))
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
    """Return what a result says of itself, moved to the right."""
    return "\n".join(f"   {line}" for line in str(told).splitlines())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "colour-names"))
