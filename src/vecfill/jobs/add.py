"""A saved model and a table of new entities -> vectors of their own, or at the end of a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vecfill.embedding import Embedding
from vecfill.errors import InputError, OptionError
from vecfill.inputs.files import PathOrName, Progress, quiet, word_in_file
from vecfill.inputs.table.filling import vector_cells
from vecfill.inputs.table.frames import frame_of, keyed
from vecfill.io import append_rows, write_embedding
from vecfill.io.atomic import atomic_output, checked_target, together
from vecfill.io.table_files import check_suffix, rewritten_columns, table_format
from vecfill.io.tables import TableFile, read_table
from vecfill.io.targets import check_targets
from vecfill.living.adding import Added
from vecfill.living.model import LivingModel, load


@dataclass(frozen=True)
class Appended:
    """What `add` wrote."""

    added: Added
    n_rows: int
    """How many rows were written."""


def add(
    model: PathOrName,
    table: PathOrName,
    output: PathOrName,
    *,
    append_to: PathOrName | None = None,
    key: str | None = None,
    save: PathOrName | None = None,
    confidence: str | None = None,
    missing: str = "refuse",
    overwrite: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Appended:
    """Write `output`: vectors for the entities of a table that came after a model was saved.

    Nothing is fitted again. The vectors are in the format of the file that the model was made
    from.

    Parameters
    ----------
    model
        The file of the model.
    table
        A table file of the new entities, with the same columns as before.
    output
        The file to write.
    append_to
        A file that `vecfill.enrich` or `vecfill.fill_table` wrote: the output is this file,
        followed by the new rows. Rows of a table have their features too.
    key
        Column that names the new entities. By default the first column.
    save
        Where to write the model with the new entities in it; with `overwrite`, it may be the same
        file.
    confidence
        Column for the confidence of new vectors, if `append_to` is a table.
    missing
        What to do with a table that lacks columns of the fitted one: ``"refuse"``, or ``"allow"``.
    overwrite
        Whether existing files may be replaced.
    n_jobs, progress
        As in `vecfill.enrich`.
    """
    # A model may be written over itself, because it is replaced whole; but only if that is allowed.
    replaces_model = save is not None and save == model
    if replaces_model:
        checked_target(model, overwrite=overwrite)
    targets = [output, None if replaces_model else save]
    check_targets(targets, [model, table, append_to], overwrite=overwrite)
    with together():
        (progress or quiet)("Adding entities", 0, 0)
        living = load(model, n_jobs=n_jobs)
        shared = TableFile(table, as_text=True)
        added = living.add(shared, key=key, keep=save is not None, missing=missing)
        new = _in_words_of_file(added.embedding, living.about.get("format"))
        if not len(new) and append_to is None:
            raise InputError(f"{table} has no entity that is new to the model: {added!r}")
        vector = living.about.get("vector")
        if append_to is not None and vector is not None:
            rows = _NewRows.of(shared, added, living, key=key)
            rows.append_to(Path(append_to), output, confidence, overwrite=overwrite)
        elif confidence is not None:
            raise OptionError(
                f"confidence={confidence!r} is for append_to= and a model of one table (vector=)."
            )
        elif append_to is not None:
            append_rows(append_to, output, new, overwrite=overwrite)
        else:
            form = living.about.get("format")
            write_embedding(new, output, format=form, overwrite=overwrite)
        if save is not None:
            living.save(save, overwrite=overwrite)
    return Appended(added, len(new))


def _in_words_of_file(embedding: Embedding, form: str | None) -> Embedding:
    """Return vectors under the words that they have in a file."""
    if form is None:
        return embedding
    return Embedding([word_in_file(word, form) for word in embedding.words], embedding.vectors)


@dataclass(frozen=True)
class _NewRows:
    """Rows for the end of a table that has features and a column of vectors."""

    key: str | None
    """The column of names in the table; ``None`` if it is the first."""
    vector: str
    names: pa.ChunkedArray
    """Names of the new entities."""
    facts: dict[str, pa.ChunkedArray]
    """What the new table says of them."""
    vectors: Any
    confidence: Any

    @classmethod
    def of(cls, table: Any, added: Added, living: LivingModel, *, key: str | None) -> _NewRows:
        """Return the rows of a table whose entities were added."""
        frame = frame_of(table)
        assert frame is not None
        if key is None and living.key in frame.names:
            key = living.key
        names, _ = keyed(frame, key)
        rows = [row for row, name in enumerate(names) if name in added.embedding]
        order = [added.embedding.row(names[row]) for row in rows]
        cells = read_table(table).take(pa.array(rows, pa.int64()))
        return cls(
            key=living.key,
            vector=living.about["vector"],
            names=cells.column(frame.names[0] if key is None else key),
            facts={name: cells.column(name) for name in frame.names},
            vectors=added.embedding.vectors[order],
            confidence=None if added.confidence is None else added.confidence.values[order],
        )

    def append_to(
        self, path: Path, output: PathOrName, confidence: str | None, *, overwrite: bool
    ) -> None:
        """Write `output`: the table file, followed by these rows in its columns and types."""
        if table_format(path) == "text":
            raise InputError(
                f"{path} is a text table with vectors in it. Only Parquet and Feather tables can "
                "be extended: save it as one of them, or write the new vectors to a file of their "
                "own."
            )
        check_suffix(path, Path(output))
        data = rewritten_columns(path, lambda old: self._after(old, path, confidence))
        with atomic_output(output, overwrite=overwrite) as file:
            file.write(data)

    def _after(self, old: pa.Table, path: Path, confidence: str | None) -> pa.Table:
        """Return a table with the rows at its end; null in columns that nothing is known of."""
        key = old.column_names[0] if self.key is None else self.key
        for name in (key, self.vector):
            if name not in old.column_names:
                raise InputError(
                    f"{path} has no column {name!r}. Pass the table that the model was made from, "
                    "with its vectors filled."
                )
        cells: dict[str, Any] = {**self.facts, key: self.names}
        n_rows = len(self.names)
        if confidence is not None:
            facts = [name for name, column in self.facts.items() if column.null_count < n_rows]
            if confidence in (key, self.vector, *facts):
                raise OptionError(
                    f"confidence={confidence!r} is a column of names, of vectors or of facts about "
                    "the new entities, which confidences would replace. Choose another name."
                )
            if confidence not in old.column_names:
                old = old.append_column(confidence, pa.nulls(old.num_rows, pa.float64()))
            is_known = self.confidence is not None
            cells[confidence] = pa.array(self.confidence) if is_known else pa.nulls(n_rows)
        columns = [
            vector_cells(self.vectors, field.type)
            if field.name == self.vector
            else _as_type(cells[field.name], field, path)
            if field.name in cells
            else pa.nulls(n_rows, field.type)
            for field in old.schema
        ]
        return pa.concat_tables([old, pa.table(columns, schema=old.schema)])


def _as_type(column: Any, field: pa.Field, path: Path) -> Any:
    """Return cells in the type of a column; cells of text files are text, empty ones are null."""
    try:
        if pa.types.is_string(column.type) and not pa.types.is_string(field.type):
            column = pc.if_else(pc.equal(column, ""), None, column)
        return pc.cast(column, field.type)
    except pa.ArrowException as error:
        raise InputError(
            f"column {field.name!r} of the new table does not fit that of {path}, which has the "
            f"type {field.type}: {error}"
        ) from error
