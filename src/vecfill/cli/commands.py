"""All commands, in the order of the help; each loads what it needs when it is called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperCommand

from vecfill.cli import console, options, summary
from vecfill.cli.files import convert, verify
from vecfill.cli.imputing import impute, status
from vecfill.cli.migrating import migrate
from vecfill.cli.models import add, inspect
from vecfill.cli.tokens import tokens
from vecfill.requests import Ask, Method, Reading

PANELS = ("Input", "Names", "Method", "Trust", "Output", "Beyond memory", "Options")
"""Headings of groups of options, in their order; what belongs to none is under the last."""

app = typer.Typer(
    name="vecfill",
    help="Trustworthy vectors for the entities that a pre-trained embedding lacks.",
    epilog="Start with: vecfill demo",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": console.WIDEST},
)

EXAMPLES = {
    "impute": """
        vecfill impute glove.txt cities.csv -o new.txt --report page.html --evaluate
        vecfill impute glove.txt cities.csv -o new.txt --min-confidence 0.3
        vecfill impute items.parquet --vector embedding -o filled.parquet
        vecfill impute vectors/ features/ -o imputed/ --engine processes --work work/
        """,
    "evaluate": "vecfill evaluate glove.txt cities.csv --folds 5",
    "explain": "vecfill explain glove.txt cities.csv 'Fort Worth' -n 5",
    "match": "vecfill match glove.txt cities.csv -o matches.csv",
    "tokens": "vecfill tokens model/ terms.txt --source pieces -o new-model/",
    "migrate": """
        vecfill migrate old.parquet sample.parquet
        vecfill migrate old.parquet sample.parquet -o new.parquet --table first.csv
        """,
    "add": """
        vecfill add cities.vecfill new.csv -o new.txt
        vecfill add cities.vecfill new.csv -o more.txt --append-to enriched.txt
        """,
    "inspect": "vecfill inspect cities.vecfill --json",
    "verify": """
        vecfill verify glove.txt enriched.txt
        vecfill verify model/ new-model/
        """,
    "convert": "vecfill convert glove.txt vectors.bin",
    "status": "vecfill status work/",
    "demo": "vecfill demo my-folder",
}
"""What the help of each command ends with."""


class GroupedCommand(TyperCommand):
    """A command whose help lists options under headings and ends with examples."""

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write the usage, required arguments without braces."""
        pieces = self.collect_usage_pieces(ctx)
        pieces = [re.sub(r"^\{(.*)\}$", r"\1", piece) for piece in pieces]
        formatter.write_usage(ctx.command_path, " ".join(pieces))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the words of a shell; a misspelt option is answered as a misspelt command is."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            near = getattr(error, "possibilities", None)
            if not near:
                raise
            name = getattr(error, "option_name", "")
            return ctx.fail(f"No such option {name!r}. Did you mean {near[0]!r}?")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then each group of options."""
        arguments, groups = [], {panel: [] for panel in PANELS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append(record)
            else:
                panel = getattr(parameter, "rich_help_panel", None) or PANELS[-1]
                groups[panel].append(record)
        for title, records in (("Arguments", arguments), *groups.items()):
            if records:
                with formatter.section(console.heading(title)):
                    formatter.write_dl(records, col_max=26)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """Write the examples as they are: a shell's lines are not wrapped."""
        if not self.epilog:
            return
        with formatter.section(console.heading("Examples")):
            for line in self.epilog.strip().splitlines():
                formatter.write(f"{'':{formatter.current_indent}}{line.strip()}\n")


