"""The commands for models in files: add entities to one, and say what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vecfill.cli import console, options
from vecfill.wording import count

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file, saved by vecfill impute.")
]


NewTable = Annotated[
    Path,
    typer.Argument(
        metavar="NEW_TABLE", help="Table of the new entities, with the same columns as before."
    ),
]
VectorsFile = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        rich_help_panel="Output",
        help="File of vectors to write; - is standard output.",
    ),
]
AppendTo = Annotated[
    Path | None,
    typer.Option(
        "--append-to",
        rich_help_panel="Output",
        metavar="ENRICHED",
        help="Write ENRICHED, byte for byte, followed by the new rows.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        rich_help_panel="Input",
        metavar="COLUMN",
        help="Column that names the entities.",
    ),
]
SaveOption = Annotated[
    Path | None,
    typer.Option(
        "--save",
        rich_help_panel="Output",
        metavar="FILE",
        help="Keep the new entities in the model and write the model to this file.",
    ),
]
ConfidenceOption = Annotated[
    str | None,
    typer.Option(
        "--confidence-column",
        metavar="NAME",
        help="With --append-to and a table: column for the confidence of new vectors.",
    ),
]


def add(
    model: ModelFile,
    table: NewTable,
    *,
    output: VectorsFile,
    append_to: AppendTo = None,
    key: KeyOption = None,
    save: SaveOption = None,
    confidence_column: ConfidenceOption = None,
    overwrite: options.OverwriteOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Write vectors for entities that came after the model was saved.

    Nothing is fitted again. OUTPUT has only the vectors of the new entities, in the format of the
    original embedding. With --append-to, it is that file followed by the new rows. If the model was
    made from one table with features and vectors, ENRICHED is that table, filled, and the new rows
    have their features too.
    """
    from vecfill.jobs.add import add as add_to_file

    is_stdout = console.is_stdout(output, json=json)
    with console.target(output) as target, console.Progress() as progress:
        done = add_to_file(
            model,
            table,
            target,
            append_to=append_to,
            key=key,
            save=save,
            confidence=confidence_column,
            overwrite=overwrite,
            n_jobs=jobs,
            progress=progress,
        )
    console.notes(done.added.notes)
    if json:
        console.show(done.added, (), json=True)
    else:
        say = console.note if is_stdout else console.out
        say(console.plain(repr(done.added)))
        say(f"{count(done.n_rows, 'row')} written to {output}")


def inspect(model: ModelFile, json: options.JsonOption = False) -> None:
    """Describe a saved model: method, inputs, date and quality."""
    from vecfill.living.model import load

    living = load(model, check=True)
    if json:
        strata = [stratum.to_dict() for stratum in living.strata]
        about = {**living.about, "predictor": living.predictor.to_dict(), "strata": strata}
        console.out_json({**about, "notes": list(living.notes)})
        return
    console.out(console.plain(repr(living)))
    for source in living.about.get("sources", []):
        console.out(console.plain(f"  source      {source}"))
    for stratum in living.strata:
        console.out(console.plain(f"  {stratum}"))
