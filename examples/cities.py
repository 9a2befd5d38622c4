"""Vectors for the cities around Europe that GloVe lacks, step by step from Python.

The package carries a table of cities (where they lie, their country) and GloVe vectors of most of
them. `vecfill demo` does the whole job on it in one go. Here each step is a call, on one part of
the map, and the first result is looked at critically: some known cities have the vector of another
word. They are excluded, the work is done again, and the result is written, verified and shown.

    python examples/cities.py OUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import vecfill as vf
from vecfill.io import verify
from vecfill.io.tables import read_table
from vecfill.sample import CITIES, VECTORS

WEST, EAST, SOUTH, NORTH = -12.0, 45.0, 34.0, 72.0
OPTIONS = {"key": "name", "standardize": True, "ignore": ("population",)}
"""With their size, far cities would explain each other for being large."""
OTHER_WORDS = ("Archway", "Constantine", "Latina", "Mar\u2019ino", "Salé", "Van")
"""What a person finds wrong among the suspicious: the word is not (only) that of the city."""


def main(out: Path) -> None:
    """Do the whole example and write its files into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    cities, glove = around_europe(read_table(CITIES)), vf.read_embedding(VECTORS)
    print(f"1. There are {cities.num_rows} cities, and {len(glove):,} words in the file of GloVe.")

    print("2. Does the place of a city tell its vector? Known cities, hidden and imputed:")
    heldout = vf.evaluate(cities, glove, folds=2, **OPTIONS)
    print(indented(heldout))

    run = vf.impute(cities, glove, method=heldout.chosen, **OPTIONS)
    print(f"3. {len(run.embedding)} cities imputed from {len(run.known)} known ones.")
    print("   Known ones that their neighbours contradict:")
    print(f"   {', '.join(each.entity for each in run.suspicious)}")
    words = run.matches.words
    wrong = [each.entity for each in run.suspicious if each.entity in OTHER_WORDS]
    print(f"   Most are rare spellings. Those of other words: {', '.join(wrong)}")

    print("4. Again without those, and into a file:")
    done = vf.enrich(
        VECTORS, cities, out / "enriched.bin", method=heldout.chosen, exclude=wrong,
        overwrite=True, **OPTIONS,
    )  # fmt: skip
    proof = verify(VECTORS, done.output)
    print(f"   {proof.n_known:,} rows unchanged: {proof.ok}; {proof.n_added} added.")
    run = done.run
    assert run is not None, "there are cities that GloVe lacks"
    assert run.confidence is not None, "enough cities are known to learn it"
    for name in wrong:
        print(f"   {name}: {words[name]!r} is near {nearest(run.known, glove[words[name]])};")
        print(f"     imputed, near {nearest(run.known, run.embedding[name])}")

    print("5. How far to trust each: the three of highest and lowest confidence")
    order = np.argsort(-run.confidence.values, kind="stable")
    for row in (*order[:3], *order[-3:]):
        name, bound = run.embedding.words[row], run.confidence.lower_bound[row]
        print(
            f"   {run.confidence.values[row]:.2f} (cosine at least {bound:.2f})  {name}: "
            f"near {nearest(run.known, run.embedding[name])}"
        )
    print(indented(run.explain(run.embedding.words[order[0]], n=3)))

    run.report(
        out / "report.html",
        heldout=heldout,
        coordinates=coordinates(cities),
        manifest=done.manifest,
        title="Cities around Europe",
        overwrite=True,
    )
    print("6. Look at report.html, on which the map is geography.")


def around_europe(table: pa.Table) -> pa.Table:
    """Return the cities of one part of the map."""
    east = pc.cast(table["longitude"], pa.float64())
    north = pc.cast(table["latitude"], pa.float64())
    is_between = pc.and_(pc.greater(east, WEST), pc.less(east, EAST))
    return table.filter(
        pc.and_(is_between, pc.and_(pc.greater(north, SOUTH), pc.less(north, NORTH)))
    )


def coordinates(table: pa.Table) -> dict[str, tuple[float, float]]:
    """Return where each city lies, for the map."""
    columns = (table[name].to_pylist() for name in ("name", "longitude", "latitude"))
    return {name: (float(east), float(north)) for name, east, north in zip(*columns, strict=True)}


def nearest(known: vf.Embedding, vector: np.ndarray) -> str:
    """Return the three known cities nearest to a vector."""
    return ", ".join(name for name, _ in known.most_similar(vector, n=3))


def indented(told: object) -> str:
    """Return what a result says of itself, moved to the right."""
    return "\n".join(f"   {line}" for line in str(told).splitlines())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "cities"))
