"""Made entities whose vectors depend on every fact, so that each fact that is missing costs."""

from __future__ import annotations

import numpy as np
import pandas as pd

import vecfill as vf
from vecfill.model.predictors import KernelRidge

N_KNOWN, N_FITTED, N_ALL = 240, 320, 520
CITIES = np.array(["oslo", "rome", "lima", "cairo", "quito"])
METHOD = KernelRidge(preparation="standardized")


class Shop:
    """A table of items, the vectors of some, and items that come later."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        numbers, city = rng.normal(size=(N_ALL, 3)), rng.integers(len(CITIES), size=N_ALL)
        self.vectors = numbers @ rng.normal(size=(3, 8)) + 0.8 * rng.normal(size=(N_ALL, 8))
        self.vectors += 1.5 * rng.normal(size=(len(CITIES), 8))[city]
        columns = dict(zip(("price", "size", "age"), (100 + 15 * numbers).T, strict=True))
        names = pd.Index([f"item{row:03d}" for row in range(N_ALL)], name="name")
        self.table = pd.DataFrame({**columns, "city": CITIES[city]}, index=names)
        self.known = dict(zip(names[:N_KNOWN], self.vectors, strict=False))

    @property
    def later(self) -> pd.DataFrame:
        """Return the items that come later."""
        return self.table[N_FITTED:].copy()

    def imputed(self, table: pd.DataFrame | None = None, **options: object) -> vf.Result:
        """Return what is imputed for the items of the fit."""
        table = self.table[:N_FITTED] if table is None else table
        return vf.impute(table, self.known, method=METHOD, names="off", **options)

    def truth(self, words: tuple[str, ...], found: np.ndarray) -> np.ndarray:
        """Return the centred cosine of each vector with the truth."""
        rows = [self.table.index.get_loc(word) for word in words]
        centre = self.vectors[:N_KNOWN].mean(axis=0)
        left, right = found - centre, self.vectors[rows] - centre
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        return (left * right).sum(axis=1) / lengths
