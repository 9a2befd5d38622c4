"""A table of products with a description: our encoding beside TF-IDF and indicators made by hand.

    python benchmarks/products.py [--rows 5000]

Products have a price, a weight, a category, one of many brands and a description. Their vectors,
as a recommender would have learnt them, depend on what a product is about and on its brand. 60 %
are known; the scores are those of the others, whose true vectors we know. CPU seconds include
everything from the table to the vectors.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, hstack

import vecfill as vf

N_DIMS = 50
N_TOPICS = 25
N_BRANDS = 1500


def products(n_rows: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Return a table and the true vectors of its rows."""
    rng = np.random.default_rng(seed)
    topics = rng.dirichlet(np.full(N_TOPICS, 0.08), n_rows)
    spread = 1.0 / np.arange(1, 161)
    of_topic = [rng.permutation(4000)[:160] for _ in range(N_TOPICS)]
    common = [f"the{number}" for number in range(30)]
    texts = []
    for row in range(n_rows):
        words = rng.choice(common, rng.integers(8, 20)).tolist()
        for topic in rng.choice(N_TOPICS, rng.integers(6, 25), p=topics[row]):
            words.append(f"word{of_topic[topic][rng.choice(160, p=spread / spread.sum())]}")
        texts.append(" ".join(rng.permutation(words)))
    brands = np.minimum(rng.zipf(1.35, n_rows), N_BRANDS) - 1
    effect = rng.normal(size=(N_TOPICS, N_DIMS))
    of_brand = rng.normal(size=(N_BRANDS, N_DIMS))
    price = topics @ rng.normal(size=N_TOPICS) + 0.3 * rng.normal(size=n_rows)
    vectors = np.tanh(2.0 * topics @ effect + 0.5 * of_brand[brands] + 0.2 * price[:, None])
    vectors += 0.3 * rng.normal(size=vectors.shape)
    table = pd.DataFrame(
        {
            "name": [f"product {row}" for row in range(n_rows)],
            "price": np.exp(price),
            "weight": rng.lognormal(size=n_rows),
            "category": [f"category{each // 2}" for each in topics.argmax(axis=1)],
            "brand": [f"brand{each}" for each in brands],
            "description": texts,
        }
    )
    return table, vectors.astype(np.float32)


def by_hand(table: pd.DataFrame) -> csr_matrix:
    """TF-IDF as scikit-learn makes it, an indicator a category, and standardised numbers."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    numbers = table[["price", "weight"]].to_numpy()
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    indicators = pd.get_dummies(table[["category", "brand"]]).to_numpy(float)
    tfidf = TfidfVectorizer().fit_transform(table["description"])
    return hstack([csr_matrix(numbers), csr_matrix(indicators), tfidf]).tocsr()


def by_hand_reduced(table: pd.DataFrame) -> np.ndarray:
    """The same, with 100 components of the TF-IDF and of the indicators together."""
    from sklearn.decomposition import TruncatedSVD

    return TruncatedSVD(100, random_state=0).fit_transform(by_hand(table))


def measured(
    name: str, impute: Callable[[], vf.Result], truth: np.ndarray, is_known: np.ndarray
) -> dict[str, object]:
    start, wall = time.process_time(), time.perf_counter()
    result = impute()
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    mean = truth[is_known].mean(axis=0)
    found, expected = result.embedding.vectors - mean, truth[~is_known] - mean
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    cosine = float(((found * expected).sum(axis=1) / lengths).mean())
    return {"what": name, "cosine": round(cosine, 4), "cpu": round(seconds, 1), "wall": round(wall)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    table, vectors = products(parser.parse_args().rows)
    names = list(table["name"])
    is_known = np.random.default_rng(1).random(len(table)) < 0.6
    known = [name for name, has_vector in zip(names, is_known, strict=True) if has_vector]
    base = vf.Embedding(known, vectors[is_known])
    vf.impute(table[:200], base)  # compiles
    numbers_and_category = table.drop(columns=["brand", "description"])
    ways: dict[str, Callable[[], vf.Result]] = {
        "the table as it is": lambda: vf.impute(table, base),
        "the table, standardize=True": lambda: vf.impute(table, base, standardize=True),
        "without brand and description": lambda: vf.impute(numbers_and_category, base),
        "by hand: TF-IDF + indicators, 100 components": lambda: vf.impute(
            by_hand_reduced(table), base, names=names
        ),
        "by hand: TF-IDF + indicators": lambda: vf.impute(by_hand(table), base, names=names),
    }
    for name, way in ways.items():
        print(json.dumps(measured(name, way, vectors, is_known)), flush=True)


if __name__ == "__main__":
    main()
