"""The command that imputes: an embedding and a table, one table, or datasets beyond memory."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from vecfill.cli import console, options
from vecfill.cli.datasets import impute_datasets
from vecfill.cli.models import save_model
from vecfill.requests import Method, Reading, Replacement, Scale, Trust

_MOST_NOTES = 6
"""Notes that are printed with a summary, so that it stays on the screen."""


@options.shared(reading=Reading, how=Method, trust=Trust, replacement=Replacement, scale=Scale)
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
    how: Method,
    reading: Reading,
    trust: Trust,
    replacement: Replacement,
    scale: Scale,
    confidence_column: Annotated[
        str | None,
        typer.Option(
            "--confidence-column",
            rich_help_panel="Output",
            metavar="NAME",
            help="With --vector: name of a column to add for the confidence of new vectors.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", rich_help_panel="Output", help="Write an HTML report about the result."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="MODEL",
            rich_help_panel="Output",
            help="Also save the model, so that vecfill add can add entities later.",
        ),
    ] = None,
    evaluate: options.EvaluateOption = False,
    manifest: Annotated[
        bool,
        typer.Option(
            rich_help_panel="Output",
            help="Write OUTPUT.manifest.json, a record of versions, options and input files.",
        ),
    ] = True,
    overwrite: options.OverwriteOption = False,
    verbose: options.VerboseOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Copy EMBEDDING and add a vector for each entity it lacks.

    OUTPUT is EMBEDDING, byte for byte, followed by a row for each entity of TABLE that has none.
    With --replace, poor rows of EMBEDDING are replaced in place. With --vector and a single file,
    OUTPUT is this table with its empty vectors filled.
    """
    from vecfill.errors import InputError
    from vecfill.io.atomic import together

    if scale.asked():
        refused = {
            "--confidence-column": confidence_column,
            "--report": report,
            "--save": save,
            "--evaluate": evaluate,
            "--no-manifest": not manifest,
            "--jobs": jobs,
        }
        requests = (reading, how, trust, replacement, scale)
        impute_datasets(embedding, table, output, requests, refused, overwrite=overwrite, json=json)
        return
    is_stdout = str(output) == "-"
    if is_stdout and json:
        raise InputError("-o - and --json both ask for standard output. Name a file for one.")
    base, described = options.files(embedding, table, reading.vector)
    with console.target(output) as target, together(), console.Progress() as progress:
        common: dict[str, Any] = {
            "report": report,
            "save": save,
            "evaluate": evaluate,
            "manifest": manifest and not is_stdout,
            "overwrite": overwrite,
            "n_jobs": jobs,
            "progress": progress,
        }
        requests = (reading, how, trust, replacement)
        if base is None:
            done = _filled(described, target, requests, confidence_column, common)
        else:
            from vecfill.file_job import enrich_requested

            if confidence_column is not None:
                raise InputError("--confidence-column is for one table (--vector, no EMBEDDING).")
            done = enrich_requested(base, described, target, **common, requests=requests)
        if save is not None and done.result is not None:
            progress("Saving the model", 0, 0)
            save_model(done.result, save, base, overwrite=overwrite)
    console.notes(done.notes, most=None if json else _MOST_NOTES)
    if save is not None and done.result is None:
        console.note("No model was saved, because there was nothing to impute.")
    if json:
        from vecfill.provenance import as_json

        console.out(as_json(done.to_dict()))
        return
    from vecfill.cli import summary

    place = "standard output" if is_stdout else str(output)
    lines = summary.imputed(done, is_table=base is None, is_verbose=verbose)
    lines.append(summary.written(done, place, is_table=base is None))
    if is_stdout:
        print(summary.as_text(lines, sys.stderr), file=sys.stderr)
    else:
        lines += summary.next_steps(done, base, described, output, report, (reading, how))
        console.out(summary.as_text(lines))


def _filled(
    table: Path,
    target: Path,
    requests: tuple[Reading, Method, Trust, Replacement],
    confidence: str | None,
    common: dict[str, Any],
) -> Any:
    """Fill the one table that holds features and vectors."""
    from vecfill.table_job import fill_requested

    reading, how, trust, replacement = requests
    why = "a table has its empty vectors filled, and no others replaced"
    replacement.refuse_unused((), replacement.asked(), why)
    common = {**common, "confidence": confidence, "requests": (reading, how, trust)}
    return fill_requested(table, target, **common)
