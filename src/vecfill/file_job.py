"""The whole job on files: read, match, impute, check, write back.

What it needs is imported inside its functions: `vecfill.enrich` is a public name of the package,
so this module is loaded with it, and loading the package must stay quick.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vecfill._english import count
from vecfill.outputs import Outputs
from vecfill.requests import Method, Reading, Replacement, Trust, takes

if TYPE_CHECKING:
    from vecfill.embedding import Embedding
    from vecfill.inputs.files import Inputs, PathOrName, Progress
    from vecfill.inputs.match_report import MatchReport
    from vecfill.io.patching import Patch, RowChange
    from vecfill.result import Result
    from vecfill.trust.evaluation import Evaluation
    from vecfill.written_rows import WrittenRows

_N_LISTED = 5

Requests = tuple[Reading, Method, Trust, Replacement]


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
    replaced: dict[str, RowChange] = field(default_factory=dict)
    """Rows of the file that were replaced, by entity."""
    manifest: dict[str, Any] = field(default_factory=dict, repr=False)
    evaluation: Evaluation | None = field(default=None, repr=False)
    """The comparison with other methods, if it was asked for."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        result = self.result
        return {
            "output": str(self.output),
            "counts": self.counts,
            "matched": self.matches.counts,
            "method": None if result is None else result.predictor.to_dict(),
            "sources": [] if result is None else [each.to_dict() for each in result.sources],
            "added": [self._about(entity, word) for entity, word in self.added.items()],
            "replaced": [
                {**self._about(entity, change.word), **vars(change)}
                for entity, change in self.replaced.items()
            ],
            "abstained": [] if result is None else list(result.abstained),
            "left_out": list(self.left_out),
            "suspicious": [] if result is None else result.to_dict()["suspicious"],
            "notes": list(self.notes),
            "evaluation": None if self.evaluation is None else self.evaluation.to_dict(),
        }

    def _about(self, entity: str, word: str) -> dict[str, Any]:
        about: dict[str, Any] = {"entity": entity, "word": word}
        if self.result is not None and self.result.confidence is not None:
            row = self.result.embedding.row(entity)
            about["confidence"] = float(self.result.confidence.values[row])
            about["lower_bound"] = float(self.result.confidence.lower_bound[row])
        return about


