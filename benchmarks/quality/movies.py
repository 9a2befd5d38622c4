"""Films: cold start of a recommender, from MovieLens ml-latest-small in the shared data folder.

A film's vector is its row of the 50 leading components of the ratings matrix, scaled by the square
roots of its row and column sums. A film with fewer than ten ratings is unknown.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from quality_set import Set

FEWEST_RATINGS = 10
N_COMPONENTS = 50
N_TEXT_DIMS = 30


def movies(folder: Path) -> Set:
    """Films with a genre; domain: genres, year, tags and words of the title."""
    films = _films(folder)
    ratings = pd.read_csv(folder / "ratings.csv")
    n_ratings = films["movieId"].map(ratings.groupby("movieId").size()).fillna(0)
    vectors = item_vectors(ratings).reindex(films["movieId"]).to_numpy(np.float32)
    vectors = np.where(n_ratings.to_numpy()[:, None] >= FEWEST_RATINGS, vectors, np.float32(np.nan))
    entities = list(films["entity"])
    is_known = ~np.isnan(vectors).any(axis=1)
    table = films.set_index("entity")[["genres", "year", "tags", "title"]]
    return Set(
        "movies",
        entities,
        _domain(films),
        vectors,
        words=[name if known else None for name, known in zip(entities, is_known, strict=True)],
        counts=n_ratings.to_numpy(np.float64),
        table=table,
        texts={column: list(films[column]) for column in ("title", "genres", "tags")},
    )


def _films(folder: Path) -> pd.DataFrame:
    films = pd.read_csv(folder / "movies.csv")
    films = films[films["genres"] != "(no genres listed)"].reset_index(drop=True)
    films["year"] = films["title"].str.extract(r"\((\d{4})\)\s*$")[0].astype(float)
    # Five titles occur twice, and entities need names of their own.
    is_doubled = films["title"].duplicated(keep=False)
    numbered = films["title"] + " [" + films["movieId"].astype(str) + "]"
    films["entity"] = films["title"].where(~is_doubled, numbered)
    films["title"] = films["title"].str.replace(r"\s*\(\d{4}\)\s*$", "", regex=True)
    films["genres"] = films["genres"].str.replace("|", " ")
    tags = pd.read_csv(folder / "tags.csv", keep_default_na=False)
    joined = tags["tag"].str.lower().groupby(tags["movieId"]).agg(" ".join)
    films["tags"] = films["movieId"].map(joined).fillna("")
    return films


def item_vectors(ratings: pd.DataFrame) -> pd.DataFrame:
    """Return the leading components of the scaled ratings matrix, one row a film."""
    matrix = ratings.pivot_table(index="userId", columns="movieId", values="rating").fillna(0.0)
    values = matrix.to_numpy()
    scaled = values / np.sqrt(values.sum(axis=1, keepdims=True))
    scaled /= np.sqrt(values.sum(axis=0, keepdims=True))
    # The users' side has 610 rows, the films' side thousands: its eigenvectors come in a second.
    _, directions = np.linalg.eigh(scaled @ scaled.T)
    leading = directions[:, : -N_COMPONENTS - 1 : -1]
    return pd.DataFrame(scaled.T @ leading, index=matrix.columns)


def _domain(films: pd.DataFrame) -> np.ndarray:
    year = films["year"].fillna(films["year"].mean())
    return np.column_stack(
        [
            films["genres"].str.get_dummies(" ").to_numpy(float),
            ((year - year.mean()) / year.std()).to_numpy(),
            _text_vectors(films["tags"]),
            _text_vectors(films["title"], stop_words="english"),
        ]
    )


def _text_vectors(texts: pd.Series, stop_words: str | None = None) -> np.ndarray:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    weighted = TfidfVectorizer(min_df=2, stop_words=stop_words).fit_transform(texts)
    return TruncatedSVD(N_TEXT_DIMS, random_state=0).fit_transform(weighted)
