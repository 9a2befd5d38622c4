"""New items of a recommender: imputed factors beside what recommenders do about cold items."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from cmfrec import CMF_implicit
from implicit.als import AlternatingLeastSquares
from lightfm import LightFM
from scipy.sparse import csr_matrix, hstack, identity
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import SplineTransformer

import vecfill as vf
from recbole_wheel import read_movielens
from record import Result, plt

RIDGES = np.logspace(-3, 4, 15)
RECOMMEND, PLAIN = "vecfill, goal=recommend", "vecfill, goal=balanced"
RIDGE = "ridge, spline of the year"


class Films(NamedTuple):
    """Films of a set: who took which, and what is known of them."""

    taken: csr_matrix
    """(n_users, n_films) ones."""
    genres: pd.DataFrame
    year: np.ndarray

    def described(self, n_knots: int) -> pd.DataFrame:
        """Return genres and the year as a spline: the columns that most rivals get."""
        spline = SplineTransformer(n_knots=n_knots, knots="quantile")
        smooth = pd.DataFrame(spline.fit_transform(self.year[:, None]), index=self.genres.index)
        return pd.concat([self.genres, smooth.add_prefix("year ")], axis=1)


class Split(NamedTuple):
    """Some films are cold; users and the other films have factors."""

    films: Films
    is_cold: np.ndarray
    users: np.ndarray
    items: np.ndarray
    """Factors of the films that are not cold."""
    columns: pd.DataFrame
    seed: int

    @property
    def train(self) -> csr_matrix:
        """What users took of the films that are not cold."""
        return self.films.taken[:, np.flatnonzero(~self.is_cold)]


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Hide a fifth of the films of each set from everybody, and recommend them."""
    rows, metrics, scores = [], {}, {}
    for name in config["sets"]:
        films = _movielens(out.parent / "wheels") if name == "MovieLens-100k" else _shared(
            data, config["fewest_ratings"]
        )  # fmt: skip
        by_method: dict[str, list[np.ndarray]] = {}
        whole: dict[str, list[float]] = {}
        for seed in range(config["n_seeds"]):
            split = _split(films, config, config["seed"] + seed)
            for method, (gains, in_catalogue) in _compared(split, config).items():
                by_method.setdefault(method, []).append(gains)
                whole.setdefault(method, []).append(in_catalogue)
            print(f"{name}, seed {seed}: done", file=sys.stderr)
        scores[name] = by_method
        draws = _draws(by_method[RIDGE], config["n_draws"])
        means = {method: _means(gains, draws) for method, gains in by_method.items()}
        best = means[RECOMMEND]
        for method, drawn in sorted(means.items(), key=lambda pair: -pair[1][0]):
            low, high = np.quantile(drawn[1:], [0.025, 0.975])
            ratio = np.quantile(best[1:] / drawn[1:], [0.025, 0.975])
            rows.append({
                "set": name, "method": method, "NDCG@20": drawn[0], "from": low, "to": high,
                "vecfill over it": best[0] / drawn[0],
                "at least": ratio[0], "at most": ratio[1],
                "whole catalogue": float(np.mean(whole[method])),
                "seeds": " ".join(f"{gains.mean():.3f}" for gains in by_method[method]),
            })  # fmt: skip
        metrics[name] = {method: [g.mean() for g in gains] for method, gains in by_method.items()}
    table = pd.DataFrame(rows).set_index(["set", "method"])
    heading = "Cold films, recommended among themselves (and in the whole catalogue)"
    return Result(metrics | {"table": rows}, {heading: table}, {"cold-start": _figure(rows)})


def _figure(rows: list[dict[str, Any]]) -> Any:
    sets = list(dict.fromkeys(row["set"] for row in rows))
    figure, axes = plt.subplots(1, len(sets), figsize=(4.5 * len(sets), 3), squeeze=False)
    for axis, name in zip(axes[0], sets, strict=True):
        shown = [row for row in rows if row["set"] == name][::-1]
        lengths = [[row["NDCG@20"] - row["from"] for row in shown],
                   [row["to"] - row["NDCG@20"] for row in shown]]  # fmt: skip
        colours = ["#c0392b" if "vecfill" in row["method"] else "#7f8c8d" for row in shown]
        axis.barh([row["method"] for row in shown], [row["NDCG@20"] for row in shown],
                  xerr=lengths, color=colours)  # fmt: skip
        axis.set_title(f"{name}: NDCG@20 of cold films")
    figure.tight_layout()
    return figure


