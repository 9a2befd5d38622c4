"""What a user sees after an imputation: what was done, how good it is, what to do next."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vecfill.cli import console
from vecfill.cli.console import flag_of
from vecfill.wording import count, percent, wrapped

if TYPE_CHECKING:
    from vecfill.jobs.job import Enrichment
    from vecfill.requests import Ask, Request
    from vecfill.result import Result

Line = tuple[str, str]
"""A label, empty if that of the line before still holds, and a text."""

_LABEL = 12
_LONGEST_STEP = 200
_N_EXAMPLES = 3


def as_text(lines: Iterable[Line], stream: Any = None) -> str:
    """Return lines with their labels in a column; wrapped if they go to a terminal.

    Examples
    --------
    >>> print(as_text([("Imputed", "3 entities"), ("", "by the mean")]))
    Imputed     3 entities
                by the mean
    """
    stream = stream or sys.stdout
    width, lines_of_text = console.width_of(stream) or 10**9, []
    for label, text in lines:
        room = max(20, width - _LABEL)
        first, *more = wrapped(console.plain(text), room, break_long_words=False) or [""]
        title = console.heading(label, stream) if label else ""
        lines_of_text.append(f"{title}{'':{_LABEL - len(label)}}{first}".rstrip())
        lines_of_text += [f"{'':{_LABEL}}{line}" for line in more]
    return "\n".join(lines_of_text)


def imputed(enrichment: Enrichment, *, is_table: bool, is_verbose: bool) -> list[Line]:
    """Return what was imputed and how good it is."""
    counts, result = enrichment.counts, enrichment.result
    matched = ", ".join(
        f"{n:,} {how}"
        for how, n in enrichment.matches.counts.items()
        if how not in ("none", "excluded")
    )
    known = f"{counts['known']:,} known" + ("" if is_table else f" (matched: {matched})")
    lines = [("Entities", f"{counts['entities']:,}: {known}, {counts['unknown']:,} unknown")]
    if result is None:
        return lines
    lines = [*collapse(result), *lines]
    lines.append(("Imputed", f"{counts['imputed']:,} by {result.predictor.in_words()}"))
    if is_verbose:
        lines.append(("", f"exactly: {result.predictor}"))
    if result.sources:
        lines.append(("Sources", _sources(result)))
    if result.abstained:
        lines.append(("Left out", f"{counts['abstained']:,} for low confidence"))
    lines += trust(result)
    if enrichment.evaluation is not None:
        lines.append(("Compared", enrichment.evaluation.verdict))
    lines += sanity(result)
    if result.suspicious:
        names = ", ".join(_short(suspicion.entity) for suspicion in result.suspicious[:3])
        suspects = count(len(result.suspicious), "known entity")
        lines.append(("Check", f"{suspects} contradicted by their neighbours, such as {names}"))
    if is_verbose:
        lines.append(("Time", stages(enrichment.seconds)))
    return lines


def stages(seconds: Mapping[str, float]) -> str:
    """Return how long each stage took.

    Examples
    --------
    >>> stages({"Reading the table": 0.24, "Imputing": 3.0})
    'reading the table 0.2 s, imputing 3.0 s'
    """
    return ", ".join(f"{stage.lower()} {spent:.1f} s" for stage, spent in seconds.items())


def trust(result: Result) -> list[Line]:
    """Return what hidden entities prove, and the confidence in the new vectors."""
    lines = []
    if result.heldout is not None:
        means = result.heldout.means()
        hidden = "the rarest known" if result.proof.speaks == "rarest" else "hidden known"
        lines.append(
            ("Proof", f"{hidden} entities came back with a centred cosine of "
             f"{means['centred_cosine']:.2f}, {percent(means['hits_at_10'])} of them among the "
             "ten nearest")
        )  # fmt: skip
    confidence = result.confidence
    if confidence is not None and confidence.values.size:
        low, middle, high = _quartiles(confidence.values)
        lines.append(
            ("Confidence", f"{middle:.2f} (half of them {low:.2f} to {high:.2f}); "
             f"{percent(confidence.level)} lower bounds held for {percent(confidence.coverage)} of "
             "hidden entities")
        )  # fmt: skip
    return lines


def _quartiles(values: Any) -> list[float]:
    import numpy as np

    return np.quantile(values, [0.25, 0.5, 0.75]).tolist()


def _sources(result: Result) -> str:
    weights = [f"{source.name} {source.weight:.2f}" for source in result.sources if source.is_kept]
    dropped = [source.name for source in result.sources if not source.is_kept]
    return "weights " + ", ".join(weights) + (f"; dropped {', '.join(dropped)}" if dropped else "")


def written(enrichment: Enrichment, place: str, *, is_table: bool) -> Line:
    """Return what was written where."""
    counts = enrichment.counts
    rows, added = ("vectors", "filled") if is_table else ("words", "added")
    n_replaced = counts["replaced"]
    unchanged = f"{counts['words_before'] - n_replaced:,} {rows} unchanged"
    replaced = f", {n_replaced:,} replaced" if n_replaced else ""
    return ("Written", f"{place}: {unchanged}{replaced}, {counts['added']:,} {added}")


def next_steps(
    enrichment: Enrichment, base: Path | None, table: Path, output: Path, ask: Ask
) -> list[Line]:
    """Return commands that a user is likely to want now, with the options of this one."""
    steps: list[str] = []
    result, report = enrichment.result, ask.output.report
    if report is not None and result is not None:
        steps.append(f"open {report} in a browser")
    if base is not None and result is not None and enrichment.added:
        word = next(iter(enrichment.added))
        explain = _shell(
            "vecfill", "explain", base, table, word, *_flags((ask.reading, ask.method))
        )
        steps += [explain] if len(explain) <= _LONGEST_STEP else []
    if base is not None and not enrichment.counts["replaced"]:
        steps.append(_shell("vecfill", "verify", base, output))
    if result is not None and report is None:
        steps.append("add --report page.html --evaluate for a page about the result")
    return [("" if number else "Next", step) for number, step in enumerate(steps)]


def _flags(requests: Sequence[Request]) -> list[str]:
    """Return the options that were asked for, as a shell takes them."""
    words: list[str] = []
    for request in requests:
        for name in request.asked():
            value = getattr(request, name)
            for word in value if isinstance(value, tuple) else (value,):
                words += [flag_of(name), *([] if word is True else [str(word)])]
    return words


def _shell(*words: object) -> str:
    return shlex.join(str(word) for word in words)


def collapse(result: Result) -> list[Line]:
    """Return what comes first if the new vectors cannot be told apart as they should."""
    warning = None if result.sanity is None else result.sanity.warning
    # The note on stderr has the figures, and so have the lines on spread and nearest words.
    warnings = [] if warning is None else [warning]
    warnings += [str(leak) for leak in result.leaks if leak.lowers_trust]
    return [("Warning", f"{text.partition('. ')[0]}.") for text in warnings]


def sanity(result: Result) -> list[Line]:
    """Return how alike the new vectors are, what they share, and what some of them are near."""
    if result.sanity is None:
        return []
    lines = [
        (label.capitalize(), text) for label, text in result.sanity.lines() if label != "examples"
    ]
    examples = map(str, result.sanity.examples[:_N_EXAMPLES])
    return lines + [("" if number else "Examples", text) for number, text in enumerate(examples)]


def _short(name: str) -> str:
    return name if len(name) <= 30 else name[:27] + "..."
