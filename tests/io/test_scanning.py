"""One pass over a file: words, rows, the vectors asked for, and the hash of what is on disk."""

from __future__ import annotations

import gzip
import hashlib
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.io.conftest import fasttext_bytes

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import FormatError, VecfillError
from vecfill.io import Scan, append_rows
from vecfill.io.numbers import POWERS, check_rows, parse_rows
from vecfill.io.sources import Source
from vecfill.io.word2vec_binary import scan_few_rows, scan_rows

SUFFIXES = ["bin", "vec", "glove", "safetensors", "npz", "parquet", "arrow", "csv", "tsv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("packing", ["", ".gz", ".zip"])
def test_a_scan_gives_words_rows_vectors_and_the_hash_of_the_file(
    save, made, tmp_path, suffix, packing
):
    path = save(f"made.{suffix}{packing.replace('.zip', '')}")
    if packing == ".zip":
        with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
            archive.write(path, f"made.{suffix}")
        path = tmp_path / "made.zip"
    with Scan(path) as scan:
        words: list[str] = []
        for batch in scan:
            assert batch.first_row == len(words)
            words += batch.words
            places = range(0, len(batch.words), 2)
            taken = batch.vectors(places)
            wanted = made[[batch.words[place] for place in places]]
            assert taken.tobytes() == wanted.tobytes()
    assert tuple(words) == made.words
    assert (scan.n_words, scan.n_odd, scan.notes) == (len(made), 0, ())
    assert scan.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert scan.size == path.stat().st_size


@pytest.mark.parametrize("name", ["large.vec", "large.bin", "large.vec.gz"])
def test_places_of_every_batch_of_a_large_file_are_read(tmp_path, name):
    vectors = np.random.default_rng(0).normal(size=(30_000, 40)).astype(np.float32)
    large = Embedding((f"word{i}" for i in range(30_000)), vectors)
    write_embedding(large, tmp_path / name)
    with Scan(tmp_path / name) as scan:
        rows: list[int] = []
        for batch in scan:
            assert batch.words[3] == f"word{batch.first_row + 3}"
            assert (batch.vectors([3, 0]) == vectors[[batch.first_row + 3, batch.first_row]]).all()
            rows.append(batch.first_row)
    assert len(rows) > 1
    assert scan.n_words == 30_000
    assert scan.sha256 == hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()


def test_fasttext_is_scanned_too(tmp_path):
    (tmp_path / "model.bin").write_bytes(fasttext_bytes([b"cat", b"dog"]))
    with Scan(tmp_path / "model.bin") as scan:
        found = {
            word: batch.vectors([i])[0] for batch in scan for i, word in enumerate(batch.words)
        }
    assert (found["dog"] == read_embedding(tmp_path / "model.bin")["dog"]).all()
    assert scan.sha256 == hashlib.sha256((tmp_path / "model.bin").read_bytes()).hexdigest()


def lines_as_arrays(lines: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ends = np.cumsum([len(line) + 1 for line in lines]) - 1
    starts = np.concatenate([[0], ends[:-1] + 1])
    buffer = np.frombuffer(b"\n".join(lines) + b"\n", np.uint8)
    return buffer, starts.astype(np.int64), ends.astype(np.int64)


FIELD = st.text("0123456789.+-eE ", max_size=9) | st.floats(width=32).map(str)


@given(st.lists(st.tuples(FIELD, FIELD).map(lambda two: f"a {two[0]} {two[1]}"), min_size=1))
def test_what_the_quick_check_accepts_the_parser_accepts_with_the_same_words(texts):
    buffer, starts, ends = lines_as_arrays([text.encode() for text in texts])
    n_rows = len(starts)
    quick_ends, word_ends = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
    n_sure = check_rows(buffer, starts, ends, 2, quick_ends, POWERS)
    out = np.empty((n_sure, 2), np.float32)
    hard = np.empty((4096, 4), np.int64)
    done, n_hard, problem = parse_rows(
        buffer, starts[:n_sure], ends[:n_sure], out, word_ends, hard, POWERS, True
    )
    assert (done, problem) == (n_sure, -9)
    assert (word_ends[:n_sure] == quick_ends[:n_sure]).all()
    certain = np.ones_like(out, dtype=bool)
    certain[hard[:n_hard, 0], hard[:n_hard, 1]] = False
    assert np.isfinite(out[certain]).all()


def test_plain_rows_are_accepted_without_parsing():
    texts = [b"cat 0.5 -1", b"a b +.25 1e-05", b"x 1.5E3 17."]
    buffer, starts, ends = lines_as_arrays(texts)
    assert check_rows(buffer, starts, ends, 2, np.empty(3, np.int64), POWERS) == 3


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_original_of_another_hash_is_refused_and_nothing_is_left(save, tmp_path, suffix):
    path = save(f"made.{suffix}")
    more = Embedding(["new"], np.ones((1, 7)))
    with Scan(path) as scan:
        for _ in scan:
            pass
    append_rows(path, tmp_path / f"checked.{suffix}", more)
    append_rows(path, tmp_path / f"more.{suffix}", more, expected_sha256=scan.sha256)
    same = [(tmp_path / f"{name}.{suffix}").read_bytes() for name in ("checked", "more")]
    assert same[0] == same[1]
    with pytest.raises(FormatError, match="changed since its words were read"):
        append_rows(path, tmp_path / f"other.{suffix}", more, expected_sha256="0" * 64)
    assert not (tmp_path / f"other.{suffix}").exists()


@pytest.mark.parametrize("newline", [b"\n", b""])
@pytest.mark.parametrize("packed", [False, True])
def test_a_scanned_text_without_a_last_newline_gets_one(tmp_path, newline, packed):
    data = b"cat 0.50 1.00\ndog 0.25 2.00" + newline
    (tmp_path / "a.txt").write_bytes(gzip.compress(data) if packed else data)
    with Scan(tmp_path / "a.txt") as scan:
        list(scan)
    added = Embedding(["cow"], [[0.5, 4.0]])
    append_rows(tmp_path / "a.txt", tmp_path / "b.txt", added, expected_sha256=scan.sha256)
    expected = b"cat 0.50 1.00\ndog 0.25 2.00\ncow 0.50 4.00\n"
    assert (tmp_path / "b.txt").read_bytes() == expected


def test_a_scan_checks_every_row_as_reading_does(tmp_path):
    for data in (
        b"a 1 2\nb 1\n",
        b"a 1 2\nb 1 nan\n",
        b"a 1 2\nb 1 1e39\n",
        b"3 2\na 1 2\nb 3 4\n",
    ):
        path = tmp_path / "bad.txt"
        path.write_bytes(data)
        with pytest.raises(VecfillError) as whole:
            read_embedding(path)
        with pytest.raises(VecfillError) as scanned, Scan(path) as scan:
            list(scan)
        assert str(whole.value) == str(scanned.value)


def test_one_pass_and_one_copy_are_all_that_enriching_reads(save, tmp_path, monkeypatch):
    from vecfill.inputs.files import read_inputs
    from vecfill.requests import Reading

    path = save("made.vec")
    opened: list[int] = []
    stream = Source.stream

    def counted(source: Source):
        found = stream(source)
        opened.append(1)
        return found

    inputs = read_inputs(path, {"the": [1.0], "zürich": [2.0], "new": [3.0]}, Reading())
    assert inputs.rows == {"the": 0, "zürich": 2}
    assert (inputs.n_words, inputs.size) == (12, path.stat().st_size)
    assert inputs.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(Source, "stream", counted)
    read_inputs(path, {"the": [1.0], "new": [3.0]}, Reading())
    added = Embedding(["new"], np.ones((1, 7)))
    append_rows(path, tmp_path / "new.vec", added, expected_sha256=inputs.sha256)
    assert len(opened) == 4  # each pass looks at the head first, and then reads the file once


numbers_of_words = st.sampled_from(
    [b"\0\0\x80\x3f", b"\0\0\x80\x7f", b"\0\0\xc0\x7f", b"abcd", b"    ", b"\n\n\n\n"]
)
pieces_of_rows = st.one_of(
    st.tuples(
        st.sampled_from([b"cat ", b"\ndog ", b"\n\nx ", b" ", b"\n ", b"\t ", b"\xff "])
    ).flatmap(lambda word: numbers_of_words.map(lambda vector: word[0] + vector)),
    st.binary(max_size=6),
    st.just(b"y" * 65_536),
)


@given(st.lists(pieces_of_rows, max_size=6), st.integers(1, 2), st.integers(1, 4))
def test_a_small_file_is_scanned_as_a_large_one_is(pieces, n_dims, n_lines):
    content = b"".join(pieces)
    buffer = np.frombuffer(content + b"\0" * 8, np.uint8).copy()
    views = [np.frombuffer(buffer, np.int32, (len(buffer) - at) // 4, at) for at in range(4)]

    def scanned(scan):
        places = np.zeros((3, n_lines), np.int64)
        is_finite = np.zeros(n_lines, np.bool_)
        told = scan(buffer, len(content), *views, n_dims, *places, is_finite)
        return tuple(told), places[:, : told[0]].tolist(), is_finite[: told[0]].tolist()

    assert scanned(scan_few_rows) == scanned(scan_rows)
