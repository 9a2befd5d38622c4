"""Enriching: known rows come back byte for byte, and verification proves it."""

from __future__ import annotations

import gzip
import hashlib
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import FormatError, InputError
from vecfill.io import append_rows, verify
from vecfill.io.sources import Source

SUFFIXES = ["bin", "vec", "glove", "safetensors", "npz", "parquet", "arrow", "csv", "tsv"]


@pytest.fixture
def more() -> Embedding:
    vectors = np.random.default_rng(1).normal(size=(3, 7)).astype(np.float32)
    return Embedding(["new-a", "nëw-b", "new-\udcff"], vectors)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_known_rows_come_back_bit_for_bit_and_new_ones_follow(
    save, made, more, tmp_path, suffix, packing
):
    original = save(f"made.{suffix}{packing}")
    before = original.read_bytes()
    target = tmp_path / f"more.{suffix}{packing}"
    append_rows(original, target, more)
    found = read_embedding(target)
    assert Embedding(made.words, found[list(made.words)]).equals(made)
    assert Embedding(more.words, found[list(more.words)]).equals(more)
    assert found.words == made.words + more.words
    assert original.read_bytes() == before
    proof = verify(original, target)
    assert (proof.ok, proof.n_known, proof.n_added) == (True, 12, 3)
    assert proof.added == more.words
    assert proof.sha256_original == hashlib.sha256(before).hexdigest()
    assert proof.sha256_enriched == hashlib.sha256(target.read_bytes()).hexdigest()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([original.name, target.name])


@pytest.mark.parametrize("suffix", ["bin", "vec", "glove", "csv"])
def test_bytes_of_rows_are_copied_not_written_anew(tmp_path, suffix):
    made = {
        "bin": b"1 2\ncat " + np.array([1, 2], "<f4").tobytes(),
        "vec": b"1 2\ncat +1.0e0 02.0\n",
        "glove": b"cat +1.0e0 02.0\n",
        "csv": b'word,x,y\n"cat",+1.0e0,02.0\n',
    }[suffix]
    (tmp_path / f"a.{suffix}").write_bytes(made)
    append_rows(tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}", Embedding(["dog"], [[3, 4]]))
    assert (tmp_path / f"b.{suffix}").read_bytes().startswith(made.replace(b"1 2\n", b"2 2\n", 1))


@pytest.mark.parametrize("count", [1, 9, 99])
def test_a_header_that_grows_longer_moves_rows_but_changes_none(tmp_path, count):
    known = Embedding(map(str, range(count)), np.ones((count, 2), dtype=np.float32))
    write_embedding(known, tmp_path / "a.vec")
    append_rows(tmp_path / "a.vec", tmp_path / "b.vec", Embedding(["new"], [[1.0, 1.0]]))
    assert (tmp_path / "b.vec").read_bytes().startswith(b"%d 2\n0 1 1\n" % (count + 1))
    assert verify(tmp_path / "a.vec", tmp_path / "b.vec").ok


def test_gensim_reads_the_enriched_binary_and_text(save, made, more, tmp_path):
    from gensim.models import KeyedVectors

    for name, is_binary in (("x.bin", True), ("x.vec", False)):
        append_rows(save(f"a{name}"), tmp_path / f"b{name}", more)
        theirs = KeyedVectors.load_word2vec_format(
            str(tmp_path / f"b{name}"), binary=is_binary, unicode_errors="surrogateescape"
        )
        assert theirs.index_to_key == list(made.words + more.words)
        assert theirs.vectors.tobytes() == made.vectors.tobytes() + more.vectors.tobytes()


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (b"cat 0.1234 0.5000", b"dog 0.3333 0.6667"),
        (b"cat 0.12345 0.5", b"dog 0.33333 0.66667"),
        (b"cat 0.123456789 0.5", b"dog 0.33333334 0.6666667"),
        (b"cat\t0.12\t0.50", b"dog\t0.33\t0.67"),
        (b"cat 0.12 0.50 ", b"dog 0.33 0.67 "),
    ],
)
def test_new_rows_follow_the_precision_and_style_of_the_file(tmp_path, row, expected):
    (tmp_path / "a.txt").write_bytes(row + b"\n")
    added = Embedding(["dog"], np.array([[1 / 3, 2 / 3]], dtype=np.float32))
    append_rows(tmp_path / "a.txt", tmp_path / "b.txt", added)
    assert (tmp_path / "b.txt").read_bytes() == row + b"\n" + expected + b"\n"


