"""MovieLens-100k and Freebase triples from the wheel of recbole, joined by the right ids.

The wheel's own ``.link`` file counts films as another MovieLens does. Its numbers are those of
ml-latest, so films are found by title and year there.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from recbole_wheel import read_movielens


@dataclass(frozen=True)
class Films:
    """Films with triples, what is known of them, and who watched which."""

    names: list[str]
    genres: np.ndarray
    """(n_films, n_genres) indicators."""
    genre_names: list[str]
    years: np.ndarray
    triples: list[tuple[str, str, str]]
    watched: csr_array
    """(n_users, n_films) ones."""


def read_films(data: Path, cache: Path, *, n_least: int) -> Films:
    """Return the films with triples that at least so many users rated."""
    items, links, triples, ratings = (
        read_movielens(cache, kind).to_numpy().tolist() for kind in ("item", "link", "kg", "inter")
    )
    item_of = {(_plain(title), year): item for item, title, year, _ in items}
    latest = dict(_latest(data / "movies" / "movies.csv"))
    node_item = {
        node: item_of[latest[number]] for number, node in links if latest.get(number) in item_of
    }
    raters = [item for _, item, *_ in ratings]
    times = {item: raters.count(item) for item in set(node_item.values())}
    chosen = sorted((item for item, n in times.items() if n >= n_least), key=int)
    about = {item: (title, year, classes) for item, title, year, classes in items}
    names = {item: f"{about[item][0]} ({about[item][1]}) {item}" for item in about}
    genre_names = sorted({genre for item in chosen for genre in about[item][2].split()})
    users = sorted({user for user, *_ in ratings}, key=int)
    row, column = (
        dict(zip(users, range(len(users)), strict=True)),
        dict(zip(chosen, range(len(chosen)), strict=True)),
    )
    pairs = [(row[user], column[item]) for user, item, *_ in ratings if item in column]
    named = {node: names[item] for node, item in node_item.items()}
    return Films(
        [names[item] for item in chosen],
        np.array(
            [[genre in about[item][2].split() for genre in genre_names] for item in chosen], float
        ),
        genre_names,
        np.array([float(about[item][1]) for item in chosen]),
        [(named.get(h, h), r, named.get(t, t)) for h, r, t in triples],
        csr_array((np.ones(len(pairs)), np.array(pairs).T), shape=(len(users), len(chosen))),
    )


def _latest(path: Path) -> list[tuple[str, tuple[str, str]]]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[1:]
    films = [(number, re.fullmatch(r"(.*) \((\d{4})\)\s*", title)) for number, title, _ in rows]
    return [(number, (_plain(film[1]), film[2])) for number, film in films if film is not None]


def _plain(title: str) -> str:
    """Return a title as both lists write it: articles first, nothing in brackets."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    plain = re.sub(r"\(.*?\)", "", plain).strip()
    article = re.fullmatch(r"(.*), (the|a|an|le|la|les|il|das|der|die)", plain)
    plain = f"{article[2]} {article[1]}" if article else plain
    return re.sub(r"[^a-z0-9]+", " ", plain).strip()


def factors(
    watched: csr_array, *, n_dims: int, weight: float, ridge: float, n_rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors of users and items by alternating least squares for implicit feedback."""
    items = 0.1 * np.random.default_rng(0).normal(size=(watched.shape[1], n_dims))
    by_item = csr_array(watched.T)
    users = _solved(watched, items, weight, ridge)
    for _ in range(n_rounds):
        items = _solved(by_item, users, weight, ridge)
        users = _solved(watched, items, weight, ridge)
    return users, items


def _solved(watched: csr_array, fixed: np.ndarray, weight: float, ridge: float) -> np.ndarray:
    gram = fixed.T @ fixed + ridge * np.eye(fixed.shape[1])
    solved = np.zeros((watched.shape[0], fixed.shape[1]))
    for row in range(watched.shape[0]):
        of_row = fixed[watched.indices[watched.indptr[row] : watched.indptr[row + 1]]]
        if len(of_row):
            solved[row] = np.linalg.solve(
                gram + weight * of_row.T @ of_row, (1 + weight) * of_row.sum(axis=0)
            )
    return solved


def ndcg(scores: np.ndarray, watched: np.ndarray, *, n_best: int) -> np.ndarray:
    """(n_users,) NDCG of the best items of each user; NaN if a user watched none of them."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :n_best]
    discount = 1.0 / np.log2(np.arange(2, best.shape[1] + 2))
    gain = np.take_along_axis(watched, best, axis=1) @ discount
    n_hits = np.minimum(watched.sum(axis=1), best.shape[1]).astype(int)
    ideal = np.concatenate([[np.nan], np.cumsum(discount)])[n_hits]
    return gain / ideal
