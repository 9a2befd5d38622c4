"""Commands on files that are there: prove that known rows are unchanged, write another format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vecfill.cli import console, options
from vecfill.wording import count

if TYPE_CHECKING:
    from vecfill.io import Verification

_MOST_WORDS = 10
"""Added or replaced words that `verify` lists."""

Original = Annotated[Path, options.argument("ORIGINAL", "The file before rows were added.")]
Enriched = Annotated[Path, options.argument("ENRICHED", "The file with the added rows.")]
Manifest = Annotated[
    Path | None,
    options.flag(
        "--replaced",
        "Input",
        "Manifest of ENRICHED. Exactly the rows that it lists as replaced must differ.",
        metavar="MANIFEST",
    ),
]
Vector = Annotated[
    str | None,
    options.flag(
        "--vector",
        "Input",
        "Column of vectors, if the files are tables with features and vectors.",
        metavar="COLUMN",
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
    if _are_models(original, enriched):
        unused = {"format": format, "member": member, "replaced": replaced, "vector": vector}
        _refuse_unused(unused, f"cannot be used here: {original} is a folder of a model.")
        _verify_folders(original, enriched, json=json)
    elif vector is not None:
        unused = {"format": format, "member": member, "replaced": replaced}
        _refuse_unused(unused, "has no effect with --vector. Leave it out.")
        _verify_tables(original, enriched, vector, json=json)
    else:
        _verify_files(original, enriched, replaced, json=json, format=format, member=member)


def _refuse_unused(options_by_name: dict[str, object], why: str) -> None:
    from vecfill.errors import OptionError

    for name, value in options_by_name.items():
        if value is not None:
            raise OptionError(f"--{name} {why}")


def _verify_files(
    original: Path, enriched: Path, replaced: Path | None, *, json: bool, **reading: str | None
) -> None:
    """Compare two files of vectors, and print their hashes and what was added."""
    from vecfill.errors import InputError
    from vecfill.io import verify as compare
    from vecfill.io.appending import read_changes

    changes = () if replaced is None else read_changes(replaced)
    with console.Progress() as progress:
        progress("Comparing", 0, 0)
        words = [change.word for change in changes]
        proof = compare(original, enriched, replaced=words, **reading)
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
        for part in proof.not_compared:
            console.note(f"{part} was not compared")
        if proof.ok:
            console.out(_verified(proof))
    _refuse_differing(proof, f"{enriched} does not hold every row of {original} unchanged",
                      "Enrich the original again.")  # fmt: skip


def _verified(verification: Verification) -> str:
    """Return what a comparison of two files has shown, as lines of text."""
    n_replaced = len(verification.replaced)
    replaced = f", {n_replaced:,} replaced" if n_replaced else ""
    unchanged = count(verification.n_known - n_replaced, "row")
    lines = [f"{unchanged} unchanged{replaced}, {verification.n_added:,} added"]
    lines += _some("~", [change.word for change in verification.replaced])
    lines += _some("+", verification.added)
    return "\n".join(console.plain(line) for line in lines)


def _some(mark: str, words: Sequence[str]) -> list[str]:
    """Return a line for each of the first words, so that what was said before stays in sight."""
    more = len(words) - _MOST_WORDS
    lines = [f"{mark} {word}" for word in words[:_MOST_WORDS]]
    return [*lines, f"{mark} {more:,} more; --json lists all"] if more > 0 else lines


def _verify_tables(original: Path, enriched: Path, vector: str, *, json: bool) -> None:
    """Compare two tables with a column of vectors, and print how many cells were filled."""
    from vecfill.io.verifying import verify_table

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
    _refuse_differing(proof, f"{enriched} does not hold every cell of {original} unchanged",
                      "Fill the original again.")  # fmt: skip


def _verify_folders(original: Path, enriched: Path, *, json: bool) -> None:
    """Compare two folders of models, and print which tokens were added."""
    from vecfill.exchange.huggingface.verifying import verify_model

    with console.Progress() as progress:
        progress("Comparing", 0, 0)
        proof = verify_model(original, enriched)
    if json:
        console.out_json(asdict(proof))
    elif proof.ok:
        console.out(console.plain(str(proof)))
    _refuse_differing(proof, f"{enriched} is not {original} with tokens added",
                      "Add the tokens to the original again.")  # fmt: skip


def _refuse_differing(proof: Any, claim: str, advice: str) -> None:
    from vecfill.errors import InputError

    if not proof.ok:
        raise InputError(f"{claim}: {proof.difference} {advice}")


def _are_models(original: Path, enriched: Path) -> bool:
    """Tell whether both paths are folders with files that a model has; refuse one of each kind."""
    from vecfill.errors import InputError

    names = ("config.json", "modules.json", "tokenizer.json")
    are_folders = [any((path / name).exists() for name in names) for path in (original, enriched)]
    if any(are_folders) and not all(are_folders):
        model, path = (original, enriched) if are_folders[0] else (enriched, original)
        fault = "is not the folder of a model" if path.exists() else "does not exist"
        raise InputError(
            f"{path} {fault}, and {model} is one. Pass the folder before and after tokens were "
            "added."
        )
    return all(are_folders)


def convert(
    source: Annotated[Path, options.argument("IN", "File of word vectors.")],
    target: Annotated[Path, options.argument("OUT", "File to write; - is standard output.")],
    source_format: Annotated[
        options.FormatName | None,
        options.flag(
            "--from",
            "Input",
            f"Format of IN. By default it is detected. One of {options.FORMATS}.",
            metavar="FORMAT",
        ),
    ] = None,
    target_format: Annotated[
        options.FormatName | None,
        options.flag(
            "--to",
            "Output",
            "Format of OUT, one of the same. By default its suffix decides.",
            metavar="FORMAT",
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
