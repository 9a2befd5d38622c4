"""One object for each format: everything about formats is asked of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from vecfill import Embedding, read_embedding, write_embedding
from vecfill.errors import InputError
from vecfill.io.codecs import CODECS, FORMAT_NAMES, Entry, codec_named, codec_of
from vecfill.io.lines import sample_lines
from vecfill.io.sources import Source
from vecfill.io.text import Glove


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


def test_a_new_format_is_one_class_and_one_entry(tmp_path, monkeypatch):
    class Piped(Glove):
        def detects(self, source: Source) -> bool:
            return sample_lines(source)[0].startswith(b"PIPED")

    monkeypatch.setattr("vecfill.io.text.Piped", Piped, raising=False)
    entries = (Entry("piped", (".piped",), "text:Piped"), *CODECS)
    monkeypatch.setattr("vecfill.io.codecs.CODECS", entries)
    write_embedding(Embedding(["PIPED"], [[1.0, 2.0]]), tmp_path / "a.piped")
    with Source(tmp_path / "a.piped") as source:
        assert codec_of(source).name == "piped"
    assert read_embedding(tmp_path / "a.piped").words == ("PIPED",)
