"""Tables of any make become one domain."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vecfill.errors import InputError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.table import features

numbers = st.one_of(st.none(), st.integers(-9, 9).map(float), st.floats(-1e6, 1e6))
labels = st.sampled_from(["red", "green", "a b", "=cmd()", None])


@st.composite
def columns_of_tables(draw):
    n_rows = draw(st.integers(5, 8))
    rows = st.lists(numbers, min_size=n_rows, max_size=n_rows)
    return {
        "name": [f"entity {row}" for row in range(n_rows)],
        "x": draw(rows),
        "y": draw(rows),
        "color": draw(st.lists(labels, min_size=n_rows, max_size=n_rows)),
        "flag": draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows)),
    }


def outcome(source, **options):
    """A domain, or the words of its refusal after the name of the source."""
    try:
        return as_domain(source, **options)
    except InputError as error:
        return str(error).partition(",")[2] or str(error).partition(":")[2]


def assert_same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        assert one == other
        return
    assert one.entities == other.entities
    assert one.columns == other.columns
    assert one.notes == other.notes
    np.testing.assert_array_equal(one.vectors, other.vectors)


@given(columns_of_tables(), st.booleans())
def test_pandas_polars_arrow_csv_and_parquet_give_the_same_domain(tmp_path_factory, columns, scale):
    arrow = pa.table(
        {
            name: pa.array(cells, pa.float64() if name in "xy" else None)
            for name, cells in columns.items()
        }
    )
    if pa.types.is_null(arrow["color"].type):
        arrow = arrow.drop_columns("color")
    frame = arrow.to_pandas()
    folder = tmp_path_factory.mktemp("tables")
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    pa_parquet.write_table(arrow, folder / "t.parquet")
    expected = outcome(arrow, standardize=scale)
    for source in (
        frame,
        frame.set_index("name"),
        frame.set_index("name").rename_axis(None),
        pl.from_arrow(arrow),
        folder / "t.csv",
        folder / "t.tsv",
        str(folder / "t.parquet"),
    ):
        assert_same(outcome(source, standardize=scale), expected)


@given(columns_of_tables(), st.randoms(use_true_random=False))
def test_shuffling_rows_changes_nothing_but_the_order(columns, random):
    order = list(range(len(columns["name"])))
    random.shuffle(order)
    table = pa.table(columns)
    one, other = outcome(table), outcome(table.take(order))
    if isinstance(one, str):
        assert isinstance(other, str)
        return
    assert one.columns == other.columns
    assert other.entities == tuple(one.entities[row] for row in order)
    np.testing.assert_allclose(one.vectors[order], other.vectors, rtol=1e-12, atol=1e-12)


@given(columns_of_tables(), st.booleans())
def test_a_domain_is_finite_and_every_column_varies(columns, scale):
    domain = outcome(pa.table(columns), standardize=scale)
    if not isinstance(domain, str):
        assert np.isfinite(domain.vectors).all()
        assert (domain.vectors.min(axis=0) < domain.vectors.max(axis=0)).all()
        assert domain.vectors.shape == (len(domain.entities), len(domain.columns))


def test_a_category_weighs_like_one_standardised_column():
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "name": [str(row) for row in range(50)],
            "x": rng.normal(5, 9, 50),
            "sector": rng.choice(["a", "b", "c"], 50),
        }
    )
    variance = as_domain(table, standardize=True).vectors.var(axis=0)
    assert variance[0] == pytest.approx(1)
    assert variance[1:].sum() == pytest.approx(1)
    heavier = as_domain(table, categorical_weight=3.0).vectors.var(axis=0)
    assert heavier[1:].sum() == pytest.approx(9)


def test_the_key_is_the_named_column_or_pandas_index_or_the_first_column():
    frame = pd.DataFrame({"x": [1.0, 2.0], "name": ["iron", "gold"], "y": [3, 4]})
    assert as_domain(frame, key="name").columns == ("x", "y")
    assert as_domain(frame.set_index("name")).entities == ("iron", "gold")
    assert as_domain(frame.set_index("name"), key="name").entities == ("iron", "gold")
    numbered = pd.DataFrame({"id": [7, 8], "x": [1.0, 2.0]})
    assert as_domain(numbered).entities == ("7", "8")
    assert as_domain(numbered.set_index("id")).entities == ("7", "8")
    nullable = numbered.astype({"id": "Int64"})
    assert as_domain(nullable.set_index("id")).entities == ("7", "8")
    with pytest.raises(InputError, match=r"no column 'nam'\. Did you mean 'name'\?"):
        as_domain(frame, key="nam")
    with pytest.raises(InputError, match="of type float"):
        as_domain(frame)


def test_names_that_look_like_missing_values_or_numbers_stay_names(tmp_path):
    names = ("NA", "null", "nan", "None", "True", "1e5")
    path = tmp_path / "t.csv"
    path.write_text("name,x\n" + "".join(f"{name},{row}\n" for row, name in enumerate(names)))
    assert as_domain(path).entities == names


def csv_file(folder, text):
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8", newline="")
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        # 27, 28
        ("name\na\nb\n", "one column only, 'name'"),
        ("name;x\na;1\nb;2\n", "give separator="),
        ("name,x,y,x\na,1,2,3\n", "column 'x' present more than once"),
        # 29, 30
        ("name,x\na,1\nb,2\na,3\n", "entity 'a' present more than once"),
        ("name,x\na,1\nb,2\n a ,3\n", "entity 'a' present more than once"),
        ("name,x\na,1\nb,1\nc,1\nd,1\nd,1\nc,1\nb,2\na,3\n", "'a', 'b', 'c' and 1 more"),
        ("name,x\na,1\n,2\n", "row 2: the entity name is empty"),
        ("name,x\na,1\n  ,2\n", "row 2: the entity name is empty"),
        # 32
        ("name,x\na,1\nb,2\nc,oops\n", r"column 'x', entity 'c' \(row 3\): 'oops' is not a number"),
        # 33
        (
            "name,x,y\na,1,2\nb,,\nc,3,4\n",
            r"every value of entity 'b' that could be used is missing \(row 2\)",
        ),
        ("name,x,y\na,,\nb,,\n", "no column has any value"),
        # 34
        ("name,x,y,z\na,1,,\nb,,2,\nc,3,,4\nd,,1,5\ne,1,,\n", "53 % of the values are missing"),
        # 35
        ("name,x\na,1\nb,inf\n", r"column 'x', entity 'b' \(row 2\): the value is infinite"),
        ("name,x\na,1\nb,1e400\n", "entity 'b'.*infinite, or too large"),
        # 36
        ("name,x,y\na,1,z\nb,1,z\n", r"no column can be used.*'x', 'y'.*constant"),
        # 38
        ("name,x\na,2020-01-01\nb,2020-02-30\n", "row 2.*2020-02-30 is no day.*ignore="),
        ("name,x\na,1/2/2020\nb,3/4/2021\n", "may begin with the day or with the month"),
        ("name,x\na,1/2/20\nb,3/4/21\n", "no year of four digits"),
        ("name,x\na,5 kg\nb,700 g\n", "'5 kg' is a number with a unit.*one unit"),
        # 40
        ('name,x\na,"1,5"\nb,"2,5"\n', "'1,5' is not a plain number.*decimal point"),
        ('name,x\na,1\nb,"1,234"\n', "'1,234' is not a plain number"),
        ("name,x\na,$5\nb,$7.50\n", r"'\$5' is not a plain number"),
        ("name,x\na,5%\nb,7%\n", "'5%' is not a plain number"),
        ("name,x\na,€ 5\nb,6 €\n", "'€ 5' is not a plain number"),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_place(tmp_path, text, message):
    path = csv_file(tmp_path, text)
    with pytest.raises(InputError, match=message) as refused:
        as_domain(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([{"a": 1}, {"a": 2}], "of type struct"),
        ([object(), 3], "entity 'a': an object of type object"),
        ([1 + 2j, 3], "column 'x'"),
        ([b"1", b"2"], "of type binary"),
    ],
)
def test_structures_and_objects_are_refused_with_advice(cells, message):
    with pytest.raises(InputError, match=message) as refused:
        as_domain(pd.DataFrame({"name": ["a", "b"], "x": cells}))
    assert "ignore=" in str(refused.value)


def test_a_cell_of_text_in_a_numeric_pandas_column_is_refused_by_row():
    frame = pd.DataFrame({"name": ["a", "b", "c"], "x": [1.0, "two", 3]})
    with pytest.raises(
        InputError, match=r"column 'x', entity 'b' \(row 2\): 'two' is not a number"
    ):
        as_domain(frame)
    assert as_domain(pd.DataFrame({"name": ["a", "b"], "x": [1, "2"]})).vectors.tolist() == [
        [1],
        [2],
    ]


def test_a_missing_name_is_refused_by_row():
    for missing in (None, np.nan, pd.NA):
        frame = pd.DataFrame({"name": ["a", missing], "x": [1.0, 2.0]})
        with pytest.raises(InputError, match="row 2: the entity name is missing"):
            as_domain(frame)
    with pytest.raises(InputError, match="row 2: the entity name is missing"):
        as_domain(pl.DataFrame({"name": ["a", None], "x": [1.0, 2.0]}))


def test_missing_values_become_the_mean_and_are_marked_and_reported():
    domain = as_domain(pa.table({"name": list("abc"), "x": [0.0, None, 4.0], "y": [1, 2, 3]}))
    assert domain.columns == ("x", "x (missing)", "y")
    assert domain.vectors.tolist() == [
        [0, 0, 1],
        [2, 2, 2],
        [4, 0, 3],
    ]  # the mark is as long as the spread
    assert "1 column ('x') with 1 missing value: set to the column's mean" in domain.notes[0]
    polars = pl.DataFrame({"name": list("abc"), "x": [0.0, np.nan, 4.0], "y": [1, 2, 3]})
    assert_same(as_domain(polars), domain)


def test_rows_without_any_value_can_be_left_out():
    columns = {"x": [1.0, None, 3.0, 5.0], "of": ["a", None, "b", "a"], "same": [1, 1, 1, 1]}
    table = pa.table({"name": list("abcd"), **columns})
    with pytest.raises(InputError, match="every value of entity 'b'"):
        as_domain(table)
    domain = as_domain(table, skip_empty=True)
    rest = as_domain(table.take([0, 2, 3]))
    assert domain.entities == ("a", "c", "d")
    assert domain.columns == rest.columns
    assert (domain.vectors == rest.vectors).all()
    assert domain.notes == ("1 entity has no value; left out of this source.", *rest.notes)


def test_what_is_dropped_is_reported(tmp_path):
    path = csv_file(tmp_path, "name,empty,same,id,,kind\na,,1,q,1,x\nb,NA,1,r,2,y\nc,,1,s,3,x\n")
    domain = as_domain(path)
    assert domain.columns == ("column 5", "kind=x", "kind=y")
    notes = " ".join(domain.notes)
    assert "Column 5 has no name" in notes
    assert "('empty'): without any value; dropped" in notes
    assert "('same'): dropped because constant" in notes
    assert "('id'): another value in every row, like an identifier; not used" in notes


def test_one_column_of_a_far_larger_scale_is_reported_with_advice():
    table = pa.table(
        {"name": list("abc"), "x": [1.0, 2.0, 3.0], "y": [4.0, 1.0, 2.0], "money": [1e9, 5e9, 9e9]}
    )
    assert "'money'" in as_domain(table).notes[0]
    assert "standardize=True" in as_domain(table).notes[0]
    assert as_domain(table, standardize=True).notes == ()


def test_numbers_of_any_size_stay_finite():
    table = pa.table(
        {
            "name": list("abcd"),
            "x": [1e300, -1e300, 1e-300, None],
            "y": [1e-310, 2e-310, 3e-310, 0.0],
        }
    )
    for standardize in (False, True):
        domain = as_domain(table, standardize=standardize)
        assert np.isfinite(domain.vectors).all()
        assert (domain.vectors.min(axis=0) < domain.vectors.max(axis=0)).all()


def test_columns_can_be_left_out_or_taken_as_categories():
    table = pa.table(
        {
            "name": list("abcd"),
            "zip": [10, 10, 20, 20],
            "day": ["2020-01-01"] * 4,
            "x": [1.0, 2.0, 3.0, 4.0],
        }
    )
    domain = as_domain(table, ignore=["day"], categorical="zip")
    assert domain.columns == ("zip=10", "zip=20", "x")
    with pytest.raises(InputError, match="ignore= names 'dya'"):
        as_domain(table, ignore=["dya"])
    with pytest.raises(InputError, match="categorical_weight=0"):
        as_domain(table, ignore=["day"], categorical_weight=0)


def test_a_pandas_categorical_is_a_category_even_if_its_values_are_numbers():
    frame = pd.DataFrame({"name": list("abc"), "zip": pd.Categorical([1, 1, 2])})
    assert as_domain(frame).columns == ("zip=1", "zip=2")


def test_mostly_text_with_a_few_numbers_is_a_category():
    table = pa.table({"name": list("abcde"), "kind": ["x", "x", "3", "y", "y"]})
    assert as_domain(table).columns == ("kind=3", "kind=x", "kind=y")


def test_formula_like_cells_are_plain_text(tmp_path):
    path = csv_file(tmp_path, "name,kind\n=cmd(),=1+1\n<script>,=1+1\nc,+x\n")
    domain = as_domain(path)
    assert domain.entities == ("=cmd()", "<script>", "c")
    assert domain.columns == ("kind=+x", "kind==1+1")


def test_tables_too_wide_or_too_large_are_refused_with_advice(monkeypatch):
    monkeypatch.setattr("vecfill.inputs.table.frames.MAX_COLUMNS", 3)
    wide = pa.table({"name": ["a", "b"], **{f"x{i}": [1.0, 2.0] for i in range(4)}})
    with pytest.raises(InputError, match=r"4 columns, more than 3 dense.*sparse"):
        as_domain(wide)
    monkeypatch.setattr(features, "MAX_COLUMNS", 3)
    many = pa.table({"name": list("abcdefgh"), "kind": list("sstuvwxy")})
    with pytest.raises(InputError, match=r"'kind' alone gives 7.*ignore="):
        as_domain(many)


def test_a_lazy_table_and_odd_objects_are_refused():
    with pytest.raises(InputError, match=r"\.collect\(\)"):
        as_domain(pl.LazyFrame({"name": ["a"], "x": [1]}))
    with pytest.raises(InputError, match="object of type int"):
        as_domain(3)
    with pytest.raises(InputError, match="has no entity names"):
        as_domain(np.eye(2))
    with pytest.raises(InputError, match="kind='table'"):
        as_domain({}, kind="table")
    with pytest.raises(InputError, match="names= is for arrays"):
        as_domain(pa.table({"name": ["a"], "x": [1]}), names=["a"])
    with pytest.raises(InputError, match="several levels"):
        as_domain(pd.DataFrame({("a", "b"): [1], ("a", "c"): [2]}))
    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])
    with pytest.raises(InputError, match="index of several levels"):
        as_domain(pd.DataFrame({"x": [1, 2]}, index=index))
    with pytest.raises(InputError, match="present more than once"):
        as_domain(pd.DataFrame([["a", 1, 2]], columns=["name", "x", "x"]))
    with pytest.raises(InputError, match="no rows"):
        as_domain(pd.DataFrame({"name": [], "x": []}))


def test_an_embedding_is_a_domain():
    embedding = SimpleNamespace(words=("iron", "gold"), vectors=np.eye(2, dtype=np.float32))
    domain = as_domain(embedding)
    assert domain.entities == ("iron", "gold")
    assert domain.vectors.dtype == np.float32
    np.testing.assert_array_equal(domain.vectors, np.eye(2))


def test_a_square_table_of_features_is_noted():
    table = pa.table({"name": list("abc"), "a": [1.0, 2, 3], "b": [2.0, 1, 4], "c": [3.0, 4, 1]})
    assert "kind='similarities'" in as_domain(table).notes[-1]


def test_a_record_batch_is_a_table():
    columns = {"name": ["a", "b"], "x": [1.0, 2.0]}
    assert_same(as_domain(pa.record_batch(columns)), as_domain(pa.table(columns)))


def test_a_large_table_is_kept_in_32_bits_where_they_suffice(monkeypatch):
    monkeypatch.setattr(features, "LARGE", 6)
    values = np.random.default_rng(0).normal(size=(4, 2))
    table = {"name": list("abcd"), "x": values[:, 0], "y": values[:, 1]}
    domain = as_domain(pa.table(table))
    assert domain.vectors.dtype == np.float32
    assert np.array_equal(domain.vectors, values.astype(np.float32))
    # Far from zero, or out of range, 32 bits would lose what tells the rows apart.
    for other in (1e9 + values[:, 1], 1e-300 * values[:, 1], 1e300 * values[:, 1]):
        wide = as_domain(pa.table({**table, "y": other})).vectors
        assert wide.dtype == np.float64
        assert np.array_equal(wide[:, 1], other)


def test_a_small_table_stays_in_64_bits():
    table = pa.table({"name": ["a", "b"], "x": [0.1, 0.2]})
    assert as_domain(table).vectors.dtype == np.float64
