"""The commands for models in files: add entities to one, and say what is in one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vecfill._english import count
from vecfill.cli import console, options

ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="Model file, saved by vecfill impute.")
]


def save_model(result: Any, path: Path, embedding: Path | None, *, overwrite: bool) -> None:
    """Write the model behind a result, with the format in which its vectors are written."""
    from vecfill.io.codecs import codec_of
    from vecfill.io.sources import Source

    model = result.to_model()
    if embedding is not None:
        with Source(embedding) as source:
            model.about |= {"embedding": embedding.name, "format": codec_of(source).name}
    model.save(path, overwrite=overwrite)


def add(
    model: ModelFile,
    table: Annotated[
        Path,
        typer.Argument(
            metavar="NEW_TABLE", help="Table of the new entities, with the same columns as before."
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            rich_help_panel="Output",
            help="File of vectors to write; - is standard output.",
        ),
    ],
    append_to: Annotated[
        Path | None,
        typer.Option(
            "--append-to",
            rich_help_panel="Output",
            metavar="ENRICHED",
            help="Write ENRICHED, byte for byte, followed by the new rows.",
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            rich_help_panel="Input",
            metavar="COLUMN",
            help="Column that names the entities.",
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save",
            rich_help_panel="Output",
            metavar="FILE",
            help="Keep the new entities in the model and write the model to this file.",
        ),
    ] = None,
    confidence_column: Annotated[
        str | None,
        typer.Option(
            "--confidence-column",
            metavar="NAME",
            help="With --append-to and a table: column for the confidence of new vectors.",
        ),
    ] = None,
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
    from vecfill.errors import InputError
    from vecfill.io import append_rows, write_embedding
    from vecfill.io.atomic import together
    from vecfill.io.targets import check_targets
    from vecfill.living import load

    is_stdout = str(output) == "-"
    if is_stdout and json:
        raise InputError("-o - and --json both ask for standard output. Name a file for one.")
    # A model may be written over itself: it is replaced whole.
    targets = [None if is_stdout else output, None if save == model else save]
    check_targets(targets, [model, table, append_to], overwrite=overwrite)
    with console.target(output) as target, together(), console.Progress() as progress:
        progress("Adding entities", 0, 0)
        living = load(model, n_jobs=jobs)
        added = living.add(table, key=key, keep=save is not None)
        form, vector = living.about.get("format"), living.about.get("vector")
        new = _written(added.embedding, form)
        if not len(new) and append_to is None:
            raise InputError(f"{table} has no entity that is new to the model: {added!r}")
        is_table = append_to is not None and vector is not None
        if confidence_column is not None and not is_table:
            raise InputError(
                "--confidence-column is for --append-to and a model of one table (--vector)."
            )
        if append_to is not None and vector is not None:
            from vecfill.table_job import append_to_table

            append_to_table(
                append_to,
                target,
                table,
                added,
                key=living.key,
                vector=vector,
                new_key=key,
                confidence=confidence_column,
                overwrite=overwrite,
            )
        elif append_to is not None:
            append_rows(append_to, target, new, overwrite=overwrite)
        else:
            write_embedding(new, target, format=form, overwrite=overwrite)
        if save is not None:
            living.save(save, overwrite=overwrite or save == model)
    console.notes(added.notes)
    if json:
        console.show(added, (), json=True)
    else:
        say = console.note if is_stdout else console.out
        say(console.plain(repr(added)))
        say(f"{count(len(new), 'row')} written to {output}")


def _written(embedding: Any, form: str | None) -> Any:
    """Return vectors under the words that they have in a file."""
    from vecfill.embedding import Embedding
    from vecfill.inputs.files import word_in_file

    if form is None:
        return embedding
    return Embedding([word_in_file(word, form) for word in embedding.words], embedding.vectors)


def inspect(model: ModelFile, json: options.JsonOption = False) -> None:
    """Describe a saved model: method, inputs, date and quality."""
    from vecfill.living import load

    living = load(model, check=True)
    if json:
        from vecfill.provenance import as_json

        strata = [each.to_dict() for each in living.strata]
        about = {**living.about, "predictor": living.predictor.to_dict(), "strata": strata}
        console.out(as_json({**about, "notes": list(living.notes)}))
        return
    console.out(console.plain(repr(living)))
    for source in living.about.get("sources", []):
        console.out(console.plain(f"  source      {source}"))
    for stratum in living.strata:
        console.out(console.plain(f"  {stratum}"))
