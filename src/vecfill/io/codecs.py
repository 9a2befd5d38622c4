"""Which file formats there are, and which of them a file is in.

`CODECS` is the one list of formats. A new format is a module with a subclass of
`vecfill.io.codec.Codec`, and one line here. This module loads nothing but the standard library,
because the command line lists the names before it loads NumPy; a format's own module is loaded
when the format is first asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vecfill.io.codec import Codec
    from vecfill.io.sources import Source


@dataclass(frozen=True)
class Entry:
    """The name of a format, the suffixes that ask for it when writing, and its codec."""

    name: str
    suffixes: tuple[str, ...]
    place: str
    """The module in `vecfill.io` and the class in it, with a colon between."""
    starts: tuple[bytes, ...] = ()
    """What all its files begin with, if anything."""

    @cached_property
    def codec(self) -> Codec[Any]:
        """The object that reads and writes the format."""
        module, _, name = self.place.partition(":")
        return getattr(import_module(f"vecfill.io.{module}"), name)(self.name, self.suffixes)

    def detects(self, source: Source) -> bool:
        """Tell whether a file is in this format; its first bytes may spare its codec."""
        is_possible = not self.starts or source.head.startswith(self.starts)
        return is_possible and self.codec.detects(source)


CODECS = (
    Entry("npz", (".npz",), "npz:Npz", (b"PK\x03\x04",)),
    Entry("parquet", (".parquet",), "arrow:Parquet", (b"PAR1",)),
    Entry("arrow", (".arrow", ".feather"), "arrow:Arrow", (b"ARROW1", b"\xff\xff\xff\xff")),
    Entry("fasttext", (), "fasttext:Fasttext"),
    Entry("safetensors", (".safetensors",), "safetensors:Safetensors"),
    Entry("word2vec-binary", (".bin",), "word2vec_binary:Word2vecBinary"),
    Entry("csv", (".csv",), "delimited:Csv"),
    Entry("tsv", (".tsv",), "delimited:Tsv"),
    Entry("word2vec-text", (".vec", ".txt", ".w2v"), "text:Word2vecText"),
    Entry("glove", (".glove",), "text:Glove"),
)
"""Every format, in the order in which a file is asked whether it is in it; GloVe takes the rest."""

FORMAT_NAMES = tuple(entry.name for entry in CODECS)


def codec_named(name: str) -> Codec[Any]:
    """Return the codec of that name; refuse an unknown name with the names there are.

    Examples
    --------
    >>> codec_named("glove").suffixes
    ('.glove',)
    """
    for entry in CODECS:
        if entry.name == name:
            return entry.codec
    from vecfill.errors import InputError

    near = get_close_matches(str(name), FORMAT_NAMES, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    raise InputError(
        f"format={name!r} is not known. Choose one of {', '.join(FORMAT_NAMES)}.{guess}"
    )


def codec_for_writing(name: str) -> Codec[Any]:
    """Return the codec that the suffix of a file to be written asks for.

    Examples
    --------
    >>> codec_for_writing("vectors.vec.gz").name
    'word2vec-text'
    """
    path = PurePath(name)
    suffix = PurePath(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    for entry in CODECS:
        if suffix.lower() in entry.suffixes:
            return entry.codec
    from vecfill.errors import InputError

    known = ", ".join(suffix for entry in CODECS for suffix in entry.suffixes)
    raise InputError(
        f"{name}: the suffix {suffix!r} does not say which format to write. "
        f"Use one of {known}, or pass format=."
    )


def codec_of(source: Source, format: str | None = None) -> Codec[Any]:  # noqa: A002
    """Return the codec that was named, or else the one that a file's content asks for."""
    if format is not None:
        return codec_named(format)
    from vecfill.io.sources import refuse_foreign

    refuse_foreign(source)
    return next(entry.codec for entry in CODECS if entry.detects(source))
