"""Whatever bytes a file holds, readers answer with an Embedding or an error of ours."""

from __future__ import annotations

import contextlib
import gzip
import os
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.io.conftest import fasttext_bytes

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import VecfillError
from vecfill.io import FORMAT_NAMES, append_rows

NAMES = ["bin", "vec", "glove", "safetensors", "npz", "parquet", "arrow", "csv", "tsv", "vec.gz"]
SEEDS = [*NAMES, "fasttext", "zip"]
N_EXAMPLES = int(os.environ.get("VECFILL_FUZZ_EXAMPLES", "60"))
QUIET = settings(
    deadline=None,
    max_examples=N_EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("seeds")
    vectors = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    made = Embedding(["the", "zürich", "caf\udce9", "x"], vectors)
    found: dict[str, bytes] = {}
    for name in NAMES:
        write_embedding(made, folder / f"made.{name}")
        found[name] = (folder / f"made.{name}").read_bytes()
    found["fasttext"] = fasttext_bytes([b"cat", b"dog"])
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("made.bin", found["bin"])
    found["zip"] = packed.getvalue()
    return found


def mutated(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    changed = bytearray(data)
    for place, n_removed, put_in in edits:
        start = place % (len(changed) + 1)
        changed[start : start + n_removed] = put_in
    return bytes(changed)


def answers(path: Path, data: bytes) -> None:
    """Read `data` whole, in part and as an original; only errors of ours may come out."""
    path.write_bytes(data)
    for words in (None, ["the", "dog"]):
        try:
            found = read_embedding(path, words)
        except VecfillError:
            continue
        assert np.isfinite(found.vectors).all()
    target = path.with_name("target")
    target.unlink(missing_ok=True)
    try:
        append_rows(path, target, Embedding(["new"], np.ones((1, 3))))
    except VecfillError:
        assert not target.exists()
    assert path.read_bytes() == data


EDITS = st.lists(
    st.tuples(st.integers(0, 5000), st.integers(0, 12), st.binary(max_size=12)),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("seed", SEEDS)
def test_mutations_of_a_valid_file_are_read_or_refused(seeds, seed, tmp_path):
    @QUIET
    @given(EDITS)
    def holds(edits: list[tuple[int, int, bytes]]) -> None:
        answers(tmp_path / "file.data", mutated(seeds[seed], edits))

    holds()


@pytest.mark.parametrize("seed", SEEDS)
def test_files_cut_anywhere_are_read_or_refused(seeds, seed, tmp_path):
    data = seeds[seed]
    for end in range(1, len(data), max(1, len(data) // 40)):
        answers(tmp_path / "file.data", data[:end])


@QUIET
@given(st.binary(min_size=1, max_size=300), st.booleans())
def test_raw_bytes_are_read_or_refused(tmp_path, data, packed):
    answers(tmp_path / "file.data", gzip.compress(data) if packed else data)


@pytest.mark.parametrize("kind", FORMAT_NAMES)
def test_raw_bytes_are_read_or_refused_as_any_format(tmp_path, kind):
    @QUIET
    @given(st.binary(min_size=1, max_size=200))
    def holds(data: bytes) -> None:
        path = tmp_path / "file.data"
        path.write_bytes(data)
        with contextlib.suppress(VecfillError):
            read_embedding(path, format=kind)

    holds()


LINES = st.lists(st.text("ab1 .-e\t\r\n,", max_size=12), max_size=8).map("\n".join)


@QUIET
@given(LINES)
def test_lines_that_are_nearly_rows_are_read_or_refused(tmp_path, text):
    answers(tmp_path / "file.txt", text.encode() or b"\n")
