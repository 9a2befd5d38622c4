"""`vecfill migrate`: from one embedding to another, or whether to stay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vecfill.cli import console, options

if TYPE_CHECKING:
    from vecfill.trust.compare.migration import MigrationEvaluation

OldArgument = Annotated[Path, options.argument("OLD", "Vectors of the old model.")]
SampleArgument = Annotated[
    Path,
    options.argument("NEW_SAMPLE", "Vectors of the new model, of some of the same documents."),
]
OutputOption = Annotated[
    Path | None,
    options.flag(
        "-o --output",
        "Output",
        "File of vectors to write. Without it, the command only tells whether to translate.",
    ),
]
SideOption = Annotated[
    Literal["documents", "queries"],
    options.flag(
        "--side",
        "Method",
        "Bring old documents to the new model's space, or the new model's queries to the old one.",
    ),
]
QueriesOption = Annotated[
    Path | None,
    options.flag("--queries", "Input", "Your queries, embedded by the new model.", metavar="FILE"),
]
OldQueriesOption = Annotated[
    Path | None,
    options.flag(
        "--old-queries", "Input", "The same queries, embedded by the old model.", metavar="FILE"
    ),
]
RelevantOption = Annotated[
    Path | None,
    options.flag(
        "--relevant",
        "Input",
        "Table of two columns: a query, and a document that answers it.",
        metavar="FILE",
    ),
]
TableOption = Annotated[
    Path | None,
    options.flag(
        "--table",
        "Output",
        "CSV or Parquet file for confidence and bound of each vector, what to re-embed first on "
        "top.",
        metavar="FILE",
    ),
]
FigureOption = Annotated[
    Path | None,
    options.flag(
        "--figure",
        "Output",
        "Picture of recall by share re-embedded (SVG, PNG or PDF).",
        metavar="FILE",
    ),
]
BudgetOption = Annotated[
    float,
    options.flag(
        "--budget",
        "Method",
        "Largest share of the documents that you would re-embed.",
        min=0.0,
        max=1.0,
        metavar="SHARE",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Judging:
    """By what it is judged whether to translate."""

    queries: QueriesOption = None
    old_queries: OldQueriesOption = None
    relevant: RelevantOption = None
    budget: BudgetOption = 0.5


@options.grouped
def migrate(
    old: OldArgument,
    new_sample: SampleArgument,
    *,
    output: OutputOption = None,
    side: SideOption = "documents",
    judging: Judging,
    table: TableOption = None,
    figure: FigureOption = None,
    seed: options.SeedOption = 0,
    overwrite: options.OverwriteOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Tell whether to stay on an old embedding, translate it or re-embed it; and translate it.

    With OUTPUT, what has no vector in NEW_SAMPLE is translated, and what has one keeps it.
    """
    _refuse_unused(output, side, judging, table, figure)
    with console.Progress() as progress:
        common: dict[str, Any] = {"seed": seed, "n_jobs": jobs, "progress": progress}
        if output is None:
            from vecfill.jobs.migrate import evaluate_migration

            queries = None
            if judging.queries is not None:
                queries = judging.old_queries, judging.queries
            common |= {"relevant": _answers(judging.relevant), "budget": judging.budget}
            evaluation = evaluate_migration(old, new_sample, queries=queries, **common)
            _draw(evaluation, figure, overwrite=overwrite)
            console.show(evaluation, (), json=json)
            return
        from vecfill.jobs.migrate import migrate as migrated

        rows = judging.queries if side == "queries" else None
        files: dict[str, Any] = {"output": output, "table": table, "overwrite": overwrite}
        migration = migrated(old, new_sample, side=side, queries=rows, **files, **common)
    console.show(migration, (), json=json)


def _refuse_unused(
    output: Path | None, side: str, judging: Judging, table: Path | None, figure: Path | None
) -> None:
    """Refuse options that would be ignored."""
    from vecfill.errors import InputError

    if output is None:
        if side == "queries" or table is not None:
            raise InputError(
                "--side and --table are about vectors that are written. Name a file (-o)."
            )
        if (judging.queries is None) != (judging.old_queries is None):
            raise InputError(
                "queries are needed from both models. Pass --queries and --old-queries."
            )
        return
    unused = {"--old-queries": judging.old_queries, "--relevant": judging.relevant}
    for name, value in {**unused, "--figure": figure}.items():
        if value is not None:
            raise InputError(
                f"{name} is for the question whether to translate, and -o translates. Run the "
                "command once without -o."
            )


def _answers(path: Path | None) -> dict[str, list[str]] | None:
    """Return the documents that answer each query, from a table of two columns."""
    if path is None:
        return None
    from vecfill.io.names import read_pairs

    answers: dict[str, list[str]] = {}
    for query, document in read_pairs(path, second="document"):
        answers.setdefault(query, []).append(document)
    return answers


def _draw(evaluation: MigrationEvaluation, path: Path | None, *, overwrite: bool) -> None:
    """Write the picture of recall by share re-embedded."""
    if path is None:
        return
    from vecfill.io import atomic_output
    from vecfill.views.plots import recall_by_share

    picture = recall_by_share(evaluation)
    with atomic_output(path, overwrite=overwrite) as file:
        picture.savefig(file, format=path.suffix.removeprefix(".") or "svg")
