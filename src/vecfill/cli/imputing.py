"""The command that imputes: an embedding and a table, one table, or datasets beyond memory.

`vecfill status` tells how far a job beyond memory is.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vecfill.cli import console, options
from vecfill.cli.console import flag_of
from vecfill.requests import Ask, Method, Output, Reading, Replacement, Scale, Trust
from vecfill.wording import count, percent

if TYPE_CHECKING:
    from vecfill.distributed.job import DatasetResult
    from vecfill.jobs.job import Enrichment

_MOST_NOTES = 6
"""Notes that are printed with a summary, so that it stays on the screen."""


@options.shared(Method, Reading, Trust, Replacement, Output, Scale)
def impute(
    embedding: options.EmbeddingFile,
    table: options.TableOrNone = None,
    *,
    output: Annotated[
        Path, options.flag("-o --output", "Output", "File to write; - is standard output.")
    ],
    ask: Ask,
    verbose: options.VerboseOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Copy EMBEDDING and add a vector for each entity it lacks.

    OUTPUT is EMBEDDING, byte for byte, followed by a row for each entity of TABLE that has none.
    With --replace, poor rows of EMBEDDING are replaced in place. With --vector and a single file,
    OUTPUT is this table with its empty vectors filled.
    """
    if ask.scale.asked():
        impute_datasets(embedding, table, output, ask, jobs=jobs, json=json)
        return
    is_stdout = console.is_stdout(output, json=json)
    base, described = options.files(embedding, table, ask.reading.vector)
    if is_stdout:
        ask = replace(ask, output=replace(ask.output, manifest=False))
    with console.target(output) as target, console.Progress() as progress:
        common: dict[str, Any] = {"n_jobs": jobs, "progress": progress, "ask": ask}
        if base is None:
            from vecfill.jobs.table import fill_table

            enrichment = fill_table(described, target, **common)
        else:
            from vecfill.jobs.enrich import enrich

            enrichment = enrich(base, described, target, **common)
    console.notes(enrichment.notes, limit=None if json else _MOST_NOTES)
    if ask.output.save is not None and enrichment.result is None:
        console.note("No model was saved, because there was nothing to impute.")
    if json:
        console.out_json(enrichment.to_dict())
        return
    _print_summary(enrichment, base, described, output, ask, is_verbose=verbose)


def _print_summary(
    enrichment: Enrichment,
    base: Path | None,
    table: Path,
    output: Path,
    ask: Ask,
    *,
    is_verbose: bool,
) -> None:
    from vecfill.cli import summary

    is_stdout, is_table = str(output) == "-", base is None
    lines = summary.imputed(enrichment, is_table=is_table, is_verbose=is_verbose)
    place = "standard output" if is_stdout else str(output)
    lines.append(summary.written(enrichment, place, is_table=is_table))
    if is_stdout:
        print(summary.as_text(lines, sys.stderr), file=sys.stderr)
    else:
        lines += summary.next_steps(enrichment, base, table, output, ask)
        console.out(summary.as_text(lines))


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
            imputed = impute_dataset(
                features, vectors, output, overwrite=overwrite, progress=progress, ask=ask
            )
    except KeyboardInterrupt:
        advice = f"What is done is kept in {scale.work}. Run the same command again to resume."
        console.notes((advice,))
        raise
    console.notes(imputed.notes)
    if json:
        console.out_json(imputed.to_dict())
    else:
        console.out(console.plain(_summary_of_pieces(imputed)))


def _summary_of_pieces(imputed: DatasetResult) -> str:
    counts = imputed.counts
    lines = [
        f"Entities   {counts['entities']:,}",
        f"  known    {counts['known']:,}",
        f"  unknown  {counts['unknown']:,}",
        f"Imputed    {counts['imputed']:,} by {_method(imputed.method)}",
        f"Neighbours {percent(imputed.recall, 1)} of the true ones found",
    ]
    if counts["abstained"]:
        lines.append(f"  left out {counts['abstained']:,} because of low confidence")
    if imputed.coverage is not None and imputed.hidden is not None:
        lines.append(
            f"Hidden     centred cosine {imputed.hidden['centred_cosine']:.3f}; bounds held for "
            f"{percent(imputed.coverage, 1)}"
        )
    lines.append(f"Written    {imputed.output}: {count(len(imputed.parts), 'part')} and a manifest")
    return "\n".join(lines)


def _method(method: Mapping[str, Any]) -> str:
    from vecfill.model.predictors import LatentSemantic

    return str(LatentSemantic(**{k: v for k, v in method.items() if k != "predictor"}))


def status(
    work: Annotated[Path, options.argument("DIR", "Work folder of the job.")],
    json: options.JsonOption = False,
) -> None:
    """Show the progress of a job beyond memory.

    For each stage, it lists the finished and all tasks. Nothing is changed.
    """
    from vecfill.distributed.plan import job_status

    console.show(job_status(work), (), json=json)