def test_adding_nothing_gives_the_same_bytes(save, tmp_path):
    nothing = Embedding([], np.empty((0, 7)))
    for suffix in ("bin", "vec", "glove", "csv"):
        original = save(f"a.{suffix}")
        append_rows(original, tmp_path / f"b.{suffix}", nothing)
        assert (tmp_path / f"b.{suffix}").read_bytes() == original.read_bytes()


def test_other_columns_and_types_of_parquet_stay(tmp_path):
    table = pa.table({"n": [1, 2], "word": ["a", "b"], "vector": [[1.0, 2.0], [3.0, 4.0]]})
    pq.write_table(table, tmp_path / "a.parquet")
    append_rows(tmp_path / "a.parquet", tmp_path / "b.parquet", Embedding(["c"], [[5.0, 6.0]]))
    found = pq.read_table(tmp_path / "b.parquet")
    assert found.slice(0, 2).equals(table)
    assert found.to_pylist()[2] == {"n": None, "word": "c", "vector": [5.0, 6.0]}


def test_a_member_of_a_zip_is_enriched_into_a_plain_file(save, made, more, tmp_path):
    with zipfile.ZipFile(tmp_path / "made.zip", "w") as archive:
        archive.write(save("made.bin"), "made.bin")
    append_rows(tmp_path / "made.zip", tmp_path / "more.bin", more, member="made.bin")
    assert read_embedding(tmp_path / "more.bin").words == made.words + more.words
    assert verify(tmp_path / "made.zip", tmp_path / "more.bin", member="made.bin").ok


def test_a_word_the_file_has_already_is_refused(save, tmp_path):
    again = Embedding(["new", "x"], np.ones((2, 7)))
    for suffix in SUFFIXES:
        with pytest.raises(InputError, match="has a row for 'x' already"):
            append_rows(save(f"made.{suffix}"), tmp_path / "more", again)
    assert not (tmp_path / "more").exists()


def test_rows_that_do_not_fit_are_refused(save, tmp_path):
    path = save("made.bin")
    with pytest.raises(InputError, match=r"have 2 dimensions, those of .* have 7"):
        append_rows(path, tmp_path / "more", Embedding(["new"], np.ones((1, 2))))
    with pytest.raises(InputError, match="vector of 'new' holds NaN"):
        append_rows(path, tmp_path / "more", Embedding(["new"], np.full((1, 7), np.nan)))
    with pytest.raises(InputError, match="'a b' is empty, too long or holds white space"):
        append_rows(path, tmp_path / "more", Embedding(["a b"], np.ones((1, 7))))
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_original_leaves_nothing_behind(save, more, tmp_path):
    path = save("made.bin")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(FormatError, match="holds 11 whole rows"):
        append_rows(path, tmp_path / "more", more)
    assert list(tmp_path.iterdir()) == [path]


# 60
@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_the_result_may_not_be_the_original_by_any_name(save, more, tmp_path, link):
    path = save("made.bin")
    before = path.read_bytes()
    target = tmp_path / "link.bin"
    if link == "same":
        target = path
    elif link == "symbolic":
        target.symlink_to(path)
    else:
        target.hardlink_to(path)
    with pytest.raises(InputError, match=r"is the original .* itself"):
        append_rows(path, target, more, overwrite=True)
    assert path.read_bytes() == before


