"""Files <-> Embedding, a module a format, and the one atomic writer."""

from vecfill.io.appending import append_rows
from vecfill.io.atomic import atomic_output
from vecfill.io.formats import Format
from vecfill.io.reading import iter_words, read_embedding
from vecfill.io.verifying import Verification, verify
from vecfill.io.writing import write_embedding

__all__ = [
    "Format",
    "Verification",
    "append_rows",
    "atomic_output",
    "iter_words",
    "read_embedding",
    "verify",
    "write_embedding",
]
