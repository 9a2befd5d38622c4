"""Pairs and tables of vectors are accepted wherever an embedding is."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import vecfill as vf
from tests.exchange.world import KNOWN, N_DIMS, N_KNOWN, TABLE, VECTORS
from vecfill.inputs.domain import as_domain
from vecfill.inputs.embeddings import as_embedding

BASE = vf.Embedding(KNOWN, VECTORS[:N_KNOWN])
LISTS = pa.table({"name": KNOWN, "vector": pa.array(list(VECTORS[:N_KNOWN]))})
ARROW_KINDS = [
    pa.list_(pa.float32()), pa.large_list(pa.float32()), pa.list_(pa.float32(), N_DIMS),
]  # fmt: skip


def as_kind(kind):
    return LISTS.set_column(1, "vector", LISTS.column(1).cast(kind))


@pytest.mark.parametrize(
    "source",
    [
        (KNOWN, VECTORS[:N_KNOWN]),
        (tuple(KNOWN), VECTORS[:N_KNOWN]),
        ({word: row for row, word in enumerate(KNOWN)}, VECTORS),
        *(as_kind(kind) for kind in ARROW_KINDS),
        pd.DataFrame({"vector": list(VECTORS[:N_KNOWN])}, index=pd.Index(KNOWN, name="name")),
        LISTS.to_pandas(types_mapper=pd.ArrowDtype),
        pl.from_arrow(as_kind(pa.list_(pa.float32()))),
        pl.from_arrow(as_kind(pa.list_(pa.float32(), N_DIMS))),
    ],
    ids=str,
)
def test_words_and_vectors_of_any_make_are_one_embedding_bit_for_bit(source):
    assert as_embedding(source).equals(BASE)


def test_one_column_a_dimension_is_an_embedding_too():
    table = pd.DataFrame(VECTORS[:N_KNOWN].astype(np.float64), index=KNOWN)
    np.testing.assert_array_equal(as_embedding(table).vectors, VECTORS[:N_KNOWN])


def test_a_word_whose_vector_is_null_is_not_in_the_embedding():
    table = pa.table({"name": ["a", "b"], "vector": [[1.0, 2.0], None]})
    assert as_embedding(table).words == ("a",)


def test_key_and_vector_name_the_columns_of_a_table_of_vectors():
    table = pa.table(
        {"title": [f"T {i}" for i in range(N_KNOWN)], "id": range(N_KNOWN), "old": LISTS.column(1),
         "new": LISTS.column(1)}
    )  # fmt: skip
    with pytest.raises(vf.InputError, match="2 columns of vectors: 'old', 'new'"):
        as_embedding(table)
    assert as_embedding(table, key="id", vector="new").words[:2] == ("0", "1")
    features = TABLE.reset_index(drop=True)
    features.insert(0, "id", range(len(features)))
    result = vf.impute(features, table, key="id", vector="new")
    assert result.embedding.words[0] == str(N_KNOWN)


def test_a_parquet_file_with_a_column_of_vectors_is_an_embedding(tmp_path):
    import pyarrow.parquet as pq

    table = pa.table({"id": KNOWN, "title": KNOWN, "embedding": LISTS.column(1)})
    pq.write_table(table, tmp_path / "items.parquet")
    result = vf.impute(TABLE, tmp_path / "items.parquet", vector="embedding")
    assert result.embedding.equals(vf.impute(TABLE, BASE).embedding)


def test_a_pair_describes_entities_too():
    assert as_domain((KNOWN, VECTORS[:N_KNOWN])).entities == tuple(KNOWN)


def test_the_words_of_a_pair_may_be_a_pandas_index_or_integer_ids():
    vectors = VECTORS[:N_KNOWN]
    assert as_embedding((pd.Index(KNOWN), vectors)).equals(BASE)
    numbered = as_embedding((pd.RangeIndex(N_KNOWN), vectors))
    assert numbered.words[:2] == ("0", "1")
    assert as_embedding((list(range(N_KNOWN)), vectors)).equals(numbered)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_known_vector_that_is_not_finite_is_refused_by_its_word(value):
    vectors = VECTORS[:N_KNOWN].copy()
    vectors[3, 1] = value
    with pytest.raises(vf.InputError, match=f"vector of {KNOWN[3]!r} holds NaN or infinity"):
        vf.impute(TABLE, (KNOWN, vectors))
    # A word that no entity is matched to may be anything, as in a file.
    few = TABLE.drop(index=KNOWN[3])
    assert len(vf.impute(few, (KNOWN, vectors), names="off").embedding)


def test_a_tuple_of_edges_is_no_pair():
    edges = (("heart", "organ"), ("lung", "organ"))
    assert as_domain(edges, kind="edges").entities == ("heart", "lung", "organ")


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (VECTORS, {}, r"Pass both as a pair, \(words, vectors\)"),
        ((["a"], VECTORS), {}, "1 words but 60 rows"),
        (({"a": -1}, VECTORS), {}, "'a' is at row -1"),
        (BASE, {"vector": "v"}, "vector='v' names a column, but the embedding is an object"),
        (LISTS, {"vector": "v"}, "no column 'v' with vectors"),
        ([1, 2], {}, "cannot be made of an object of type list"),
    ],
)
def test_what_has_no_words_or_no_vectors_is_refused(source, options, words):
    with pytest.raises(vf.InputError, match=words):
        vf.impute(TABLE, source, **options)


def test_vectors_to_impute_do_not_describe_entities():
    with pytest.raises(vf.OptionError, match="vector='v' cannot be used here"):
        as_domain(TABLE, vector="v")


def test_vectors_of_two_lengths_are_refused_by_word():
    with pytest.raises(vf.InputError, match=r"of one length: see those of 'a' and 'c'"):
        as_embedding({"a": [1.0, 2.0], "b": [1.0, 3.0], "c": [1.0]})