# 24
def test_an_original_that_changes_meanwhile_leaves_no_result(save, more, tmp_path, monkeypatch):
    path = save("made.bin")
    check = Source.check_unchanged

    def changed(source: Source) -> None:
        with path.open("ab") as file:
            file.write(b"x")
        check(source)

    monkeypatch.setattr(Source, "check_unchanged", changed)
    with pytest.raises(FormatError, match="changed while it was being read"):
        append_rows(path, tmp_path / "more.bin", more)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_one_altered_bit_of_a_known_row_is_found_by_word(save, made, more, tmp_path, suffix):
    original = save(f"made.{suffix}")
    altered = made.vectors.copy()
    altered.view(np.uint32)[5, 3] ^= 1
    write_embedding(Embedding(made.words, altered), tmp_path / f"altered.{suffix}")
    append_rows(tmp_path / f"altered.{suffix}", tmp_path / f"more.{suffix}", more)
    proof = verify(original, tmp_path / f"more.{suffix}")
    assert not proof.ok
    assert proof.differing_word == "a-b"
    assert proof.difference is not None
    assert "a-b" in proof.difference
    if suffix in ("bin", "vec", "glove"):
        assert proof.offset is not None
        row = original.read_bytes().index(b"a-b ")
        assert row < proof.offset < row + 90


def test_a_missing_row_fails_verification(save, made, tmp_path):
    for suffix in SUFFIXES:
        short = tmp_path / f"short.{suffix}"
        fewer = list(made.words[:-1])
        write_embedding(Embedding(fewer, made[fewer]), short)
        assert not verify(save(f"made.{suffix}"), short).ok


def test_files_of_two_formats_or_sizes_are_not_alike(save, tmp_path):
    with pytest.raises(InputError, match=r"is word2vec-binary, but .* is glove"):
        verify(save("made.bin"), save("made.glove"))
    write_embedding(Embedding(["the"], [[1.0, 2.0]]), tmp_path / "two.bin")
    proof = verify(tmp_path / "made.bin", tmp_path / "two.bin")
    assert not proof.ok
    assert proof.difference is not None
    assert "has 7 dimensions" in proof.difference


def test_gzip_output_is_the_same_every_time(save, more, tmp_path):
    path = save("made.vec")
    for name in ("a.vec.gz", "b.vec.gz"):
        append_rows(path, tmp_path / name, more)
    assert (tmp_path / "a.vec.gz").read_bytes() == (tmp_path / "b.vec.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.vec.gz").read_bytes()).startswith(b"15 7\nthe ")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"3 2\na 1.5 2\nb 3 4\nc 5 6", b"4 2\na 1.5 2\nb 3 4\nc 5 6e9\nd 1 1\n"),
        (b"a 1.5 2\nb 3 4\nc 5 6", b"a 1.5 2\nb 3 4\nc 5 67\nd 1 1\n"),
        (b"a 1.5 2\nc 5 6\n", b"a 1.5 2\nc 5 6\na 1 1\n"),
        (b"a 1.5 2\nc 5 6\n", b"a 1.5 2\nc 5 6\nd 1 1\nd 1 1\n"),
        (b"word,x\na,0.123456789\n", b"word,x\na,0.1234567891\nb,2\n"),
        (b"word,x,y\na,1,2\nc,3,4\n", b"word,y,x\na,1,2\nc,3,4\nb,2,2\n"),
        (b"word\tx\na\t1\n", b"word\tx\na\t1.0\nb\t2\n"),
    ],
)
def test_verification_used_to_pass_altered_rows_that_read_alike_or_grew(tmp_path, old, new):
    (tmp_path / "old").write_bytes(old)
    (tmp_path / "new").write_bytes(new)
    proof = verify(tmp_path / "old", tmp_path / "new")
    assert not proof.ok
    assert proof.difference is not None
    assert verify(tmp_path / "old", tmp_path / "old").ok


