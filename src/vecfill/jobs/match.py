"""A table and a file of vectors -> which word each entity is, printed or as a CSV file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vecfill.inputs.files import PathOrName, Progress, read_inputs, source_files
from vecfill.inputs.names.match_report import MatchReport
from vecfill.io.atomic import atomic_output
from vecfill.io.cutting import quoted
from vecfill.io.targets import check_targets
from vecfill.requests import Ask, Reading, takes


@takes(Reading)
def match(
    embedding: PathOrName,
    table: Any,
    output: PathOrName | None = None,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    ask: Ask,
) -> MatchReport:
    r"""Return which word of a file of vectors each entity of a table is; nothing is imputed.

    Parameters
    ----------
    embedding, table
        As in `vecfill.enrich`.
    output
        Where to write a CSV file with a row for each entity; nothing is written if none is matched.
    overwrite
        Whether that file may be replaced.
    progress
        As in `vecfill.enrich`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "old.vec"
    >>> _ = path.write_text("2 1\nred 1\norange 2\n")
    >>> match(path, {"Red": [680.0], "amber": [595.0]}).words
    {'Red': 'red'}
    """
    reading = ask.reading
    if reading.min_count is None:
        reading.refuse_unused((), ("counts",), "names are matched without them, unless min_count=")
    reading.refuse_unused((), ("interactions",), "they change no match")
    if output is not None:
        more = [path for path, _ in source_files(reading).values()]
        inputs = (embedding, table, reading.aliases, reading.counts, *more)
        check_targets([output], inputs, overwrite=overwrite)
    matches = read_inputs(embedding, table, reading, names_only=True, progress=progress).matches
    if output is not None:
        # A refusal leaves no file.
        matches.require_matches()
        with atomic_output(output, overwrite=overwrite) as file:
            file.write(as_csv(matches.rows()))
    return matches


def as_csv(rows: Iterable[Sequence[object]]) -> bytes:
    r"""Return rows as CSV whose cells no spreadsheet takes for formulas.

    Examples
    --------
    >>> print(as_csv([["=cmd()", "-", "a,b"]]).decode(), end="")
    '=cmd(),-,"a,b"
    """
    return b"".join(b",".join(_harmless(str(cell)) for cell in row) + b"\n" for row in rows)


def _harmless(cell: str) -> bytes:
    is_formula = cell[:1] in ("=", "+", "-", "@", "\t", "\r") and len(cell) > 1
    harmless = f"'{cell}" if is_formula else cell
    return quoted(harmless.encode("utf-8", "surrogateescape"), b",")
