"""A job on datasets gives what the path in memory gives, however it is cut and whoever runs it."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import vecfill as vf
from tests.distributed.made import PLAIN, Made, made
from vecfill.distributed import layout, pieces
from vecfill.errors import FormatError, InputError, NoSignalError, OptionError
from vecfill.model.predictors import LatentSemantic


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("items"))


@pytest.fixture(scope="module")
def plain(items: Made) -> np.ndarray:
    items.imputed("plain")
    return items.found("plain")


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a few thousand rows be many blocks and groups."""
    monkeypatch.setattr(layout, "MOST_ROWS", 256)
    monkeypatch.setattr("vecfill.distributed.job.rows_in_group", lambda *_: 200)
    monkeypatch.setattr("vecfill.distributed.graph.QUERIES", 32)


@pytest.mark.parametrize(
    "predictor",
    [
        PLAIN,
        LatentSemantic("standardized", residual_share=0.6),
        LatentSemantic("unit_rows", min_degree=5, weight_rule="nnls"),
        LatentSemantic("unit_rows_without_first_component", residual_share=0.0),
    ],
    ids=str,
)
@pytest.mark.usefixtures("small_blocks")
def test_a_job_gives_what_the_path_in_memory_gives(
    tmp_path: Path, predictor: LatentSemantic
) -> None:
    items = made(tmp_path)
    items.imputed("work", method=predictor)
    assert np.abs(items.found("work") - items.in_memory(predictor)).max() < 1e-6


def test_the_bits_do_not_depend_on_blocks_groups_and_row_groups(
    items: Made, plain: np.ndarray, tmp_path: Path, small_blocks: None
) -> None:
    assert (items.in_memory() == plain).all()
    other = made(tmp_path, row_group_size=77, n_parts=5)
    other.imputed("work")
    assert (other.found("work") == plain).all()


