"""The commands; each loads what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from vecfill.cli import console, options
from vecfill.requests import Method, Reading, Replacement, Trust

app = typer.Typer(
    name="vecfill",
    help="Trustworthy vectors for the entities that a pre-trained embedding lacks.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


@app.command()
@options.shared(reading=Reading, how=Method, trust=Trust, replacement=Replacement)
def impute(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File to write; - is standard output.")
    ],
    how: Method,
    reading: Reading,
    trust: Trust,
    replacement: Replacement,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write an HTML page about the result.")
    ] = None,
    manifest: Annotated[
        bool, typer.Option(help="Write OUTPUT.manifest.json, which says how the result was made.")
    ] = True,
    overwrite: options.OverwriteOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write EMBEDDING with a row for each entity it lacks.

    OUTPUT is EMBEDDING, byte for byte, followed by a row for each entity of TABLE that has none.
    With --replace, poor rows of EMBEDDING are replaced in place.
    """
    from vecfill.errors import InputError
    from vecfill.file_job import enrich_requested

    is_stdout = str(output) == "-"
    if is_stdout and json:
        raise InputError("-o - and --json both ask for standard output. Name a file for one.")
    with console.target(output) as target, console.Progress() as progress:
        done = enrich_requested(
            embedding,
            table,
            target,
            report=report,
            manifest=manifest and not is_stdout,
            overwrite=overwrite,
            n_jobs=jobs,
            progress=progress,
            requests=(reading, how, trust, replacement),
        )
    console.notes(done.notes)
    if json:
        from vecfill.provenance import as_json

        console.out(as_json(done.to_dict()))
    elif is_stdout:
        console.note(console.summary(done, "standard output"))
    else:
        console.out(console.summary(done, str(output)))


@app.command()
@options.shared(reading=Reading)
def evaluate(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    folds: Annotated[
        int,
        typer.Option("--folds", min=2, metavar="N", help="Hide known rows in this many parts."),
    ] = 5,
    hide: Annotated[
        Literal["random", "rarest"],
        typer.Option("--hide", help="Hide known rows at random, or the rarest ones as blocks."),
    ] = "random",
    reading: Reading,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure how well hidden known rows come back.

    Known rows are hidden and imputed in turn, by every method; nothing is written.
    """
    from vecfill.inputs.alignment import align
    from vecfill.run import evaluate_aligned

    with console.Progress() as progress:
        alignment = align(table, embedding, reading, progress=progress)
        found = evaluate_aligned(
            alignment, folds=folds, hide=hide, seed=seed, n_jobs=jobs, progress=progress
        )
    console.show(found, alignment.notes, json=json)


@app.command()
@options.shared(reading=Reading, how=Method)
def explain(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="Entity of TABLE that EMBEDDING lacks.")
    ],
    *,
    n: Annotated[
        int, typer.Option("-n", min=1, metavar="N", help="How many known entities to show.")
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
    from vecfill.run import impute_aligned

    with console.Progress() as progress:
        alignment = align(table, embedding, reading, progress=progress)
        result = impute_aligned(alignment, how, Trust(), n_jobs=jobs, progress=progress)
        found = result.explain(word, n)
    console.show(found, (), json=json)


@app.command("match")
@options.shared(reading=Reading, without=("standardize", "categorical"))
def match_command(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Write CSV to this file instead of a table to the screen."
        ),
    ] = None,
    reading: Reading,
    overwrite: options.OverwriteOption = False,
    json: options.JsonOption = False,
) -> None:
    """Show which word each entity was matched to, and how."""
    from vecfill.inputs.files import read_inputs
    from vecfill.io import atomic_output
    from vecfill.io.targets import check_targets

    if output is not None and str(output) != "-":
        sources = (embedding, table, reading.aliases, reading.counts)
        check_targets([output], sources, overwrite=overwrite)
    with console.Progress() as progress:
        inputs = read_inputs(embedding, table, reading, progress=progress)
    found = inputs.matches
    rows = [(each.entity, each.word or "", each.how, *each.alternatives) for each in found.matches]
    text = console.as_csv([("entity", "word", "how", "alternatives"), *rows])
    if output is not None and str(output) != "-":
        with atomic_output(output, overwrite=overwrite) as file:
            file.write(text)
    if json:
        console.show(found, (), json=True)
    elif output is None:
        console.out(console.plain(found.table()))
    elif str(output) == "-":
        console.out(text.decode("utf-8", "backslashreplace").rstrip("\n"))
    summary, *_ = str(found).splitlines()
    console.note(summary)
    console.notes(found.notes)
    found.require_matches()


@app.command()
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
            metavar="MANIFEST",
            help="Manifest of ENRICHED. Exactly the rows that it lists as replaced must differ.",
        ),
    ] = None,
    json: options.JsonOption = False,
) -> None:
    """Prove that every known row is unchanged.

    Both files are compared byte for byte; what ENRICHED adds is listed. Status 2 if they differ.
    With --replaced, the rows listed in MANIFEST must have the bytes whose hashes stand there.
    """
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


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File of word vectors.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="File to write; - is standard output.")
    ],
    source_format: Annotated[
        options.FormatName | None, typer.Option("--from", help="Format of IN. By default detected.")
    ] = None,
    target_format: Annotated[
        options.FormatName | None,
        typer.Option("--to", help="Format of OUT. By default its suffix decides."),
    ] = None,
    member: options.MemberOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write word vectors in another format.

    Numbers keep their bits; word2vec binary alone rounds float64 to float32.
    """
    from vecfill.errors import InputError
    from vecfill.io import read_embedding, write_embedding
    from vecfill.io.codecs import codec_for_writing
    from vecfill.io.targets import check_targets

    if str(target) != "-":
        check_targets([target], [source], overwrite=overwrite)
        if target_format is None:
            codec_for_writing(str(target))
    elif target_format is None:
        raise InputError("- has no suffix to tell a format by. Name one with --to.")
    with console.target(target) as place, console.Progress() as progress:
        progress("Reading", 0, 0)
        found = read_embedding(source, format=source_format, member=member, dtype="auto")
        progress("Writing", 0, 0)
        write_embedding(found, place, format=target_format, overwrite=overwrite)
    console.notes(found.notes)
    console.note(f"{len(found):,} words of {found.n_dims} dimensions written to {target}")


@app.command()
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
