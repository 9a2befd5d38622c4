"""Without an extra, its functions say what to type."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import vecfill as vf
from vecfill.distributed import dask
from vecfill.errors import library
from vecfill.exchange.duckdb import fill_duckdb
from vecfill.exchange.huggingface.example import write_small_model
from vecfill.exchange.lancedb import fill_lancedb
from vecfill.exchange.postgres import fill_postgres
from vecfill.exchange.qdrant import fill_qdrant

WORDS = vf.Embedding(["a", "b"], np.eye(2))


@pytest.mark.parametrize(
    ("extra", "module", "call"),
    [
        ("gensim", "gensim.models.keyedvectors", lambda: vf.to_gensim(WORDS)),
        ("spacy", "spacy", lambda: vf.to_spacy(object(), WORDS)),
        ("torch", "torch", lambda: vf.to_torch(WORDS)),
        ("duckdb", "duckdb", lambda: fill_duckdb("a.db", "items", key="id", vector="v")),
        ("lancedb", "lancedb", lambda: fill_lancedb(None, key="id", vector="v")),
        ("postgres", "psycopg", lambda: fill_postgres("", "items", key="id", vector="v")),
        ("qdrant", "qdrant_client.models", lambda: fill_qdrant(None, "items", vector="v")),
        ("hf", "tokenizers", lambda: vf.word_pieces(write_small_model(), ["radon"])),
        ("fsspec", "fsspec.core", lambda: vf.impute_dataset("s3://a/", "b/", "c/", work="d/")),
    ],
)
def test_the_message_gives_the_line_to_type(monkeypatch, tmp_path, extra, module, call):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(vf.MissingExtraError, match=rf"pip install 'vecfill\[{extra}\]'"):
        call()


def test_dask_says_so_too(monkeypatch):
    # The module can be imported without Dask, so that its tests can be collected.
    monkeypatch.setattr(dask, "Client", None)
    with pytest.raises(vf.MissingExtraError, match=r"pip install 'vecfill\[dask\]'"):
        dask.Dask()


def test_a_library_that_is_there_but_broken_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "gensim_like.py").write_text("import no_such_part_of_it")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(vf.MissingExtraError, match="cannot be imported: No module named 'no_such"):
        library("gensim_like", extra="gensim")
