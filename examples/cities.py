"""Vectors for the cities around Europe that GloVe lacks, step by step from Python.

The package includes a table of cities (location, country, population) and GloVe vectors for most of
them. `vecfill demo` does the whole job on all of them at once. Here each step is one call, on the
cities around Europe. The first result shows that some known cities have the vector of another word.
We exclude them, impute again, and then write, verify and show the result.

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
OPTIONS = {"key": "name", "standardize": True, "ignore": ("population",), "names": "off"}
"""Population is left out: with it, distant cities would be neighbours because both are large. Names
are not used as a source either, so that the example is about location only."""
OTHER_WORDS = ("Archway", "Constantine", "Latina", "Mar\u2019ino", "Salé", "Van")
"""Suspicious cities whose name is also another word. A person picked these from the list."""


def main(out: Path) -> None:
    """Do the whole example and write its files into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    cities, glove = around_europe(read_table(CITIES)), vf.read_embedding(VECTORS)
    print(f"1. The table has {cities.num_rows} cities. The GloVe file has {len(glove):,} words.")

    print("2. Does location predict the vectors? Hide known cities and impute them:")
    evaluation = vf.evaluate(cities, glove, folds=2, candidates="classic", **OPTIONS)
    print(indented(evaluation))

    # The setting alone, without the offset of rare entities: the cities to correct are not rare.
    result = vf.impute(cities, glove, method=evaluation.chosen, **OPTIONS)
    print(f"3. {len(result.embedding)} cities imputed from {len(result.known)} known ones.")
    print("   Known cities whose vectors contradict their neighbours:")
    print(f"   {', '.join(each.entity for each in result.suspicious)}")
    words = result.matches.words
    wrong = [each.entity for each in result.suspicious if each.entity in OTHER_WORDS]
    print(f"   Most are rare spellings. These are also other words: {', '.join(wrong)}")

    print("4. Impute again without those, and write a file:")
    done = vf.enrich(
        VECTORS, cities, out / "enriched.bin", method=evaluation.chosen, exclude=wrong,
        overwrite=True, **OPTIONS,
    )  # fmt: skip
    proof = verify(VECTORS, done.output)
    same = "unchanged" if proof.ok else "CHANGED"
    print(f"   {proof.n_known:,} rows {same}, {proof.n_added} added.")
    result = done.result
    assert result is not None, "some cities are not in GloVe"
    assert result.confidence is not None, "enough cities are known to learn a confidence"
    for name in wrong:
        print(f"   {name}: {words[name]!r} is near {nearest(result.known, glove[words[name]])};")
        print(f"     imputed, near {nearest(result.known, result.embedding[name])}")

    print("5. Confidence and lower bound: the three highest and the three lowest")
    order = np.argsort(-result.confidence.values, kind="stable")
    for row in (*order[:3], *order[-3:]):
        name, bound = result.embedding.words[row], result.confidence.lower_bound[row]
        print(
            f"   {result.confidence.values[row]:.2f} (at least {bound:.2f})  {name}: "
            f"near {nearest(result.known, result.embedding[name])}"
        )
    print(indented(result.explain(result.embedding.words[order[0]], n=3)))

    vf.write_report(
        result,
        out / "report.html",
        evaluation=evaluation,
        coordinates=coordinates(cities),
        manifest=done.manifest,
        title="Cities around Europe",
        overwrite=True,
    )
    print("6. Open report.html; its map shows where the cities are.")


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
    """Return the text of an object, indented."""
    return "\n".join(f"   {line}" for line in str(told).splitlines())


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "cities"))
