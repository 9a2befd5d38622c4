"""Files that are not embeddings, refused by what they are; pickles are never loaded."""

from __future__ import annotations

import re

from vecfill.errors import FormatError
from vecfill.io.sources import ZSTANDARD, Source

_HOW_TO_CONVERT = (
    "Pickles can run code and are never loaded. Convert it with the program that wrote it; "
    "for gensim: KeyedVectors.load('FILE').save_word2vec_format('vectors.bin', binary=True)"
)

_PICKLE_SUFFIXES = (".kv", ".pkl", ".pickle", ".pt", ".pth", ".joblib", ".model")

_OTHERS = {
    b"\xfd7zXZ": "an xz archive. Unpack it first",
    b"BZh": "a bzip2 archive. Unpack it first",
    ZSTANDARD: "a zstandard archive inside another. Unpack it first",
    b"7z\xbc\xaf": "a 7-zip archive. Unpack it first",
    b"\x89HDF": "an HDF5 file. Save its vectors as safetensors or .npz",
    b"FEA1": "a Feather file of version 1. Save it again as Parquet",
    b"\x1f\x8b": "gzip inside gzip. Unpack it first",
    b"%PDF": "a PDF",
    b"PK\x05\x06": "an empty zip",
}


def refuse_foreign(source: Source) -> None:
    """Refuse pickles, archives and other files that no codec reads."""
    head, suffix = source.head, source.suffix
    if head.startswith(b"\x93NUMPY"):
        raise source.refuse(
            "is an .npy file, which holds one array and no words (pickled objects in it are never "
            "loaded). Save both with numpy.savez('vectors.npz', words=numpy.array(words, "
            "dtype=str), vectors=vectors)."
        )
    is_pickle = re.match(rb"\x80[\x01-\x05]", head) is not None and head[1:9] != b"\0" * 8
    if suffix in _PICKLE_SUFFIXES or (is_pickle and head[8:9] != b"{"):
        kind = {".kv": "gensim KeyedVectors file", ".pt": "PyTorch file"}.get(suffix, "file")
        raise FormatError(f"{source} is a pickled {kind}. {_HOW_TO_CONVERT}.")
    for start, what in _OTHERS.items():
        if head.startswith(start):
            raise source.refuse(f"is {what}.")