def _movielens(cache: Path) -> Films:
    """MovieLens-100k: everything that was rated counts as taken."""
    items, ratings = read_movielens(cache, "item"), read_movielens(cache, "inter")
    genres = items["class"].str.get_dummies(" ").set_axis(items["item_id"])
    year = pd.to_numeric(items["release_year"], errors="coerce")
    return Films(_matrix(ratings["user_id"], ratings["item_id"], items["item_id"]), genres,
                 year.fillna(year.median()).to_numpy(float))  # fmt: skip


def _shared(data: Path, fewest: int) -> Films:
    """The shared movies (MovieLens ml-latest-small) that were rated often enough."""
    films, ratings = (
        pd.read_csv(data / "movies" / f"{name}.csv", dtype={"movieId": str, "userId": str})
        for name in ("movies", "ratings")
    )
    n_ratings = films["movieId"].map(ratings.groupby("movieId").size()).fillna(0)
    films = films[n_ratings >= fewest]
    ratings = ratings[ratings["movieId"].isin(set(films["movieId"]))]
    genres = films["genres"].str.get_dummies("|").set_axis(films["movieId"])
    year = films["title"].str.extract(r"\((\d{4})\)\s*$")[0].astype(float)
    return Films(_matrix(ratings["userId"], ratings["movieId"], films["movieId"]), genres,
                 year.fillna(year.median()).to_numpy(float))  # fmt: skip


def _matrix(users: pd.Series, items: pd.Series, names: pd.Series) -> csr_matrix:
    user, _ = pd.factorize(users)
    places = pd.Index(names).get_indexer(items)
    return csr_matrix((np.ones(len(user)), (user, places)), shape=(user.max() + 1, len(names)))


