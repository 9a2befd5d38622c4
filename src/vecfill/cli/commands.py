"""The commands; each loads what it needs when it is called."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vecfill.cli import console, options

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
            "--version", callback=_print_version, is_eager=True, help="Print the version and end."
        ),
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show where in the code an error arose.")
    ] = False,
) -> None:
    pass


@app.command()
@options.shared()
def impute(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="The file to write; - is standard output.")
    ],
    method: options.MethodOption = None,
    reading: options.Reading,
    setting: options.OneSetting,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write an HTML page about the run.")
    ] = None,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            "--min-confidence",
            min=-1.0,
            max=1.0,
            metavar="C",
            help="Leave out entities of lower confidence.",
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(
            "--level", min=0.01, max=0.999, metavar="P", help="How often lower bounds are to hold."
        ),
    ] = 0.9,
    calibrate_norms: Annotated[
        bool, typer.Option("--calibrate-norms", help="Give new vectors lengths as known ones have.")
    ] = False,
    manifest: Annotated[
        bool, typer.Option(help="Write OUTPUT.manifest.json: how the result was made.")
    ] = True,
    force: options.ForceOption = False,
    overwrite: options.OverwriteOption = False,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write EMBEDDING with rows for what it lacks.

    OUTPUT is EMBEDDING, byte for byte, followed by a row for each entity of TABLE that has none.
    """
    from vecfill.enrich import enrich
    from vecfill.errors import InputError

    is_stdout = str(output) == "-"
    if is_stdout and json:
        raise InputError("-o - and --json both ask for standard output. Name a file for one.")
    with console.target(output) as target, console.Progress() as progress:
        done = enrich(
            embedding,
            table,
            target,
            method=setting.or_method(method),
            level=level,
            min_confidence=min_confidence,
            calibrate_norms=calibrate_norms,
            force=force,
            seed=seed,
            n_jobs=jobs,
            report=report,
            manifest=manifest and not is_stdout,
            overwrite=overwrite,
            progress=progress,
            **reading.keywords(),
        )
    console.notes(done.notes)
    if json:
        from vecfill.manifest import as_json

        console.out(as_json(done.to_dict()))
    elif is_stdout:
        console.note(console.summary(done, "standard output"))
    else:
        console.out(console.summary(done, str(output)))


@app.command()
@options.shared()
def evaluate(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    folds: Annotated[
        int, typer.Option("--folds", min=2, metavar="N", help="Known rows are hidden in N parts.")
    ] = 5,
    reading: options.Reading,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure how well hidden known rows come back.

    Known rows are hidden and imputed in turn, beside every rival; nothing is written.
    """
    from vecfill import run
    from vecfill.inputs.files import read_inputs

    with console.Progress() as progress:
        inputs = read_inputs(embedding, table, progress=progress, **reading.keywords())
        found = run.evaluate(
            inputs.domain,
            inputs.embedding,
            folds=folds,
            seed=seed,
            matches=inputs.matches,
            n_jobs=jobs,
            progress=progress,
        )
    console.show(found, inputs.notes, json=json)


@app.command()
@options.shared()
def explain(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    word: Annotated[
        str, typer.Argument(metavar="WORD", help="An entity of TABLE that EMBEDDING lacks.")
    ],
    *,
    n: Annotated[
        int, typer.Option("-n", min=1, metavar="N", help="How many known entities to show.")
    ] = 10,
    method: options.MethodOption = None,
    reading: options.Reading,
    setting: options.OneSetting,
    force: options.ForceOption = False,
    seed: options.SeedOption = 0,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show what the vector of WORD is made of.

    That is known entities, in shares that sum to one, and a trend if the setting has one.
    """
    from vecfill import run
    from vecfill.inputs.files import read_inputs

    with console.Progress() as progress:
        inputs = read_inputs(embedding, table, progress=progress, **reading.keywords())
        found = run.impute(
            inputs.domain,
            inputs.embedding,
            method=setting.or_method(method),
            matches=inputs.matches,
            force=force,
            seed=seed,
            n_jobs=jobs,
            progress=progress,
        ).explain(word, n)
    console.show(found, (), json=json)


@app.command("match")
@options.shared(without=("standardize", "categorical"))
def match_command(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write CSV here, not a table to the screen."),
    ] = None,
    reading: options.Reading,
    overwrite: options.OverwriteOption = False,
    json: options.JsonOption = False,
) -> None:
    """Show which word each entity has, and how."""
    from vecfill.inputs.files import read_inputs
    from vecfill.io import atomic_output

    with console.Progress() as progress:
        inputs = read_inputs(embedding, table, progress=progress, **reading.keywords())
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
    original: Annotated[Path, typer.Argument(metavar="ORIGINAL", help="The file as it was.")],
    enriched: Annotated[Path, typer.Argument(metavar="ENRICHED", help="The file with added rows.")],
    format: options.FormatOption = None,  # noqa: A002
    member: options.MemberOption = None,
    json: options.JsonOption = False,
) -> None:
    """Prove that every known row is unchanged.

    Both files are compared byte for byte; what ENRICHED adds is listed. Status 2 if they differ.
    """
    from dataclasses import asdict

    from vecfill.errors import InputError
    from vecfill.io import verify as compare

    with console.Progress() as progress:
        progress("Comparing", 0, 0)
        found = compare(original, enriched, format=format, member=member)
    if json:
        from vecfill.manifest import as_json

        console.out(as_json(asdict(found)))
    else:
        console.out(f"sha256 of the original  {found.sha256_original}")
        console.out(f"sha256 of the enriched  {found.sha256_enriched}")
        for what in found.not_compared:
            console.note(f"{what} was not compared")
        if found.ok:
            console.out(f"{found.n_known:,} rows unchanged, {found.n_added:,} added")
            for word in found.added:
                console.out(console.plain(f"+ {word}"))
    if not found.ok:
        raise InputError(
            f"{enriched} does not hold every row of {original} unchanged: {found.difference} "
            "Enrich the original again."
        )


@app.command()
def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="A file of word vectors.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="Where to; - is standard output.")],
    source_format: Annotated[
        options.FormatName | None, typer.Option("--from", help="The format of IN, if in doubt.")
    ] = None,
    target_format: Annotated[
        options.FormatName | None,
        typer.Option("--to", help="The format of OUT; if not given, its suffix tells."),
    ] = None,
    member: options.MemberOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write word vectors in another format.

    Numbers keep their bits; word2vec binary alone rounds float64 to float32.
    """
    from vecfill.errors import InputError
    from vecfill.io import read_embedding, write_embedding
    from vecfill.io.atomic import checked_target
    from vecfill.io.codecs import codec_for_writing

    if str(target) != "-":
        checked_target(target, overwrite=overwrite)
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
        Path, typer.Argument(metavar="DIR", help="Where to write; made if there is none.")
    ] = Path("vecfill-demo"),
    overwrite: options.OverwriteOption = False,
) -> None:
    """Do the whole job on the bundled sample of cities.

    Match, prove, impute, explain, write, verify, and a page to look at. Half a minute; the first
    time longer, while code is compiled.
    """
    from vecfill.demo import run_demo

    run_demo(folder, overwrite=overwrite, say=console.out)
