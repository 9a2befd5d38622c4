"""The commands; each loads what it needs when it is called."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vecfill.cli import console, options
from vecfill.cli.converting import convert
from vecfill.cli.datasets import impute_datasets, status
from vecfill.cli.models import add, inspect, save_model
from vecfill.cli.program import app, registered
from vecfill.cli.tokens import are_models, tokens, verify_folders
from vecfill.requests import Method, Reading, Replacement, Scale, Trust

_MOST_NOTES = 6
"""Notes that are printed with a summary, so that it stays on the screen."""


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


@registered("impute")
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
            help="With --vector: column to add, with the confidence of each new vector.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", rich_help_panel="Output", help="Write an HTML page about the result."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            metavar="MODEL",
            rich_help_panel="Output",
            help="Also save the model, so that entities can be added.",
        ),
    ] = None,
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            rich_help_panel="Trust",
            help="Compare the chosen method with others on hidden known entities, and add that to "
            "the report. It takes several times as long and does not change OUTPUT.",
        ),
    ] = False,
    manifest: Annotated[
        bool,
        typer.Option(
            rich_help_panel="Output",
            help="Write OUTPUT.manifest.json, which says how the result was made.",
        ),
    ] = True,
    overwrite: options.OverwriteOption = False,
    verbose: options.VerboseOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write EMBEDDING with a row for each entity it lacks.

    OUTPUT is EMBEDDING, byte for byte, followed by a row for each entity of TABLE that has none.
    With --replace, poor rows of EMBEDDING are replaced in place. With --vector and a single file,
    OUTPUT is this table with its empty vectors filled.
    """
    from vecfill.errors import InputError

    if scale.asked():
        refused = {
            "--confidence-column": confidence_column,
            "--report": report,
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
    if save is not None:
        from vecfill.io.targets import check_targets

        check_targets([save], [base, described], overwrite=overwrite)
    with console.target(output) as target, console.Progress() as progress:
        common: dict[str, Any] = {
            "report": report,
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
            help="Hide known rows in this many parts.",
        ),
    ] = 5,
    hide: Annotated[
        Literal["random", "rarest"],
        typer.Option(
            "--hide",
            rich_help_panel="Trust",
            help="Hide known rows at random, or the rarest ones as blocks.",
        ),
    ] = "random",
    reading: Reading,
    seed: options.SeedOption = 0,
    verbose: options.VerboseOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure how well hidden known rows come back.

    Known rows are hidden and imputed in turn, by every method; nothing is written.
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

    Their shares sum to one; a linear trend, if there is one, is shown apart.
    """
    from vecfill.inputs.alignment import align
    from vecfill.run import fuses_sources, impute_aligned

    fuses = fuses_sources(how, reading)
    with console.Progress() as progress:
        alignment = align(table, embedding, reading, fuses=fuses, progress=progress)
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
            help="Write CSV to this file instead of a table to the screen.",
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
    summary, *_ = str(found).splitlines()
    console.note(summary)
    console.notes(found.notes)
    found.require_matches()


registered("tokens")(tokens)
registered("status")(status)
registered("add")(add)
registered("inspect")(inspect)


@registered("verify")
def verify(
    original: Annotated[
        Path, typer.Argument(metavar="ORIGINAL", help="The file before rows were added.")
    ],
    enriched: Annotated[
        Path, typer.Argument(metavar="ENRICHED", help="The file with the added rows.")
    ],
    format: options.FormatOption = None,  # noqa: A002
    member: options.MemberOption = None,
    replaced: Annotated[
        Path | None,
        typer.Option(
            "--replaced",
            rich_help_panel="Input",
            metavar="MANIFEST",
            help="Manifest of ENRICHED. Exactly the rows that it lists as replaced must differ.",
        ),
    ] = None,
    json: options.JsonOption = False,
) -> None:
    """Prove that every known row is unchanged.

    Both files are compared byte for byte; what ENRICHED adds is listed. Status 2 if they differ.
    With --replaced, the rows listed in MANIFEST must have the bytes whose hashes stand there.
    Two folders of language models are compared too: tensors, tokenizer and all other files.
    """
    if are_models(original, enriched):
        refused = {"format": format, "member": member, "replaced": replaced}
        verify_folders(original, enriched, refused, json=json)
        return
    from dataclasses import asdict

    from vecfill.errors import InputError
    from vecfill.io import verify as compare
    from vecfill.io.replacing import read_changes

    told = () if replaced is None else read_changes(replaced)
    with console.Progress() as progress:
        progress("Comparing", 0, 0)
        words = [each.word for each in told]
        found = compare(original, enriched, format=format, member=member, replaced=words)
    if found.ok and found.replaced != told:
        raise InputError(
            f"{replaced} does not belong to these files: the rows that it lists have other bytes "
            "or places. Pass the manifest that was written beside the enriched file."
        )
    if json:
        from vecfill.provenance import as_json

        console.out(as_json(asdict(found)))
    else:
        console.out(f"sha256 of the original  {found.sha256_original}")
        console.out(f"sha256 of the enriched  {found.sha256_enriched}")
        for what in found.not_compared:
            console.note(f"{what} was not compared")
        if found.ok:
            console.out(console.verified(found))
    if not found.ok:
        raise InputError(
            f"{enriched} does not hold every row of {original} unchanged: {found.difference} "
            "Enrich the original again."
        )


registered("convert")(convert)


@registered("demo")
def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder to write to; created if needed.")
    ] = Path("vecfill-demo"),
    overwrite: options.OverwriteOption = False,
) -> None:
    """Do the whole job on the bundled sample of cities.

    It matches names, proves the method on hidden cities, imputes, explains, writes, verifies, and
    makes a page to look at. It takes half a minute, and longer the first time, while code is
    compiled.
    """
    from vecfill.demo import run_demo

    run_demo(folder, overwrite=overwrite, say=console.out)
