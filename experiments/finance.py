"""The paper's data, as the shared folder holds it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

EMBEDDINGS = {
    "self": "authors_fullMat.parquet",
    "self(hf)": "authors_partMat.parquet",
    "GloVe": "authors_gloveMat.parquet",
    "Google": "authors_googleMat.parquet",
    "fastText": "authors_fastMat.parquet",
}


@dataclass(frozen=True)
class Companies:
    """487 companies: the domain matrix, each one's sector and its frequency in the corpus.

    `sector` is the authors' number of the sector: votes that tie go to the smaller number, so the
    numbering, odd as it sounds, is part of the reproduction.
    """

    names: pd.Index
    affinity: np.ndarray
    sector: np.ndarray
    frequency: np.ndarray


def read_companies(data: Path) -> Companies:
    """Return the companies of the classification experiment, in one order."""
    affinity = pd.read_parquet(data / "finance" / "sp500_affinity_487.parquet")
    told = pd.read_parquet(data / "finance" / EMBEDDINGS["self"])[["label", "freq"]]
    told = told.reindex(affinity.index)
    return Companies(
        names=affinity.index,
        affinity=affinity.to_numpy(dtype=np.float64),
        sector=told["label"].to_numpy(dtype=np.int64),
        frequency=told["freq"].to_numpy(dtype=np.int64),
    )


def read_embeddings(data: Path, names: pd.Index) -> dict[str, np.ndarray]:
    """Return each of the authors' embeddings that is there, a row a company, NaN if unknown."""
    found = {}
    for label, file in EMBEDDINGS.items():
        path = data / "finance" / file
        if path.is_file():
            vectors = pd.read_parquet(path).drop(columns=["label", "freq"])
            found[label] = vectors.reindex(names).to_numpy(dtype=np.float64)
    return found


def read_authors(data: Path, name: str) -> pd.DataFrame:
    """Return a table of the authors' results: ``ksens``, ``etasens``, ``heat`` or ``heat_PQ``."""
    table = pd.read_csv(data / "finance" / f"authors_{name}.csv", index_col=0)
    table.columns = table.columns.astype(int)
    return table


def read_authors_weights(data: Path, names: pd.Index) -> np.ndarray:
    """Return the authors' own weight matrix, rows and columns in the order of `names`."""
    weights = pd.read_parquet(data / "finance" / "authors_W.parquet")
    return weights.loc[names, names].to_numpy(dtype=np.float64)


def read_table1(data: Path) -> pd.DataFrame:
    """Return the paper's Table 1: rows as `EMBEDDINGS` names them, ``+aff`` after; columns k."""
    table = pd.read_csv(data / "paper" / "table1_knn_accuracy.csv", index_col=0)
    table.columns = table.columns.str.removeprefix("k").astype(int)
    ours = {"Glove": "GloVe", "fast": "fastText"}
    table.index = [
        ours.get(base, base) + plus + domain
        for base, plus, domain in (name.partition("+") for name in table.index)
    ]
    return table


def read_table2(data: Path) -> pd.DataFrame:
    """Return the paper's Table 2, its rows named as the starts of our language model."""
    table = pd.read_csv(data / "paper" / "table2_perplexity.csv", index_col=0)
    table.index = table.index.str.replace("aff", "returns").str.replace("+", " + ", regex=False)
    table.index = table.index.str.replace("Glove", "GloVe")
    return table.rename(columns={"percent_decrease_against_self": "decrease"})


def read_returns(data: Path) -> pd.DataFrame:
    """Return daily returns of 3,529 companies, one a row."""
    return pd.read_parquet(data / "finance" / "us_returns_clean.parquet")


def correlations(returns: pd.DataFrame) -> pd.DataFrame:
    """Return the Pearson correlation of each company with each, the paper's domain matrix."""
    matrix = np.corrcoef(returns.to_numpy(dtype=np.float64))
    return pd.DataFrame(matrix, index=returns.index, columns=returns.index)


def read_sector_names(data: Path) -> pd.Series:
    """Return the sector of each of the 4,092 companies of the language-model experiment."""
    table = pd.read_csv(data / "finance" / "finance_tokens_4092.csv", keep_default_na=False)
    return table.drop_duplicates("nGram").set_index("nGram")["Sector"]
