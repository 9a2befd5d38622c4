"""Files <-> Embedding: a codec for each format, and the one atomic writer.

`codecs` lists the formats; `reading`, `writing`, `appending` and `verifying` ask them.

Bytes:

- `sources`: A path -> its bytes, plain, gzip or inside a zip, checked before and after; what is no
  embedding is refused by what it is.
- `streams`: Bytes read in order: unpacked, counted, hashed or copied on the way, and seen through a
  window.

What formats share:

- `codec`: What every file format can be asked: is this file one of yours, read it, write it,
  compare it.
- `batches`: Batches of rows, the one shape in which every format hands out its content.
- `columnar`: What Parquet, Arrow and CSV share: a column of words, and a vector column or one per
  dim.
- `arrays`: What `.npz` and safetensors share: the arrays `vectors`, and `words` with `word_ends`.
- `lines`: What the first lines of a text file tell: whether it has a header, and how it writes
  rows.
- `numbers`: Decimal numbers <-> floats, compiled: each number comes out as the nearest float
  there is.
- `cutting`: CSV and TSV cut into records and cells: by Arrow as whole columns, or with their
  places.
- `comparing`: Where two files first differ: by the bytes of their rows, or by words and vectors.

Formats, one each:

- `text`: word2vec text and GloVe: a word and its numbers on each line, with a header or without.
- `text_rows`: The reader of those rows.
- `word2vec_binary`: word2vec binary: a line with count and dims, then each word, a space, and
  float32 numbers.
- `fasttext`: fastText `.bin`, read only: the vector of a word is the mean of its row and its
  n-grams' rows.
- `npz`: NumPy's `.npz`: a zip of `.npy` arrays.
- `safetensors`: safetensors: a JSON header that names tensors and their places, then their bytes.
- `arrow`: Parquet, and Arrow, which is Feather of version 2: files of record batches, all columns
  kept.
- `delimited`: CSV and TSV: a line of names, a column `word` and one column per dimension.

What is done with a file of vectors:

- `reading`: A file -> an Embedding, its words alone, or one pass over it.
- `writing`: An Embedding -> a file.
- `appending`: A file -> the same bytes with some rows exchanged, and rows added behind.
- `patching`: Content in which some rows stand for others: a file with its rows exchanged, byte
  for byte.
- `verifying`: Proof that every known row, or every cell of a table, is unchanged.

Writing:

- `atomic`: The one atomic writer: a target is the old file or the new one, whole, at any moment; a
  folder is absent or whole.
- `targets`: Where results go: never onto an input, never two to one place.

Tables:

- `tables`: Table files -> Arrow tables, read strictly: nothing is guessed, dropped or repaired.
- `columnar_tables`: Parquet and Feather -> Arrow tables, with what pandas wrote as its index put in
  its place.
- `ntriples`: N-Triples -> an Arrow table with one row for each triple.
- `table_files`: A table file with some cells changed: Parquet, Feather, CSV and TSV, everything
  else kept.
- `names`: Files of names, one per line, and of pairs.

What vecfill keeps for itself:

- `mapped`: Named arrays in one safetensors file, opened by memory map and checked before they are
  used.
- `packing`: Objects <-> JSON and named arrays, for the few classes that a caller allows.
- `vector_cache`: Vectors kept on disk by the hash of what they were made from.
- `provenance`: How a result was made, as a small JSON file beside it: versions, options, hashes,
  counts.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vecfill.io.codecs import FORMAT_NAMES

if TYPE_CHECKING:
    from vecfill.io.appending import append_rows, replace_rows
    from vecfill.io.atomic import atomic_output
    from vecfill.io.patching import RowChange
    from vecfill.io.reading import Scan, iter_words, read_embedding
    from vecfill.io.verifying import Verification, verify
    from vecfill.io.writing import write_embedding

__all__ = [
    "FORMAT_NAMES",
    "RowChange",
    "Scan",
    "Verification",
    "append_rows",
    "atomic_output",
    "iter_words",
    "read_embedding",
    "replace_rows",
    "verify",
    "write_embedding",
]

# Loaded when first asked for: the command line lists formats before it loads NumPy and Arrow.
_HOMES = {
    "RowChange": "patching",
    "Scan": "reading",
    "Verification": "verifying",
    "append_rows": "appending",
    "atomic_output": "atomic",
    "iter_words": "reading",
    "read_embedding": "reading",
    "replace_rows": "appending",
    "verify": "verifying",
    "write_embedding": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vecfill.io' has no attribute {name!r}")
    attribute = globals()[name] = getattr(import_module(f"vecfill.io.{_HOMES[name]}"), name)
    return attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
