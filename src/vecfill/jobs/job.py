"""The job on files: check, read, impute, write. How to read and how to write is left open."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vecfill import __version__, run
from vecfill.inputs.alignment import Alignment
from vecfill.inputs.files import PathOrName, Progress, forget, quiet, shared_table
from vecfill.inputs.names.match_report import MatchReport
from vecfill.io.atomic import together
from vecfill.io.codecs import codec_of
from vecfill.io.patching import RowChange
from vecfill.io.provenance import Fingerprint, as_json, manifest_path, provenance
from vecfill.io.sources import Source
from vecfill.io.targets import check_targets
from vecfill.machine.progress import Stopwatch
from vecfill.requests import Ask
from vecfill.result import Result
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.views import report as pages
from vecfill.views.columns import columns_to_show


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
    seconds: Mapping[str, float] = field(default_factory=dict, repr=False)
    """How long each stage took by the clock."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        result = self.result
        return {
            "output": str(self.output),
            "counts": self.counts,
            "matched": self.matches.counts,
            "method": None if result is None else result.predictor.to_dict(),
            "sources": [] if result is None else [source.to_dict() for source in result.sources],
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


class Job(ABC):
    """One run of the job on files; a subclass says what is read and what is written."""

    files: dict[str, Any]
    """What is read, by its role; values that are no paths are left alone."""
    nothing_to_do: str
    """What to say if no vector is missing."""

    def __init__(
        self,
        table: Any,
        output: PathOrName,
        ask: Ask,
        *,
        n_jobs: int | None,
        progress: Progress | None,
    ) -> None:
        self.table = shared_table(table, ask.reading, is_shown=ask.output.report is not None)
        self.output = output
        self.ask = ask
        self.n_jobs = n_jobs
        self.tell = Stopwatch(progress or quiet)

    def run(self) -> Enrichment:
        """Do the whole job; what it writes appears together, or nothing of it."""
        requested = self.ask.output
        run.check_evaluated(self.ask)
        self.check()
        with together():
            with ExitStack() as stack:
                self.read()
                if requested.report is None:
                    forget(self.table)
                hashed = {
                    role: stack.enter_context(Fingerprint(path, sha256))
                    for role, (path, sha256) in self.to_hash().items()
                }
                enrichment = self.imputed()
                if requested.evaluate and enrichment.result is not None:
                    compared = run.evaluate_result(
                        enrichment.result, self.ask, self.n_jobs, self.tell
                    )
                    enrichment = replace(enrichment, evaluation=compared)
                inputs = {role: fingerprint.result() for role, fingerprint in hashed.items()}
            about = {**provenance(__version__), **self.record(enrichment, inputs)}
            about["seconds"] = self.tell.seconds
            self.write(enrichment, self._beside(enrichment, about))
            forget(self.table)
            if requested.save is not None and enrichment.result is not None:
                self.tell("Saving the model", 0, 0)
                save_model(
                    enrichment.result, requested.save, self.base, overwrite=requested.overwrite
                )
        manifest = about if requested.manifest else {}
        return replace(enrichment, manifest=manifest, seconds=self.tell.seconds)

    @property
    def base(self) -> PathOrName | None:
        """The file of vectors in whose format new ones are written, if there is one."""
        return None

    @abstractmethod
    def check(self) -> None:
        """Refuse before the work what cannot be meant or written."""

    @abstractmethod
    def read(self) -> None:
        """Read the inputs."""

    def to_hash(self) -> dict[str, tuple[PathOrName, str | None]]:
        """Return the inputs whose hashes are recorded, by role, with those that are known."""
        return {
            role: (path, None)
            for role, path in self.files.items()
            if isinstance(path, str | os.PathLike)
        }

    @abstractmethod
    def imputed(self) -> Enrichment:
        """Return what was imputed, and what is to be written."""

    @abstractmethod
    def record(self, enrichment: Enrichment, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return how the result was made: every option, every input, every count."""

    @abstractmethod
    def write(self, enrichment: Enrichment, beside: dict[Path, bytes]) -> None:
        """Write the vectors, and what stands beside them."""

    def check_targets(self) -> None:
        """Refuse before the work what the writers would refuse after it."""
        requested = self.ask.output
        places = (self.output, self._manifest_path(), requested.report, requested.save)
        check_targets(places, self.files.values(), overwrite=requested.overwrite)

    def _manifest_path(self) -> Path | None:
        return manifest_path(self.output) if self.ask.output.manifest else None

    def impute(self, alignment: Alignment) -> Result:
        """Return the vectors that an embedding lacks."""
        options = {"table": self.table, "n_jobs": self.n_jobs, "progress": self.tell}
        return run.impute_aligned(alignment, self.ask, **options)

    def notes_on_nothing(self, result: Result | None) -> list[str]:
        """Return what to say if there was nothing to impute."""
        if result is not None:
            return []
        if self.ask.output.report is None:
            return [self.nothing_to_do]
        return [
            self.nothing_to_do,
            "No page was written, because there is no imputation to report on.",
        ]

    def _beside(self, enrichment: Enrichment, about: dict[str, Any]) -> dict[Path, bytes]:
        """Return what is written with the vectors: the manifest and the page, if asked for."""
        beside: dict[Path, bytes] = {}
        manifest, report = self._manifest_path(), self.ask.output.report
        if manifest is not None:
            beside[manifest] = as_json(about).encode("ascii") + b"\n"
        if enrichment.result is not None and report is not None:
            self.tell("Writing the report", 0, 0)
            # Without a manifest there need be no lasting result: it may go to standard output.
            page = about if manifest else {**about, "output": Path(self.output).name}
            beside[Path(report)] = pages.report_bytes(
                enrichment.result,
                evaluation=enrichment.evaluation,
                columns=columns_to_show(self.table, self.ask.reading),
                manifest=page,
            )
        return beside


def counts_of(
    result: Result | None, matches: MatchReport, *, n_added: int, n_replaced: int, n_before: int
) -> dict[str, int]:
    """Return how many entities and rows became what."""
    n_entities, n_known = len(matches.matches), len(matches.words)
    return {
        "entities": n_entities,
        "known": n_known,
        "unknown": n_entities - n_known,
        "imputed": 0 if result is None else len(result.embedding),
        "abstained": 0 if result is None else len(result.abstained),
        "added": n_added,
        "replaced": n_replaced,
        "words_before": n_before,
        "words_after": n_before + n_added,
    }


def file_of(value: Any) -> PathOrName | None:
    """Return what an option holds if it is the path of a file, and not a word or a list."""
    is_path = isinstance(value, str | os.PathLike)
    return value if is_path and Path(value).is_file() else None


def save_model(
    result: Result, path: PathOrName, embedding: PathOrName | None, *, overwrite: bool
) -> None:
    """Write the model behind a result, with the format in which its vectors are written."""
    model = result.to_model()
    if embedding is not None:
        with Source(embedding) as source:
            model.about.update(embedding=Path(embedding).name, format=codec_of(source).name)
    model.save(path, overwrite=overwrite)
