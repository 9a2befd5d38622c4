"""Human judgement: does imputation help where people have scored pairs of medical terms?

    python benchmarks/quality/judgement.py

UMNSRS similarity and relatedness, GloVe (wink, 100 dimensions) as the embedding, the MeSH graph as
the domain. A pair counts when both terms have a vector; Spearman with the human scores, before and
after imputation, beside tuned k-NN in the same domain and beside zero vectors for missing words.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

sys.path.insert(0, str(Path(__file__).parent))

from sets import SHARED, _glove_rows, wink_glove

from vecfill import Embedding, impute
from vecfill.inputs.prepared import Domain
from vecfill.model.known import KnownRows
from vecfill.model.space import Space
from vecfill.trust.compare.rivals import RIVALS


def terms_of(pairs: pd.DataFrame) -> list[str]:
    return sorted({str(word).lower() for word in [*pairs["w1"], *pairs["w2"]]})


def correlation(pairs: pd.DataFrame, vectors: dict[str, np.ndarray]) -> tuple[int, float]:
    """How many pairs have vectors, and Spearman of their cosines with the human scores."""
    cosines, scores = [], []
    for first, second, score in pairs[["w1", "w2", "score"]].itertuples(index=False):
        a, b = vectors.get(str(first).lower()), vectors.get(str(second).lower())
        if a is not None and b is not None:
            lengths = float(np.linalg.norm(a) * np.linalg.norm(b))
            cosines.append(float(a @ b) / lengths if lengths > 0 else 0.0)
            scores.append(score)
    return len(scores), float(spearmanr(cosines, scores).statistic)


def main() -> None:
    index, glove = wink_glove()
    graph = np.load(SHARED / "medicine" / "mesh_graph_netmf128.npz")
    names = [str(name).lower() for name in graph["names"]]
    first = {name: row for row, name in reversed(list(enumerate(names)))}
    kept = sorted(first.values())
    names = [names[row] for row in kept]
    domain = graph["X"][kept]
    embedding = _glove_rows(names)
    is_known = ~np.isnan(embedding).any(axis=1)
    run = impute(
        Domain(tuple(names), domain, tuple(map(str, range(domain.shape[1])))),
        Embedding([n for n, k in zip(names, is_known, strict=True) if k], embedding[is_known]),
        match="exact",
    )
    space, given = Space(domain), KnownRows(embedding, is_known)
    nearest = RIVALS["knn"].tuned(space, given)
    neighbors = nearest.predict(space, given).vectors
    unknown = [n for n, k in zip(names, is_known, strict=True) if not k]
    print(f"{is_known.sum()} headings known, {len(unknown)} imputed; chosen: {run.predictor}\n")
    print("| judgements | vectors | pairs | Spearman |\n| --- | --- | --- | --- |")
    for file in ("umnsrs-sim", "umnsrs-rel"):
        pairs = pd.read_csv(SHARED / "similarity" / f"{file}.csv")
        terms = terms_of(pairs)
        before = {t: np.asarray(glove[index[t]]) for t in terms if t in index}
        lacking = set(terms) - set(before)
        ways = {
            "GloVe alone": before,
            "GloVe + MeSH, vecfill": before
            | {w: run.embedding[w] for w in run.embedding.words if w in lacking},
            "GloVe + MeSH, k-NN": before
            | {w: v for w, v in zip(unknown, neighbors, strict=True) if w in lacking},
            "GloVe + zero vectors": before | {w: np.zeros(100) for w in lacking},
        }
        for name, vectors in ways.items():
            n_pairs, spearman = correlation(pairs, vectors)
            print(f"| {file} | {name} | {n_pairs} of {len(pairs)} | {spearman:.3f} |")
        # On the same pairs: those that imputation added, and no others.
        added = pairs[
            [
                any(w.lower() in lacking for w in map(str, pair))
                for pair in pairs[["w1", "w2"]].itertuples(index=False)
            ]
        ]
        for name in ("GloVe + MeSH, vecfill", "GloVe + MeSH, k-NN"):
            n_pairs, spearman = correlation(added, ways[name])
            print(f"| {file}, added pairs only | {name} | {n_pairs} | {spearman:.3f} |")


if __name__ == "__main__":
    main()
