"""A language model, terms and what describes them -> a copy of the model with new tokens."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os.path import realpath
from pathlib import Path
from typing import Any

from vecfill.errors import InputError
from vecfill.exchange.huggingface.adding import AddedTokens, prepared_tokens
from vecfill.exchange.huggingface.fitting import Fitting
from vecfill.exchange.huggingface.imputing import TokenImputation, impute_tokens
from vecfill.inputs.files import PathOrName, Progress, quiet
from vecfill.io.atomic import together
from vecfill.io.targets import check_new_folder, check_targets
from vecfill.requests import Ask, Method, Output, Reading, Trust, takes
from vecfill.run import check_evaluated, evaluate_result
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.views.report import write_report


@dataclass(frozen=True)
class NewTokens:
    """What was imputed, what was written, and how other methods compare."""

    imputation: TokenImputation
    added: AddedTokens
    evaluation: Evaluation | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        head = self.imputation.head
        return {
            **self.added.to_dict(),
            "skipped": self.imputation.skipped,
            "result": self.imputation.result.to_dict(),
            "head": None if head is None else head.to_dict(),
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
        }


@takes(Reading, Method, Trust, Output)
def extend_model(
    folder: PathOrName,
    terms: Iterable[str] | PathOrName,
    source: Any,
    output: PathOrName,
    *,
    head: str = "auto",
    tensor: str | None = None,
    token_level: str | None = None,
    distil: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ask: Ask,
) -> NewTokens:
    """Write `output`: a copy of a language model in which each term is one token.

    It is `vecfill.impute_tokens` and `vecfill.add_tokens` in one, with a report if it is asked for;
    the folder and the report appear together. If the model can be run here, it is compared before
    and after, and tokens that do harm are refused unless `force` is true.

    Parameters
    ----------
    folder, terms, source, head, tensor
        As in `vecfill.impute_tokens`.
    output
        The folder to write; it must not exist.
    token_level, distil
        The `level` and `distil` of `vecfill.add_tokens`; `level` is that of the bounds, as in
        `vecfill.impute`.
    n_jobs, progress
        As in `vecfill.impute`.
    """
    requested = ask.output
    requested.refuse_unused(("report", "evaluate"), requested.asked(), "a new folder is written")
    check_evaluated(ask)
    check_new_folder(output)
    for place in (output, requested.report):
        if place is not None and Path(realpath(place)).is_relative_to(realpath(folder)):
            raise InputError(
                f"{place} lies in {folder}, which is never written to. Choose another place."
            )
    check_targets([requested.report], _files(terms, source), overwrite=False)
    tell = progress or quiet
    with together():
        options: dict[str, Any] = {"head": head, "tensor": tensor}
        imputation = impute_tokens(
            folder, terms, source, **options, n_jobs=n_jobs, progress=progress, ask=ask
        )
        result, compared = imputation.result, None
        if requested.evaluate:
            compared = evaluate_result(result, ask, n_jobs, tell)
        tell("Trying the new tokens", 0, 0)
        fitting = Fitting(token_level, distil=distil, check=None, force=ask.method.force)
        prepared = prepared_tokens(folder, imputation, **options, fitting=fitting)
        tell("Writing", 0, 0)
        # The page waits under a temporary name: a full disk stops us before the folder is there.
        if requested.report is not None:
            title = f"New tokens of {Path(folder).name}"
            lines = tuple(f"{label}: {text}." for label, text in prepared.fitted.lines())
            result = replace(result, notes=(*lines, *result.notes))
            write_report(result, requested.report, evaluation=compared, title=title)
        added = prepared.written(output)
    return NewTokens(imputation, added, compared)


def _files(terms: Any, source: Any) -> list[Any]:
    """Return terms and sources; those that are no paths are left alone."""
    sources = source.values() if isinstance(source, Mapping) else [source]
    return [terms, *(path for path in sources if isinstance(path, str | os.PathLike))]
