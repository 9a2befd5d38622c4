"""Rebuild `examples/cities.ipynb`, executed: ``python scripts/build_notebook.py``.

Needs ``pip install nbconvert ipykernel matplotlib pandas``.
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
    """import pandas as pd

import vecfill as vf
from vecfill.sample import CITIES, VECTORS
from vecfill.views import plots

cities = pd.read_csv(CITIES, index_col="name")
cities = cities.query("-12 < longitude < 45 and latitude > 34")
options = {"standardize": True, "ignore": "population", "names": "off"}
cities.head(3)""",
    "result = vf.impute(cities, VECTORS, progress=vf.ProgressBar(), **options)\nresult",
    "How far can these vectors be trusted? The confidence is learnt from hidden known cities.",
    "result.confidence",
    "plots.reliability(result.confidence)",
    "What is a vector made of?",
    'result.explain("St Helens", n=5)',
    "How do other methods do? All of them impute the same hidden cities, and all are tuned.",
    """evaluation = vf.evaluate(cities, VECTORS, folds=2, candidates="classic", **options)
evaluation""",
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
        is_code = text.startswith(("import ", "result", "evaluation", "plots.", "vf."))
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
