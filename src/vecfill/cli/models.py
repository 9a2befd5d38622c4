"""The commands for models in files: add entities to one, and say what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from vecfill.cli import console, options
from vecfill.wording import count

ModelFile = Annotated[Path, options.argument("MODEL", "Model file, saved by vecfill impute.")]
NewTable = Annotated[
    Path,
    options.argument("NEW_TABLE", "Table of the new entities, with the same columns as before."),
]
VectorsFile = Annotated[
    Path,
    options.flag("-o --output", "Output", "File of vectors to write; - is standard output."),
]
AppendTo = Annotated[
    Path | None,
    options.flag(
        "--append-to",
        "Output",
        "Write ENRICHED, byte for byte, followed by the new rows.",
        metavar="ENRICHED",
    ),
]
KeyOption = Annotated[
    str | None,
    options.flag("--key", "Input", "Column that names the entities.", metavar="COLUMN"),
]
SaveOption = Annotated[
    Path | None,
    options.flag(
        "--save",
        "Output",
        "Keep the new entities in the model and write the model to this file.",
        metavar="FILE",
    ),
]
ConfidenceOption = Annotated[
    str | None,
    options.flag(
        "--confidence-column",
        None,
        "With --append-to and a table: column for the confidence of new vectors.",
        metavar="NAME",
    ),
]
MissingOption = Annotated[
    str,
    options.flag(
        "--missing",
        "Input",
        "What to do with a table that lacks columns of the fitted one: refuse, or allow (they are "
        "then taken as empty).",
        metavar="RULE",
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
    missing: MissingOption = "refuse",
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
        appended = add_to_file(
            model,
            table,
            target,
            append_to=append_to,
            key=key,
            save=save,
            confidence=confidence_column,
            missing=missing,
            overwrite=overwrite,
            n_jobs=jobs,
            progress=progress,
        )
    console.notes(appended.added.notes)
    if json:
        console.show(appended.added, (), json=True)
    else:
        say = console.note if is_stdout else console.out
        say(console.plain(repr(appended.added)))
        say(f"{count(appended.n_rows, 'row')} written to {output}")


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
