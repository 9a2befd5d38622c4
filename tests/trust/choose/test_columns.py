"""What each column adds, and what is left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from vecfill.errors import InputError, OptionError
from vecfill.inputs.domain import as_domain
from vecfill.model.preparation import FittedPreparation, prepared_by, without_columns
from vecfill.model.space import Space

N_ROWS, N_KNOWN = 160, 120


def made(seed: int = 0) -> tuple[pd.DataFrame, vf.Embedding]:
    """Return a table of which three columns matter, one is noise and one is the same for most."""
    rng = np.random.default_rng(seed)
    useful = rng.normal(size=(N_ROWS, 3))
    names = [f"e{row}" for row in range(N_ROWS)]
    table = pd.DataFrame(useful, columns=["a", "b", "c"])
    table.insert(0, "name", names)
    table["noise"] = 20 * rng.normal(size=N_ROWS)
    table["flag"] = [float(row < N_KNOWN and row % 2) for row in range(N_ROWS)]
    vectors = np.sin(2 * useful) @ rng.normal(size=(3, 6))
    return table, vf.Embedding(names[:N_KNOWN], vectors[:N_KNOWN])


def test_a_column_that_hurts_is_left_out_with_a_note(tmp_path):
    table, known = made()
    result = vf.impute(table, known, names="off", candidates="all")
    verdicts = {report.name: report.verdict for report in result.columns}
    assert verdicts["a"] == "helps"
    assert verdicts["noise"] == "hurts"
    assert verdicts["flag"] == "cannot say"
    left_out = [report.name for report in result.columns if report.is_left_out]
    assert "noise" in left_out
    assert "a" not in left_out
    assert any("'noise' was left out" in note for note in result.notes)
    assert "'noise' hurts" in " ".join(repr(result).split())
    other = table.assign(noise=table["noise"].iloc[::-1].to_numpy())
    again = vf.impute(other, known, names="off", method=result.predictor)
    assert np.array_equal(result.embedding.vectors, again.embedding.vectors)
    result.save(tmp_path / "model.vecfill")
    new = other[other["name"] == "e130"].assign(name="new")
    added = vf.load(tmp_path / "model.vecfill").add(new)
    assert np.allclose(added.embedding["new"], result.embedding["e130"], atol=1e-5)


def test_every_column_is_used_if_that_is_asked_for():
    table, known = made()
    result = vf.impute(table, known, names="off", columns="all")
    assert not any(report.is_left_out for report in result.columns)
    assert any("'noise' may hurt" in note for note in result.notes)
    with pytest.raises(OptionError, match="columns='all' is about what auto leaves out"):
        vf.impute(table, known, names="off", columns="all", method="paper")


@pytest.mark.parametrize("preparation", Space(np.eye(3)).preparations)
def test_a_column_that_is_left_out_changes_nothing(preparation):
    rng = np.random.default_rng(0)
    rows, name = rng.normal(size=(30, 4)), without_columns(preparation, [1, 3])
    other = rows.copy()
    other[:, [1, 3]] = rng.normal(size=(30, 2))
    assert np.array_equal(prepared_by(name, rows), prepared_by(name, other))
    fitted = FittedPreparation.of(name, rows)
    assert np.allclose(fitted.applied(other), prepared_by(name, rows), atol=1e-9)


def test_a_preparation_that_leaves_out_what_is_not_there_is_refused():
    with pytest.raises(InputError, match="leaves out column 9, and the domain has 2"):
        prepared_by("as_given without 9", np.eye(2))
    with pytest.raises(InputError, match="as_given without x"):
        vf.LatentSemantic("as_given without x")


def test_columns_of_a_table_know_their_places():
    table, _ = made()
    reader = as_domain(table.assign(kind=["x", "y"] * (N_ROWS // 2))).reader
    assert reader is not None
    spans = [("a", 0, 1), ("b", 1, 2), ("c", 2, 3), ("noise", 3, 4), ("flag", 4, 5), ("kind", 5, 7)]
    assert reader.spans() == spans