@pytest.mark.parametrize("write", [pq.write_table, feather.write_feather])
def test_verification_used_to_pass_other_columns_altered_or_dropped(tmp_path, write):
    columns = {
        "word": ["a", "b"], "vector": [[1.0, -0.0], [3.0, np.nan]], "n": [1, None],
        "tag": pa.array(["x", "y"]).dictionary_encode(), "size": [0.0, 2.0],
    }  # fmt: skip
    rows = {name: pa.array(column) for name, column in columns.items()}
    more = pa.table({**rows, "vector": [[1.0, -0.0], [3.0, 4.0]]})
    write(more, tmp_path / "old")
    for name, column in (
        ("n", pa.array([2, None])),
        ("n", pa.array([1, 0])),
        ("tag", pa.array(["x", "z"]).dictionary_encode()),
        ("size", pa.array([-0.0, 2.0])),
        ("vector", pa.array([[1.0, 0.0], [3.0, 4.0]])),
        ("word", pa.array(["a", "c"])),
    ):
        place = more.column_names.index(name)
        write(more.set_column(place, name, column), tmp_path / "new")
        proof = verify(tmp_path / "old", tmp_path / "new")
        assert not proof.ok
        assert name in str(proof.difference)
    write(more.drop_columns(["size"]), tmp_path / "new")
    assert "columns" in str(verify(tmp_path / "old", tmp_path / "new").difference)
    write(more.slice(0, 1), tmp_path / "new")
    assert verify(tmp_path / "old", tmp_path / "new").differing_word == "b"
    append_rows(tmp_path / "old", tmp_path / "more", Embedding(["c"], [[5.0, 6.0]]))
    assert verify(tmp_path / "old", tmp_path / "more").added == ("c",)


def test_verification_says_what_it_does_not_compare(tmp_path):
    vectors = np.eye(2, dtype=np.float32)
    np.savez(tmp_path / "a.npz", words=np.array(["a", "b"]), vectors=vectors, counts=[1, 2])
    assert verify(tmp_path / "a.npz", tmp_path / "a.npz").not_compared == ("the array 'counts'",)


def test_altered_metadata_of_safetensors_fails_verification(made, tmp_path):
    for name in ("one", "other"):
        told = Embedding(made.words, made.vectors, provenance={"source": name})
        write_embedding(told, tmp_path / f"{name}.safetensors")
    proof = verify(tmp_path / "one.safetensors", tmp_path / "other.safetensors")
    assert "metadata 'source'" in str(proof.difference)


@pytest.mark.parametrize("row", [b"cat 3 4", b"cat 3.5 4.5", b"cat 0.5 12"])
def test_new_rows_used_to_be_cut_to_one_digit_after_coarse_numbers(tmp_path, row):
    from vecfill.inputs.files import read_inputs
    from vecfill.requests import Reading

    (tmp_path / "a.txt").write_bytes(row + b"\n")
    append_rows(tmp_path / "a.txt", tmp_path / "b.txt", Embedding(["dog"], [[2.45, 0.125]]))
    assert (tmp_path / "b.txt").read_bytes() == row + b"\ndog 2.45 0.125\n"
    table = {"cat": [1.0], "dog": [2.0]}
    inputs = read_inputs(tmp_path / "a.txt", table, Reading())
    assert any("one or two digits" in note for note in inputs.notes)


def test_rows_added_to_a_big_endian_npz_used_to_corrupt_it(tmp_path):
    vectors = np.array([[1.5, 2.0], [3.0, 4.0]], dtype=">f4")
    np.savez(tmp_path / "a.npz", words=np.array(["a", "b"]), vectors=vectors)
    append_rows(tmp_path / "a.npz", tmp_path / "b.npz", Embedding(["c"], [[5.0, 6.0]]))
    found = read_embedding(tmp_path / "b.npz")
    assert found.vectors.tolist() == [[1.5, 2.0], [3.0, 4.0], [5.0, 6.0]]
