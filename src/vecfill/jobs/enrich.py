"""A file of vectors and a table -> the same file with rows for the entities that it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import OptionError
from vecfill.inputs.alignment import aligned_inputs
from vecfill.inputs.entities import listed
from vecfill.inputs.files import Inputs, PathOrName, Progress, read_inputs, source_files
from vecfill.io import append_rows
from vecfill.io.patching import Patch
from vecfill.jobs.job import Enrichment, Job, counts_of, file_of
from vecfill.jobs.written_rows import (
    SUSPICIOUS,
    WrittenRows,
    kind_of,
    named_entities,
    patches_of,
    replaceable,
    written_rows,
)
from vecfill.requests import Ask, Method, Output, Reading, Replacement, Trust, takes
from vecfill.result import Result
from vecfill.run import fuses_sources
from vecfill.wording import count

_N_LISTED = 5


@takes(Reading, Method, Trust, Replacement, Output)
def enrich(
    embedding: PathOrName,
    table: Any,
    output: PathOrName,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ask: Ask,
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
    return _Enriching(embedding, table, output, ask, n_jobs=n_jobs, progress=progress).run()


class _Enriching(Job):
    """Rows are appended to a copy of the file, or replaced in it."""

    nothing_to_do = "Every entity has a row already; the file was copied unchanged."

    def __init__(
        self, embedding: PathOrName, table: Any, output: PathOrName, ask: Ask, **common: Any
    ) -> None:
        super().__init__(table, output, ask, **common)
        self.embedding = embedding
        self.files = {"embedding": embedding, "table": table, "aliases": ask.reading.aliases}
        self.files |= {"counts": file_of(ask.reading.counts)}
        self.files |= {"interactions": file_of(ask.reading.interactions)}
        self.files |= {"replace": file_of(ask.replacement.replace)}
        for name, (path, _) in source_files(ask.reading).items():
            self.files[f"source {name}"] = path

    @property
    def base(self) -> PathOrName:
        """The file that is enriched."""
        return self.embedding

    def check(self) -> None:
        """Refuse what is about one table, and places that cannot be written to."""
        reading = self.ask.reading
        why = "it is for one table that holds features and vectors"
        reading.refuse_unused((), ("vector",), why)
        if self.ask.output.confidence is not None:
            raise OptionError("confidence= is for one table (vector=, no EMBEDDING).")
        self.named = named_entities(reading, self.ask.replacement)
        self.check_targets()

    def read(self) -> None:
        """Read the table, and the rows of matching words in one pass over the file."""
        self.inputs = read_inputs(
            self.embedding,
            self.table,
            self.ask.reading,
            unreliable=self.named,
            fuses=fuses_sources(self.ask),
            progress=self.tell,
        )
        self.inputs.matches.require_matches()

    def to_hash(self) -> dict[str, tuple[PathOrName, str | None]]:
        """Return all inputs that are files if anything records them; one hash is known."""
        if not self.ask.output.manifest and self.ask.output.report is None:
            return {}
        return super().to_hash() | {"embedding": (self.embedding, self.inputs.sha256)}

    def imputed(self) -> Enrichment:
        """Impute what is unknown; once more if rows turn out to be suspicious."""
        kind = kind_of(self.ask.replacement)
        result = self._imputed_from(self.inputs)
        names = kind if isinstance(kind, tuple) else None
        if kind == SUSPICIOUS:
            names = (
                () if result is None else tuple(suspicion.entity for suspicion in result.suspicious)
            )
            matches = self.inputs.matches.without(names, "contradicted by their neighbours")
            self.inputs = replace(self.inputs, matches=matches)
            if names:
                result = self._imputed_from(self.inputs)
        inputs = self.inputs
        with_rows = {} if kind is None else replaceable(inputs, names)
        rows = written_rows(result, inputs, with_rows, kind)
        self.patches = patches_of(self.embedding, result, rows, inputs, self.ask)
        return self._enrichment(result, rows, self.patches)

    def _imputed_from(self, inputs: Inputs) -> Result | None:
        return self.impute(aligned_inputs(inputs)) if inputs.matches.unmatched else None

    def _enrichment(
        self, result: Result | None, rows: WrittenRows, patches: Sequence[Patch]
    ) -> Enrichment:
        """Return what is to be said about the rows that are written."""
        change_of = {patch.word: patch.change for patch in patches}
        matches = self.inputs.matches
        n_added, n_replaced = len(rows.added), len(patches)
        notes = [*self.inputs.notes, *(() if result is None else result.notes)]
        notes += [*self.notes_on_nothing(result), *_notes_on_names(rows)]
        return Enrichment(
            result=result,
            output=Path(self.output),
            added=rows.added,
            left_out=rows.left_out,
            counts=counts_of(
                result, matches, n_added=n_added, n_replaced=n_replaced, n_before=matches.n_words
            ),
            matches=matches,
            notes=(*dict.fromkeys(notes), *rows.notes),
            replaced={
                entity: change_of[word]
                for entity, word in rows.replaced.items()
                if word in change_of
            },
        )

    def record(self, enrichment: Enrichment, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return how the result was made: every option, every input, every count."""
        return {
            "options": self.ask.to_dict("reading", "method", "trust", "replacement"),
            "inputs": dict(inputs),
            "format": self.inputs.format,
            **enrichment.to_dict(),
            "words": self.inputs.matches.words,
        }

    def write(self, enrichment: Enrichment, beside: dict[Path, bytes]) -> None:
        """Write the enriched file, its manifest and its page."""
        size = Path(self.embedding).stat().st_size
        self.tell("Copying and appending", 0, size)
        append_rows(
            self.embedding,
            self.output,
            self._rows_to_add(enrichment),
            format=self.ask.reading.format,
            member=self.ask.reading.member,
            overwrite=self.ask.output.overwrite,
            expected_sha256=self.inputs.sha256,
            beside=beside,
            replaced=self.patches,
        )
        self.tell("Copying and appending", size, size)

    def _rows_to_add(self, enrichment: Enrichment) -> Embedding:
        if enrichment.result is None:
            known = self.inputs.embedding
            return Embedding([], np.empty((0, known.n_dims), known.vectors.dtype))
        return Embedding(
            enrichment.added.values(), enrichment.result.embedding[list(enrichment.added)]
        )


def _notes_on_names(rows: WrittenRows) -> list[str]:
    """Tell of names that are written otherwise, or not at all."""
    notes: list[str] = []
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
    return notes