@takes(reading=Reading, how=Method, trust=Trust, replacement=Replacement)
def enrich(
    embedding: PathOrName,
    table: Any,
    output: PathOrName,
    *,
    report: PathOrName | None = None,
    evaluate: bool = False,
    manifest: bool = True,
    overwrite: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    reading: Reading,
    how: Method,
    trust: Trust,
    replacement: Replacement,
) -> Enrichment:
    r"""Write `output`: the file `embedding` unchanged, then a row for each entity it lacks.

    The file is never loaded whole: its words are scanned, the rows of matching words are read,
    and the result is the original's bytes with the imputed rows after them. The result and its
    manifest appear whole or not at all. Memory is that of the matching rows and the imputation.

    `replace` is for words that have a row, but a poor one. Their entities are treated as unknown,
    and the rows are replaced in place: True takes those that `exclude`, `min_count` and `from_rank`
    name, ``"suspicious"`` those of `Result.suspicious` after a first run; a file or a list of
    entities is possible too. Every other byte of the file stays.

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
    evaluate
        Whether to compare the chosen method with others on hidden known entities, for the report.
        It takes several times as long and does not change the vectors.
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
        evaluate=evaluate,
        manifest=manifest,
        overwrite=overwrite,
        n_jobs=n_jobs,
        progress=progress,
        requests=(reading, how, trust, replacement),
    )


def enrich_requested(
    embedding: PathOrName,
    table: Any,
    output: PathOrName,
    *,
    report: PathOrName | None,
    evaluate: bool,
    manifest: bool,
    overwrite: bool,
    n_jobs: int | None,
    progress: Progress | None,
    save: PathOrName | None = None,
    requests: Requests,
) -> Enrichment:
    """Do what `enrich` does, with the options as request objects; `save` is only checked."""
    from vecfill.inputs.files import quiet, read_inputs, source_files
    from vecfill.provenance import Fingerprint, manifest_path
    from vecfill.run import check_evaluated, evaluate_result, fuses_sources
    from vecfill.views.columns import columns_to_show
    from vecfill.written_rows import named_entities, patches_of

    reading, how, *_, replacement = requests
    check_evaluated(how, evaluate)
    reading.refuse_unused((), ("vector",), "it is for one table that holds features and vectors")
    named = named_entities(reading, replacement)
    tell = progress or quiet
    beside = manifest_path(output) if manifest else None
    outputs = Outputs(output, beside, report, overwrite, save)
    files = {"embedding": embedding, "table": table, "aliases": reading.aliases}
    files |= {"counts": _file(reading.counts), "replace": _file(replacement.replace)}
    files |= {f"source {name}": path for name, (path, _) in source_files(reading).items()}
    outputs.check(files.values())
    fuses = fuses_sources(how, reading)
    inputs = read_inputs(embedding, table, reading, unreliable=named, fuses=fuses, progress=tell)
    inputs.matches.require_matches()
    with ExitStack() as stack:
        hashed = {
            role: stack.enter_context(
                Fingerprint(path, inputs.sha256 if role == "embedding" else None)
            )
            for role, path in files.items()
            if (manifest or report is not None) and isinstance(path, str | os.PathLike)
        }
        result, inputs, rows = _decided(inputs, requests, n_jobs, tell)
        patches = patches_of(embedding, result, rows, inputs, reading, replacement.blend)
        done = _enrichment(result, inputs, rows, patches, outputs)
        if evaluate and result is not None:
            done = replace(done, evaluation=evaluate_result(result, how, n_jobs, tell))
        about = _manifest(done, inputs, requests, hashed)
    columns = columns_to_show(table, reading) if report is not None else ()
    beside = contents_beside(done, outputs, about, tell, columns)
    _write(inputs, embedding, patches, reading, outputs, done, beside, tell)
    return replace(done, manifest=about if manifest else {})


def _file(value: Any) -> PathOrName | None:
    """Return what an option holds if it is the path of a file, and not a word or a list."""
    is_path = isinstance(value, str | os.PathLike)
    return value if is_path and Path(value).is_file() else None


def _decided(
    inputs: Inputs, requests: Requests, n_jobs: int | None, tell: Progress
) -> tuple[Result | None, Inputs, WrittenRows]:
    """Return what was imputed from what, and which rows are to be written."""
    from vecfill.written_rows import SUSPICIOUS, kind_of, replaceable, written_rows

    asked = kind_of(requests[-1])
    result = _imputed(inputs, requests, n_jobs, tell)
    names = asked if isinstance(asked, tuple) else None
    if asked == SUSPICIOUS:
        names = () if result is None else tuple(each.entity for each in result.suspicious)
        matches = inputs.matches.without(names, "contradicted by their neighbours")
        inputs = replace(inputs, matches=matches)
        if names:
            result = _imputed(inputs, requests, n_jobs, tell)
    own = {} if asked is None else replaceable(inputs, names)
    return result, inputs, written_rows(result, inputs, own, asked)


def _imputed(
    inputs: Inputs, requests: Requests, n_jobs: int | None, tell: Progress
) -> Result | None:
    if not inputs.matches.unmatched:
        return None
    from vecfill.inputs.alignment import aligned_inputs
    from vecfill.run import impute_aligned

    _, how, trust, _ = requests
    return impute_aligned(aligned_inputs(inputs), how, trust, n_jobs=n_jobs, progress=tell)


def _enrichment(
    result: Result | None,
    inputs: Inputs,
    rows: WrittenRows,
    patches: Sequence[Patch],
    outputs: Outputs,
) -> Enrichment:
    """Return what is to be said about the rows that are written."""
    change_of = {patch.word: patch.change for patch in patches}
    return Enrichment(
        result=result,
        output=Path(outputs.enriched),
        added=rows.added,
        left_out=rows.left_out,
        counts=_counts(result, inputs, rows, len(patches)),
        matches=inputs.matches,
        notes=(*_notes(result, inputs, rows, outputs), *rows.notes),
        replaced={
            entity: change_of[word] for entity, word in rows.replaced.items() if word in change_of
        },
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
    patches: Sequence[Patch],
    reading: Reading,
    outputs: Outputs,
    done: Enrichment,
    beside: dict[Path, bytes],
    tell: Progress,
) -> None:
    """Write the page, the enriched file and its manifest: all of them or none."""
    from vecfill.io import append_rows

    size = Path(embedding).stat().st_size
    tell("Copying and appending", 0, size)
    append_rows(
        embedding,
        outputs.enriched,
        _rows_to_add(done, inputs),
        format=reading.format,
        member=reading.member,
        overwrite=outputs.overwrite,
        expected_sha256=inputs.sha256,
        beside=beside,
        replaced=patches,
    )
    tell("Copying and appending", size, size)


def contents_beside(
    done: Enrichment, outputs: Outputs, about: dict[str, Any], tell: Progress, columns: Any
) -> dict[Path, bytes]:
    """Return what is written together with the vectors: the manifest and the page, if asked for."""
    from vecfill.provenance import as_json

    beside: dict[Path, bytes] = {}
    if outputs.manifest is not None:
        beside[Path(outputs.manifest)] = as_json(about).encode("ascii") + b"\n"
    if done.result is not None and outputs.report is not None:
        from vecfill.views.report import report_bytes

        tell("Writing the report", 0, 0)
        # Without a manifest there need be no lasting result either: it may go to standard output.
        shown = about if outputs.manifest else {**about, "output": Path(outputs.enriched).name}
        beside[Path(outputs.report)] = report_bytes(
            done.result, evaluation=done.evaluation, columns=columns, manifest=shown
        )
    return beside


def _rows_to_add(done: Enrichment, inputs: Inputs) -> Embedding:
    import numpy as np

    from vecfill.embedding import Embedding

    if done.result is None:
        known = inputs.embedding
        return Embedding([], np.empty((0, known.n_dims), known.vectors.dtype))
    return Embedding(done.added.values(), done.result.embedding[list(done.added)])


def _counts(
    result: Result | None, inputs: Inputs, rows: WrittenRows, n_replaced: int
) -> dict[str, int]:
    matches = inputs.matches
    n_known = len(matches.words)
    return {
        "entities": len(matches.matches),
        "known": n_known,
        "unknown": len(matches.matches) - n_known,
        "imputed": 0 if result is None else len(result.embedding),
        "abstained": 0 if result is None else len(result.abstained),
        "added": len(rows.added),
        "replaced": n_replaced,
        "words_before": matches.n_words,
        "words_after": matches.n_words + len(rows.added),
    }


def _notes(
    result: Result | None, inputs: Inputs, rows: WrittenRows, outputs: Outputs
) -> tuple[str, ...]:
    from vecfill.inputs.entities import listed

    notes = [*inputs.notes, *(() if result is None else result.notes)]
    if result is None:
        notes.append("Every entity has a row already; the file was copied unchanged.")
    if result is None and outputs.report is not None:
        notes.append("No page was written, because there is no imputation to report on.")
    renamed = {entity: word for entity, word in rows.added.items() if word != entity}
    if renamed:
        entity, word = next(iter(renamed.items()))
        notes.append(
            f"White space in {count(len(renamed), 'name')} was written as '_', such as {word!r} "
            f"for {entity!r}: in this format it would end the word."
        )
    if rows.left_out:
        notes.append(
            f"{count(len(rows.left_out), 'imputed entity was', 'imputed entities were')} not "
            "written, because the file already has a row of the same name: "
            f"{listed(rows.left_out, _N_LISTED)}. Rename what is to be added, or replace the rows "
            "(replace=)."
        )
    return tuple(dict.fromkeys(notes))
