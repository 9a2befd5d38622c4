"""What the first lines of a text file tell: whether it has a header, and how it writes rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from vecfill.io.batches import MAX_DIMS, WHITE, shown
from vecfill.io.cutting import BOM
from vecfill.io.numbers import NUMBER_TEXT as NUMBER
from vecfill.io.sources import Source

_HEADER = re.compile(rb"\s*[+-]?\d+[ \t]+[+-]?\d+\s*")
_SAMPLE_LINES = 200


@dataclass(frozen=True)
class TextStyle:
    """How a file writes its rows, learned from its first ones, so that more can follow suit."""

    newline: bytes = b"\n"
    separator: bytes = b" "
    trailing: bytes = b""
    decimals: int | None = None
    significant: int | None = None
    is_coarse: bool = False
    """Whether its numbers have so few digits that new rows had better have more."""


def sample_lines(source: Source) -> list[bytes]:
    """Return the whole lines at the beginning of a text, blank ones left out."""
    text = source.first_lines.removeprefix(BOM)
    lines = re.split(rb"\r\n|\n|\r", text)
    return [line for line in lines if line.strip(WHITE)][:_SAMPLE_LINES]


def needs_float64(lines: list[bytes]) -> bool:
    """Tell whether the first rows of a text hold numbers that float32 would cut.

    Nine digits carry any float32, so a number of at most nine says nothing about its origin.

    Examples
    --------
    >>> needs_float64([b"cat 0.1234 0.5"]), needs_float64([b"cat 0.12345678901234567"])
    (False, True)
    """
    for line in lines[:20]:
        for field in last_fields(line.replace(b",", b" ")):
            digits = re.split(rb"[eE]", field)[0].replace(b".", b"").lstrip(b"+-0")
            if len(digits) > 9 and NUMBER.fullmatch(field) and len(field) < 100:
                number = float(field)
                if number != float(np.float32(number)):
                    return True
    return False


def last_fields(line: bytes, n_most: int = MAX_DIMS + 1) -> list[bytes]:
    r"""Return the last fields of a line without its first, which is a word; no more than `n_most`.

    A damaged line may have tens of millions, whose objects would take many times its size.

    Examples
    --------
    >>> last_fields(b"cat 0.5\t1 "), last_fields(b"cat 0.5 1", 1)
    ([b'0.5', b'1'], [b'1'])
    """
    fields = line.rstrip(b" \t").replace(b"\t", b" ").rsplit(b" ", n_most)
    return fields[1:]


def n_trailing_numbers(line: bytes) -> int:
    """Return how many of the last fields of a line are numbers; the first field is a word."""
    fields = last_fields(line)
    is_number = (NUMBER.fullmatch(field) is not None for field in reversed(fields))
    return sum(1 for _ in takewhile(bool, is_number))


def has_header(lines: list[bytes]) -> bool:
    """Tell whether the first line is a header, by what stands on the second."""
    if not lines or not _HEADER.fullmatch(lines[0]):
        return False
    if len(lines) == 1:
        return True
    n_numbers = len(lines[1].split(None, 2)) - 1
    return n_numbers != 1 or lines[0].split()[1] == b"1"


def text_style(head: bytes, lines: list[bytes], n_dims: int) -> TextStyle:
    """Learn from the first rows how rows are written."""
    ending = re.search(rb"\r\n|\n|\r", head)
    row = lines[0]
    # A word may hold a tab of its own, so only what stands between numbers counts.
    between = re.findall(rb"[ \t]", row.rstrip(b" \t"))[-n_dims:]
    decimals: set[int] = set()
    significant = 0
    for line in lines:
        for field in last_fields(line, n_dims):
            digits, _, power = field.lower().partition(b"e")
            whole, point, part = digits.lstrip(b"+-").partition(b".")
            decimals.add(len(part) if point and not power else -1)
            significant = max(significant, len((whole + part).lstrip(b"0")))
    fixed = len(decimals) == 1 and min(decimals) > 1 and max(decimals) <= 8
    return TextStyle(
        newline=ending.group() if ending else b"\n",
        separator=b"\t" if between.count(b"\t") == n_dims else b" ",
        trailing=row[len(row.rstrip(b" \t")) :],
        decimals=max(decimals) if fixed else None,
        significant=significant if 3 <= significant <= 7 else None,
        is_coarse=not fixed and significant < 3,
    )


def parsed_header(source: Source, line: bytes) -> tuple[int, int]:
    """Return count and dims of a word2vec header, refused before anything is allocated."""
    fields = line.split()
    if len(fields) != 2 or not all(re.fullmatch(rb"[+-]?[0-9]+", field) for field in fields):
        raise source.refuse(
            f"line 1 is {shown(line)}, but a word2vec file starts with two whole numbers, "
            "the count of words and of dimensions. Check what kind of file it is, and pass format=."
        )
    if max(len(field) for field in fields) > 18:
        raise source.refuse(
            f"the header {shown(line)} holds a number that is far too large. Fetch it again."
        )
    n_rows, n_dims = int(fields[0]), int(fields[1])
    if n_rows < 1 or n_dims < 1:
        raise source.refuse(
            f"the header says {n_rows} words of {n_dims} dimensions; both must be at least 1. "
            "Fetch the file again, or correct its first line."
        )
    if n_dims > MAX_DIMS:
        raise source.refuse(
            f"the header says {n_dims} dimensions, but vectors have at most {MAX_DIMS} here. "
            "Fetch the file again, or correct its first line."
        )
    return n_rows, n_dims


def header(n_rows: int, n_dims: int) -> bytes:
    """Return the first line of a word2vec file."""
    return b"%d %d\n" % (n_rows, n_dims)


def new_header(old: bytes, n_rows: int) -> bytes:
    """Return the header with another count, and with the BOM and line ending it had."""
    counted = re.sub(rb"[0-9]+", str(n_rows).encode("ascii"), old.removeprefix(BOM), count=1)
    return (BOM if old.startswith(BOM) else b"") + counted.replace(b"+", b"")
