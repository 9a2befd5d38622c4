"""A wide and sparse domain: `vf.impute` beside reduced columns and ridge regression by hand.

    python benchmarks/wide.py [--rows 2000] [--columns 20000] [--dense]

Rows are bags of columns, as documents are of words: each row draws 40 values from columns of its
own few topics. Vectors are what the topics say, with noise; half of them are known, and the scores
are those of the others. CPU seconds, after a small job of the same kind has compiled everything.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import vecfill as vf

N_DIMS = 50
N_TOPICS = 40
PER_ROW = 40
N_COMPONENTS = 100


def bags(n_rows: int, n_columns: int, seed: int = 0) -> tuple[csr_array, np.ndarray]:
    """Return sparse rows with 40 draws each, and the true vectors of them."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(N_TOPICS, 0.1), n_rows)
    columns = np.empty((n_rows, PER_ROW), np.int64)
    for row in range(n_rows):
        # A column belongs to one topic; within it the first ones are drawn most often.
        drawn = rng.choice(N_TOPICS, PER_ROW, p=topics[row])
        place = (rng.random(PER_ROW) ** 2 * (n_columns // N_TOPICS)).astype(np.int64)
        columns[row] = drawn * (n_columns // N_TOPICS) + place
    starts = np.arange(0, columns.size + 1, PER_ROW)
    values = rng.lognormal(size=columns.size)
    rows = csr_array((values, columns.ravel(), starts), (n_rows, n_columns))
    rows.sum_duplicates()
    vectors = topics @ rng.normal(size=(N_TOPICS, N_DIMS))
    return rows, vectors + 0.1 * rng.normal(size=vectors.shape)


def by_hand(rows: csr_array, vectors: np.ndarray, is_known: np.ndarray) -> np.ndarray:
    """Return what ridge regression on the leading components says of the unknown rows."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.linear_model import RidgeCV

    reduced = TruncatedSVD(N_COMPONENTS, random_state=0).fit_transform(rows)
    model = RidgeCV(np.logspace(-3, 3, 13)).fit(reduced[is_known], vectors[is_known])
    return model.predict(reduced[~is_known])


def by_vecfill(
    rows: csr_array | np.ndarray, vectors: np.ndarray, is_known: np.ndarray
) -> np.ndarray:
    """Return what `vf.impute` says of the unknown rows, with confidence."""
    names = [f"row{row}" for row in range(rows.shape[0])]
    known = vf.Embedding([names[row] for row in np.flatnonzero(is_known)], vectors[is_known])
    return vf.impute(rows, known, names=names).embedding.vectors


def measured(
    label: str, impute: Callable[[], np.ndarray], truth: np.ndarray, mean: np.ndarray
) -> dict[str, Any]:
    start = time.process_time()
    steps = impute() - mean
    seconds = time.process_time() - start
    true_steps = truth - mean
    lengths = np.linalg.norm(steps, axis=1) * np.linalg.norm(true_steps, axis=1)
    cosine = float(((steps * true_steps).sum(axis=1) / lengths).mean())
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    return {
        "way": label,
        "cosine": round(cosine, 4),
        "cpu": round(seconds, 2),
        "peak_mb": megabytes,
    }


def wide(n_rows: int = 2000, n_columns: int = 20_000, *, dense: bool = False) -> list[dict]:
    """Return quality and CPU seconds of each way; the peak of memory grows from one to the next."""
    small, small_vectors = bags(300, 4000)
    by_vecfill(small, small_vectors, np.arange(300) % 2 == 0)
    rows, vectors = bags(n_rows, n_columns)
    is_known = np.random.default_rng(1).random(n_rows) < 0.5
    truth, mean = vectors[~is_known], vectors[is_known].mean(axis=0)
    ways: dict[str, Callable[[], np.ndarray]] = {
        "vecfill, sparse": lambda: by_vecfill(rows, vectors, is_known),
        "truncated SVD + ridge by hand": lambda: by_hand(rows, vectors, is_known),
    }
    if dense:
        ways["vecfill, dense"] = lambda: by_vecfill(rows.toarray(), vectors, is_known)
    results = [measured(label, way, truth, mean) for label, way in ways.items()]
    # By hand there is neither a choice nor confidence: it is what reading and reducing cost alone.
    floor = results[1]["cpu"]
    for result in results:
        result["ratio"] = round(result["cpu"] / floor, 1)
        print(json.dumps({"rows": n_rows, "columns": n_columns, "values": rows.nnz} | result))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--columns", type=int, default=20_000)
    parser.add_argument("--dense", action="store_true", help="the same rows written out as well")
    options = parser.parse_args()
    wide(options.rows, options.columns, dense=options.dense)


if __name__ == "__main__":
    main()
