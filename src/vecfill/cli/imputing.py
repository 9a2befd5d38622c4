"""The command that imputes: an embedding and a table, one table, or datasets beyond memory."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vecfill.cli import console, options
from vecfill.cli.datasets import impute_datasets
from vecfill.requests import Ask, Method, Output, Reading, Replacement, Scale, Trust

if TYPE_CHECKING:
    from vecfill.jobs.job import Enrichment

_MOST_NOTES = 6
"""Notes that are printed with a summary, so that it stays on the screen."""


@options.shared(Method, Reading, Trust, Replacement, Output, Scale)
def impute(
    embedding: options.EmbeddingFile,
    table: options.TableOrNone = None,
    *,
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", rich_help_panel="Output", help="File to write; - is standard output."
        ),
    ],
    ask: Ask,
    verbose: options.VerboseOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Copy EMBEDDING and add a vector for each entity it lacks.

    OUTPUT is EMBEDDING, byte for byte, followed by a row for each entity of TABLE that has none.
    With --replace, poor rows of EMBEDDING are replaced in place. With --vector and a single file,
    OUTPUT is this table with its empty vectors filled.
    """
    if ask.scale.asked():
        impute_datasets(embedding, table, output, ask, jobs=jobs, json=json)
        return
    is_stdout = console.is_stdout(output, json=json)
    base, described = options.files(embedding, table, ask.reading.vector)
    if is_stdout:
        ask = replace(ask, output=replace(ask.output, manifest=False))
    with console.target(output) as target, console.Progress() as progress:
        common: dict[str, Any] = {"n_jobs": jobs, "progress": progress, "ask": ask}
        if base is None:
            from vecfill.jobs.table import fill_table

            done = fill_table(described, target, **common)
        else:
            from vecfill.jobs.enrich import enrich

            done = enrich(base, described, target, **common)
    console.notes(done.notes, most=None if json else _MOST_NOTES)
    if ask.output.save is not None and done.result is None:
        console.note("No model was saved, because there was nothing to impute.")
    if json:
        console.out_json(done.to_dict())
        return
    _print_summary(done, base, described, output, ask, is_verbose=verbose)


def _print_summary(
    done: Enrichment, base: Path | None, table: Path, output: Path, ask: Ask, *, is_verbose: bool
) -> None:
    from vecfill.cli import summary

    is_stdout, is_table = str(output) == "-", base is None
    lines = summary.imputed(done, is_table=is_table, is_verbose=is_verbose)
    place = "standard output" if is_stdout else str(output)
    lines.append(summary.written(done, place, is_table=is_table))
    if is_stdout:
        print(summary.as_text(lines, sys.stderr), file=sys.stderr)
    else:
        lines += summary.next_steps(done, base, table, output, ask)
        console.out(summary.as_text(lines))
