"""Whatever bytes a file holds, readers answer with an Embedding or an error of ours."""

from __future__ import annotations

import contextlib
import gzip
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.io.fuzzing import (
    CORPUS,
    MODEL,
    NAMES,
    TARGETS,
    check_answers,
    corpus_files,
    model_file,
    seed_files,
)

from vecfill import load, read_embedding
from vecfill.errors import VecfillError
from vecfill.io import FORMAT_NAMES

SEEDS = [*NAMES, "fasttext", "zip"]
N_EXAMPLES = int(os.environ.get("VECFILL_FUZZ_EXAMPLES", "60"))
QUIET = settings(
    deadline=None,
    max_examples=N_EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture(scope="module")
def seeds() -> dict[str, bytes]:
    return seed_files()


def test_files_that_fuzzing_has_found_are_answered(tmp_path):
    folders = {path.name for path in CORPUS.iterdir()}
    assert folders <= set(TARGETS), "a folder of the corpus is named for a format"
    for target in folders:
        for name, data in corpus_files(target).items():
            assert data, name
            check_answers(tmp_path / "file.data", data, target)
            check_answers(tmp_path / "file.data", data)


def mutated(data: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    changed = bytearray(data)
    for place, n_removed, put_in in edits:
        start = place % (len(changed) + 1)
        changed[start : start + n_removed] = put_in
    return bytes(changed)


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
        check_answers(tmp_path / "file.data", mutated(seeds[seed], edits))

    holds()


@pytest.mark.parametrize("seed", SEEDS)
def test_files_cut_anywhere_are_read_or_refused(seeds, seed, tmp_path):
    data = seeds[seed]
    for end in range(1, len(data), max(1, len(data) // 40)):
        check_answers(tmp_path / "file.data", data[:end])


@QUIET
@given(st.binary(min_size=6, max_size=24))
def test_changed_models_are_refused_or_what_they_were(tmp_path, edits):
    check_answers(tmp_path / "file.data", edits, MODEL)


def test_models_cut_anywhere_are_refused(tmp_path):
    data = model_file()
    for end in range(1, len(data), len(data) // 40):
        (tmp_path / "file.data").write_bytes(data[:end])
        with pytest.raises(VecfillError):
            load(tmp_path / "file.data", check=True)


@QUIET
@given(st.binary(min_size=1, max_size=300), st.booleans())
def test_raw_bytes_are_read_or_refused(tmp_path, data, packed):
    check_answers(tmp_path / "file.data", gzip.compress(data) if packed else data)


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
    check_answers(tmp_path / "file.txt", text.encode() or b"\n")
