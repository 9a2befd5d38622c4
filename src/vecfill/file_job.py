"""The whole job on files: read, match, impute, check, write back.

What it needs is imported inside its functions: `vecfill.enrich` is a public name of the package,
so this module is loaded with it, and loading the package must stay quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vecfill.requests import Method, Reading, Trust, takes

if TYPE_CHECKING:
    from vecfill.embedding import Embedding
    from vecfill.inputs.files import Inputs, PathOrName, Progress
    from vecfill.inputs.match_report import MatchReport
    from vecfill.result import Result

_N_LISTED = 5


@dataclass(frozen=True)
class Outputs:
    """Where the job writes: the enriched file and, if they are asked for, what stands beside it."""

    enriched: PathOrName
    manifest: PathOrName | None
    report: PathOrName | None
    overwrite: bool

    def check(self, sources: Iterable[Any]) -> None:
        """Refuse before the work what the writers would refuse after it."""
        from vecfill.io.targets import check_targets

        places = (self.enriched, self.manifest, self.report)
        check_targets(places, sources, overwrite=self.overwrite)


@dataclass(frozen=True)
class Enrichment:
    """What `enrich` did: the result, where it was written, how many of what."""

    result: Result | None
    """None if every entity was known, so that there was nothing to impute."""
    output: Path
    added: dict[str, str]
    """The words that were added to the file, by entity."""
    left_out: tuple[str, ...]
    """Entities imputed but not written, because the file has a row of that very name."""
    counts: dict[str, int]
    matches: MatchReport
    notes: tuple[str, ...]
    manifest: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        result = self.result
        return {
            "output": str(self.output),
            "counts": self.counts,
            "matched": self.matches.counts,
            "method": None if result is None else result.predictor.to_dict(),
            "added": [self._about(entity, word) for entity, word in self.added.items()],
            "abstained": [] if result is None else list(result.abstained),
            "left_out": list(self.left_out),
            "suspicious": [] if result is None else result.to_dict()["suspicious"],
            "notes": list(self.notes),
        }

    def _about(self, entity: str, word: str) -> dict[str, Any]:
        about: dict[str, Any] = {"entity": entity, "word": word}
        if self.result is not None and self.result.confidence is not None:
            row = self.result.embedding.row(entity)
            about["confidence"] = float(self.result.confidence.values[row])
            about["lower_bound"] = float(self.result.confidence.lower_bound[row])
        return about


@takes(reading=Reading, how=Method, trust=Trust)
def enrich(
    embedding: PathOrName,
    table: Any,
    output: PathOrName,
    *,
    report: PathOrName | None = None,
    manifest: bool = True,
    overwrite: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    reading: Reading,
    how: Method,
    trust: Trust,
) -> Enrichment:
    r"""Write `output`: the file `embedding` unchanged, then a row for each entity it lacks.

    The file is never loaded whole: its words are scanned, the rows of matching words are read,
    and the result is the original's bytes with the imputed rows after them. The result and its
    manifest appear whole or not at all. Memory is that of the matching rows and the imputation.

    Parameters
    ----------
    embedding
        The file to enrich, in any format that can be written.
    table
        What describes the entities: a path, or whatever `vecfill.impute` takes. A file of vectors
        (word2vec, GloVe and so on) works as well; `kind="embedding"` says so where in doubt.
    output
        The file to write, in the format of the original. White space in an entity's name becomes
        `_` in formats of word2vec and GloVe, where it would end the word.
    report
        Where to write a page about the result.
    manifest
        Whether to write `OUTPUT.manifest.json`: versions, options, hashes of inputs, counts.
    overwrite
        Whether existing results may be replaced.
    n_jobs
        Number of threads. By default all cores; the result is the same.
    progress
        Called with what is being done, how much is done, and how much there is.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "old.vec").write_text("3 1\nred 1\norange 2\nyellow 3\n")
    >>> waves = {"red": [680.0], "orange": [610.0], "yellow": [580.0], "amber": [595.0]}
    >>> done = enrich(folder / "old.vec", waves, folder / "new.vec", method="paper")
    >>> done.counts["known"], done.counts["added"]
    (3, 1)
    >>> print((folder / "new.vec").read_text().splitlines()[0])
    4 1
    """
    return enrich_requested(
        embedding,
        table,
        output,
        report=report,
        manifest=manifest,
        overwrite=overwrite,
        n_jobs=n_jobs,
        progress=progress,
        requests=(reading, how, trust),
    )


def enrich_requested(
    embedding: PathOrName,
    table: Any,
    output: PathOrName,
    *,
    report: PathOrName | None,
    manifest: bool,
    overwrite: bool,
    n_jobs: int | None,
    progress: Progress | None,
    requests: tuple[Reading, Method, Trust],
) -> Enrichment:
    """Do what `enrich` does, with the options as request objects."""
    from vecfill.inputs.files import quiet, read_inputs
    from vecfill.provenance import Fingerprint, manifest_path

    reading = requests[0]
    tell = progress or quiet
    beside = manifest_path(output) if manifest else None
    outputs = Outputs(output, beside, report, overwrite)
    outputs.check((embedding, table, reading.aliases))
    inputs = read_inputs(embedding, table, reading, progress=tell)
    inputs.matches.require_matches()
    files = {"embedding": embedding, "table": table, "aliases": reading.aliases}
    with ExitStack() as stack:
        hashed = {
            role: stack.enter_context(
                Fingerprint(path, inputs.sha256 if role == "embedding" else None)
            )
            for role, path in files.items()
            if (manifest or report is not None) and isinstance(path, str | os.PathLike)
        }
        result = _imputed(inputs, table, requests, n_jobs, tell)
        rows, done = _enrichment(result, inputs, outputs)
        about = _manifest(done, inputs, requests, hashed)
    _write(inputs, embedding, rows, reading, outputs, done, about, tell)
    return replace(done, manifest=about if manifest else {})


def _imputed(
    inputs: Inputs,
    table: Any,
    requests: tuple[Reading, Method, Trust],
    n_jobs: int | None,
    tell: Progress,
) -> Result | None:
    reading, how, trust = requests
    if not inputs.matches.unmatched:
        return None
    from vecfill.inputs.alignment import aligned_inputs
    from vecfill.run import impute_aligned

    alignment = aligned_inputs(inputs, table, reading)
    return impute_aligned(alignment, how, trust, n_jobs=n_jobs, progress=tell)


def _enrichment(
    result: Result | None, inputs: Inputs, outputs: Outputs
) -> tuple[Embedding, Enrichment]:
    """Return the rows to append, and what is to be said about them."""
    rows, added, left_out = _rows_to_add(result, inputs)
    return rows, Enrichment(
        result=result,
        output=Path(outputs.enriched),
        added=added,
        left_out=left_out,
        counts=_counts(result, inputs, added),
        matches=inputs.matches,
        notes=_notes(result, inputs, added, left_out, outputs),
    )


def _manifest(
    done: Enrichment, inputs: Inputs, requests: tuple[Any, ...], hashed: Mapping[str, Any]
) -> dict[str, Any]:
    """Return how the result was made: every option, every input, every count."""
    from vecfill import __version__
    from vecfill.provenance import provenance

    return {
        **provenance(__version__),
        "options": {key: value for each in requests for key, value in each.to_dict().items()},
        "inputs": {role: each.result() for role, each in hashed.items()},
        "format": inputs.format,
        **done.to_dict(),
        "words": inputs.matches.words,
    }


def _write(
    inputs: Inputs,
    embedding: PathOrName,
    rows: Embedding,
    reading: Reading,
    outputs: Outputs,
    done: Enrichment,
    about: dict[str, Any],
    tell: Progress,
) -> None:
    """Write the page, the enriched file and its manifest: all of them or none."""
    from vecfill.io import append_rows
    from vecfill.provenance import as_json

    if done.result is not None and outputs.report is not None:
        tell("Writing the report", 0, 0)
    beside = {}
    if outputs.manifest is not None:
        beside = {Path(outputs.manifest): as_json(about).encode("ascii") + b"\n"}
    # Without a manifest there need be no lasting result either: it may go to standard output.
    shown = about if outputs.manifest else {**about, "output": done.output.name}
    with _page(done.result, outputs, shown):
        size = Path(embedding).stat().st_size
        tell("Copying and appending", 0, size)
        append_rows(
            embedding,
            outputs.enriched,
            rows,
            format=reading.format,
            member=reading.member,
            overwrite=outputs.overwrite,
            expected_sha256=inputs.sha256,
            beside=beside,
        )
        tell("Copying and appending", size, size)


def _rows_to_add(
    result: Result | None, inputs: Inputs
) -> tuple[Embedding, dict[str, str], tuple[str, ...]]:
    """Return the rows to append, their words by entity, and the entities that have no place."""
    import numpy as np

    from vecfill.embedding import Embedding
    from vecfill.errors import InputError
    from vecfill.inputs.files import word_in_file

    if result is None:
        known = inputs.embedding
        return Embedding([], np.empty((0, known.n_dims), known.vectors.dtype)), {}, ()
    added: dict[str, str] = {}
    left_out: list[str] = []
    owner: dict[str, str] = {}
    for entity in result.embedding.words:
        word = word_in_file(entity, inputs.format)
        if word in inputs.taken:
            left_out.append(entity)
        elif word in owner:
            raise InputError(
                f"The entities {owner[word]!r} and {entity!r} would both be written as {word!r}. "
                "Rename one of them."
            )
        else:
            added[entity] = word
            owner[word] = entity
    return Embedding(added.values(), result.embedding[list(added)]), added, tuple(left_out)


def _counts(result: Result | None, inputs: Inputs, added: Mapping[str, str]) -> dict[str, int]:
    matches = inputs.matches
    n_known = len(matches.words)
    return {
        "entities": len(matches.matches),
        "known": n_known,
        "unknown": len(matches.matches) - n_known,
        "imputed": 0 if result is None else len(result.embedding),
        "abstained": 0 if result is None else len(result.abstained),
        "added": len(added),
        "words_before": matches.n_words,
        "words_after": matches.n_words + len(added),
    }


def _notes(
    result: Result | None,
    inputs: Inputs,
    added: Mapping[str, str],
    left_out: tuple[str, ...],
    outputs: Outputs,
) -> tuple[str, ...]:
    from vecfill.inputs.entities import listed

    notes = [*inputs.notes, *(() if result is None else result.notes)]
    if result is None:
        notes.append("Every entity has a row already; the file was copied unchanged.")
    if result is None and outputs.report is not None:
        notes.append("No page was written, because there is no imputation to report on.")
    renamed = {entity: word for entity, word in added.items() if word != entity}
    if renamed:
        entity, word = next(iter(renamed.items()))
        notes.append(
            f"White space in {len(renamed)} names was written as '_', such as {word!r} for "
            f"{entity!r}: in this format it would end the word."
        )
    if left_out:
        notes.append(
            f"{len(left_out)} imputed entities were not written, because the file has a row of "
            f"that very name: {listed(left_out, _N_LISTED)}. Rename them to have them added."
        )
    return tuple(dict.fromkeys(notes))


@contextmanager
def _page(result: Result | None, outputs: Outputs, manifest: Mapping[str, Any]) -> Iterator[None]:
    """Write the page first, and take it back if the rest fails."""
    if result is None or outputs.report is None:
        yield
        return
    from vecfill.views.report import write_report

    existed = Path(outputs.report).exists()
    write_report(result, outputs.report, manifest=manifest, overwrite=outputs.overwrite)
    try:
        yield
    except BaseException:
        if not existed:
            Path(outputs.report).unlink(missing_ok=True)
        raise
