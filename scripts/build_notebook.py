"""Rebuild `examples/cities.ipynb`, executed: ``python scripts/build_notebook.py``.

Needs ``pip install nbconvert ipykernel matplotlib``.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbconvert.preprocessors import ExecutePreprocessor

TARGET = Path(__file__).resolve().parents[1] / "examples" / "cities.ipynb"

CELLS = (
    """# Vectors for cities that GloVe lacks

The package comes with a table of cities and with GloVe vectors of most of them. Here we take the
cities around Europe, impute vectors for those that GloVe lacks, and see how far to trust them.""",
    """import pyarrow.compute as pc

import vecfill as vf
from vecfill.io.tables import read_table
from vecfill.sample import CITIES, VECTORS
from vecfill.views import plots

cities = read_table(CITIES)
lon, lat = (pc.cast(cities[name], "float64") for name in ("longitude", "latitude"))
near = pc.and_(pc.and_(pc.greater(lon, -12), pc.less(lon, 45)), pc.greater(lat, 34))
cities = cities.filter(near)
glove = vf.read_embedding(VECTORS)
options = {"key": "name", "standardize": True, "ignore": ["population"], "names": "off"}""",
    "result = vf.impute(cities, glove, progress=vf.ProgressBar(), **options)\nresult",
    "How far can these vectors be trusted? Known cities that were hidden taught the confidence.",
    "result.confidence",
    "plots.reliability(result.confidence)",
    "What is a vector made of?",
    'result.explain("St Helens", n=5)',
    "How do other methods do? Known cities are hidden and imputed with each, tuned alike.",
    'evaluation = vf.evaluate(cities, glove, folds=2, candidates="classic", **options)\nevaluation',
    "plots.comparison(evaluation)",
    "The report puts all of this on one page, with a map.",
    """vf.write_report(
    result, "cities.html", evaluation=evaluation, columns=cities, title="Cities", overwrite=True
)""",
)


def main() -> None:
    """Write the notebook with its outputs, without anything that differs from run to run."""
    notebook = nbformat.v4.new_notebook()
    for number, text in enumerate(CELLS):
        is_code = "vf." in text or "result." in text or "plots." in text
        make = nbformat.v4.new_code_cell if is_code else nbformat.v4.new_markdown_cell
        notebook.cells.append(make(text, id=f"cell-{number}"))
    run = ExecutePreprocessor(timeout=900, kernel_name="python3")
    run.preprocess(notebook, {"metadata": {"path": str(TARGET.parent)}})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook.metadata = {"kernelspec": kernel}
    nbformat.write(notebook, TARGET)
    (TARGET.parent / "cities.html").unlink(missing_ok=True)
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
