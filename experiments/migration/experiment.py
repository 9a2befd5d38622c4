"""From one embedding to another: translations by vecfill and others, and whether to stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vecfill as vf
from record import Result
from translation_rivals import RIVALS
from translation_tasks import Task, tasks

K = 10
SHARES = (10, 20, 50)


def run(config: dict[str, Any], data: Path, out: Path) -> Result:
    """Translate by every way, search, and compare what is advised with what is best."""
    cells, verdicts, orders, coverage = [], [], [], []
    for task in tasks(config, data, out.parent / "cache"):
        for n_pairs in config["n_pairs"]:
            for draw in range(config["n_draws"]):
                trial = _Trial(task, n_pairs, draw, config)
                cells += trial.cells()
                verdicts += trial.verdicts()
                orders += trial.orders()
                coverage.append(trial.coverage())
                print(pd.DataFrame(trial.cells()).to_string(), flush=True)
                print(pd.DataFrame(trial.verdicts()).to_string(), flush=True)
                print(pd.DataFrame(trial.orders()).to_string(), trial.coverage(), flush=True)
    tables = {
        "Recall at 10 of translations, on queries not used before": _by_draw(
            cells, ["task", "side", "kind", "pairs"]
        ),
        "What is advised, and what is best": pd.DataFrame(verdicts).set_index("task"),
        "Recall at 10 after re-embedding a fifth": _by_draw(orders, ["task", "kind", "pairs"]),
        "Share of bounds of level 0.9 that hold": _by_draw(coverage, ["task", "pairs"]),
    }
    metrics = {"cells": cells, "verdicts": verdicts, "orders": orders, "coverage": coverage}
    return Result(metrics, tables)


def _by_draw(rows: list[dict[str, Any]], keys: list[str]) -> pd.DataFrame:
    return pd.DataFrame(rows).drop(columns="draw").groupby(keys, sort=False).mean()


class _Trial:
    """One draw of pairs."""

    def __init__(self, task: Task, n_pairs: int, draw: int, config: dict[str, Any]) -> None:
        self.task, self.n_pairs, self.draw, self.config = task, n_pairs, draw, config
        rng = np.random.default_rng([config["seed"], draw])
        self.pairs = np.sort(rng.permutation(len(task.old))[:n_pairs])
        self.names = [f"d{row}" for row in range(len(task.old))]
        self.old = vf.Embedding(self.names, task.old)
        self.sample = vf.Embedding([self.names[row] for row in self.pairs], task.new[self.pairs])
        self.documents = vf.migrate(self.old, self.sample)
        self.of_queries = vf.migrate(self.old, self.sample, side="queries")
        assert self.documents.embedding is not None
        self.translated = np.asarray(self.documents.embedding[self.names])
        self.by_rival = self._rivals()
        # The first half of the queries is the user's, the second judges.
        self.judging = {kind: np.arange(len(q[0])) % 2 == 1 for kind, q in task.queries.items()}
        self._cells: list[dict[str, Any]] = []
        self._verdicts: list[dict[str, Any]] = []

    def _rivals(self) -> dict[str, dict[str, Any]]:
        old, new = self.task.old.astype(float), self.task.new.astype(float)
        everyone = np.concatenate([of_new for _, of_new in self.task.queries.values()])
        maps: dict[str, dict[str, Any]] = {}
        for name, rival in RIVALS.items():
            documents = rival(old[self.pairs], new[self.pairs], old)
            maps[name] = {
                "documents": self._with_known(documents),
                "queries": rival(new[self.pairs], old[self.pairs], everyone.astype(float)),
            }
        return maps

    def _with_known(self, documents: np.ndarray) -> np.ndarray:
        # Encoders give unit vectors, and so must a translation that stands beside them.
        lengths = np.linalg.norm(self.task.new, axis=1)
        if np.abs(lengths - 1.0).max() < 1e-3:
            documents = _unit(documents)
        documents = documents.copy()
        documents[self.pairs] = self.task.new[self.pairs]
        return documents

    def recall(self, kind: str, queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """Return the recall of each judging query of a kind."""
        rows = np.flatnonzero(self.judging[kind])
        nearest = _nearest(queries[rows], documents)
        if self.task.relevant is None:
            right: Any = _nearest(self.task.queries[kind][1][rows], self.task.new)
        else:
            right = [self.task.relevant[kind][row] for row in rows]
        return np.array(
            [
                len(set(places) & set(answers)) / min(K, len(set(answers)))
                for places, answers in zip(nearest.tolist(), map(list, right), strict=True)
            ]
        )

    def cells(self) -> list[dict[str, Any]]:
        """Return the recall of every translation, and its distance from the best rival."""
        if self._cells:
            return self._cells
        first = 0
        for kind, (of_old, of_new) in self.task.queries.items():
            block = slice(first, first + len(of_new))
            first += len(of_new)
            for side in ("documents", "queries"):
                if side == "documents":
                    ours = self.recall(kind, of_new, self.translated)
                    theirs = {
                        name: self.recall(kind, of_new, maps[side])
                        for name, maps in self.by_rival.items()
                    }
                else:
                    ours = self.recall(kind, self.of_queries.query(of_new), self.task.old)
                    theirs = {
                        name: self.recall(kind, maps[side][block], self.task.old)
                        for name, maps in self.by_rival.items()
                    }
                best = max(theirs, key=lambda name: theirs[name].mean())
                low, high = _interval(ours - theirs[best], self.config["n_bootstraps"])
                self._cells.append(
                    {
                        **self._place(kind),
                        "side": side,
                        "stay": self.recall(kind, of_old, self.task.old).mean(),
                        "vecfill": ours.mean(),
                        **{name: scores.mean() for name, scores in theirs.items()},
                        "everything": self.recall(kind, of_new, self.task.new).mean(),
                        "against best": (ours - theirs[best]).mean(),
                        "low": low,
                        "high": high,
                    }
                )
        return self._cells

    def _place(self, kind: str) -> dict[str, Any]:
        return {"task": self.task.name, "kind": kind, "pairs": self.n_pairs, "draw": self.draw}

    def options(self, kind: str) -> dict[str, np.ndarray]:
        """Return what each option finds for the judging queries, in the whole collection."""
        of_old, of_new = self.task.queries[kind]
        recalls = {
            "stay": self.recall(kind, of_old, self.task.old),
            "queries": self.recall(kind, self.of_queries.query(of_new), self.task.old),
            "documents": self.recall(kind, of_new, self.translated),
            "everything": self.recall(kind, of_new, self.task.new),
        }
        for share in SHARES:
            recalls[f"reembed_{share}"] = self.recall(kind, of_new, self._partly(share, "gain"))
        return recalls

    def _partly(self, share: int, order: str) -> np.ndarray:
        """Return the collection with a share re-embedded, those of the sample included."""
        n_more = max(0, round(share * len(self.names) / 100) - self.n_pairs)
        others = np.setdiff1d(np.arange(len(self.names)), self.pairs)
        if order == "gain":
            rows = np.array([int(name[1:]) for name in self.documents.first(n_more)], int)
        elif order == "random":
            rows = np.random.default_rng(self.draw).permutation(others)[:n_more]
        else:
            rows = others[np.argsort(-self._mahalanobis(others), kind="stable")][:n_more]
        documents = self.translated.copy()
        documents[rows] = self.task.new[rows]
        return documents

    def _mahalanobis(self, rows: np.ndarray) -> np.ndarray:
        known = self.task.old[self.pairs].astype(float)
        spread = np.cov(known.T) + 1e-3 * known.var() * np.eye(known.shape[1])
        steps = self.task.old[rows] - known.mean(axis=0)
        return np.einsum("ij,ij->i", steps @ np.linalg.inv(spread), steps)

    def verdicts(self) -> list[dict[str, Any]]:
        """Return what is advised from half of the queries, beside what the other half finds."""
        if self._verdicts:
            return self._verdicts
        for kind, (of_old, of_new) in self.task.queries.items():
            rows = np.flatnonzero(~self.judging[kind])
            words = [f"q{row}" for row in rows]
            relevant = None
            if self.task.relevant is not None:
                relevant = {
                    f"q{row}": [f"d{place}" for place in self.task.relevant[kind][row]]
                    for row in rows
                }
            of_both = vf.Embedding(words, of_old[rows]), vf.Embedding(words, of_new[rows])
            advice = vf.evaluate_migration(
                self.old, self.sample, queries=of_both, relevant=relevant
            )
            recalls = self.options(kind)
            within = {name: scores for name, scores in recalls.items() if name != "everything"}
            best = max(within, key=lambda name: within[name].mean())
            low, _ = _interval(recalls[best] - recalls[advice.best], self.config["n_bootstraps"])
            self._verdicts.append(
                {
                    **self._place(kind),
                    "queries asked": advice.n_queries,
                    "advised": advice.best,
                    "best": best,
                    "lost": (recalls[best] - recalls[advice.best]).mean(),
                    "is right": low <= 0,
                    **{name: scores.mean() for name, scores in recalls.items()},
                }
            )
        return self._verdicts

    def orders(self) -> list[dict[str, Any]]:
        """Return what is found when some more documents are re-embedded, by order."""
        share = 50 if self.n_pairs >= 0.2 * len(self.names) else 20
        rows = []
        for kind, (_, of_new) in self.task.queries.items():
            recalls = {
                order: self.recall(kind, of_new, self._partly(share, order))
                for order in ("gain", "mahalanobis", "random")
            }
            gaps = {
                f"gain - {order}": _interval(
                    recalls["gain"] - recalls[order], self.config["n_bootstraps"]
                )
                for order in ("mahalanobis", "random")
            }
            rows.append(
                {
                    **self._place(kind),
                    **{order: scores.mean() for order, scores in recalls.items()},
                    **{
                        f"{name}, {end}": value
                        for name, ends in gaps.items()
                        for end, value in zip(("low", "high"), ends, strict=True)
                    },
                }
            )
        return rows

    def coverage(self) -> dict[str, Any]:
        """Return how many bounds of documents that were not embedded hold."""
        mean = self.task.new[self.pairs].mean(axis=0)
        rows = np.array([int(name[1:]) for name in self.documents.words])
        steps, truth = _unit(self.translated[rows] - mean), _unit(self.task.new[rows] - mean)
        cosines = np.einsum("ij,ij->i", steps, truth)
        return {
            "task": self.task.name,
            "pairs": self.n_pairs,
            "draw": self.draw,
            "held": float((cosines >= self.documents.lower_bound).mean()),
            "cosine": float(cosines.mean()),
            "confidence": float(self.documents.confidence.mean()),
        }


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _nearest(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    cosines = _unit(queries) @ _unit(documents).T
    return np.argsort(-cosines, axis=1, kind="stable")[:, :K]


def _interval(gaps: np.ndarray, n_bootstraps: int) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    means = [gaps[rng.integers(0, gaps.size, gaps.size)].mean() for _ in range(n_bootstraps)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
