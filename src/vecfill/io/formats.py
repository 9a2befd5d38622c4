"""Which format a file is in, told by its content; the suffix settles what that leaves open."""

from __future__ import annotations

import enum
import re
from pathlib import PurePath

from vecfill.errors import FormatError, InputError
from vecfill.io.sources import Source
from vecfill.io.text import NUMBER, has_header, n_trailing_numbers, sample_lines


class Format(enum.Enum):
    """The formats that can be read; all but fastText's own can be written.

    Examples
    --------
    >>> Format("glove")
    <Format.GLOVE: 'glove'>
    """

    WORD2VEC_BINARY = "word2vec-binary"
    WORD2VEC_TEXT = "word2vec-text"
    GLOVE = "glove"
    FASTTEXT = "fasttext"
    SAFETENSORS = "safetensors"
    NPZ = "npz"
    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    TSV = "tsv"


_BY_SUFFIX = {
    ".bin": Format.WORD2VEC_BINARY,
    ".vec": Format.WORD2VEC_TEXT,
    ".txt": Format.WORD2VEC_TEXT,
    ".w2v": Format.WORD2VEC_TEXT,
    ".glove": Format.GLOVE,
    ".safetensors": Format.SAFETENSORS,
    ".npz": Format.NPZ,
    ".parquet": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".feather": Format.ARROW,
    ".csv": Format.CSV,
    ".tsv": Format.TSV,
}

_HOW_TO_CONVERT = (
    "Pickles can run code and are never loaded. Convert it with the program that wrote it; "
    "for gensim: KeyedVectors.load('FILE').save_word2vec_format('vectors.bin', binary=True)"
)

_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1b]")

_OTHERS = {
    b"\xfd7zXZ": "an xz archive. Unpack it first",
    b"BZh": "a bzip2 archive. Unpack it first",
    b"\x28\xb5\x2f\xfd": "a zstandard archive. Unpack it first",
    b"7z\xbc\xaf": "a 7-zip archive. Unpack it first",
    b"\x89HDF": "an HDF5 file. Save its vectors as safetensors or .npz",
    b"FEA1": "a Feather file of version 1. Save it again as Parquet",
    b"\x1f\x8b": "gzip inside gzip. Unpack it first",
    b"%PDF": "a PDF",
    b"PK\x05\x06": "an empty zip",
}


def named_format(format: str | Format) -> Format:  # noqa: A002
    """Return the format of that name, or refuse with the names there are."""
    try:
        return Format(format)
    except ValueError:
        names = ", ".join(each.value for each in Format)
        raise InputError(f"format={format!r} is not known. Choose one of {names}.") from None


def format_for_writing(name: str) -> Format:
    """Return the format that the suffix of a file to be written asks for.

    Examples
    --------
    >>> format_for_writing("vectors.vec.gz")
    <Format.WORD2VEC_TEXT: 'word2vec-text'>
    """
    path = PurePath(name)
    suffix = PurePath(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    try:
        return _BY_SUFFIX[suffix.lower()]
    except KeyError:
        known = ", ".join(_BY_SUFFIX)
        raise InputError(
            f"{name}: the suffix {suffix!r} does not say which format to write. "
            f"Use one of {known}, or pass format=."
        ) from None


def detected_format(source: Source) -> Format:
    """Return the format of a source's content; refuse pickles and what we do not know."""
    head = source.head
    suffix = PurePath(source.name).suffix.lower()
    _refuse_pickles(source, suffix)
    for start, what in _OTHERS.items():
        if head.startswith(start):
            raise source.refuse(f"is {what}.")
    if head.startswith(b"PK\x03\x04"):
        return Format.NPZ
    if head.startswith(b"PAR1"):
        return Format.PARQUET
    if suffix != ".safetensors" and head.startswith((b"ARROW1", b"\xff\xff\xff\xff")):
        return Format.ARROW
    if head.startswith(b"\xba\x16\x4f\x2f"):
        return Format.FASTTEXT
    length = int.from_bytes(head[:8], "little")
    if suffix == ".safetensors" or (head[8:9] == b"{" and length < 1 << 40):
        return Format.SAFETENSORS
    if _looks_binary(head, suffix):
        return Format.WORD2VEC_BINARY
    return _text_format(head, suffix)


def _refuse_pickles(source: Source, suffix: str) -> None:
    head = source.head
    if head.startswith(b"\x93NUMPY"):
        raise source.refuse(
            "is an .npy file, which holds one array and no words (pickled objects in it are never "
            "loaded). Save both with numpy.savez('vectors.npz', words=numpy.array(words, "
            "dtype=str), vectors=vectors)."
        )
    is_pickle = re.match(rb"\x80[\x01-\x05]", head) is not None and head[1:9] != b"\0" * 8
    if suffix in (".kv", ".pkl", ".pickle", ".pt", ".pth", ".joblib", ".model") or (
        is_pickle and head[8:9] != b"{"
    ):
        kind = {".kv": "gensim KeyedVectors file", ".pt": "PyTorch file"}.get(suffix, "file")
        raise FormatError(f"{source} is a pickled {kind}. {_HOW_TO_CONVERT}.")


def _looks_binary(head: bytes, suffix: str) -> bool:
    """Tell whether bytes stand where a text would have numbers."""
    line, _, body = head.partition(b"\n")
    fields = line.split()
    if len(fields) == 2 and fields[1].isdigit() and len(fields[1]) < 8:
        payload = body[: body.find(b" ") + 1 + 4 * int(fields[1])]
        if _CONTROL.search(payload):
            return True
        if n_trailing_numbers(re.split(rb"[\r\n]", body, maxsplit=1)[0]):
            return False
        return not payload.isascii() or (suffix == ".bin" and body.strip() != b"")
    return b"\0" in head or (suffix == ".bin" and _CONTROL.search(head) is not None)


def _text_format(head: bytes, suffix: str) -> Format:
    lines = sample_lines(head)
    if suffix in (".csv", ".tsv"):
        return _BY_SUFFIX[suffix]
    for delimiter, table in ((b",", Format.CSV), (b"\t", Format.TSV)):
        if _is_table(lines, delimiter):
            return table
    return Format.WORD2VEC_TEXT if has_header(lines) else Format.GLOVE


def _is_table(lines: list[bytes], delimiter: bytes) -> bool:
    if len(lines) < 2:
        return False
    names, row = lines[0].split(delimiter), lines[1].rsplit(delimiter, lines[0].count(delimiter))
    return (
        len(names) > 1
        and len(names) == len(row)
        and all(NUMBER.fullmatch(field) for field in row[1:])
        and not any(NUMBER.fullmatch(field) for field in names[1:])
    )
