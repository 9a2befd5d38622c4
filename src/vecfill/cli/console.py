"""What is printed: data on stdout, messages and progress on stderr."""

from __future__ import annotations

import csv
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vecfill.file_job import Enrichment
    from vecfill.io import Verification

_N_SAMPLES = 3
_N_NEIGHBORS = 3


def plain(text: str) -> str:
    r"""Return text that cannot command a terminal: control characters are shown escaped.

    Examples
    --------
    >>> print(plain("red\x1b[31m, caf\udce9"))
    red\x1b[31m, caf\xe9
    """
    from vecfill.embedding import printable

    shown = printable(text) if not text.isascii() else text
    return "".join(
        char if char.isprintable() or char == "\n" else repr(char)[1:-1] for char in shown
    )


class ReaderGoneError(Exception):
    """Nobody reads standard output any more. Typer would take a BrokenPipeError for its own."""


def out(text: str) -> None:
    """Print data."""
    try:
        print(text, file=sys.stdout)
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def note(text: str) -> None:
    """Print a message."""
    print(plain(text), file=sys.stderr)


def notes(said: Iterable[str]) -> None:
    """Print sentences on what deserves a look."""
    for each in said:
        note(f"note: {each}")


def out_bytes(path: Path) -> None:
    """Print the content of a file as it is."""
    try:
        sys.stdout.flush()
        with path.open("rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
        sys.stdout.buffer.flush()
    except BrokenPipeError as error:
        raise ReaderGoneError from error


def as_csv(rows: Iterable[Sequence[object]]) -> bytes:
    r"""Return rows as CSV whose cells no spreadsheet takes for formulas.

    Examples
    --------
    >>> print(as_csv([["=cmd()", "-", "a,b"]]).decode(), end="")
    '=cmd(),-,"a,b"
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_harmless(str(cell)) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8", "surrogateescape")


def _harmless(cell: str) -> str:
    is_formula = cell[:1] in ("=", "+", "-", "@", "\t", "\r") and len(cell) > 1
    return f"'{cell}" if is_formula else cell


def show(found: Any, said: tuple[str, ...], *, json: bool) -> None:
    """Print notes, and a result as text or as JSON."""
    notes(said)
    if json:
        from vecfill.provenance import as_json

        out(as_json(found.to_dict()))
    else:
        out(plain(str(found)))


@contextmanager
def target(output: Path) -> Iterator[Path]:
    """Give the file to write; that of standard output is printed when the block ends well."""
    if str(output) != "-":
        yield output
        return
    with tempfile.TemporaryDirectory(prefix="vecfill-") as folder:
        place = Path(folder) / "standard output"
        yield place
        out_bytes(place)


class Progress:
    """A bar on stderr for as long as the block runs; nothing at all if that is no terminal.

    It is called with what is being done, how much is done, and how much there is (0: unknown).
    """

    def __init__(self) -> None:
        self._bars: Any = None
        self._tasks: dict[str, Any] = {}

    def __enter__(self) -> Progress:
        if sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown"):
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            self._bars = Progress(
                TextColumn("{task.description}", style="none", markup=False),
                BarColumn(bar_width=None),
                TextColumn("{task.fields[amount]}", style="none", markup=False),
                TimeElapsedColumn(),
                console=Console(stderr=True, highlight=False),
                transient=True,
                refresh_per_second=5,
            )
            self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None:
            self._bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far it is."""
        if self._bars is None:
            return
        if what not in self._tasks:
            for task in self._tasks.values():
                self._bars.remove_task(task)
            self._tasks = {what: self._bars.add_task(what, total=None, amount="")}
        amount = f"{done:,}" if done and not total else ""
        self._bars.update(self._tasks[what], completed=done, total=total or None, amount=amount)


def summary(done: Enrichment, place: str) -> str:
    """Return what a user wants to see after an imputation, as lines of text."""
    counts, result = done.counts, done.result
    how = ", ".join(
        f"{n} {how}" for how, n in done.matches.counts.items() if how not in ("none", "excluded")
    )
    lines = [
        f"Entities   {counts['entities']:,}",
        f"  known    {counts['known']:,} (matched: {how})",
        f"  unknown  {counts['unknown']:,}",
    ]
    if result is not None:
        lines.append(f"Imputed    {counts['imputed']:,} by {result.predictor}")
        if result.abstained:
            lines.append(f"  left out {counts['abstained']:,} of too little confidence")
        if result.confidence is not None and counts["imputed"]:
            low, middle, high = _quartiles(result.confidence.values)
            lines.append(f"Confidence {middle:.2f} (half of them {low:.2f} to {high:.2f})")
        lines += _samples(done)
    if result is not None and result.suspicious:
        lines.append(
            f"Check      {len(result.suspicious):,} known entities that their neighbours "
            "contradict; see --json or --report"
        )
    n_replaced = counts["replaced"]
    what = f"{counts['words_before'] - n_replaced:,} words unchanged, "
    what += f"{n_replaced:,} replaced, " if n_replaced else ""
    lines.append(f"Written    {place}: {what}{counts['added']:,} added")
    return plain("\n".join(lines))


def verified(found: Verification) -> str:
    """Return what a comparison of two files has shown, as lines of text."""
    n_replaced = len(found.replaced)
    what = f"{found.n_known - n_replaced:,} rows unchanged, "
    what += f"{n_replaced:,} replaced, " if n_replaced else ""
    lines = [f"{what}{found.n_added:,} added"]
    lines += [f"~ {each.word}" for each in found.replaced]
    lines += [f"+ {word}" for word in found.added]
    return "\n".join(plain(line) for line in lines)


def _quartiles(values: Any) -> list[float]:
    import numpy as np

    return [float(each) for each in np.quantile(values, [0.25, 0.5, 0.75])]


def _samples(done: Enrichment) -> list[str]:
    """Return a few imputed words with their nearest known ones, for a look at sanity."""
    assert done.result is not None
    lines: list[str] = []
    for entity in done.result.embedding.words[:_N_SAMPLES]:
        near = done.result.known.most_similar(done.result.embedding[entity], n=_N_NEIGHBORS)
        shown = ", ".join(f"{_short(name)} {cosine:.2f}" for name, cosine in near)
        lines.append(f"  {_short(entity)} is near {shown}")
    return lines


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:27] + "..."
