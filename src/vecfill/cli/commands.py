"""All commands, in the order of the help; each loads what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vecfill.cli import console, options
from vecfill.cli.converting import convert
from vecfill.cli.datasets import status
from vecfill.cli.imputing import impute
from vecfill.cli.models import add, inspect
from vecfill.cli.program import app, registered
from vecfill.cli.tokens import tokens
from vecfill.cli.verifying import verify
from vecfill.requests import Method, Reading, Trust


def command() -> Any:
    """Return the whole program, to be called with words."""
    return typer.main.get_command(app)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from vecfill import __version__

        console.out(f"vecfill {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    pass


registered("impute")(impute)


@registered("evaluate")
@options.shared(reading=Reading)
def evaluate(
    embedding: options.EmbeddingFile,
    table: options.TableOrNone = None,
    *,
    folds: Annotated[
        int,
        typer.Option(
            "--folds",
            rich_help_panel="Trust",
            min=2,
            metavar="N",
            help="Number of folds in which known rows are hidden.",
        ),
    ] = 5,
    hide: Annotated[
        Literal["random", "rarest"],
        typer.Option(
            "--hide",
            rich_help_panel="Trust",
            help="Hide known rows at random, or hide blocks of the rarest ones.",
        ),
    ] = "random",
    reading: Reading,
    seed: options.SeedOption = 0,
    verbose: options.VerboseOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure how well each method restores hidden known vectors.

    Known rows are hidden and imputed in turn. Nothing is written.
    """
    from vecfill.inputs.alignment import align
    from vecfill.run import evaluate_aligned

    base, described = options.files(embedding, table, reading.vector)
    with console.Progress() as progress:
        alignment = align(described, base, reading, fuses=True, progress=progress)
        found = evaluate_aligned(
            alignment, folds=folds, hide=hide, seed=seed, n_jobs=jobs, progress=progress
        )
    console.show(found, alignment.notes, json=json)
    if verbose and not json:
        console.out(f"exactly: {found.chosen}")


@registered("explain")
@options.shared(reading=Reading, how=Method, without=("vector",))
def explain(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="Entity of TABLE that EMBEDDING lacks.")
    ],
    *,
    n: Annotated[
        int,
        typer.Option(
            "-n",
            rich_help_panel="Output",
            min=1,
            metavar="N",
            help="How many known entities to show.",
        ),
    ] = 10,
    how: Method,
    reading: Reading,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show which known entities the vector of WORD is made of.

    Their shares sum to one. If there is a linear trend, its part is shown separately.
    """
    from vecfill.inputs.alignment import align
    from vecfill.run import fuses_sources, impute_aligned
    from vecfill.trust.explanation import place_of

    fuses = fuses_sources(how, reading)
    with console.Progress() as progress:
        alignment = align(table, embedding, reading, fuses=fuses, progress=progress)
        # A misspelt name is refused before the work, not after it.
        place_of(word, alignment.unknown, alignment.known)
        result = impute_aligned(alignment, how, Trust(), n_jobs=jobs, progress=progress)
        found = result.explain(word, n)
    console.show(found, (), json=json)


@registered("match")
@options.shared(
    reading=Reading,
    without=(
        *("vector", "standardize", "categorical", "n_dims"),
        # How names and texts describe entities does not change which word an entity is.
        *("names", "text", "encoder"),
    ),
)
def match_command(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            rich_help_panel="Output",
            help="Write a CSV file instead of printing a table.",
        ),
    ] = None,
    reading: Reading,
    overwrite: options.OverwriteOption = False,
    json: options.JsonOption = False,
) -> None:
    """Show which word each entity was matched to, and how."""
    from vecfill.inputs.files import read_inputs, source_files
    from vecfill.io import atomic_output
    from vecfill.io.targets import check_targets

    if output is not None and str(output) != "-":
        more = [path for path, _ in source_files(reading).values()]
        inputs = (embedding, table, reading.aliases, reading.counts, *more)
        check_targets([output], inputs, overwrite=overwrite)
    with console.Progress() as progress:
        found = read_inputs(embedding, table, reading, names_only=True, progress=progress).matches
    text = console.as_csv(found.rows()) if output is not None else b""
    if output is not None and str(output) != "-":
        with atomic_output(output, overwrite=overwrite) as file:
            file.write(text)
    if json:
        console.show(found, (), json=True)
    elif output is None:
        console.out(console.plain(found.table()))
    elif str(output) == "-":
        console.out_csv(text)
    console.note(found.summary())
    console.notes(found.notes)
    found.require_matches()


registered("tokens")(tokens)
registered("status")(status)
registered("add")(add)
registered("inspect")(inspect)
registered("verify")(verify)
registered("convert")(convert)


@registered("demo")
def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to write to; created if needed.")
    ] = Path("vecfill-demo"),
    overwrite: options.OverwriteOption = False,
) -> None:
    """Do the whole job on the bundled sample of cities.

    It matches names, checks the method on hidden cities, imputes, explains, writes a file,
    verifies it, and writes an HTML report. This takes about a minute, and longer the first time,
    while code is compiled.
    """
    from vecfill.demo import run_demo

    run_demo(folder, overwrite=overwrite, say=console.out)
