"""Made data whose rare rows are not different: what does knowing about rarity cost there?

    python benchmarks/quality/no_drift.py

Vectors depend on the domain alone. Half the entities are known, the frequent ones. They are imputed
with the order of the file, with counts of all entities, and with an order that means nothing. The
bounds should not get wider, and the vectors should stay as good.
"""

from __future__ import annotations

import warnings

import numpy as np

import vecfill as vf

SIZES = (300, 1000)
N_SEEDS = 3


def main() -> None:
    warnings.simplefilter("ignore")
    print(
        "| entities | seed | way | centred cosine | width of bounds | over *none* | bound holds |"
    )
    print("| --- " * 7 + "|")
    for n_rows in SIZES:
        for seed in range(N_SEEDS):
            rng = np.random.default_rng(seed)
            domain = rng.normal(size=(n_rows, 6))
            vectors = np.sin(domain @ rng.normal(size=(6, 20))) + 0.7 * rng.normal(
                size=(n_rows, 20)
            )
            names = [f"e{i}" for i in range(n_rows)]
            n_known = n_rows // 2
            order = rng.permutation(n_known)
            counts = {name: float(n_rows - i) for i, name in enumerate(names)}
            table = dict(zip(names, domain, strict=True))
            in_order = vf.Embedding(names[:n_known], vectors[:n_known])
            mixed = vf.Embedding([names[i] for i in order], vectors[order])
            results = {
                "none": vf.impute(table, mixed, names="off"),
                "order": vf.impute(table, in_order, names="off"),
                "counts": vf.impute(table, mixed, names="off", counts=counts),
            }
            narrow = None
            for way, result in results.items():
                trust = result.confidence
                assert trust is not None
                centre = vectors[:n_known].mean(axis=0)
                found, true = result.embedding.vectors - centre, vectors[n_known:] - centre
                lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(true, axis=1)
                cosine = (found * true).sum(axis=1) / lengths
                width = float((trust.values - trust.lower_bound).mean())
                narrow = narrow or width
                print(
                    f"| {n_rows} | {seed} | {way} | {cosine.mean():.3f} | {width:.3f} "
                    f"| {width / narrow:.3f} | {(cosine >= trust.lower_bound).mean():.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
