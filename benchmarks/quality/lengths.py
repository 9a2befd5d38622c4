"""Lengths: do imputed vectors that are too short hurt retrieval by inner product?

    python benchmarks/quality/lengths.py

Known films are hidden, the rarest 40 % or a random 40 %, and imputed. For every user, all films are
ranked by the inner product of the user's vector with the film's, as a recommender does it. Of the
hidden films that a user has rated, how many are among the first 100? Once with lengths as imputed,
once with `calibrate_norms`, and once with the true vectors. Intervals are of 95 %, by bootstrap
over users.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
from movies import item_vectors
from rarity import interval, question_of, sampled
from sets import SETS, SHARED

import vecfill as vf

FIRST = 100
SHARE = 0.4


def rated_films() -> tuple[np.ndarray, pd.DataFrame]:
    """Return user vectors, (n_users, n_dims), and which film each user has rated."""
    ratings = pd.read_csv(SHARED / "movies" / "ratings.csv")
    matrix = ratings.pivot_table(index="userId", columns="movieId", values="rating").fillna(0.0)
    items = item_vectors(ratings).to_numpy()
    values = matrix.to_numpy()
    scaled = values / np.sqrt(values.sum(axis=1, keepdims=True)) / np.sqrt(values.sum(axis=0))
    # Items are scaled.T @ directions, so users are the directions: least squares gives them back.
    users = np.linalg.lstsq(items, scaled.T, rcond=None)[0].T
    return users, matrix > 0


def found_share(users: np.ndarray, films: np.ndarray, is_asked: np.ndarray) -> np.ndarray:
    """Return for each user what share of the films asked for is among the first."""
    order = np.argsort(-(users @ films.T), axis=1, kind="stable")[:, :FIRST]
    n_found = np.take_along_axis(is_asked, order, axis=1).sum(axis=1)
    n_asked = is_asked.sum(axis=1)
    has_some = n_asked > 0
    return n_found[has_some] / np.minimum(n_asked[has_some], FIRST)


def main() -> None:
    warnings.simplefilter("ignore")
    data = SETS["movies"]()
    rows = sampled(data, None)
    films = pd.read_csv(SHARED / "movies" / "movies.csv")
    films = films[films["genres"] != "(no genres listed)"].reset_index(drop=True)
    users, is_rated = rated_films()
    rated = is_rated.reindex(columns=films["movieId"].iloc[rows], fill_value=False).to_numpy()
    print(
        "| hidden | lengths | norm ratio | rated films among the first 100 |\n" + "| --- " * 4 + "|"
    )
    for how in ("rarest", "random"):
        question = question_of(data, rows, SHARE, how)
        names = dict(zip(question.entities, question.domain, strict=True))
        counts = question.counts(of_hidden=how == "random")
        ways = {"as imputed": False, "calibrated": True}
        found, method = {}, "auto"
        for way, is_calibrated in ways.items():
            result = vf.impute(
                names, question.file(), match="exact", names="off", force=True, counts=counts,
                calibrate_norms=is_calibrated, method=method,
            )  # fmt: skip
            method = result.decision
            place = {word: row for row, word in enumerate(result.embedding.words)}
            hidden = np.flatnonzero(question.is_hidden)
            vectors = np.asarray(question.embedding, np.float64).copy()
            vectors[hidden] = result.embedding.vectors[
                [place[question.entities[i]] for i in hidden]
            ]
            found[way] = vectors
        found["true"] = np.asarray(question.embedding, np.float64)
        for way, vectors in found.items():
            share = found_share(users, vectors, rated & question.is_hidden)
            lengths = np.linalg.norm(vectors, axis=1) / np.linalg.norm(found["true"], axis=1)
            low, high = interval(share)
            ratio = float(np.median(lengths[question.is_hidden]))
            told = f"{share.mean():.3f} ({low:.3f} to {high:.3f})"
            print(f"| {how} {100 * SHARE:.0f} % | {way} | {ratio:.2f} | {told} |", flush=True)


if __name__ == "__main__":
    main()
