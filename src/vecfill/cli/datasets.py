"""`vecfill impute --work`, a job on datasets in pieces, and `vecfill status`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vecfill.cli import console, options
from vecfill.cli.wording import flag_of
from vecfill.requests import Ask
from vecfill.wording import count, percent

if TYPE_CHECKING:
    from vecfill.distributed.job import DatasetResult


def impute_datasets(
    vectors: Path,
    features: Path | None,
    output: Path,
    ask: Ask,
    *,
    jobs: int | None,
    json: bool,
) -> None:
    """Run the job on datasets that options of the shell ask for, and print how it went."""
    from vecfill.distributed.job import impute_dataset
    from vecfill.errors import InputError

    replacement, scale = ask.replacement, ask.scale
    if features is None or str(output) == "-":
        raise InputError(
            "A job beyond memory needs EMBEDDING, TABLE and a folder as OUTPUT. Name all three."
        )
    if scale.work is None:
        raise InputError(
            "A job beyond memory needs a work folder. Name one with --work; the same folder lets "
            "an interrupted job continue."
        )
    for name in ask.output.asked():
        if name != "overwrite":
            flag = "--no-manifest" if name == "manifest" else flag_of(name)
            raise InputError(f"{flag} cannot be used with --work. Leave it out.")
    if jobs is not None:
        raise InputError("--jobs cannot be used with --work. Leave it out.")
    replacement.refuse_unused((), replacement.asked(), "a job in pieces replaces no rows")
    try:
        with console.Progress() as progress:
            overwrite = ask.output.overwrite
            done = impute_dataset(
                features, vectors, output, overwrite=overwrite, progress=progress, ask=ask
            )
    except KeyboardInterrupt:
        advice = f"What is done is kept in {scale.work}. Run the same command again to resume."
        console.notes((advice,))
        raise
    console.notes(done.notes)
    if json:
        console.out_json(done.to_dict())
    else:
        console.out(console.plain(_told(done)))


def _told(done: DatasetResult) -> str:
    counts = done.counts
    lines = [
        f"Entities   {counts['entities']:,}",
        f"  known    {counts['known']:,}",
        f"  unknown  {counts['unknown']:,}",
        f"Imputed    {counts['imputed']:,} by {_method(done.method)}",
        f"Neighbours {percent(done.recall, 1)} of the true ones found",
    ]
    if counts["abstained"]:
        lines.append(f"  left out {counts['abstained']:,} because of low confidence")
    if done.coverage is not None and done.hidden is not None:
        lines.append(
            f"Hidden     centred cosine {done.hidden['centred_cosine']:.3f}; bounds held for "
            f"{percent(done.coverage, 1)}"
        )
    lines.append(f"Written    {done.output}: {count(len(done.parts), 'part')} and a manifest")
    return "\n".join(lines)


def _method(method: Mapping[str, Any]) -> str:
    from vecfill.model.predictors import LatentSemantic

    return str(LatentSemantic(**{k: v for k, v in method.items() if k != "predictor"}))


def status(
    work: Annotated[Path, typer.Argument(metavar="DIR", help="Work folder of the job.")],
    json: options.JsonOption = False,
) -> None:
    """Show the progress of a job beyond memory.

    For each stage, it lists the finished and all tasks. Nothing is changed.
    """
    from vecfill.distributed.plan import job_status

    console.show(job_status(work), (), json=json)
