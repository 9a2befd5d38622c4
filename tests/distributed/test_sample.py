"""Datasets are tested for leaks, twins and chance as tables in memory are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vecfill as vf
from vecfill.distributed import sampling
from vecfill.distributed.methods import hidden_places
from vecfill.errors import InputError, NoSignalError

from .made import Made, made


def with_columns(items: Made, rows: np.ndarray) -> Made:
    """Write other features."""
    for path in items.features.iterdir():
        path.unlink()
    columns = {f"x{place}": rows[:, place] for place in range(rows.shape[1])}
    pq.write_table(pa.table({"entity": items.names, **columns}), items.features / "all.parquet")
    return replace(items, rows=rows)


@pytest.fixture
def items(tmp_path):
    return made(tmp_path, n_rows=600)


@pytest.fixture
def leaking(items):
    noise = np.random.default_rng(1).normal(size=items.vectors.shape)
    answers = np.where(items.is_known[:, None], items.vectors, noise)
    return with_columns(items, np.hstack([items.rows, answers]))


def test_a_leak_is_named_and_leaves_no_confidence(leaking):
    result = leaking.imputed("work")
    assert [leak.kind for leak in result.leaks] == ["answer"]
    assert "seems to hold the answer" in result.notes[-1]
    assert result.coverage is None
    table = leaking.table("work")
    assert set(table["confidence"].to_pylist()) == {0.0}
    assert set(table["lower_bound"].to_pylist()) == {-1.0}
    in_memory = vf.impute(
        dict(zip(leaking.names, leaking.rows, strict=True)),
        {leaking.names[row]: leaking.vectors[row] for row in np.flatnonzero(leaking.is_known)},
        names="off",
    )
    assert in_memory.leaks[0].restored == pytest.approx(result.leaks[0].restored, abs=0.02)


def test_limits_keep_nothing_that_a_leak_made(leaking):
    result = leaking.imputed("work", min_confidence=0.1)
    assert result.counts["imputed"] == 0


def test_a_sample_of_a_large_dataset_shows_the_leak(leaking, monkeypatch):
    monkeypatch.setattr(sampling, "ALL_ROWS", 500)
    monkeypatch.setattr(sampling, "N_SAMPLED", 150)
    result = leaking.imputed("work", engine="serial")
    assert [leak.kind for leak in result.leaks] == ["answer"]
    assert result.notes[-1].startswith("In a sample of the entities:")


def test_an_honest_dataset_has_no_leaks_and_columns_that_number_rows_are_named(items):
    assert items.imputed("honest").leaks == ()
    numbered = with_columns(items, np.column_stack([items.rows, np.arange(600.0)]))
    (leak,) = numbered.imputed("numbered").leaks
    assert (leak.kind, leak.columns) == ("order", ("x9",))


def test_noise_is_refused_and_twins_do_not_help_it(items):
    rng = np.random.default_rng(2)
    items.vectors[:] = rng.normal(size=items.vectors.shape)
    known = np.flatnonzero(items.is_known)
    for one, other in known[:100].reshape(50, 2):
        items.vectors[other], items.rows[other] = items.vectors[one], items.rows[one]
    items.write_known()
    noise = with_columns(items, items.rows)
    with pytest.raises(NoSignalError):
        noise.imputed("noise", method="auto")
    result = noise.imputed("forced", method="auto", force=True)
    assert [leak.kind for leak in result.leaks] == ["twins"]
    assert result.hidden["centred_cosine"] < 0.15


def test_rows_with_a_twin_stay_and_others_take_their_places():
    has_twin = np.arange(1000) < 300
    places = hidden_places(1000, 0, has_twin.__getitem__)
    assert places.size == 200
    assert not has_twin[places].any()


def test_missing_numbers_are_refused_so_no_row_lacks_a_fact(items):
    rows = items.rows.copy()
    rows[3, 2] = np.nan
    with pytest.raises(InputError, match="row 4"):
        with_columns(items, rows).imputed("work")


@pytest.mark.slow
def test_noise_in_datasets_is_refused_nearly_always(tmp_path):
    n_accepted = 0
    for seed in range(60):
        items, rng = made(tmp_path / str(seed), n_rows=300), np.random.default_rng(seed)
        items.vectors[:] = rng.normal(size=items.vectors.shape)
        items.write_known()
        try:
            items.imputed("work", method="auto", engine="serial")
        except NoSignalError:
            continue
        n_accepted += 1
    assert n_accepted <= 1