def registered(name: str) -> Any:
    """Return the decorator that makes a function a command, with its examples."""
    return app.command(name, cls=GroupedCommand, epilog=EXAMPLES[name])


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
@options.shared(Reading)
def evaluate(
    embedding: options.EmbeddingFile,
    table: options.TableOrNone = None,
    *,
    folds: Annotated[
        int,
        options.flag(
            "--folds",
            "Trust",
            "Number of folds in which known rows are hidden.",
            min=2,
            metavar="N",
        ),
    ] = 5,
    hide: Annotated[
        Literal["random", "rarest"],
        options.flag(
            "--hide", "Trust", "Hide known rows at random, or hide blocks of the rarest ones."
        ),
    ] = "random",
    ask: Ask,
    seed: options.SeedOption = 0,
    verbose: options.VerboseOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Measure how well each method restores hidden known vectors.

    Known rows are hidden and imputed in turn. Nothing is written.
    """
    from vecfill.inputs.alignment import align
    from vecfill.machine.progress import Stopwatch
    from vecfill.run import evaluate_aligned

    base, described = options.files(embedding, table, ask.reading.vector)
    with console.Progress() as progress:
        watch = Stopwatch(progress)
        alignment = align(described, base, ask.reading, fuses=True, progress=watch)
        chosen = {"folds": folds, "hide": hide, "seed": seed, "n_jobs": jobs}
        evaluation = evaluate_aligned(
            alignment, **chosen, interactions=ask.reading.interactions, progress=watch
        )
    console.show(evaluation, alignment.notes, json=json)
    if verbose and not json:
        console.out(f"exactly: {evaluation.chosen}")
        console.out(f"time: {summary.stages(watch.seconds)}")


@registered("explain")
@options.shared(Method, Reading)
def explain(
    embedding: options.EmbeddingFile,
    table: options.TableOrNone = None,
    word: Annotated[
        str | None,
        options.argument("WORD", "Entity of TABLE that EMBEDDING lacks, or whose vector is null."),
    ] = None,
    *,
    n: Annotated[
        int,
        options.flag("-n", "Output", "How many known entities to show.", min=1, metavar="N"),
    ] = 10,
    ask: Ask,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Show which known entities the vector of WORD is made of.

    Their shares sum to one. If there is a linear trend, its part is shown separately.
    """
    from vecfill.errors import InputError
    from vecfill.inputs.alignment import align
    from vecfill.run import fuses_sources, impute_aligned
    from vecfill.trust.explain import place_of

    if word is None and table is not None and ask.reading.vector is not None:
        # A table with vectors is the only file, so the second word is the entity.
        table, word = None, str(table)
    base, described = options.files(embedding, table, ask.reading.vector)
    if word is None:
        raise InputError("the entity to explain is missing. Write: vecfill explain FILES WORD.")
    _refuse_idle_counts(ask)
    fuses = fuses_sources(ask)
    with console.Progress() as progress:
        alignment = align(described, base, ask.reading, fuses=fuses, progress=progress)
        # A misspelt name is refused before the work, not after it.
        place_of(word, alignment.unknown, alignment.known)
        result = impute_aligned(alignment, ask, n_jobs=jobs, progress=progress)
        explanation = result.explain(word, n)
    console.show(explanation, (), json=json)


def _refuse_idle_counts(ask: Ask) -> None:
    """Refuse counts where no rare entity is moved or hidden: shares are the same without them."""
    from vecfill.errors import OptionError

    is_one_method = ask.method.method == "paper" or bool(ask.method.setting())
    if ask.reading.counts is not None and ask.reading.min_count is None and is_one_method:
        raise OptionError(
            "--counts has no effect on an explanation of one method: only automatic choice moves "
            "rare entities. Leave it out, or hide rare entities with --min-count."
        )


@registered("match")
@options.shared(
    Reading,
    without=(
        *("vector", "standardize", "categorical", "n_dims"),
        # How names and texts describe entities does not change which word an entity is.
        *("names", "text", "encoder", "interactions"),
    ),
)
def match_command(
    embedding: options.EmbeddingFile,
    table: options.TableFile,
    *,
    output: Annotated[
        Path | None,
        options.flag("-o --output", "Output", "Write a CSV file instead of printing a table."),
    ] = None,
    ask: Ask,
    overwrite: options.OverwriteOption = False,
    json: options.JsonOption = False,
) -> None:
    """Show which word each entity was matched to, and how."""
    from vecfill.jobs.match import as_csv, match

    place = None if str(output) == "-" else output
    with console.Progress() as progress:
        report = match(embedding, table, place, overwrite=overwrite, progress=progress, ask=ask)
    if json:
        console.show(report, (), json=True)
    elif output is None:
        console.out(console.plain(report.table()))
    elif str(output) == "-":
        console.out_csv(as_csv(report.rows()))
    console.note(report.summary())
    console.notes(report.notes)
    report.require_matches()


registered("tokens")(tokens)
registered("status")(status)
registered("migrate")(migrate)
registered("add")(add)
registered("inspect")(inspect)
registered("verify")(verify)
registered("convert")(convert)


@registered("demo")
def demo(
    folder: Annotated[
        Path, options.argument("DIR", "Folder to write to; created if needed.")
    ] = Path("vecfill-demo"),
    overwrite: options.OverwriteOption = False,
) -> None:
    """Do the whole job on the bundled sample of cities.

    It matches names, checks the method on hidden cities, imputes, explains, writes a file,
    verifies it, and writes an HTML report. This takes about a minute, and longer the first time,
    while code is compiled.
    """
    from vecfill.jobs.demo import run_demo

    run_demo(folder, overwrite=overwrite, say=console.out)
