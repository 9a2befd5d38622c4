"""The command that proves that known rows are unchanged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from vecfill.cli import console, options
from vecfill.cli.tokens import are_models, verify_folders
from vecfill.wording import count

Original = Annotated[
    Path, typer.Argument(metavar="ORIGINAL", help="The file before rows were added.")
]
Enriched = Annotated[Path, typer.Argument(metavar="ENRICHED", help="The file with the added rows.")]
Manifest = Annotated[
    Path | None,
    typer.Option(
        "--replaced",
        rich_help_panel="Input",
        metavar="MANIFEST",
        help="Manifest of ENRICHED. Exactly the rows that it lists as replaced must differ.",
    ),
]
Vector = Annotated[
    str | None,
    typer.Option(
        "--vector",
        rich_help_panel="Input",
        metavar="COLUMN",
        help="Column of vectors, if the files are tables with features and vectors.",
    ),
]


def verify(
    original: Original,
    enriched: Enriched,
    format: options.FormatOption = None,  # noqa: A002
    member: options.MemberOption = None,
    replaced: Manifest = None,
    vector: Vector = None,
    json: options.JsonOption = False,
) -> None:
    """Prove that every known row is unchanged.

    Both files are compared byte for byte, and added rows are listed. The exit status is 2 if a
    known row differs. With --replaced, the rows that MANIFEST lists must match its hashes. With
    --vector, two tables are compared cell by cell: only empty vectors may be filled, and rows and
    columns added. Two folders of language models are compared by tensors, tokenizer and all other
    files.
    """
    if are_models(original, enriched):
        refused = {"format": format, "member": member, "replaced": replaced, "vector": vector}
        verify_folders(original, enriched, refused, json=json)
        return
    if vector is not None:
        others = {"--format": format, "--member": member, "--replaced": replaced}
        verify_tables(original, enriched, vector, others, json=json)
        return
    from dataclasses import asdict

    from vecfill.errors import InputError
    from vecfill.io import verify as compare
    from vecfill.io.appending import read_changes

    changes = () if replaced is None else read_changes(replaced)
    with console.Progress() as progress:
        progress("Comparing", 0, 0)
        words = [change.word for change in changes]
        proof = compare(original, enriched, format=format, member=member, replaced=words)
    if proof.ok and proof.replaced != changes:
        raise InputError(
            f"{replaced} does not belong to these files: the rows that it lists have other bytes "
            "or places. Pass the manifest that was written beside the enriched file."
        )
    if json:
        console.out_json(asdict(proof))
    else:
        console.out(f"sha256 before  {proof.sha256_original}")
        console.out(f"sha256 after   {proof.sha256_enriched}")
        for what in proof.not_compared:
            console.note(f"{what} was not compared")
        if proof.ok:
            console.out(console.verified(proof))
    if not proof.ok:
        raise InputError(
            f"{enriched} does not hold every row of {original} unchanged: {proof.difference} "
            "Enrich the original again."
        )


def verify_tables(
    original: Path, enriched: Path, vector: str, others: Mapping[str, object], *, json: bool
) -> None:
    """Compare two tables with a column of vectors, and say what was found."""
    from dataclasses import asdict

    from vecfill.errors import InputError, OptionError
    from vecfill.io.verifying import verify_table

    for name, value in others.items():
        if value is not None:
            raise OptionError(f"{name} has no effect with --vector. Leave it out.")
    proof = verify_table(original, enriched, vector=vector)
    if json:
        console.out_json({**asdict(proof), "ok": proof.ok})
    elif proof.ok:
        console.out(
            f"{count(proof.n_rows, 'row')} and {count(proof.n_vectors, 'vector')} unchanged, "
            f"{count(proof.n_filled, 'vector')} filled, {count(proof.n_added, 'row')} added"
        )
        for name in proof.new_columns:
            console.out(console.plain(f"+ column {name}"))
    if not proof.ok:
        raise InputError(
            f"{enriched} does not hold every cell of {original} unchanged: {proof.difference} "
            "Fill the original again."
        )
