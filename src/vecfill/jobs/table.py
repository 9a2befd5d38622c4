"""A table file with features and vectors -> the same file with its empty vectors filled."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vecfill.errors import InputError
from vecfill.inputs.alignment import align
from vecfill.inputs.files import PathOrName, Progress
from vecfill.inputs.table.filling import Filling, filled_arrow, vector_text
from vecfill.inputs.table.frames import frame_by
from vecfill.inputs.table.one_table import without_imputed
from vecfill.io.atomic import atomic_outputs
from vecfill.io.table_files import (
    TextCells,
    check_suffix,
    rewritten_columns,
    rewritten_text,
    table_format,
)
from vecfill.io.tables import separator_of
from vecfill.jobs.job import Enrichment, Job, counts_of, file_of
from vecfill.requests import Ask, Method, Output, Reading, Trust, takes


@takes(Reading, Method, Trust, Output)
def fill_table(
    table: PathOrName,
    output: PathOrName,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    ask: Ask,
) -> Enrichment:
    r"""Write `output`: the file `table` with its null vectors filled.

    The table has a row for each entity, columns that describe it, and a column of vectors
    (`vector`), null where there is none. Parquet, Feather, CSV and TSV files are written in their
    own format; in text files a vector is a list such as ``[0.5, -1.25]`` and a missing one is an
    empty cell. Other cells, columns, types and the order of rows stay as they are. The table is
    held in memory.

    Parameters
    ----------
    table
        The file.
    output
        The file to write.
    n_jobs, progress
        As in `vecfill.enrich`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> rows = ["id,wave,hue", "1,680,[1.0]", "2,610,[2.0]", "3,580,[3.0]", "4,595,"]
    >>> _ = (folder / "old.csv").write_text("\n".join(rows) + "\n")
    >>> done = fill_table(folder / "old.csv", folder / "new.csv", vector="hue", method="paper")
    >>> done.counts["known"], done.counts["added"]
    (3, 1)
    >>> print((folder / "new.csv").read_text().splitlines()[-1])
    4,595,[2.5...]
    """
    return _Filling(table, output, ask, n_jobs=n_jobs, progress=progress).run()


class _Filling(Job):
    """Cells of a copy of the table are filled."""

    nothing_to_do = "Every row has a vector already; the file was copied unchanged."

    def __init__(self, table: PathOrName, output: PathOrName, ask: Ask, **common: Any) -> None:
        super().__init__(table, output, ask, **common)
        self.path = Path(table)
        self.files = {"table": table, "counts": file_of(ask.reading.counts)}
        self.files |= {"interactions": file_of(ask.reading.interactions)}

    def check(self) -> None:
        """Refuse what is about a file of vectors, and files that cannot be read or written."""
        replacement = self.ask.replacement
        why = "a table has its empty vectors filled, and no others replaced"
        replacement.refuse_unused((), replacement.asked(), why)
        self.check_targets()
        if not self.path.is_file():
            raise InputError(
                f"{self.path}: there is no such file. Pass a Parquet, Feather or CSV file."
            )
        check_suffix(self.path, Path(self.output))

    def read(self) -> None:
        """Read features and vectors; rows that were imputed earlier teach nothing."""
        self.reading, confidence = self.ask.reading, self.ask.output.confidence
        if confidence is not None:
            self.reading = without_imputed(self.table, confidence, self.reading)
        self.tell("Reading the table", 0, 0)
        self.alignment = align(self.table, None, self.reading)
        frame = frame_by(self.table, self.reading)
        assert frame is not None
        self.names = list(frame.names)

    def imputed(self) -> Enrichment:
        """Impute the vectors that are missing."""
        alignment = self.alignment
        assert alignment.table is not None
        has_vector = alignment.table.has_vector
        result = None if has_vector.all() else self.impute(alignment)
        entities = alignment.domain.entities
        added = [] if result is None else [entities[row] for row in result.filling().rows.tolist()]
        n_before = int(has_vector.sum())
        notes = alignment.notes if result is None else result.notes
        return Enrichment(
            result=result,
            output=Path(self.output),
            added={entity: entity for entity in added},
            left_out=(),
            counts=counts_of(
                result, alignment.matches, n_added=len(added), n_replaced=0, n_before=n_before
            ),
            matches=alignment.matches,
            notes=tuple(dict.fromkeys([*notes, *self.notes_on_nothing(result)])),
        )

    def record(self, enrichment: Enrichment, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return how the result was made: every option, every input, every count."""
        options = self.reading.to_dict() | self.ask.to_dict("method", "trust")
        return {
            "options": {**options, "confidence": self.ask.output.confidence},
            "inputs": dict(inputs),
            "format": table_format(self.path),
            **enrichment.to_dict(),
        }

    def write(self, enrichment: Enrichment, beside: dict[Path, bytes]) -> None:
        """Write the filled table, its manifest and its page."""
        self.tell("Writing the table", 0, 0)
        data = self._content(enrichment)
        places, overwrite = [self.output, *beside], self.ask.output.overwrite
        with atomic_outputs(places, overwrite=overwrite) as (file, *beside_files):
            file.write(data)
            for file_beside, content in zip(beside_files, beside.values(), strict=True):
                file_beside.write(content)

    def _content(self, enrichment: Enrichment) -> bytes:
        if enrichment.result is None or not enrichment.added:
            return self.path.read_bytes()
        filling = enrichment.result.filling(self.ask.output.confidence)
        if table_format(self.path) == "text":
            return self._text(filling)
        return rewritten_columns(self.path, lambda old: filled_arrow(old, filling))

    def _text(self, filling: Filling) -> bytes:
        reading = self.ask.reading
        rows = filling.rows.tolist()
        vectors = [vector_text(vector) for vector in filling.vectors]
        changes = [TextCells(filling.column, dict(zip(rows, vectors, strict=True)))]
        if filling.confidence_column is not None:
            values = [] if filling.confidence is None else filling.confidence.tolist()
            cells = dict(zip(rows, map(str, values), strict=False))
            is_new = filling.confidence_column not in self.names
            changes.append(TextCells(filling.confidence_column, cells, is_new))
        data = self.path.read_bytes()
        return rewritten_text(
            data,
            changes,
            names=self.names,
            separator=separator_of(self.path, data, reading.separator, reading.encoding),
            encoding=reading.encoding,
            header=reading.header,
        )
