"""`vecfill convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vecfill.cli import console, options
from vecfill.wording import count


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="File of word vectors.")],
    target: Annotated[
        Path, typer.Argument(metavar="OUT", help="File to write; - is standard output.")
    ],
    source_format: Annotated[
        options.FormatName | None,
        typer.Option(
            "--from",
            rich_help_panel="Input",
            metavar="FORMAT",
            help=f"Format of IN. By default it is detected. One of {options.FORMATS}.",
        ),
    ] = None,
    target_format: Annotated[
        options.FormatName | None,
        typer.Option(
            "--to",
            rich_help_panel="Output",
            metavar="FORMAT",
            help="Format of OUT, one of the same. By default its suffix decides.",
        ),
    ] = None,
    member: options.MemberOption = None,
    overwrite: options.OverwriteOption = False,
) -> None:
    """Write word vectors in another format.

    Numbers keep their bits; word2vec binary alone rounds float64 to float32.
    """
    from vecfill.errors import InputError
    from vecfill.io import read_embedding, write_embedding
    from vecfill.io.targets import check_targets

    if str(target) != "-":
        check_targets([target], [source], overwrite=overwrite)
        if target_format is None:
            console.check_suffix(target)
    elif target_format is None:
        raise InputError("- has no suffix to tell a format by. Name one with --to.")
    with console.target(target) as place, console.Progress() as progress:
        progress("Reading", 0, 0)
        embedding = read_embedding(source, format=source_format, member=member, dtype="auto")
        progress("Writing", 0, 0)
        write_embedding(embedding, place, format=target_format, overwrite=overwrite)
    console.notes(embedding.notes)
    shape = f"{count(len(embedding), 'word')} of {count(embedding.n_dims, 'dimension')}"
    console.note(f"{shape} written to {target}")
