"""What users and disks throw at the readers; numbers are those of the list of bad inputs."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import resource
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather
from tests.io.conftest import fasttext_bytes

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import FormatError, InputError, VecfillError
from vecfill.io import append_rows, iter_words
from vecfill.io.sources import MAX_LINE, Source
from vecfill.io.tables import read_table

Put = Callable[[bytes], Path]


@pytest.fixture
def put(tmp_path: Path) -> Callable[..., Path]:
    def write(data: bytes, name: str = "file.data") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def binary(rows: list[tuple[bytes, list[float]]], header: bytes = b"", end: bytes = b"") -> bytes:
    n_dims = len(rows[0][1])
    body = b"".join(w + b" " + struct.pack(f"<{n_dims}f", *v) + end for w, v in rows)
    return (header or b"%d %d\n" % (len(rows), n_dims)) + body


ROWS = [(b"cat", [0.5, 1.0, 2.0]), (b"dog", [0.25, 3.0, 4.0]), (b"cow", [0.75, 5.0, 6.0])]


def refused(path: Path, message: str, **options: object) -> str:
    with pytest.raises(FormatError, match=message) as caught:
        read_embedding(path, **options)  # pyright: ignore[reportArgumentType]
    assert str(path) in str(caught.value)
    return str(caught.value)


# 1
def test_a_path_that_cannot_be_opened_is_refused_by_name(tmp_path, put):
    with pytest.raises(InputError, match=r"nowhere.bin does not exist"):
        read_embedding(tmp_path / "nowhere.bin")
    with pytest.raises(InputError, match="is a directory"):
        read_embedding(tmp_path)
    with pytest.raises(InputError, match=r"null.* cannot be read"):
        read_embedding("null\0byte")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="is a pipe or a device"):
        read_embedding(tmp_path / "pipe")


def test_a_file_without_permission_is_refused(folder_of_nobody):
    path = folder_of_nobody / "a.vec"
    path.write_bytes(b"a 1\n")
    path.chmod(0)
    with pytest.raises(InputError, match="may not be read"):
        read_embedding(path)


def test_permission_denied_by_the_system_is_refused(put, monkeypatch):
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = put(b"a 1\n")
    monkeypatch.setattr(Path, "open", denied)
    with pytest.raises(InputError, match="may not be read"):
        read_embedding(path)


# 2
def test_files_without_rows_are_refused(put):
    refused(put(b""), "is empty: 0 bytes")
    refused(put(b"3 2\n"), "only a header")
    refused(put(b"\n \n\r\n"), "only blank lines")
    refused(put(b"3 2\n", "a.bin"), "0 rows|holds 0")


# 3, 4, 6
def test_a_header_that_lies_about_the_count_is_refused_with_both_counts(put):
    refused(put(binary(ROWS, b"5 3\n")), "header says 5 words .* holds 3 whole rows.*cut short")
    refused(put(binary(ROWS, b"2 3\n")), "header says 2 words .* holds 3 whole rows.*more than")
    refused(put(b"5 1\na 1\nb 2\n"), "header says 5 words .* holds 2 rows")
    refused(put(b"2 2\na 1 1\nb 2 2\nc 3 3\n"), "header says 2 words .* holds 3 rows")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused(put(binary(ROWS, b"1000000000000000 3\n")), "says 1000000000000000 words.* holds 3")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000


# 5
@pytest.mark.parametrize("dims", [b"0", b"-3", b"1000000000000", b"99999999999999999999", b"3x"])
def test_a_header_with_bad_dims_is_refused_before_allocating(put, dims):
    words = "at least 1|at most 1000000 here|far too large|two whole numbers"
    refused(put(binary(ROWS, b"3 " + dims + b"\n")), words, format="word2vec-binary")
    refused(put(b"3 " + dims + b"\ncat 1 2 3\n"), words, format="word2vec-text")


def test_dims_that_no_row_has_room_for_are_refused(put):
    refused(put(binary(ROWS, b"3 900000\n")), "not even one row")


# 7
@pytest.mark.parametrize("cut", [1, 5, 12, 14, 15])
def test_a_cut_binary_file_is_refused_with_the_offset(put, cut):
    message = refused(put(binary(ROWS)[:-cut]), "holds 2 whole rows .*byte offset 36")
    assert ("vector of 'cow'" in message) == (cut <= 12)


# 8
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_rows_with_and_without_newlines_are_read_and_appended_alike(put, tmp_path, end):
    path = put(binary(ROWS, end=end))
    assert read_embedding(path).words == ("cat", "dog", "cow")
    append_rows(path, tmp_path / "more.bin", Embedding(["ant"], [[7.0, 8.0, 9.0]]))
    more = [*ROWS, (b"ant", [7.0, 8.0, 9.0])]
    assert (tmp_path / "more.bin").read_bytes() == binary(more, end=end)


# 9
def test_a_word_without_end_is_refused_with_the_offset(put):
    path = put(binary(ROWS, b"4 3\n") + b"x" * 70_000)
    refused(path, "word without end: no space in the 65536 bytes from byte offset 52")


# 10
def test_rows_with_a_wrong_number_of_numbers_are_refused_by_line_and_word(put):
    refused(put(b"cat 1 2\ndog 1\ncow 3 4\n"), "line 2: too few numbers after the word 'dog': 1")
    refused(put(b"cat 1 2\ndog 1 2 3\ncow 3 4\n"), "line 2: too many numbers .* 'dog': 3 instead")
    refused(put(b"3 2\ncat 1 2\ndog 1\ncow 3 4\n"), "line 3: too few numbers after the word 'dog'")
    refused(put(b"3 2\ncat 1 2\ndog\ncow 3 4\n"), "line 3: too few numbers after the word 'dog'")


# 11
def test_words_with_spaces_are_counted_from_the_right(put):
    found = read_embedding(put(b"the 1 2\nat name@domain.com 3 4\n. . . 5 6\n"))
    assert found.words == ("the", "at name@domain.com", ". . .")
    assert found[". . ."].tolist() == [5.0, 6.0]


# 12
@pytest.mark.parametrize("number", [b"1,5", b"nan", b"inf", b"1e400", b"", b"1e39", b"0x1", b"1_0"])
def test_what_is_no_finite_number_is_refused_with_its_line(put, number):
    rows = b"a 1 2 3\nb 1 %b 3\nc 1 2 3\n" % number
    words = "line 2: .*(not a finite number|an empty number|too large)"
    refused(put(rows), words)
    refused(put(b"3 3\n" + rows), words.replace("2", "3", 1))
    assert (
        read_embedding(put(rows.replace(number or b"  ", b"5" if number else b" 5 "))).n_dims == 3
    )


# 13
def test_nan_in_a_needed_binary_row_is_refused_and_elsewhere_reported(put):
    path = put(binary([*ROWS, (b"bad", [1.0, np.nan, 2.0]), (b"inf", [np.inf, 0.0, 0.0])]))
    refused(path, "vector of 'bad' holds NaN or infinity .*byte offset 52")
    refused(path, "vector of 'inf' holds NaN", words=["cat", "inf"])
    assert "NaN or infinity in 2 rows not asked for" in read_embedding(path, ["cat"]).notes[0]


# 14
@pytest.mark.parametrize("words", [None, ["cat", "dog"]])
def test_of_duplicate_words_the_first_wins_and_the_count_is_told(put, words):
    rows = [*ROWS, (b"cat", [9.0, 9.0, 9.0]), (b"dog", [9.0, 9.0, 9.0])]
    found = read_embedding(put(binary(rows)), words)
    assert found["cat"].tolist() == [0.5, 1.0, 2.0]
    assert "2 rows repeat a word that came before, such as 'cat'" in found.notes[0]


# 15
def test_words_that_are_not_utf8_are_kept_byte_for_byte(put, tmp_path):
    path = put(binary([(b"caf\xe9", [1.0, 2.0])]))
    found = read_embedding(path)
    assert found.words == ("caf\udce9",)
    assert "caf\\xe9" in repr(found)
    write_embedding(found, tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == path.read_bytes()
    assert read_embedding(put(b"caf\xe9 1 2\n"), ["caf\udce9"])["caf\udce9"].tolist() == [1, 2]


# 16
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("start", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("header", [b"", b"2 2"])
@pytest.mark.parametrize("ends", [True, False])
def test_line_endings_and_marks_are_kept_when_appending(
    put, tmp_path, newline, start, header, ends
):
    lines = ([header] if header else []) + [b"cat 0.50 1.00", b"dog 0.25 2.00"]
    path = put(start + newline.join(lines) + (newline if ends else b""))
    assert read_embedding(path).words == ("cat", "dog")
    append_rows(path, tmp_path / "more", Embedding(["cow"], [[0.5, 4.0]]))
    more = [*([b"3 2"] if header else []), *lines[-2:], b"cow 0.50 4.00"]
    assert (tmp_path / "more").read_bytes() == start + newline.join(more) + newline
    assert read_embedding(tmp_path / "more").words == ("cat", "dog", "cow")


def test_mixed_line_endings_and_blank_lines_are_read(put):
    found = read_embedding(put(b"a 1 2\r\nb 3 4\rc 5 6\n\n\r\nd 7 8"))
    assert found.words == ("a", "b", "c", "d")
    assert "2 blank lines were skipped" in found.notes[0]


# 17
def test_an_empty_word_is_refused_by_place(put):
    refused(put(b"a 1 2\n 1 2\n"), "line 2: the word is empty")
    refused(put(b"a 1 2\n   1 2\n"), "line 2: the word is empty")
    refused(put(b"a 1 2\nb  1 2\n"), "line 2: an empty field between the word 'b'")
    refused(put(binary([*ROWS, (b"", [1.0, 2.0, 3.0])])), "an empty word.*byte offset 52 ")
    refused(put(binary([*ROWS, (b"\t", [1.0, 2.0, 3.0])])), "an empty word.*byte offset 52 ")


# 18, 19
def test_a_first_line_like_a_header_is_told_apart_by_the_second(put):
    assert read_embedding(put(b"400000 5\ncat 6\ndog 7\n")).words == ("400000", "cat", "dog")
    assert read_embedding(put(b"2 2\ncat 6 1\ndog 7 1\n", "a.vec")).words == ("cat", "dog")
    assert read_embedding(put(b"cat 6 1\ndog 7 1\n", "a.vec")).words == ("cat", "dog")
    assert read_embedding(put(b"2 1\ncat 6\ndog 7\n")).words == ("cat", "dog")
    assert len(read_embedding(put(b"2 1\ncat 6\ndog 7\n"), format="glove")) == 3


# 20
def test_broken_gzip_is_refused(put):
    packed = gzip.compress(b"cat 1 2\n" * 5000, mtime=0)
    refused(put(packed[:-20]), "gzip file is cut short: it ends before its compressed data does")
    refused(put(b"\x1f\x8b" + b"nonsense" * 5), "gzip file is damaged")
    refused(put(gzip.compress(b"%PDF-1.7 something else")), "is a PDF")
    refused(put(gzip.compress(gzip.compress(b"a 1\n"))), "this gzip file holds another packed file")
    refused(put(gzip.compress(bytes(20_000_000))), "unpacks to more than 1000 times|header")


def test_a_gzip_bomb_stops_early(put):
    bomb = gzip.compress(b"a 1\n" + b" " * 60_000_000)
    refused(put(bomb), "unpacks to more than 1000 times its size|no end|damaged")


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_a_zip_of_several_members_needs_a_name(tmp_path):
    path = zipped(tmp_path / "two.zip", {"a.txt": b"a 1 2\n", "b.txt": b"b 1 2\n"})
    refused(path, "2 members .'a.txt', 'b.txt'.* member=")
    assert read_embedding(path, member="b.txt").words == ("b",)
    assert list(iter_words(path, member="a.txt")) == [["a"]]
    with pytest.raises(InputError, match=r"member='c.txt' is 0 times in the zip"):
        read_embedding(path, member="c.txt")


def test_dangerous_zips_are_refused(tmp_path, put):
    refused(zipped(tmp_path / "up.zip", {"../../x": b"a 1\n"}), "points outside")
    refused(zipped(tmp_path / "bomb.zip", {"a.txt": bytes(10**7)}), "unpacks to more than 1000")
    whole = zipped(tmp_path / "whole.zip", {"a.txt": b"cat 1 2\n" * 999}).read_bytes()
    refused(put(whole[:-30]), "zip is damaged")
    refused(put(whole[:60] + b"XXXX" + whole[64:]), "damaged")
    refused(put(b"PK\x05\x06" + bytes(18)), "0 members")
    with pytest.raises(InputError, match="is not a zip"):
        read_embedding(put(b"a 1\n"), member="x")


# 21
class Bomb:
    def __reduce__(self):
        return (os.mkdir, ("pickle-was-loaded",))


def test_pickles_are_refused_and_never_loaded(put, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for protocol in range(6):
        data = pickle.dumps(Bomb(), protocol=protocol)
        for name in ("vectors.kv", "vectors.pkl", "vectors.pt"):
            refused(put(data, name), "is a pickled .*save_word2vec_format")
        if protocol >= 2:
            refused(put(data), "is a pickled file.*never loaded")
    np.save(tmp_path / "objects.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    refused(tmp_path / "objects.npy", "is an .npy file.*numpy.savez")
    np.savez(tmp_path / "o.npz", words=np.array([Bomb()], dtype=object), vectors=np.eye(1))
    refused(tmp_path / "o.npz", "'words' holds pickled objects.*never loaded")
    refused(zipped(tmp_path / "m.pt", {"archive/data.pkl": data}), "PyTorch file.*never loaded")
    assert not (tmp_path / "pickle-was-loaded").exists()


# 22
def tensors(header: dict[str, object] | bytes, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype: str, shape: list[int], first: int, last: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


def test_bad_safetensors_are_refused(put):
    words = {"words": entry("U8", [2], 0, 2), "word_ends": entry("I64", [2], 2, 18)}
    ends = b"ab" + struct.pack("<2q", 1, 2)
    vectors = struct.pack("<4f", 1, 2, 3, 4)
    good = {**words, "vectors": entry("F32", [2, 2], 18, 34)}
    assert read_embedding(put(tensors(good, ends + vectors))).words == ("a", "b")

    def bad(header: dict[str, object] | bytes, message: str, data: bytes = ends + vectors) -> None:
        refused(put(tensors(header, data), "bad.safetensors"), message)

    refused(put(struct.pack("<Q", 10**9) + b"{}"), "header claims 1000000000 bytes")
    refused(put(b"\xff" * 8, "x.safetensors"), "header claims")
    bad({**words, "vectors": entry("F32", [2, 2], 10, 26)}, "overlap")
    bad({**words, "vectors": entry("F32", [2, 2], 18, 99)}, "out of range")
    bad({**words, "vectors": entry("F32", [2, 3], 18, 34)}, "does not take")
    bad({**words, "vectors": entry("BF16", [2, 4], 18, 34)}, "type 'BF16'")
    bad({**words, "vectors": entry("I64", [2, 1], 18, 34)}, "floating-point")
    bad({"vectors": entry("F32", [2, 2], 0, 16)}, "no array 'words'; it holds 'vectors'", vectors)
    bad(words, "no array 'vectors'", ends)
    bad(
        {"words": words["words"], "vectors": entry("F32", [2, 2], 2, 18)},
        "word_ends",
        b"ab" + vectors,
    )
    bad(good, "does not cut 'words'", b"ab" + struct.pack("<2q", 9, 2) + vectors)
    bad(b"{not json", "safetensors header is not what one should be")
    bad(b"[" * 100_000, "safetensors header is not")
    bad({**words, "vectors": entry("F32", [4, 1], 18, 34)}, "2 words but 4 vectors")


# 23
def test_tables_without_words_or_vectors_are_refused(tmp_path, put):
    def parquet(columns: dict[str, object]) -> Path:
        pq.write_table(pa.table(columns), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"

    refused(parquet({"vector": [[1.0]]}), "no column 'word' of words; its columns are 'vector'")
    refused(parquet({"word": ["a"], "n": [1]}), "no column 'vector' of lists of numbers")
    refused(
        parquet({"word": ["a", "b"], "vector": [[1.0, 2.0], [1.0]]}),
        "row 2, the word 'b', has 1 numbers instead of 2",
    )
    refused(parquet({"word": ["a", "b"], "vector": [[1.0], None]}), "row 2, .* no vector")
    refused(parquet({"word": ["a", None], "vector": [[1.0], [2.0]]}), "row 2 has no word")
    refused(parquet({"word": ["a", ""], "vector": [[1.0], [2.0]]}), "row 2: the word is empty")
    refused(parquet({"word": ["a"], "vector": [[None]]}), "no column 'vector'|missing number")
    refused(put(b"key,x\na,1\n", "t.csv"), "no column 'word'")
    refused(put(b"word\na\n", "t.csv"), "no columns of numbers beside 'word'")
    refused(put(b"word,x,y\na,1,2\nb,1\n", "t.csv"), "row 3 has 2 fields instead of 3")
    refused(put(b"word,x\na,1\nb,1.5.5\n", "t.csv"), "row 2, column 'x': '1.5.5' is not a finite")
    refused(put(b"word,x\na,1\nb,nan\n", "t.csv"), "row 2, column 'x': 'nan' is not a finite")
    refused(put(b"word,x\na,1\nb,\n", "t.csv"), "row 2, column 'x': no number")
    refused(put(b"word,x\n", "t.csv"), "no rows")
    refused(put(b"word,x,x\na,1,2\n", "t.csv"), "two columns of one name")
    refused(put(b"PAR1 and then nothing"), "cannot be read as parquet")


# 24
def test_a_file_that_changes_while_it_is_read_is_refused(put):
    path = put(binary(ROWS))
    words = iter_words(path)
    next(words)
    path.write_bytes(binary([*ROWS, ROWS[0]]))
    with pytest.raises(FormatError, match="changed while it was being read"):
        next(words)
    with Source(path) as source:
        os.utime(path, ns=(1, 1))
        with pytest.raises(FormatError, match="changed while it was being read"):
            source.check_unchanged()


# 25
def test_fasttext_files_we_cannot_read_are_refused_by_what_they_are(put):
    good = fasttext_bytes([b"cat", b"dog"])
    refused(put(good[:4] + struct.pack("<i", 13) + good[8:]), "fastText .bin of version 13")
    start = good.index(b"dog\0") + 13
    refused(put(good[:start] + b"\1" + good[start + 1 :]), "quantised fastText model")
    for cut in (6, 30, 90, 110, start + 5, start + 100):
        refused(put(good[:cut]), "cut short")
    pruned = good.replace(struct.pack("<qq", 1000, -1), struct.pack("<qq", 1000, 5))
    refused(put(pruned), "pruned")


# 26
LIMITED = """
import sys
from vecfill import read_embedding
found = read_embedding(sys.argv[1], ["w_2999999", "w_0"])
assert found.words == ("w_2999999", "w_0"), found
assert found["w_2999999"].tolist() == [0.0] * 300
"""


@pytest.mark.slow
def test_three_million_rows_are_read_in_one_gigabyte_of_address_space(tmp_path):
    path = tmp_path / "large.bin"
    row = bytes(1200)
    with path.open("wb") as file:
        file.write(b"3000000 300\n")
        for first in range(0, 3_000_000, 10_000):
            file.write(b"".join(b"w_%d %b" % (i, row) for i in range(first, first + 10_000)))
    limited = 'ulimit -v 1048576 && exec "$0" -c "$1" "$2"'
    done = subprocess.run(
        ["sh", "-c", limited, sys.executable, LIMITED, path], capture_output=True, check=False
    )
    path.unlink()
    assert done.returncode == 0, done.stderr.decode()[-2000:]


def test_other_kinds_of_files_are_refused_by_name(put):
    refused(put(b"\xfd7zXZ\0\0"), "xz archive")
    refused(put(b"BZh9"), "bzip2")
    refused(put(b"\x89HDF\r\n"), "HDF5")
    refused(
        put(b"hello world this is prose\nand more\n"), "line 1: 'world' follows the word 'hello'"
    )
    with pytest.raises(VecfillError):
        read_embedding(put(os.urandom(1000)))


@pytest.mark.parametrize("write", [pq.write_table, feather.write_feather])
@pytest.mark.parametrize("odd", [pa.array([1, 2]), pa.array([1, 2]).cast(pa.decimal128(20, 1))])
def test_a_column_of_whole_numbers_among_dimensions_used_to_be_dropped(tmp_path, write, odd):
    floats = {f"d{dim}": [1.0, 2.0] for dim in range(5)}
    write(pa.table({"word": ["a", "b"], **floats, "d5": odd}), tmp_path / "t")
    refused(tmp_path / "t", "5 columns of floating-point numbers beside 'd5', which hold whole")


def test_names_that_come_twice_and_bytes_of_no_tensor_used_to_be_accepted(put, tmp_path):
    words = {"words": entry("U8", [1], 0, 1), "word_ends": entry("I64", [1], 1, 9)}
    data = b"a" + struct.pack("<q", 1) + struct.pack("<2f", 1, 2)
    vectors = entry("F32", [1, 2], 9, 17)
    refused(put(tensors({**words, "vectors": vectors}, data + b"tail")), "has \\d+ bytes")
    gap = {**words, "vectors": entry("F32", [1, 2], 13, 21)}
    refused(put(tensors(gap, data[:9] + b"hole" + data[9:])), "no tensor has the bytes")
    text = json.dumps({**words, "vectors": vectors})
    double = text[:-1] + ', "vectors": ' + json.dumps(vectors) + "}"
    refused(put(tensors(double.encode(), data)), "names 'vectors' twice")
    np.savez(tmp_path / "a.npz", words=np.array(["a"]), vectors=np.eye(1))
    with (
        zipfile.ZipFile(tmp_path / "a.npz", "a") as archive,
        pytest.warns(UserWarning, match="Duplicate name"),
    ):
        archive.writestr("vectors.npy", archive.read("vectors.npy"))
    refused(tmp_path / "a.npz", "two arrays named 'vectors'")


def test_a_column_name_that_is_not_utf8_used_to_be_a_bug(tmp_path):
    feather.write_feather(
        pa.table({"word": ["a"], "vector": [[1.0]], "caf_": [1]}), tmp_path / "a.feather",
        compression="uncompressed",
    )  # fmt: skip
    data = (tmp_path / "a.feather").read_bytes()
    (tmp_path / "a.feather").write_bytes(data.replace(b"caf_", b"caf\xe9"))
    refused(tmp_path / "a.feather", r"name of the column 'caf\\xe9' is not UTF-8")
    with pytest.raises(FormatError, match=r"name of the column 'caf\\xe9' is not UTF-8"):
        read_table(tmp_path / "a.feather")


def test_an_address_is_not_fetched(tmp_path):
    for address in ("https://example.org/glove.txt", "s3://bucket/glove.txt"):
        with pytest.raises(InputError, match=f"{address} is an address. vecfill does not fetch"):
            read_embedding(address)
        with pytest.raises(InputError, match=f"{address} is an address. vecfill does not fetch"):
            read_table(address)


def test_a_nul_in_a_text_is_told_by_line(put):
    refused(put(b"cat 1 2\ndo\0g 3 4\n"), "line 2 holds a NUL byte, at byte offset 10")
    refused(put(b"2 2\ncat 1 \0 2\ndog 3 4\n"), "line 2 holds a NUL byte, at byte offset 10")
    refused(put(b"2 2\ncat 1 2\n\0dog 3 4\n"), "line 3 holds a NUL byte, at byte offset 12")
    refused(put(b"\0\0\0\0"), "no header line")


def test_more_dimensions_than_there_can_be_are_told_as_such(put):
    refused(
        put(b"3 4294967296\na 1 2\n"), "4294967296 dimensions, but vectors have at most 1000000"
    )


@pytest.mark.parametrize(
    ("name", "before", "message"),
    [
        ("a.data", b"", "line 1 has no end in 33554432 bytes"),
        ("a.data", b"2 2\n", "line 2 has no end in 33554432 bytes"),
        ("a.data", b"a 1 2\nb 3 4\n", "line 3 has no end in 33554432 bytes"),
        ("a.csv", b"", "line 1 has no end in 33554432 bytes"),
        ("a.csv", b"word,x\na,1\n", "cannot be read as csv: straddling object"),
    ],
)
def test_an_endless_line_used_to_take_gigabytes_before_it_was_refused(put, name, before, message):
    path = put(before + b"word " + b"0.5 " * (MAX_LINE // 4), name)
    tracemalloc.start()
    try:
        refused(path, message)
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_LINE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.vec", "t.glove"])
def test_a_number_beyond_float32_used_to_be_called_no_number_in_tables(put, name):
    content = {"t.csv": "word,x\na,1\nb,{}\n", "t.tsv": "word\tx\na\t1\nb\t{}\n"}.get(
        name, "a 1\nb {}\n" if name == "t.glove" else "2 1\na 1\nb {}\n"
    )
    path = put(content.format("1e39").encode(), name)
    message = "'1e39' is too large for float32, which cannot hold it.*dtype='float64'"
    assert "2" in refused(path, message)
    assert read_embedding(path, dtype="float64")["b"][0] == 1e39
    path.write_text(content.format("1e400"))
    message = "'1e400' is too large for float64, which cannot hold it. Correct it.$"
    refused(path, message, dtype="float64")
    assert "float64" not in refused(path, "too large for float32")
