"""Whether a change of the code changed any answer: the bits of vectors, confidence and shares.

    python benchmarks/bits.py save old.npz          with the old code
    python benchmarks/bits.py compare old.npz       with the new code

Runs the bundled cities, made tables, two sources, counts, entities that come later (before and
after saving) and a dataset in pieces, and keeps vectors, confidence, both bounds, and the shares of
explanations. `compare` prints each array that is no longer the same, and ends with status 1.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

import vecfill as vf
from vecfill.sample import CITIES, VECTORS

N_EXPLAINED = 5
Arrays = dict[str, np.ndarray]


def looked_at(label: str, result: vf.Result, later: object = None) -> Arrays:
    """Return what a result, and its model, say."""
    arrays = answers(label, result.embedding, result.confidence, result.explain)
    model = result.to_model()
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.vecfill")
        loaded = vf.load(Path(folder) / "model.vecfill")
        some = result.embedding.words[:N_EXPLAINED]
        for word in some:
            arrays |= shares(f"{label}/loaded/{word}", loaded.explain(word))
        if later is not None:
            for name, opened in (("added", model), ("added by loaded", loaded)):
                added = opened.add(later)
                arrays |= answers(
                    f"{label}/{name}", added.embedding, added.confidence, added.explain
                )
    return arrays


def answers(label: str, embedding: vf.Embedding, confidence: object, explain: object) -> Arrays:
    arrays = {f"{label}/vectors": np.asarray(embedding.vectors)}
    if confidence is not None:
        for name in ("values", "lower_bound", "plain_lower_bound"):
            if (column := getattr(confidence, name, None)) is not None:
                arrays[f"{label}/{name}"] = np.asarray(column)
    for word in embedding.words[:N_EXPLAINED]:
        arrays |= shares(f"{label}/{word}", explain(word))  # type: ignore[operator]
    return arrays


def shares(label: str, explanation: vf.trust.Explanation) -> Arrays:
    """Return everything an explanation says, as text, and its shares as numbers."""
    said = explanation.to_dict()
    return {
        f"{label}/made of": np.array(explanation.contributors),
        f"{label}/shares": np.asarray(explanation.shares),
        f"{label}/said": np.array([repr(said)]),
    }


def made(seed: int, n_rows: int, n_columns: int, n_dims: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table with a category and text, and vectors that it partly tells."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n_rows, n_columns))
    vectors = np.tanh(rows @ rng.normal(size=(n_columns, n_dims)))
    vectors += 0.3 * rng.normal(size=vectors.shape)
    kind = rng.integers(4, size=n_rows)
    vectors += rng.normal(size=(4, n_dims))[kind]
    table = pd.DataFrame(rows, columns=[f"x{place}" for place in range(n_columns)])
    table.insert(0, "kind", np.array(["iron", "salt", "wool", "corn"])[kind])
    table.index = pd.Index([f"item{row}" for row in range(n_rows)], name="entity")
    return table, vectors


def sample() -> Arrays:
    return looked_at("sample", vf.impute(CITIES, VECTORS, ignore="population"))


def sample_without_names() -> Arrays:
    arrays: Arrays = {}
    for options in ({"goal": "rank"}, {"method": "paper"}, {"counts": "population"}):
        result = vf.impute(CITIES, VECTORS, names="off", ignore="population", **options)
        arrays |= looked_at(f"sample, {options}", result)
    return arrays


def one_table() -> Arrays:
    arrays: Arrays = {}
    for seed, shape in ((0, (260, 4, 12)), (1, (900, 12, 40))):
        table, vectors = made(seed, *shape)
        n_known, n_fitted = shape[0] // 2, shape[0] - 40
        known = dict(zip(table.index[:n_known], vectors, strict=False))
        for method in ("auto", "paper"):
            options = {} if method == "auto" else {"method": method}
            result = vf.impute(table[:n_fitted], known, names="off", **options)
            arrays |= looked_at(f"made {seed}, {method}", result, table[n_fitted:])
    return arrays


def two_sources() -> Arrays:
    table, vectors = made(2, 400, 5, 20)
    other, _ = made(3, 400, 3, 2)
    other = other.drop(columns="kind") + vectors[:, :3]
    table, other = table[40:], other[:380]
    names = list(other.index)
    known = {name: vectors[row] for row, name in enumerate(names) if row % 3 and row < 340}
    counts = {name: int(1000 / (1 + row)) + 1 for row, name in enumerate(names)}
    sources = {"table": table[:320], "other": other[:340]}
    later = {"table": table[300:], "other": other[340:]}
    arrays = looked_at("two sources", vf.impute(sources, known, names="off"), later)
    arrays |= looked_at(
        "two sources, counts", vf.impute(sources, known, names="off", counts=counts)
    )
    return arrays


def dataset() -> Arrays:
    table, vectors = made(4, 600, 8, 10)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        columns = table.drop(columns="kind").reset_index()
        pq.write_table(pa.Table.from_pandas(columns, preserve_index=False), folder / "rows.parquet")
        known = {"entity": list(table.index[:400]), "vector": vectors[:400].tolist()}
        pq.write_table(pa.table(known), folder / "known.parquet")
        arrays: Arrays = {}
        for label, options in (("auto", {}), ("paper", {"method": "paper"})):
            out = folder / f"out-{label}"
            vf.impute_dataset(
                folder / "rows.parquet", folder / "known.parquet", out,
                work=folder / f"work-{label}", **options,
            )  # fmt: skip
            written = pq.read_table(out).to_pandas().sort_values("entity")
            arrays[f"dataset {label}/vectors"] = np.stack(list(written["vector"]))
            for column in ("confidence", "lower_bound"):
                arrays[f"dataset {label}/{column}"] = written[column].to_numpy()
    return arrays


CASES = (sample, sample_without_names, one_table, two_sources, dataset)


def differences(old: Arrays, new: Arrays) -> list[str]:
    """Return a line for each array that is not the same."""
    lines = [f"{label}: only in one of them" for label in sorted(set(old) ^ set(new))]
    for label in sorted(set(old) & set(new)):
        one, other = old[label], new[label]
        if one.shape != other.shape or one.dtype != other.dtype:
            lines.append(f"{label}: {one.dtype}{one.shape} became {other.dtype}{other.shape}")
        elif one.tobytes() != other.tobytes():
            is_number = one.dtype.kind == "f"
            gap = f"by at most {np.nanmax(np.abs(one - other)):.2g}" if is_number else "other names"
            lines.append(f"{label}: {gap}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", choices=("save", "compare"))
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    arrays: Arrays = {}
    for case in CASES:
        arrays |= case()
    if options.what == "save":
        np.savez(options.file, **{label.replace("/", "|"): each for label, each in arrays.items()})
        print(f"{len(arrays)} arrays in {options.file}")
        return
    with np.load(options.file) as file:
        old = {label.replace("|", "/"): file[label] for label in file.files}
    lines = differences(old, arrays)
    print("\n".join(lines))
    print(f"{len(old)} arrays, {len(lines)} not the same")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
