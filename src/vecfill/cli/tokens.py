"""`vecfill tokens`: terms that become tokens of a language model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vecfill.cli import console, options
from vecfill.requests import Ask, Method, Output, Reading, Trust
from vecfill.wording import count

if TYPE_CHECKING:
    from vecfill.jobs.tokens import NewTokens

_N_SHOWN = 20
# Rarity is known from the order of tokens, nothing can be excluded, and --source here has
# a meaning of its own.
_NOT_HERE = (
    *("exclude", "min_count", "from_rank"),
    *("source", "names", "text", "encoder", "vector"),
    *("interactions", "level", "confidence", "save", "manifest", "overwrite", "groups"),
)


ModelArgument = Annotated[Path, options.argument("FOLDER", "Folder of a language model.")]
TermsArgument = Annotated[
    Path,
    options.argument(
        "TERMS", "Text file with one term per line, or a table whose first column has the terms."
    ),
]
SourceOption = Annotated[
    list[str],
    options.flag(
        "--source",
        "Input",
        "What describes terms and words: word vectors, a table, or the pieces that the model "
        "splits them into. May be repeated.",
        metavar="FILE|pieces",
    ),
]
NewFolderOption = Annotated[
    Path,
    options.flag(
        "-o --output", "Output", "Folder to write; it must not exist.", metavar="NEWFOLDER"
    ),
]
HeadOption = Annotated[
    Literal["auto", "mean"],
    options.flag(
        "--head",
        "Method",
        "Rows of an output layer that is not tied: imputed in its own space, or the mean row of "
        "whole words.",
    ),
]
TensorOption = Annotated[
    str | None,
    options.flag(
        "--tensor",
        "Input",
        "Name of the embedding tensor, if it is not one of the usual names.",
        metavar="NAME",
    ),
]


LevelOption = Annotated[
    Literal["counts", "rank", "off"] | None,
    options.flag(
        "--level",
        "Method",
        "How likely new tokens are as output: as their counts (--counts) or their rank in the "
        "source say, or as imputed. By default by what is known. For causal models.",
    ),
]
DistilOption = Annotated[
    bool,
    options.flag(
        "--distil",
        "Method",
        "Fit the new rows so that the model reads a term as it reads its pieces in context.",
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
    level: LevelOption = None,
    distil: DistilOption = False,
    jobs: options.JobsOption = None,
    json: options.JsonOption = False,
) -> None:
    """Give each term a token of its own in a copy of a language model.

    NEWFOLDER is FOLDER with a row for each term of TERMS that the model splits into pieces. Every
    other byte of the weights stays the same, and `vecfill verify FOLDER NEWFOLDER` proves it. With
    torch installed, new tokens that the model reads worse than their pieces are refused (exit
    status 3).
    """
    from vecfill.jobs.tokens import extend_model

    with console.Progress() as progress:
        extended = extend_model(
            folder,
            terms,
            _named(source),
            output,
            head=head,
            tensor=tensor,
            token_level=level,
            distil=distil,
            n_jobs=jobs,
            progress=progress,
            ask=ask,
        )
    console.notes((*extended.imputation.result.notes, *extended.added.notes))
    if json:
        console.out_json(extended.to_dict())
    else:
        console.out(_summary(extended))


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


def _by_reason(skipped: dict[str, str]) -> dict[str, list[str]]:
    """Return the terms that were skipped for each reason."""
    terms_of: dict[str, list[str]] = {}
    for term, why in skipped.items():
        terms_of.setdefault(why, []).append(term)
    return terms_of


def _summary(extended: NewTokens) -> str:
    from vecfill.cli import summary

    result, skipped = extended.imputation.result, extended.imputation.skipped
    n_added = len(extended.added.ids)
    lines = [*summary.collapse(result), ("Terms", f"{n_added + len(skipped):,}")]
    if skipped:
        lines.append(("Skipped", f"{len(skipped):,}"))
    for why, terms in _by_reason(skipped).items():
        named = ", ".join(terms[:_N_SHOWN])
        more = f" and {len(terms) - _N_SHOWN:,} more" if len(terms) > _N_SHOWN else ""
        lines.append(("", f"{named}{more}: {why}"))
    if any(len(terms) > _N_SHOWN for terms in _by_reason(skipped).values()):
        lines.append(("", "--json lists all of them"))
    how = result.predictor.in_words()
    lines.append(("Imputed", f"{n_added:,} from {count(len(result.known), 'word')}, by {how}"))
    lines += summary.trust(result)
    if extended.evaluation is not None:
        lines.append(("Compared", extended.evaluation.verdict))
    lines += summary.sanity(result)
    lines += [("Table", f"{name}: {how}") for name, how in extended.added.tables.items()]
    if extended.added.fitted is not None:
        lines += extended.added.fitted.lines()
    lines.append(("Written", f"{extended.added.output}: {count(n_added, 'token')} added"))
    return summary.as_text(lines)
