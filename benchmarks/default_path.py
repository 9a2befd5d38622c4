"""What users run by default, measured in plain fits of the same data, beside what they would write.

    python benchmarks/default_path.py [--rows 4000 20000] [--dims 300] [--known 0.05]

For each size: CPU seconds of one plain fit, of `impute` with `auto`, and of scikit-learn's
regressors tuned by cross-validation, with the centred cosine that each reaches on rows whose
truth was kept aside. Everything runs in one process, one after the other, after a small warm-up.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler

import vecfill as vf
from data import synthetic_embedding, synthetic_rows
from vecfill import LatentSemanticImputer

MOST_FOR_KERNELS = 6000
"""Known rows beyond which scikit-learn's kernel ridge regression is left out: it takes minutes."""

WARM_UP = 1500


def regressors(n_known: int) -> dict[str, object]:
    """What a user would write with scikit-learn, each tuned on the known rows."""
    found: dict[str, object] = {
        "RidgeCV": RidgeCV(np.logspace(-3, 3, 13)),
        "KNeighborsRegressor, tuned": GridSearchCV(
            KNeighborsRegressor(), {"n_neighbors": [3, 5, 10, 20], "weights": ["distance"]}, cv=5
        ),
    }
    if n_known <= MOST_FOR_KERNELS:
        grid = {"alpha": [0.01, 0.1, 1.0], "gamma": [0.001, 0.003, 0.01, 0.03]}
        found["KernelRidge, tuned"] = GridSearchCV(KernelRidge(kernel="rbf"), grid, cv=5)
    return found


def centred_cosine(found: np.ndarray, truth: np.ndarray, centre: np.ndarray) -> float:
    found, truth = found - centre, truth - centre
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(truth, axis=1)
    return float(((found * truth).sum(axis=1) / np.maximum(lengths, 1e-12)).mean())


def timed(function: Callable[[], object]) -> tuple[object, float]:
    start = time.process_time()
    found = function()
    return found, time.process_time() - start


def measure(n_rows: int, n_features: int, n_dims: int, share: float) -> dict:
    """CPU seconds and held-out quality of each way, on one made set."""
    rows = synthetic_rows(n_rows, n_features)
    embedding, is_known = synthetic_embedding(rows, n_dims, share)
    names = np.array([f"row{number}" for number in range(n_rows)])
    table = pd.DataFrame(rows, index=names, columns=[f"c{each}" for each in range(n_features)])
    known = vf.Embedding(list(names[is_known]), embedding[is_known])
    centre, truth = embedding[is_known].mean(axis=0), embedding[~is_known]
    hidden = np.where(is_known[:, None], embedding, np.float32(np.nan))
    record = {"rows": n_rows, "features": n_features, "dims": n_dims, "known": share, "ways": {}}

    def tell(name: str, found: np.ndarray, seconds: float) -> None:
        quality = centred_cosine(found, truth, centre)
        plain = record["ways"].get("plain fit", {"cpu_s": seconds})["cpu_s"]
        record["ways"][name] = {"cpu_s": seconds, "ratio": seconds / plain, "cosine": quality}
        print(
            f"  {name:28s} CPU {seconds:8.2f} s  {seconds / plain:6.1f}x  {quality:.3f}", flush=True
        )

    print(f"\n{n_rows:,} x {n_features}, {n_dims} dims, {share:.0%} known (centred cosine last)")
    fit, seconds = timed(lambda: LatentSemanticImputer(min_degree=8).fit(rows, hidden))
    tell("plain fit", fit.embedding_[~is_known], seconds)
    result, seconds = timed(lambda: vf.impute(table, known))
    record["chosen"] = str(result.decision.predictor)
    found = result.embedding[list(names[~is_known])]
    tell("impute, auto", found, seconds)
    scaler = StandardScaler().fit(rows)
    for name, model in regressors(int(is_known.sum())).items():

        def regressed(model: object = model) -> np.ndarray:
            model.fit(scaler.transform(rows[is_known]), embedding[is_known])
            return model.predict(scaler.transform(rows[~is_known]))

        tell(name, *timed(regressed))
    print(f"  chosen: {record['chosen']}")
    record["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return record


def default_path(sizes: list[tuple[int, int, int, float]]) -> list[dict]:
    """Measure several sizes: rows, features, dims and the share of known rows of each."""
    warnings.simplefilter("ignore")
    measure(WARM_UP, 20, 16, 0.5)
    return [measure(*size) for size in sizes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[4000])
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--dims", type=int, default=300)
    parser.add_argument("--known", type=float, default=0.05)
    asked = parser.parse_args()
    default_path([(n, asked.features, asked.dims, asked.known) for n in asked.rows])


if __name__ == "__main__":
    main()
