"""The whole job on one table file: read features and vectors, impute, fill what was null."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from vecfill import __version__
from vecfill.added import Added
from vecfill.errors import InputError
from vecfill.file_job import Enrichment, contents_beside
from vecfill.inputs.alignment import Alignment, align
from vecfill.inputs.files import PathOrName, Progress, quiet
from vecfill.inputs.frames import frame_of, keyed
from vecfill.inputs.one_table import without_imputed
from vecfill.inputs.table_filling import Filling, filled_arrow, vector_cells, vector_text
from vecfill.io.atomic import atomic_output, atomic_outputs
from vecfill.io.table_files import (
    TextCells,
    check_suffix,
    rewritten_columns,
    rewritten_text,
    table_format,
)
from vecfill.io.tables import read_table, separator_of
from vecfill.outputs import Outputs
from vecfill.provenance import Fingerprint, manifest_path, provenance
from vecfill.requests import TEXT_OPTIONS, Method, Reading, Trust, takes
from vecfill.result import Result
from vecfill.run import check_evaluated, evaluate_result, impute_aligned
from vecfill.views.columns import columns_to_show

Requests = tuple[Reading, Method, Trust]


@takes(reading=Reading, how=Method, trust=Trust)
def fill_table(
    table: PathOrName,
    output: PathOrName,
    *,
    confidence: str | None = None,
    report: PathOrName | None = None,
    evaluate: bool = False,
    manifest: bool = True,
    overwrite: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    reading: Reading,
    how: Method,
    trust: Trust,
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
    confidence
        Name of a column with the confidence of each new vector, added to the table. If the table
        has it from an earlier run, nothing is learnt from the vectors that were imputed then.
    report, evaluate, manifest, overwrite, n_jobs, progress
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
    return fill_requested(
        table,
        output,
        confidence=confidence,
        report=report,
        evaluate=evaluate,
        manifest=manifest,
        overwrite=overwrite,
        n_jobs=n_jobs,
        progress=progress,
        requests=(reading, how, trust),
    )


def fill_requested(
    table: PathOrName,
    output: PathOrName,
    *,
    confidence: str | None,
    report: PathOrName | None,
    evaluate: bool,
    manifest: bool,
    overwrite: bool,
    n_jobs: int | None,
    progress: Progress | None,
    save: PathOrName | None = None,
    requests: Requests,
) -> Enrichment:
    """Do what `fill_table` does, with the options as request objects; `save` is only checked."""
    reading, how, trust = requests
    check_evaluated(how, evaluate)
    tell = progress or quiet
    about_file = manifest_path(output) if manifest else None
    outputs = Outputs(output, about_file, report, overwrite, save)
    files = {"table": table, "counts": _file(reading.counts)}
    outputs.check(files.values())
    if not Path(table).is_file():
        raise InputError(f"{table}: there is no such file. Pass a Parquet, Feather or CSV file.")
    check_suffix(Path(table), Path(output))
    if confidence is not None:
        reading = without_imputed(table, confidence, reading)
    with ExitStack() as stack:
        hashed = {
            role: stack.enter_context(Fingerprint(path))
            for role, path in files.items()
            if path is not None
        }
        tell("Reading the table", 0, 0)
        alignment = align(table, None, reading)
        assert alignment.table is not None
        result = None
        if not alignment.table.has_vector.all():
            result = impute_aligned(alignment, how, trust, n_jobs=n_jobs, progress=tell)
        done = _enrichment(result, alignment, outputs)
        if evaluate and result is not None:
            done = replace(done, evaluation=evaluate_result(result, how, n_jobs, tell))
        about = _manifest(done, (reading, how, trust), confidence, hashed)
    tell("Writing the table", 0, 0)
    columns = columns_to_show(table, reading) if report is not None else ()
    beside = contents_beside(done, outputs, about, tell, columns)
    _write(Path(table), done, reading, confidence, outputs, beside)
    return replace(done, manifest=about if manifest else {})


def _file(value: Any) -> PathOrName | None:
    is_path = isinstance(value, str | Path)
    return value if is_path and Path(value).is_file() else None


def _enrichment(result: Result | None, alignment: Alignment, outputs: Outputs) -> Enrichment:
    assert alignment.table is not None
    entities = alignment.domain.entities
    added = [] if result is None else [entities[row] for row in result.filling().rows.tolist()]
    n_known, n_before = alignment.n_known, int(alignment.table.has_vector.sum())
    notes = [*(alignment.notes if result is None else result.notes)]
    if result is None:
        notes.append("Every row has a vector already; the file was copied unchanged.")
    if result is None and outputs.report is not None:
        notes.append("No page was written, because there is no imputation to report on.")
    return Enrichment(
        result=result,
        output=Path(outputs.enriched),
        added={entity: entity for entity in added},
        left_out=(),
        counts={
            "entities": len(entities),
            "known": n_known,
            "unknown": len(entities) - n_known,
            "imputed": 0 if result is None else len(result.embedding),
            "abstained": 0 if result is None else len(result.abstained),
            "added": len(added),
            "replaced": 0,
            "words_before": n_before,
            "words_after": n_before + len(added),
        },
        matches=alignment.matches,
        notes=tuple(dict.fromkeys(notes)),
    )


def _manifest(
    done: Enrichment, requests: Requests, confidence: str | None, hashed: dict[str, Fingerprint]
) -> dict[str, Any]:
    options = {key: value for each in requests for key, value in each.to_dict().items()}
    return {
        **provenance(__version__),
        "options": {**options, "confidence": confidence},
        "inputs": {role: each.result() for role, each in hashed.items()},
        "format": table_format(Path(hashed["table"].path)),
        **done.to_dict(),
    }


def _write(
    table: Path,
    done: Enrichment,
    reading: Reading,
    confidence: str | None,
    outputs: Outputs,
    beside: dict[Path, bytes],
) -> None:
    """Write the filled table, its manifest and its page: all of them or none."""
    if done.result is None or not done.added:
        data = table.read_bytes()
    elif table_format(table) == "text":
        data = _text(table, done.result.filling(confidence), reading)
    else:
        filling = done.result.filling(confidence)
        data = rewritten_columns(table, lambda old: filled_arrow(old, filling))
    with atomic_outputs([outputs.enriched, *beside], overwrite=outputs.overwrite) as (
        file,
        *others,
    ):
        file.write(data)
        for other, content in zip(others, beside.values(), strict=True):
            other.write(content)


def _text(table: Path, filling: Filling, reading: Reading) -> bytes:
    frame = frame_of(table, **{name: getattr(reading, name) for name in TEXT_OPTIONS})
    assert frame is not None
    rows = filling.rows.tolist()
    vectors = [vector_text(vector) for vector in filling.vectors]
    changes = [TextCells(filling.column, dict(zip(rows, vectors, strict=True)))]
    if filling.confidence_column is not None:
        values = [] if filling.confidence is None else filling.confidence.tolist()
        cells = dict(zip(rows, map(str, values), strict=False))
        is_new = filling.confidence_column not in frame.names
        changes.append(TextCells(filling.confidence_column, cells, is_new))
    data = table.read_bytes()
    return rewritten_text(
        data,
        changes,
        names=list(frame.names),
        separator=separator_of(table, data, reading.separator, reading.encoding),
        encoding=reading.encoding,
        header=reading.header,
    )


def append_to_table(
    table: PathOrName,
    output: PathOrName,
    new: PathOrName,
    added: Added,
    *,
    key: str | None,
    vector: str,
    new_key: str | None = None,
    confidence: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write `output`: the table file `table`, followed by the rows of `new` that were added.

    `table` has features and a column of vectors, as `fill_table` writes it. The new rows take its
    columns and types, and are null in columns that `new` lacks. `key` and `new_key` name the
    columns of entities in both; by default the first. `confidence` names a column for confidences,
    which is added if `table` lacks it.
    """
    path = Path(table)
    if table_format(path) == "text":
        raise InputError(
            f"{path} is a text table with vectors in it. Only Parquet and Feather tables can be "
            "extended: save it as one of them, or write the new vectors to a file of their own."
        )
    check_suffix(path, Path(output))
    frame = frame_of(new)
    assert frame is not None
    if new_key is None and key in frame.names:
        new_key = key
    names, _ = keyed(frame, new_key)
    kept = [row for row, name in enumerate(names) if name in added.embedding]
    order = [added.embedding.row(names[row]) for row in kept]
    facts = read_table(new).take(pa.array(kept, pa.int64()))
    cells: dict[str, Any] = {name: facts.column(name) for name in frame.names}
    vectors = added.embedding.vectors[order]

    def extended(old: pa.Table) -> pa.Table:
        own_key = old.column_names[0] if key is None else key
        cells[own_key] = cells[frame.names[0] if new_key is None else new_key]
        for name in (own_key, vector):
            if name not in old.column_names:
                raise InputError(
                    f"{path} has no column {name!r}. Pass the table that the model was made from, "
                    "with its vectors filled."
                )
        if confidence is not None:
            if confidence not in old.column_names:
                old = old.append_column(confidence, pa.nulls(old.num_rows, pa.float64()))
            sure = None if added.confidence is None else added.confidence.values[order]
            cells[confidence] = pa.nulls(len(kept)) if sure is None else pa.array(sure)
        columns = [
            vector_cells(vectors, field.type)
            if field.name == vector
            else _as_type(cells[field.name], field, path)
            if field.name in cells
            else pa.nulls(len(kept), field.type)
            for field in old.schema
        ]
        return pa.concat_tables([old, pa.table(columns, schema=old.schema)])

    data = rewritten_columns(path, extended)
    with atomic_output(output, overwrite=overwrite) as file:
        file.write(data)


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
