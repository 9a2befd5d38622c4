"""Vectors of elements that learnt tables of atoms lack, from the periodic table."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mendeleev.fetch import fetch_table

import vecfill as vf
from pypi import wheel
from record import Result, plt

NAMES = {"mace_mp0": "MACE", "chgnet": "CHGNet", "orb_v2": "ORB", "sevennet": "SevenNet"}
PACKAGE = "ElementEmbeddings"
FOLDER = "elementembeddings/data/element_representations"
FIRST_OF_BLOCK = {57: 6, 89: 7}
"""The first lanthanide and actinide, and the period below which their rows are drawn."""


DRAWN = ("symbol", "number", "row", "column")
"""Where an element is drawn; all else describes it."""


def run(config: dict[str, Any], data: Path, out: Path) -> Result:  # noqa: ARG001
    """Hide known elements, impute them, and impute those that each table lacks."""
    elements = periodic_table(config)
    with zipfile.ZipFile(wheel(PACKAGE, out.parent / "cache")) as archive:
        learnt = {name: _read(archive, name, elements) for name in config["tables"]}
    rows, nearest, drawn = [], [], None
    described = elements.drop(columns=list(DRAWN))
    for name, vectors in learnt.items():
        options = {"seed": config["seed"], "names": "off"}
        evaluation = vf.evaluate(described, vectors, folds=config["folds"], **options)
        result = vf.impute(described, vectors, method=evaluation.decision, **options)
        rows += [_scores(NAMES[name], evaluation, method) for method in evaluation.scores]
        nearest += [_neighbors(NAMES[name], result, element) for element in result.embedding.words]
        if name == config["drawn"]:
            drawn = result
    assert drawn is not None
    tables = {
        f"Hidden elements, {config['folds']} folds": pd.DataFrame(rows).set_index(
            ["table", "method"]
        ),
        "Elements that the tables lack": pd.DataFrame(nearest).set_index(["table", "element"]),
    }
    metrics = {heading: table.reset_index().to_dict("records") for heading, table in tables.items()}
    figure = draw_periodic_table(elements, drawn, NAMES[config["drawn"]])
    return Result(metrics, tables, {"atoms": figure})


def periodic_table(config: dict[str, Any]) -> pd.DataFrame:
    """Return what is known of each element by name: numbers that are measured for most of them."""
    table = fetch_table("elements")
    table = table[table["atomic_number"] <= config["n_elements"]].set_index("name")
    numbers = table.select_dtypes("number")
    is_measured = numbers.notna().mean() >= config["least_measured"]
    kept = numbers.loc[:, is_measured & (numbers.std() > 0)]
    kept = kept.drop(columns=[name for name in kept if name.endswith("_id")] + ["atomic_number"])
    places = table[["symbol", "atomic_number", "period", "group_id"]].set_axis([*DRAWN], axis=1)
    return kept.join(table["block"].astype(str)).join(places)


def _read(archive: zipfile.ZipFile, name: str, elements: pd.DataFrame) -> vf.Embedding:
    """Return the vectors of a table by the names of elements; constant columns are left out."""
    table = pd.read_csv(io.BytesIO(archive.read(f"{FOLDER}/{name}.csv")), index_col="element")
    name_of = {symbol: element for element, symbol in elements["symbol"].items()}
    table = table[[symbol in name_of for symbol in table.index]]
    vectors = table.to_numpy(np.float64)
    return vf.Embedding([name_of[symbol] for symbol in table.index], vectors)


def _scores(table: str, evaluation: vf.Evaluation, method: str) -> dict[str, Any]:
    low, high = evaluation.interval(method, "centred_cosine")
    means = evaluation.methods[method]
    return {
        "table": table,
        "method": evaluation.label(method),
        "known": evaluation.n_known,
        "centred cosine": means["centred_cosine"],
        "95 % interval": f"{low:.2f} to {high:.2f}",
        "MRR": means["mrr"],
        "hits@10": means["hits_at_10"],
    }


def _neighbors(table: str, result: vf.Result, element: str) -> dict[str, Any]:
    nearest = result.known.most_similar(result.embedding[element], n=4)
    row = result.embedding.row(element)
    trust = result.confidence
    return {
        "table": table,
        "element": element,
        "nearest elements": ", ".join(name for name, _ in nearest),
        "confidence": np.nan if trust is None else trust.values[row],
        "bound": "none" if element in result.unusual else "",
    }


def draw_periodic_table(elements: pd.DataFrame, result: vf.Result, name: str) -> Any:
    """Return the periodic table: known elements grey, imputed ones by their confidence."""
    figure, axes = plt.subplots(figsize=(9, 4.8), layout="constrained")
    assert result.confidence is not None
    trust = dict(zip(result.embedding.words, result.confidence.values, strict=True))
    colours = figure.colorbar(
        axes.scatter([], [], c=[], cmap="viridis", vmin=0.0, vmax=1.0),
        ax=axes, label="confidence of imputed elements", shrink=0.6,
    ).cmap  # fmt: skip
    for element, row in elements.iterrows():
        x, y = _place(row)
        confidence = trust.get(element)
        face = "#e6e6e6" if confidence is None else colours(max(confidence, 0.0))
        axes.add_patch(plt.Rectangle((x, y), 0.9, 0.9, facecolor=face))
        is_dark = confidence is not None and confidence < 0.6
        ink = "white" if is_dark else "black"
        axes.text(x + 0.45, y + 0.5, row["symbol"], ha="center", va="center", color=ink, fontsize=9)
        if confidence is not None:
            label = f"{confidence:.2f}"
            axes.text(x + 0.45, y + 0.82, label, ha="center", va="center", color=ink, fontsize=5)
    axes.set(xlim=(0.8, 19), ylim=(10.6, 0.8), aspect="equal")
    axes.set_title(f"{len(result.embedding)} elements that {name} lacks", loc="left")
    axes.set_axis_off()
    return figure


def _place(row: pd.Series) -> tuple[float, float]:
    """Return where an element stands: group and period, or one of the two rows below."""
    number = int(row["number"])
    for first, period in FIRST_OF_BLOCK.items():
        if first <= number < first + 15:
            return 4.0 + number - first, period + 2.5
    return float(row["column"]), float(row["row"])
