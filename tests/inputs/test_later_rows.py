"""What is read later is read as it was at the fit: the law on which `add` rests."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

import vecfill as vf
from vecfill.inputs.later_rows import Facts, KeptSource, facts_of
from vecfill.inputs.table.column_types import COLUMN_TYPES

N_ROWS = 700
RNG = np.random.default_rng(0)
NAMES = [f"entity {row}" for row in range(N_ROWS)]
TABLE = pd.DataFrame(
    {
        "name": NAMES,
        "mass": np.where(np.arange(N_ROWS) % 7 == 3, np.nan, RNG.normal(5, 2, N_ROWS)),
        "size": RNG.normal(size=N_ROWS),
        "kind": RNG.choice(["gas", "metal", None], N_ROWS),
        # So many that signs stand for them, some of one row only.
        "brand": [f"brand{row // 2 if row < 640 else row}" for row in range(N_ROWS)],
        "born": pd.Series(pd.date_range("1900-01-01", periods=N_ROWS, freq="17D")).where(
            np.arange(N_ROWS) % 5 > 0
        ),
        "tags": [
            "|".join(RNG.choice(["old", "new", "big"], 1 + row % 2, replace=False))
            for row in range(N_ROWS)
        ],
        "about": [
            f"{RNG.choice(['soft', 'hard'])} {RNG.choice(['grey', 'red'])} thing of {word}"
            for word in RNG.choice(["iron", "tin", "wood"], N_ROWS)
        ],
    }
)
TABLE["about"] = [f"{text} number{row % 400}" for row, text in enumerate(TABLE["about"])]
NUMBERS = RNG.normal(size=(40, 5))
TEXTS = {f"t{row}": f"{'soft' if row % 2 else 'hard'} {'metal' if row % 3 else 'gas'} t{row}"
         for row in range(40)}  # fmt: skip
WORDS = vf.Embedding(["soft", "hard", "metal", "gas"], RNG.normal(size=(4, 6)))


def correlations():
    matrix = np.corrcoef(NUMBERS)
    return pd.DataFrame(matrix, columns=NAMES[:40]).assign(name=NAMES[:40]).set_index("name")


def distances():
    gaps = NUMBERS[:, None] - NUMBERS
    table = pd.DataFrame(np.linalg.norm(gaps, axis=2), columns=NAMES[:40])
    return table.assign(name=NAMES[:40]).set_index("name")


def of_texts(number):
    return vf.text(TEXTS).variants(WORDS)[number]


SOURCES = {
    "columns": lambda: (vf.as_domain(TABLE), TABLE, {}),
    "standardized columns": lambda: (
        vf.as_domain(TABLE, standardize=True, categorical_weight=2.0, ignore=["kind"]),
        TABLE,
        {},
    ),
    "array": lambda: (vf.as_domain(NUMBERS, names=NAMES[:40]), NUMBERS, {"names": NAMES[:40]}),
    "wide array": lambda: (
        vf.as_domain(np.tile(NUMBERS, 20), names=NAMES[:40]),
        np.tile(NUMBERS, 20),
        {"names": NAMES[:40]},
    ),
    "sparse array": lambda: (
        vf.as_domain(csr_array(np.maximum(NUMBERS, 0)), names=NAMES[:40], standardize=True),
        csr_array(np.maximum(NUMBERS, 0)),
        {"names": NAMES[:40]},
    ),
    "similarities": lambda: (
        vf.as_domain(correlations(), kind="similarities"),
        correlations(),
        {},
    ),
    "distances": lambda: (vf.as_domain(distances(), kind="distances"), distances(), {}),
    "texts by terms": lambda: (of_texts(0), TEXTS, None),
    "texts by words": lambda: (of_texts(1), TEXTS, None),
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_fitted_entities_read_again_have_the_same_rows(source):
    domain, table, options = SOURCES[source]()
    if options is None:
        facts = Facts(tuple(table), {"text": list(table.values())})
    else:
        facts = facts_of(table, **options)
    later = domain.reader.read(facts)
    assert later.entities == domain.entities
    fitted, again = domain.vectors, later.rows
    if hasattr(fitted, "toarray"):
        fitted, again = fitted.toarray(), again.toarray()
    np.testing.assert_allclose(again, fitted, rtol=1e-4, atol=2e-5 * np.abs(fitted).max())
    assert all(not reasons for reasons in later.unusual)


def test_the_table_has_a_column_of_every_type():
    reader = vf.as_domain(TABLE).reader
    assert {type(column) for column in reader.columns} == set(COLUMN_TYPES)


def test_a_code_is_the_same_with_and_without_a_point():
    domain = vf.as_domain(TABLE.assign(code=[str(row % 3) for row in range(N_ROWS)]),
                          categorical=["code"])  # fmt: skip
    later = [
        domain.reader.read(facts_of({"new": {"code": code, "mass": 1.0}})) for code in ("2", "2.0")
    ]
    assert not any("code" in reason for reason in later[1].unusual[0])
    np.testing.assert_array_equal(later[0].rows, later[1].rows)


def test_only_numbers_have_a_range():
    domain = vf.as_domain(TABLE, ignore=["brand", "about"])
    kept = KeptSource.of("table", domain, np.ones(N_ROWS, bool))
    is_number = kept.low < kept.high
    assert np.array(domain.columns)[is_number].tolist() == ["mass", "mass (missing)", "size"]
    far = domain.vectors[:1] + 100.0 * is_number
    assert "far beyond the known entities" in kept.out_of_range(far)[0]
    assert kept.out_of_range(domain.vectors) == [""] * N_ROWS
    with pytest.raises(vf.InputError, match="mass of 'entity 0' is"):
        kept.refuse_absurd(domain.vectors[:1] + 1e12 * is_number, NAMES)
