"""Replacing rows: those named differ, every other byte is as it was, and verification proves it."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import json
import os
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.io.conftest import fasttext_bytes

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import FormatError, InputError
from vecfill.io import append_rows, replace_rows, verify
from vecfill.io.appending import read_changes, row_patches
from vecfill.io.cutting import records_of, unquoted
from vecfill.io.patching import Patch, Patching

SUFFIXES = ["bin", "vec", "glove", "safetensors", "npz", "parquet", "arrow", "csv", "tsv"]
COPIED = ["bin", "vec", "glove", "csv", "tsv"]
WORDS = ("caf\udce9", '"', "#", "the")


@pytest.fixture
def new() -> Embedding:
    vectors = np.random.default_rng(2).normal(size=(len(WORDS), 7)).astype(np.float32)
    return Embedding(WORDS, vectors)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_named_rows_are_replaced_and_all_others_keep_their_bits(
    save, made, new, tmp_path, suffix, packing
):
    original = save(f"made.{suffix}{packing}")
    before = original.read_bytes()
    target = tmp_path / f"new.{suffix}{packing}"
    changes = replace_rows(original, target, new)
    found = read_embedding(target)
    others = [word for word in made.words if word not in WORDS]
    assert found.words == made.words
    assert Embedding(others, found[others]).equals(Embedding(others, made[others]))
    assert Embedding(WORDS, found[WORDS]).equals(new)
    assert {each.word: each.row for each in changes} == {word: made.row(word) + 1 for word in WORDS}
    assert original.read_bytes() == before
    proof = verify(original, target, replaced=WORDS)
    assert (proof.ok, proof.n_known, proof.n_added, proof.difference) == (True, 12, 0, None)
    assert {*proof.replaced} == {*changes}
    assert not verify(original, target).ok
    assert not verify(original, target, replaced=WORDS[:-1]).ok
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([original.name, target.name])


@pytest.mark.parametrize("suffix", COPIED)
def test_every_other_byte_stays(save, new, tmp_path, suffix):
    original = save(f"made.{suffix}")
    replace_rows(original, tmp_path / f"new.{suffix}", new)
    content, expected = original.read_bytes(), (tmp_path / f"new.{suffix}").read_bytes()
    for patch in row_patches(original, new):
        assert content.count(patch.old) == 1
        assert content.index(patch.old) == patch.offset or suffix != "bin"
    for patch in sorted(row_patches(original, new), key=lambda each: -each.offset):
        end = patch.offset + len(patch.old)
        assert content[patch.offset : end] == patch.old
        content = content[: patch.offset] + patch.new + content[end:]
    assert content == expected


def test_safetensors_changes_only_the_bytes_of_the_vectors(save, new, tmp_path):
    original, target = save("made.safetensors"), tmp_path / "new.safetensors"
    replace_rows(original, target, new)
    one, other = (np.frombuffer(each.read_bytes(), np.uint8) for each in (original, target))
    assert len(one) == len(other)
    assert np.count_nonzero(one != other) <= len(WORDS) * 7 * 4


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_rows_can_be_replaced_and_added_at_once(save, made, new, tmp_path, suffix):
    original, target = save(f"made.{suffix}"), tmp_path / f"new.{suffix}"
    more = Embedding(["more"], np.ones((1, 7), np.float32))
    append_rows(original, target, more, replaced=row_patches(original, new))
    proof = verify(original, target, replaced=WORDS)
    assert (proof.ok, proof.added) == (True, ("more",))
    found = read_embedding(target)
    assert Embedding(WORDS, found[WORDS]).equals(new)
    assert found.words == (*made.words, "more")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_of_a_word_that_comes_twice_only_the_first_row_changes(tmp_path, suffix):
    original = tmp_path / f"old.{suffix}"
    write_embedding(Embedding(["cat", "dog", "cow"], [[1.0], [2.0], [3.0]]), original)
    content = original.read_bytes()
    if suffix in ("parquet", "arrow"):
        schema = pa.schema([("word", pa.string()), ("vector", pa.list_(pa.float32(), 1))])
        rows = [{"word": word, "vector": [n]} for word, n in (("cat", 1), ("dog", 2), ("cat", 3))]
        table = pa.Table.from_pylist(rows, schema)
        if suffix == "parquet":
            pq.write_table(table, original)
        else:
            with pa.ipc.new_file(original, schema) as writer:
                writer.write_table(table)
    elif suffix == "npz":
        vectors = np.array([[1], [2], [3]], np.float32)
        np.savez(original, words=np.array(["cat", "dog", "cat"]), vectors=vectors)
    else:
        original.write_bytes(content.replace(b"cow", b"cat"))
    (change,) = replace_rows(original, tmp_path / f"new.{suffix}", Embedding(["cat"], [[9.0]]))
    assert change.row == 1
    assert verify(original, tmp_path / f"new.{suffix}", replaced=["cat"]).ok
    if suffix in ("vec", "glove", "csv", "tsv"):
        lines = (tmp_path / f"new.{suffix}").read_text().replace(",", " ").replace("\t", " ")
        assert lines.splitlines()[-3:] == ["cat 9", "dog 2", "cat 3"]


@pytest.mark.parametrize("packing", ["", ".gz"])
@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("fixed.glove", b"a 0.10 0.20\nb 1.00 2.00\n", b"a 0.10 0.20\nb 0.33 -10.00\n"),
        ("crlf.vec", b"2 2\r\na 1 2\r\nb 3.5 4 \r\n", b"2 2\r\na 1 2\r\nb 0.33333334 -10 \r\n"),
        ("last.glove", b"a 0.100 0.200\nb 1.000 2.000", b"a 0.100 0.200\nb 0.333 -10.000"),
        ("space.vec", b"2 2\na 0.111 0.2 \nb 0.3 0.4 \n", b"2 2\na 0.111 0.2 \nb 0.333 -10 \n"),
        ("tab.glove", b"a\t1.12\t2\nb\t3\t4\n", b"a\t1.12\t2\nb\t0.333\t-10\n"),
        ("bom.glove", b"\xef\xbb\xbfa 1.11 2\nb 3 4\n", b"\xef\xbb\xbfa 1.11 2\nb 0.333 -10\n"),
        ("blank.glove", b"a 1.11 2\n\n\nb 3 4\n\n", b"a 1.11 2\n\n\nb 0.333 -10\n\n"),
        ("q.csv", b'word,x,y\n"a\n",1,2\n"b",3,4\n', b'word,x,y\n"a\n",1,2\n"b",0.33333334,-10\n'),
        ("mid.csv", b"x,word,y\r\n1,a,2\r\n3,b,4", b"x,word,y\r\n1,a,2\r\n0.33333334,b,-10"),
        ("in.csv", b'word,x,y\n5" a,1,2\n\nb,3,4\n', b'word,x,y\n5" a,1,2\n\nb,0.33333334,-10\n'),
    ],
)  # fmt: skip
def test_rows_follow_the_style_of_their_file(tmp_path, name, content, expected, packing):
    pack = gzip.compress if packing else bytes
    unpack = gzip.decompress if packing else bytes
    original, target = tmp_path / (name + packing), tmp_path / ("new" + name + packing)
    original.write_bytes(pack(content))
    replace_rows(original, target, Embedding(["b"], np.array([[1 / 3, -10]], np.float32)))
    assert unpack(target.read_bytes()) == expected
    assert verify(original, target, replaced=["b"]).ok


def test_other_columns_of_a_parquet_file_stay(tmp_path):
    rows = {"word": ["a", "b"], "count": [1, None], "vector": [[1.0, 2.0], [3.0, 4.0]]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    replace_rows(tmp_path / "a.parquet", tmp_path / "b.parquet", Embedding(["b"], [[5.0, 6.0]]))
    read = pq.read_table(tmp_path / "b.parquet")
    assert read.to_pydict() == {**rows, "vector": [[1.0, 2.0], [5.0, 6.0]]}
    assert read.schema.equals(pa.table(rows).schema)
    assert verify(tmp_path / "a.parquet", tmp_path / "b.parquet", replaced=["b"]).ok


@pytest.mark.parametrize("kind", ["float16", "float64", ">f4"])
def test_the_precision_is_that_of_the_file(tmp_path, kind):
    vectors = np.array([[1, 2], [3, 4]], kind)
    np.savez(tmp_path / "a.npz", words=np.array(["a", "b"]), vectors=vectors)
    new = Embedding(["b"], np.array([[1 / 3, 5]]))
    (change,) = replace_rows(tmp_path / "a.npz", tmp_path / "b.npz", new)
    read = np.load(tmp_path / "b.npz")["vectors"]
    assert read.dtype == np.dtype(kind)
    assert read[1].tolist() == np.array([1 / 3, 5]).astype(kind).tolist()
    assert change.sha256_before == hashlib.sha256(vectors[1].tobytes()).hexdigest()
    assert change.sha256_after == hashlib.sha256(read[1].tobytes()).hexdigest()


def test_gensim_reads_the_binary_and_the_text(save, made, new, tmp_path):
    from gensim.models import KeyedVectors

    for name, is_binary in (("x.bin", True), ("x.vec", False)):
        replace_rows(save(f"a{name}"), tmp_path / f"b{name}", new)
        theirs = KeyedVectors.load_word2vec_format(
            str(tmp_path / f"b{name}"), binary=is_binary, unicode_errors="surrogateescape"
        )
        assert theirs.index_to_key == list(made.words)
        for word in made.words:
            expected = (new if word in WORDS else made)[word]
            assert np.array_equal(theirs[word], expected)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_any_other_change_is_found(save, made, new, tmp_path, suffix):
    original, target = save(f"made.{suffix}"), tmp_path / f"new.{suffix}"
    both = Embedding((*WORDS, "x"), np.vstack([new.vectors, 2 * made["x"]]))
    replace_rows(original, target, both)
    found = verify(original, target, replaced=WORDS)
    assert not found.ok
    assert found.differing_word == "x"
    for words, why in (
        ((*WORDS, "x", "of"), "'of' is named as replaced, but its row is as it was"),
        ((*WORDS, "x", "nowhere"), "'nowhere' is named as replaced, but the original has no such"),
    ):
        assert why in str(verify(original, target, replaced=words).difference)
    assert verify(original, target, replaced=(*WORDS, "x")).ok


def test_the_offset_of_a_difference_is_that_in_the_original(tmp_path):
    (tmp_path / "a.glove").write_bytes(b"a 1.5\nb 2.5\nc 3.5\n")
    (tmp_path / "b.glove").write_bytes(b"a 100000.25\nb 2.5\nc 3.7\n")
    found = verify(tmp_path / "a.glove", tmp_path / "b.glove", replaced=["a"])
    assert (found.ok, found.differing_word, found.offset) == (False, "c", 16)


def test_rows_in_another_order_are_no_replacement(tmp_path):
    (tmp_path / "a.glove").write_bytes(b"a 1.5\nb 2.5\nc 3.5\n")
    (tmp_path / "b.glove").write_bytes(b"a 1.5\nc 3.5\nb 2.5\n")
    found = verify(tmp_path / "a.glove", tmp_path / "b.glove", replaced=["b", "c"])
    assert "its row is not where it was" in str(found.difference)


def test_a_vector_that_is_written_as_it_was_changes_nothing(save, made, tmp_path):
    original = save("made.vec")
    assert (
        replace_rows(original, tmp_path / "new.vec", Embedding(["x", "of"], made[["x", "of"]]))
        == ()
    )
    assert (tmp_path / "new.vec").read_bytes() == original.read_bytes()


@pytest.mark.parametrize(
    ("vectors", "why"),
    [
        (Embedding(["nowhere", "x"], np.ones((2, 7))), "no row for 'nowhere', and 1 of the 2"),
        (Embedding(["x"], np.ones((1, 3))), "have 3 dimensions"),
        (Embedding(["x"], np.full((1, 7), np.nan)), "holds NaN or infinity"),
        (Embedding(["x"], np.full((1, 7), 1e300)), "a number too large"),
    ],
)
def test_what_cannot_be_replaced_is_refused(save, tmp_path, vectors, why):
    with pytest.raises(InputError, match=why):
        replace_rows(save("made.bin"), tmp_path / "new.bin", vectors)
    assert not (tmp_path / "new.bin").exists()


def test_a_fasttext_model_is_not_written(tmp_path):
    (tmp_path / "model.bin").write_bytes(fasttext_bytes([b"cat", b"dog"]))
    with pytest.raises(InputError, match="can be read but not changed"):
        replace_rows(
            tmp_path / "model.bin", tmp_path / "b.bin", Embedding(["cat"], np.ones((1, 5)))
        )


def test_the_original_is_never_the_target(save, new, tmp_path):
    original = save("made.vec")
    os.link(original, tmp_path / "link.vec")
    with pytest.raises(InputError, match="never written to"):
        replace_rows(original, tmp_path / "link.vec", new, overwrite=True)


def test_a_file_that_changes_between_the_passes_is_refused(save, new, tmp_path):
    original = save("made.vec")
    patches = row_patches(original, new)
    content = original.read_bytes()
    original.write_bytes(content.replace(b"# -", b"# 1").replace(b"# 0", b"# 1"))
    none = Embedding([], np.empty((0, 7)))
    with pytest.raises(FormatError, match="The row of '#' is not what it was"):
        append_rows(original, tmp_path / "b.vec", none, replaced=patches)
    assert not (tmp_path / "b.vec").exists()


@given(
    content=st.binary(max_size=60),
    cuts=st.lists(st.integers(0, 60), max_size=6),
    places=st.lists(st.integers(0, 60), max_size=6),
    new=st.lists(st.binary(max_size=5), min_size=3, max_size=3),
)
def test_patches_do_not_depend_on_blocks(content, cuts, places, new):
    ends = sorted({min(place, len(content)) for place in places})
    spans = list(zip(ends[::2], ends[1::2], strict=False))
    patches = [
        Patch("w", 1, a, content[a:b], other) for (a, b), other in zip(spans, new, strict=False)
    ]
    expected = content
    for patch in reversed(patches):
        end = patch.offset + len(patch.old)
        expected = expected[: patch.offset] + patch.new + expected[end:]
    marks = [0, *sorted(min(cut, len(content)) for cut in cuts), len(content)]
    patching = Patching(patches)
    blocks = [content[a:b] for a, b in itertools.pairwise(marks)]
    pieces = [bytes(each) for block in blocks for each in patching.pieces(memoryview(block))]
    assert b"".join(pieces) == expected


@given(
    rows=st.lists(st.lists(st.text('a",\n\r ', max_size=4), min_size=2, max_size=2), max_size=5),
    style=st.sampled_from(
        # Only with CRLF does the csv module quote both ends of lines where it must.
        [*((ending, csv.QUOTE_ALL) for ending in ("\n", "\r\n", "\r")), ("\r\n", csv.QUOTE_MINIMAL)]
    ),
    block=st.integers(1, 9),
)
def test_records_are_cut_where_the_csv_module_cuts_them(rows, style, block):
    text = io.StringIO()
    ending, quoting = style
    writer = csv.writer(text, lineterminator=ending, quoting=quoting)
    writer.writerows([["x", "y"], *rows])
    content = text.getvalue().encode()
    blocks = [content[place : place + block] for place in range(0, len(content), block)]
    records = list(records_of(blocks, b","))
    cells = [[unquoted(cell).decode() for cell in record.cells or ()] for record in records]
    assert cells == [["x", "y"], *rows]
    for record in records:
        assert content[record.offset :].startswith(record.content)
        before = content[: record.offset].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        assert record.line == before.count(b"\n") + 1


@pytest.mark.parametrize("suffix", ["bin", "vec", "npz"])
def test_a_writer_killed_at_any_line_leaves_the_old_or_the_new_file_whole(tmp_path, suffix):
    original, target = tmp_path / f"original.{suffix}", tmp_path / f"target.{suffix}"
    vectors = np.random.default_rng(0).normal(size=(500, 20)).astype(np.float32)
    write_embedding(Embedding([f"w{i}" for i in range(500)], vectors), original)
    untouched = original.read_bytes()
    changed = Embedding(["w7", "w300"], np.ones((2, 20), np.float32))
    replace_rows(original, target, changed)
    new = target.read_bytes()
    n_lines = _killed_after(10**9, original, target, changed)
    outcomes = set()
    for moment in np.linspace(1, n_lines - 1, 50).astype(int):
        _killed_after(int(moment), original, target, changed)
        found = target.read_bytes()
        assert found in (b"old", new)
        outcomes.add(found == new)
        assert original.read_bytes() == untouched
    assert outcomes == {True, False}, "kills came both before and after the file was in place"
    replace_rows(original, target, changed, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [original.name, target.name]


def _killed_after(n_lines: int, original: Path, target: Path, changed: Embedding) -> int:
    """Replace rows in a child that kills itself after so many lines; return those it ran."""
    target.write_bytes(b"old")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        reading, writing = os.pipe()
        pid = os.fork()
    if pid == 0:
        n_done = 0

        def trace(frame: FrameType, event: str, _: object) -> object:
            nonlocal n_done
            if "vecfill" not in frame.f_code.co_filename:
                return None
            if event == "line":
                n_done += 1
                if n_done == n_lines:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        try:
            sys.settrace(trace)
            replace_rows(original, target, changed, overwrite=True)
            sys.settrace(None)
            os.write(writing, str(n_done).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    told = os.read(reading, 100)
    os.close(reading)
    return int(told) if told else n_lines


def test_a_manifest_without_replaced_rows_is_refused(tmp_path):
    (tmp_path / "m.json").write_text(json.dumps({"added": []}))
    with pytest.raises(FormatError, match="no manifest that lists replaced rows"):
        read_changes(tmp_path / "m.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_changes(tmp_path / "nothing.json")