@pytest.mark.parametrize(("n_rows", "way"), [(800, "factor"), (6000, "sweep")])
def test_the_bits_do_not_depend_on_how_many_columns_are_solved_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n_rows: int, way: str
) -> None:
    items = made(tmp_path, n_rows=n_rows, n_dims=19)
    items.imputed("whole")
    assert way in next((tmp_path / "whole").rglob("hidden/**/way.json")).read_text()
    for width in (8, 2):
        monkeypatch.setattr(layout, "MOST_WIDE", n_rows * width // layout.WIDTH)
        assert layout.slab_width(n_rows) == width
        items.imputed(f"width {width}")
        assert items.table(f"width {width}").equals(items.table("whole"))


def test_two_processes_and_any_executor_give_the_same_bits(items: Made, plain: np.ndarray) -> None:
    items.imputed("two", engine="processes", workers=2)
    assert (items.found("two") == plain).all()
    with ThreadPoolExecutor(3) as threads:
        items.imputed("threads", engine=threads)
    assert items.table("threads").equals(items.table("plain"))


def test_probing_finds_the_recall_asked_for_and_nearly_the_same_vectors(
    tmp_path: Path, small_blocks: None
) -> None:
    items = made(tmp_path, n_rows=4000)
    result = items.imputed("work", recall=0.97)
    assert 0.97 <= result.recall < 1.0
    exact, found = items.in_memory(), items.found("work")
    truth = items.vectors[~items.is_known]
    missed = [np.linalg.norm(each - truth, axis=1).mean() for each in (exact, found)]
    assert missed[1] < 1.02 * missed[0]


def test_cells_are_left_out_unasked_only_where_all_pairs_would_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = made(tmp_path, n_rows=2500)
    assert items.imputed("quick").recall == 1.0
    monkeypatch.setattr("vecfill.distributed.graph.MOST_EXACT_WORK", 1.0)
    assert 0.95 <= items.imputed("long").recall < 1.0
    assert items.imputed("asked", recall=1.0).recall == 1.0
    assert items.table("asked").equals(items.table("quick"))


def test_the_bits_of_probing_do_not_depend_on_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = made(tmp_path, n_rows=2500)
    items.imputed("one", recall=0.8)
    monkeypatch.setattr("vecfill.distributed.job.rows_in_group", lambda *_: 150)
    items.imputed("many", recall=0.8)
    assert items.table("one").equals(items.table("many"))


def test_equal_rows_are_neighbours_like_any_others(tmp_path: Path, small_blocks: None) -> None:
    items = made(tmp_path, n_rows=600)
    rows = items.rows.copy()
    rows[100:180] = rows[100]
    rows[300:302] = rows[5]
    shutil.rmtree(items.features)
    items.features.mkdir()
    columns = {f"x{place}": rows[:, place] for place in range(9)}
    pq.write_table(pa.table({"entity": items.names, **columns}), items.features / "a.parquet")
    items.imputed("work")
    same = Made(items.folder, items.names, rows, items.vectors, items.is_known)
    assert np.abs(items.found("work") - same.in_memory()).max() < 1e-9


def test_known_rows_and_bounds_are_told_apart_by_hidden_rows(
    items: Made, plain: np.ndarray
) -> None:
    table = items.table("plain")
    truth = items.vectors[~items.is_known]
    centre = items.vectors[items.is_known].mean(axis=0)
    lengths = np.linalg.norm(plain - centre, axis=1) * np.linalg.norm(truth - centre, axis=1)
    cosine = ((plain - centre) * (truth - centre)).sum(axis=1) / lengths
    held = (cosine >= table["lower_bound"].to_numpy()).mean()
    assert 0.82 < held < 0.97
    assert np.corrcoef(cosine, table["confidence"].to_numpy())[0, 1] > 0.2


def test_auto_takes_the_best_of_a_few_and_tells_how_they_did(tmp_path: Path) -> None:
    items = made(tmp_path, n_rows=900)
    result = items.imputed("work", method="auto")
    scores = [each["centred_cosine"] for each in result.tried]
    assert len(scores) == 15
    chosen = result.method
    best = next(each for each in result.tried if chosen.items() <= each.items())
    assert best["centred_cosine"] > np.median(scores)
    predictor = LatentSemantic(**{k: v for k, v in chosen.items() if k != "predictor"})
    mean = items.vectors[items.is_known].mean(axis=0)
    steps, plain = items.found("work") - mean, items.in_memory(predictor) - mean
    # As in memory, but for one factor that makes the vectors as spread as the known ones.
    factor = float((steps * plain).sum() / (plain**2).sum())
    assert 1.0 <= factor < 2.0
    assert np.abs(steps - factor * plain).max() < 1e-6


def test_features_that_say_nothing_are_refused_unless_forced(tmp_path: Path) -> None:
    items = made(tmp_path, n_rows=700)
    shutil.rmtree(items.features)
    items.features.mkdir()
    noise = np.random.default_rng(5).normal(size=(700, 4))
    columns = {f"x{place}": noise[:, place] for place in range(4)}
    pq.write_table(pa.table({"entity": items.names, **columns}), items.features / "a.parquet")
    with pytest.raises(NoSignalError, match="no signal"):
        items.imputed("work", method="auto")
    assert not (items.folder / "work out").exists()


def test_an_embedding_file_serves_as_vectors(items: Made, plain: np.ndarray) -> None:
    known = np.flatnonzero(items.is_known)
    words = [items.names[row].replace(" ", "_") for row in known]
    table = pq.read_table(items.features)
    renamed = [name.replace(" ", "_") for name in table["entity"].to_pylist()]
    folder = items.folder / "named"
    folder.mkdir()
    pq.write_table(table.set_column(0, "entity", [renamed]), folder / "features.parquet")
    vf.write_embedding(vf.Embedding(words, items.vectors[known]), folder / "known.npz")
    vf.impute_dataset(
        folder / "features.parquet", folder / "known.npz", folder / "out",
        work=folder / "work", method=PLAIN,
    )  # fmt: skip
    found = np.array(pq.read_table(folder / "out")["vector"].to_pylist())
    assert (found == plain).all()


def test_low_confidence_is_left_out_if_asked(items: Made, plain: np.ndarray) -> None:
    limit = float(np.median(items.table("plain")["confidence"].to_numpy()))
    result = items.imputed("sure", min_confidence=limit)
    kept = items.table("sure")["confidence"].to_numpy()
    assert (kept >= limit).all()
    assert result.counts["abstained"] == result.counts["unknown"] - kept.size > 0


def test_the_manifest_comes_last_and_tells_hashes_and_counts(
    items: Made, plain: np.ndarray
) -> None:
    out = items.folder / "plain out"
    manifest = json.loads((out / "_manifest.json").read_text())
    assert manifest["counts"]["imputed"] == len(plain)
    for part in manifest["parts"]:
        assert part["sha256"] == pieces.sha256_of(out / part["name"])
    held = manifest["pieces"]["sha256"]
    assert held
    assert all(
        digest == pieces.sha256_of(items.folder / "plain" / "pieces" / name)
        for name, digest in held.items()
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"engine": "ray"}, "engine='ray' is not known"),
        ({"workers": 3}, "needs several processes"),
        ({"scheduler": "tcp://x:1"}, "engine='dask'"),
        ({"memory": "much"}, "Write for example '4GB'"),
        ({"memory": 1000}, "too little"),
        ({"method": LatentSemantic("rank_normal")}, "needs whole columns"),
        ({"method": LatentSemantic("smooth")}, "needs whole columns"),
        ({"method": LatentSemantic(solver="power")}, "direct"),
        ({"calibrate_norms": True}, "does not know it"),
        ({"standardize": True}, "does not know it"),
        ({"recall": 1.5}, "recall"),
        ({"key": "nothing"}, "no column 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_way_out(
    items: Made, options: dict, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        items.imputed("refused", **options)


def test_an_option_that_does_not_exist_is_refused_by_name(items: Made) -> None:
    with pytest.raises(OptionError, match="Did you mean memory"):
        items.imputed("refused", memmory="2GB")


def _with_features(items: Made, table: pa.Table, name: str) -> Made:
    folder = items.folder / name
    (folder / "features").mkdir(parents=True)
    pq.write_table(table, folder / "features" / "a.parquet")
    shutil.copytree(items.known, folder / "vectors")
    return Made(folder, items.names, items.rows, items.vectors, items.is_known)


def test_bad_rows_are_refused_by_number(items: Made) -> None:
    table = pq.read_table(items.features)
    holes = table["x3"].to_pylist()
    holes[700] = None
    broken = _with_features(items, table.set_column(4, "x3", [holes]), "holes")
    with pytest.raises(FormatError, match="row 701, column 'x3'"):
        broken.imputed("work")
    names = table["entity"].to_pylist()
    names[900] = names[3]
    twice = _with_features(items, table.set_column(0, "entity", [names]), "twice")
    with pytest.raises(InputError, match="Rows 4 and 901 of features have the same name, 'item 3'"):
        twice.imputed("work")
    text = _with_features(items, table.append_column("kind", [["a"] * 1500]), "text")
    with pytest.raises(InputError, match="'kind' does not hold numbers"):
        text.imputed("work")
    assert text.imputed("work 2", ignore=["kind"]).counts["imputed"] == (~items.is_known).sum()


def test_an_output_that_is_there_is_kept_unless_asked(items: Made, plain: np.ndarray) -> None:
    with pytest.raises(InputError, match="exists already"):
        items.imputed("plain")
    result = items.imputed("plain", overwrite=True)
    assert result.work["tasks_run"] == 0
    assert (items.found("plain") == plain).all()
