"""Without an extra, its functions say what to type."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import vecfill as vf
from vecfill.exchange.duckdb import fill_duckdb
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
    ],
)
def test_the_message_gives_the_line_to_type(monkeypatch, extra, module, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(vf.MissingExtraError, match=rf"pip install 'vecfill\[{extra}\]'"):
        call()