def _split(films: Films, config: dict[str, Any], seed: int) -> Split:
    n_films = films.taken.shape[1]
    is_cold = np.zeros(n_films, bool)
    n_cold = int(config["share_cold"] * n_films)
    is_cold[np.random.default_rng(seed).permutation(n_films)[:n_cold]] = True
    model = AlternatingLeastSquares(config["n_factors"], random_state=seed, num_threads=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit advises on threads of BLAS
        model.fit(films.taken[:, np.flatnonzero(~is_cold)], show_progress=False)
    columns = films.described(config["n_knots"])
    return Split(films, is_cold, np.asarray(model.user_factors, float),
                 np.asarray(model.item_factors, float), columns, seed)  # fmt: skip


def _compared(split: Split, config: dict[str, Any]) -> dict[str, tuple[np.ndarray, float]]:
    """Return NDCG of each user under each method, and in the whole catalogue."""
    columns, cold, n_shown = split.columns.to_numpy(), split.is_cold, config["n_shown"]
    ridge = RidgeCV(RIDGES).fit(columns[~cold], split.items)
    bins = pd.get_dummies((split.films.year // 5).astype(int)).to_numpy(float)
    binned = np.hstack([split.films.genres.to_numpy(float), bins])
    vectors = {
        RECOMMEND: _imputed(split, goal="recommend"),
        f"{RECOMMEND}, spline by hand": _imputed(split, goal="recommend", is_by_hand=True),
        PLAIN: _imputed(split, goal="balanced"),
        RIDGE: ridge.predict(columns[cold]),
        "ridge, years in fives": RidgeCV(RIDGES)
        .fit(binned[~cold], split.items)
        .predict(binned[cold]),
    }
    scores = {name: split.users @ items.T for name, items in vectors.items()}
    known = split.users @ split.items.T
    out = {}
    for name, of_cold in scores.items():
        out[name] = (_ndcg(of_cold, split, n_shown), _whole(of_cold, known, split, n_shown))
    # Of rivals with settings the best one for the cold films is shown, which flatters them.
    neighbours = [
        KNeighborsRegressor(k).fit(columns[~cold], split.items).predict(columns[cold])
        for k in config["n_neighbors"]
    ]
    out["k-NN"] = _best([split.users @ items.T for items in neighbours], split, n_shown)
    out["LightFM"] = _best(_lightfm(split, columns, config), split, n_shown)
    out["LightFM, years in fives"] = _best(_lightfm(split, binned, config), split, n_shown)
    out["cmfrec"] = _best(_cmfrec(split, config), split, n_shown)
    times = np.log1p(np.asarray(split.train.sum(axis=0)).ravel())
    popular = RidgeCV(RIDGES).fit(columns[~cold], times).predict(columns[cold])
    out["popularity, by ridge"] = _best([np.tile(popular, (len(split.users), 1))], split, n_shown)
    return out


def _imputed(split: Split, *, goal: str, is_by_hand: bool = False) -> np.ndarray:
    names = split.columns.index.to_numpy()
    known = dict(zip(names[~split.is_cold], split.items, strict=True))
    films = split.films
    table = split.columns if is_by_hand else films.genres.assign(year=films.year)
    options: dict[str, Any] = {"goal": goal, "names": "off", "seed": split.seed, "force": True}
    if goal == "recommend":
        items = names[~split.is_cold].tolist()
        options["interactions"] = vf.interactions(
            split.train, users=[str(user) for user in range(len(split.users))], items=items
        )
    result = vf.impute(table, known, standardize=not is_by_hand, **options)
    return np.asarray(result.embedding[names[split.is_cold].tolist()], float)


def _lightfm(split: Split, columns: np.ndarray, config: dict[str, Any]) -> list[np.ndarray]:
    """Return scores by a hybrid model: embeddings of columns, and of films that are known."""
    about, cold = csr_matrix(columns.astype(np.float32)), split.is_cold
    own = identity(len(cold), format="csr", dtype=np.float32)[:, np.flatnonzero(~cold)]
    taken = split.films.taken.multiply(~cold[None]).tocsr().astype(np.float32)
    scores = []
    for features in (about, csr_matrix(hstack([about, own]))):
        for epochs in config["epochs"]:
            model = LightFM(config["n_factors"], loss="warp", random_state=split.seed)
            model.fit(taken, item_features=features, epochs=epochs, num_threads=1)
            item_bias, items = model.get_item_representations(features)
            _, users = model.get_user_representations()
            scores.append(users @ items[cold].T + item_bias[cold])
    return scores


def _cmfrec(split: Split, config: dict[str, Any]) -> list[np.ndarray]:
    """Return scores by collective matrix factorization with the columns as side information."""
    columns, cold = split.columns.to_numpy(np.float64), split.is_cold
    scores = []
    for weight in config["item_weights"]:
        model = CMF_implicit(k=config["n_factors"], w_item=weight, nthreads=1, verbose=False,
                             random_state=split.seed)  # fmt: skip
        model.fit(split.train.tocoo(), I=columns[~cold])
        items = np.vstack([model.item_factors_cold(I=row) for row in columns[cold]])
        scores.append(model.A_[:, -items.shape[1] :] @ items.T)
    return scores


def _best(scores: list[np.ndarray], split: Split, n_shown: int) -> tuple[np.ndarray, float]:
    gains = [_ndcg(of_cold, split, n_shown) for of_cold in scores]
    return max(gains, key=lambda values: values.mean()), np.nan


def _ndcg(scores: np.ndarray, split: Split, n_shown: int) -> np.ndarray:
    return _gains(scores, split.films.taken[:, np.flatnonzero(split.is_cold)].toarray(), n_shown)


def _whole(of_cold: np.ndarray, known: np.ndarray, split: Split, n_shown: int) -> float:
    """Return NDCG of cold films among all films that the user has not taken."""
    known = np.where(split.train.toarray() > 0, -np.inf, known)
    relevant = split.films.taken[:, np.flatnonzero(split.is_cold)].toarray()
    both = np.hstack([relevant, np.zeros_like(known)])
    return float(_gains(np.hstack([of_cold, known]), both, n_shown).mean())


def _gains(scores: np.ndarray, relevant: np.ndarray, n_shown: int) -> np.ndarray:
    """Return NDCG of the users who took any of the items."""
    # In an order of their own: files have popular films first, and ties would gain by it.
    order = np.random.default_rng(0).permutation(scores.shape[1])
    scores, relevant = scores[:, order], relevant[:, order]
    top = np.argsort(-scores, axis=1, kind="stable")[:, :n_shown]
    discounts = 1.0 / np.log2(np.arange(2, top.shape[1] + 2))
    n_relevant = relevant.sum(axis=1).astype(int)
    gains = np.take_along_axis(relevant, top, axis=1) @ discounts
    best = np.concatenate([[0.0], np.cumsum(discounts)])[np.minimum(n_relevant, top.shape[1])]
    return gains[n_relevant > 0] / best[n_relevant > 0]


def _draws(gains: list[np.ndarray], n_draws: int) -> list[list[tuple[int, np.ndarray]]]:
    """Return resamples of seeds, and of users within each; the same for every method."""
    rng = np.random.default_rng(0)
    return [
        [(seed, rng.integers(0, len(gains[seed]), len(gains[seed])))
         for seed in rng.integers(0, len(gains), len(gains))]
        for _ in range(n_draws)
    ]  # fmt: skip


def _means(gains: list[np.ndarray], draws: list[list[tuple[int, np.ndarray]]]) -> np.ndarray:
    """Return the mean over seeds, and that of each resample."""
    drawn = [np.mean([gains[seed][users].mean() for seed, users in draw]) for draw in draws]
    return np.array([np.mean([values.mean() for values in gains]), *drawn])
