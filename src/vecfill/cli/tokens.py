"""`vecfill tokens`, and `vecfill verify` on two folders of models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from vecfill.cli import console, options
from vecfill.requests import Ask, Method, Output, Reading, Trust
from vecfill.wording import count

if TYPE_CHECKING:
    from vecfill.jobs.tokens import NewTokens

_N_SHOWN = 3
# Rarity is known from the order of tokens, nothing can be excluded, and --source here has
# a meaning of its own.
_NOT_HERE = (
    *("exclude", "counts", "min_count", "from_rank"),
    *("source", "names", "text", "encoder", "vector"),
    *("confidence", "save", "manifest", "overwrite"),
)


ModelArgument = Annotated[
    Path, typer.Argument(metavar="FOLDER", help="Folder of a language model.")
]
TermsArgument = Annotated[
    Path,
    typer.Argument(
        metavar="TERMS",
        help="Text file with one term per line, or a table whose first column has the terms.",
    ),
]
SourceOption = Annotated[
    list[str],
    typer.Option(
        "--source",
        rich_help_panel="Input",
        metavar="FILE|pieces",
        help="What describes terms and words: word vectors, a table, or the pieces that the "
        "model splits them into. May be repeated.",
    ),
]
NewFolderOption = Annotated[
    Path,
    typer.Option(
        "-o",
        "--output",
        rich_help_panel="Output",
        metavar="NEWFOLDER",
        help="Folder to write; it must not exist.",
    ),
]
HeadOption = Annotated[
    Literal["auto", "mean"],
    typer.Option(
        "--head",
        rich_help_panel="Method",
        help="Rows of an output layer that is not tied: imputed in its own space, or the mean row "
        "of whole words.",
    ),
]
TensorOption = Annotated[
    str | None,
    typer.Option(
        "--tensor",
        rich_help_panel="Input",
        metavar="NAME",
        help="Name of the embedding tensor, if it is not one of the usual names.",
    ),
]


@options.shared(Method, Reading, Trust, Output, without=_NOT_HERE)
def tokens(
    folder: ModelArgument,
    terms: TermsArgument,
    *,
    source: SourceOption,
    output: NewFolderOption,
    ask: Ask,
    head: HeadOption = "auto",
    tensor: TensorOption = None,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Give each term a token of its own in a copy of a language model.

    NEWFOLDER is FOLDER with a row for each term of TERMS that the model splits into pieces. Every
    other byte of the weights stays the same, and `vecfill verify FOLDER NEWFOLDER` proves it.
    """
    from vecfill.jobs.tokens import extend_model

    with console.Progress() as progress:
        done = extend_model(
            folder,
            terms,
            _named(source),
            output,
            head=head,
            tensor=tensor,
            n_jobs=jobs,
            progress=progress,
            ask=ask,
        )
    console.notes((*done.imputation.result.notes, *done.added.notes))
    if json:
        console.out_json(done.to_dict())
    else:
        console.out(_summary(done))


def _named(source: list[str]) -> dict[str, str]:
    """Return sources by a name each: `pieces`, or that of the file."""
    from vecfill.errors import InputError

    named = {
        name_or_path if name_or_path == "pieces" else Path(name_or_path).stem: name_or_path
        for name_or_path in source
    }
    if len(named) < len(source):
        raise InputError("--source names the same source twice. Name each once.")
    return named


def _summary(done: NewTokens) -> str:
    from vecfill.cli import summary

    result, skipped, compared = done.imputation.result, done.imputation.skipped, done.evaluation
    n_added = len(done.added.ids)
    lines = [*summary.collapse(result), ("Terms", f"{n_added + len(skipped):,}")]
    if skipped:
        lines.append(("Skipped", f"{len(skipped):,}"))
    lines += [("", f"{term} {why}") for term, why in list(skipped.items())[:_N_SHOWN]]
    if len(skipped) > _N_SHOWN:
        lines.append(("", f"and {len(skipped) - _N_SHOWN:,} more, which --json lists"))
    how = result.predictor.in_words()
    lines.append(("Imputed", f"{n_added:,} from {count(len(result.known), 'word')}, by {how}"))
    if result.confidence is not None:
        low, middle, high = console.quartiles(result.confidence.values)
        lines.append(("Confidence", f"{middle:.2f} (half of them {low:.2f} to {high:.2f})"))
    if compared is not None:
        lines.append(("Compared", compared.verdict))
    lines += summary.sanity(result)
    lines += [("Table", f"{name}: {how}") for name, how in done.added.tables.items()]
    lines.append(("Written", f"{done.added.output}: {count(n_added, 'token')} added"))
    return summary.as_text(lines)


def are_models(original: Path, enriched: Path) -> bool:
    """Tell whether both paths are folders with files that a model has; refuse one of each kind."""
    from vecfill.errors import InputError

    names = ("config.json", "modules.json", "tokenizer.json")
    are_folders = [any((path / name).exists() for name in names) for path in (original, enriched)]
    if any(are_folders) and not all(are_folders):
        model, other = (original, enriched) if are_folders[0] else (enriched, original)
        what = "is not the folder of a model" if other.exists() else "does not exist"
        raise InputError(
            f"{other} {what}, and {model} is one. Pass the folder before and after tokens were "
            "added."
        )
    return all(are_folders)


def verify_folders(
    original: Path, enriched: Path, refused: dict[str, object], *, json: bool
) -> None:
    """Compare two folders of models; print what was added, or refuse if they differ."""
    from dataclasses import asdict

    from vecfill.errors import InputError, OptionError
    from vecfill.exchange.huggingface.verifying import verify_model

    for name, value in refused.items():
        if value is not None:
            raise OptionError(f"--{name} cannot be used here: {original} is a folder of a model.")
    with console.Progress() as progress:
        progress("Comparing", 0, 0)
        verification = verify_model(original, enriched)
    if json:
        console.out_json(asdict(verification))
    elif verification.ok:
        console.out(console.plain(str(verification)))
    if not verification.ok:
        raise InputError(
            f"{enriched} is not {original} with tokens added: {verification.difference} "
            "Add the tokens to the original again."
        )
