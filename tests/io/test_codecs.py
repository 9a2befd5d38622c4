"""One object for each format: everything about formats is asked of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from vecfill import Embedding, read_embedding
from vecfill.errors import InputError, VecfillError
from vecfill.io.codecs import CODECS, FORMAT_NAMES, Entry, codec_named, codec_of
from vecfill.io.sources import Source
from vecfill.io.text import Glove
from vecfill.io.text_rows import TextRows
from vecfill.testing import check_codec


def test_every_entry_leads_to_its_codec_and_no_suffix_to_two():
    for entry in CODECS:
        codec = codec_named(entry.name)
        assert codec is entry.codec
        assert (codec.name, codec.suffixes) == (entry.name, entry.suffixes)
    suffixes = [suffix for entry in CODECS for suffix in entry.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert len(set(FORMAT_NAMES)) == len(CODECS)


def test_each_format_finds_its_own_file(save):
    for entry in CODECS:
        for suffix in entry.suffixes:
            with Source(save(f"{entry.name}{suffix}")) as source:
                assert codec_of(source) is entry.codec or entry.name == "glove"


def test_an_unknown_format_is_refused_with_the_list_and_the_nearest(save):
    with pytest.raises(InputError, match=r"format='glov' is not known.*npz.*Did you mean 'glove'"):
        read_embedding(save("made.vec"), format="glov")
    with pytest.raises(InputError, match=r"format='doc' is not known. Choose one of [^?]*$"):
        read_embedding(save("made2.vec"), format="doc")


def test_the_command_line_knows_the_formats_without_loading_numpy():
    script = (
        "import sys, vecfill.cli, vecfill.cli.commands, vecfill.cli.options as options\n"
        "from typing import get_args\n"
        "from vecfill.io import FORMAT_NAMES\n"
        "assert get_args(options.FormatName) == FORMAT_NAMES\n"
        "assert not {'numpy', 'pyarrow', 'numba', 'sklearn'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


class Piped(Glove):
    """Rows as GloVe has them, behind a line that says so."""

    mark = b"PIPED\n"

    def detects(self, source: Source) -> bool:
        return source.head.startswith(self.mark)

    def reader(self, source: Source, dtype: np.dtype | None = None) -> TextRows:
        rows = TextRows(source, header=False, dtype=dtype)
        rows.body, rows.body_line = len(self.mark), 2
        return rows

    def write(self, embedding: Embedding, out: Any) -> None:
        out.write(self.mark)
        super().write(embedding, out)

    def new_start(self, rows: TextRows, n_added: int) -> tuple[bytes, int]:
        return self.mark, rows.body


class Undetected(Piped):
    def detects(self, source: Source) -> bool:
        return False


class Blind(Piped):
    def difference(self, old: TextRows, new: TextRows) -> None:
        return None


class Forgetful(Piped):
    def write(self, embedding: Embedding, out: Any) -> None:
        super().write(Embedding(embedding.words[:-1], embedding.vectors[:-1]), out)


class Cutting(Piped):
    def new_start(self, rows: TextRows, n_added: int) -> tuple[bytes, int]:
        return b"", rows.body


class Rounding(Piped):
    def new_contents(self, rows: TextRows, spots: Any, vectors: np.ndarray) -> list[bytes]:
        return super().new_contents(rows, spots, np.round(vectors))


class Greedy(Piped):
    def added_rows(self, rows: TextRows, added: Embedding) -> Any:
        yield from super().added_rows(rows, added)
        yield from super().added_rows(rows, Embedding(["more"], added.vectors[:1]))


def add_format(monkeypatch: pytest.MonkeyPatch, codec: type[Piped]) -> None:
    """Add a format by its class and one entry."""
    monkeypatch.setattr("vecfill.io.text.Made", codec, raising=False)
    entries = (Entry("piped", (".piped",), "text:Made"), *CODECS)
    monkeypatch.setattr("vecfill.io.codecs.CODECS", entries)


def test_a_new_format_is_one_class_and_one_entry(monkeypatch):
    add_format(monkeypatch, Piped)
    check_codec("piped")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Undetected, "its file is taken for another format"),
        (Blind, "does not refuse a file that lacks rows"),
        (Forgetful, "what is read is not what was written"),
        (Cutting, "the file with more rows is taken for another format"),
        (Rounding, "the row is another"),
        (Greedy, "other words after adding two"),
    ],
)
def test_a_codec_that_breaks_a_promise_fails_its_check(monkeypatch, broken, message):
    add_format(monkeypatch, broken)
    with pytest.raises((AssertionError, VecfillError), match=message):
        check_codec("piped")


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_every_format_passes_the_check_for_codecs(name):
    check_codec(name)
