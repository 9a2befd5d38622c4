r"""N-Triples -> an Arrow table with one row for each triple.

Names of IRIs lose their angle brackets; blank nodes keep ``_:``. Of a literal its text is kept, not
its type or language, and the column ``is_literal`` marks it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from vecfill.errors import FormatError

SUFFIXES = (".nt", ".ntriples")

_NODE = r"<[^<>\"{}|^`\x00-\x20]*>|_:[^\s<>\"]+"
_LITERAL = r"\"(?:[^\"\\]|\\.)*\"(?:\^\^<[^<>\s]*>|@[A-Za-z0-9-]+)?"
_TRIPLE = (
    rf"^\s*(?P<head>{_NODE})\s*(?P<relation><[^<>\s]*>)\s*(?P<tail>{_NODE}|{_LITERAL})"
    r"\s*\.\s*(?:#.*)?$"
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def table_of_ntriples(path: Path, data: bytes) -> pa.Table:
    r"""Return the triples of a file; a line that is none is refused by its number.

    Examples
    --------
    >>> data = b'<a> <likes> <b> .\n# a comment\n<a> <age> "7"^^<int> .\n'
    >>> table_of_ntriples(Path("a.nt"), data).to_pylist()[1]
    {'head': 'a', 'relation': 'age', 'tail': '7', 'is_literal': True}
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(
            f"{path}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}), and N-Triples are. "
            "Write the file again."
        ) from error
    lines = pa.array(re.split("\r\n|\n|\r", text), pa.large_string())
    is_triple = pc.invert(pc.match_substring_regex(lines, r"^\s*(#.*)?$"))
    triples = pc.extract_regex(lines, _TRIPLE)
    is_wrong = pc.and_(is_triple, pc.is_null(triples)).to_numpy(zero_copy_only=False)
    if is_wrong.any():
        row = int(is_wrong.argmax())
        raise FormatError(
            f"{path}, line {row + 1}: {lines[row].as_py()[:80]!r} is no triple. In N-Triples a "
            'line is <head> <relation> <tail> . or <head> <relation> "text" . with nothing after '
            "it."
        )
    triples = triples.filter(is_triple)
    if len(triples) == 0:
        raise FormatError(f"{path} has no triples, only comments or blank lines.")
    tails = pc.struct_field(triples, "tail")
    is_literal = pc.starts_with(tails, '"')
    literals = pc.replace_substring_regex(
        tails, r"^\"((?:[^\"\\]|\\.)*)\"(?:\^\^<[^<>\s]*>|@[A-Za-z0-9-]+)?$", r"\1"
    )
    columns = {
        "head": _unescaped(_without_brackets(pc.struct_field(triples, "head"))),
        "relation": _unescaped(_without_brackets(pc.struct_field(triples, "relation"))),
        "tail": _unescaped(pc.if_else(is_literal, literals, _without_brackets(tails))),
        "is_literal": is_literal,
    }
    return pa.table(columns)


def _without_brackets(terms: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(terms, r"^<(.*)>$", r"\1")


def _unescaped(texts: pa.Array) -> pa.Array:
    """Return texts in which escapes such as backslash n stand for what they mean."""
    is_escaped = pc.match_substring(texts, "\\").to_numpy(zero_copy_only=False)
    if not is_escaped.any():
        return texts
    plain = [_ESCAPE.sub(_meant, text) if "\\" in text else text for text in texts.to_pylist()]
    return pa.array(plain, pa.large_string())


def _meant(escape: re.Match[str]) -> str:
    short, long, plain = escape.groups()
    if plain is not None:
        return _PLAIN_ESCAPES.get(plain, plain)
    code = int(short or long, 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else "\ufffd"
