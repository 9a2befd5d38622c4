"""Tables of any make -> one list of columns, and which of them holds the entity names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, TypeAlias

import narwhals as nw
import pyarrow as pa

from vecfill.errors import InputError
from vecfill.inputs.entities import did_you_mean, listed, unique_entities
from vecfill.io.columnar_tables import is_nameless_index
from vecfill.io.tables import read_table
from vecfill.requests import TEXT_OPTIONS, Reading

Cells: TypeAlias = "pa.ChunkedArray | list[Any]"
"""One column: Arrow's, or Python objects if Arrow could make no one type of them."""

MAX_COLUMNS = 100_000
"""Dense columns beyond this are refused: such tables are nearly always sparse."""


@dataclass(frozen=True)
class Frame:
    """Columns by position, the index that pandas may have had, and what to call it in messages.

    Examples
    --------
    >>> frame = frame_of(pa.table({"name": ["iron"], "mass": [55.8]}))
    >>> frame.names, frame.n_rows
    (('name', 'mass'), 1)
    """

    names: tuple[str, ...]
    cells: tuple[Cells, ...]
    n_rows: int
    label: str
    notes: tuple[str, ...] = ()
    index: list[Any] | None = None
    index_name: str | None = None

    @property
    def columns(self) -> dict[str, Cells]:
        """The cells of each column by its name."""
        return dict(zip(self.names, self.cells, strict=True))


def frame_by(source: object, reading: Reading) -> Frame | None:
    """Return what `frame_of` does, with the options of a `Reading` for files of text."""
    return frame_of(source, **{name: getattr(reading, name) for name in TEXT_OPTIONS})


def frame_of(
    source: object,
    *,
    encoding: str = "utf-8",
    separator: str | None = None,
    header: bool = True,
    texts: Collection[str] | None = None,
) -> Frame | None:
    """Return the columns of a path, or of a pandas, polars or Arrow table; None if it is neither.

    The options are those of `vecfill.io.tables.read_table`.

    Examples
    --------
    >>> frame_of([1, 2, 3]) is None
    True
    """
    if isinstance(source, str | PathLike):
        table = read_table(
            source, encoding=encoding, separator=separator, header=header, texts=texts
        )
        return _from_arrow(table, str(source))
    if isinstance(source, pa.RecordBatch):
        source = pa.Table.from_batches([source])
    if isinstance(source, pa.Table):
        return _from_arrow(source, "the table")
    if _is_lazy(source):
        raise InputError("the table is lazy, so its rows are not there yet. Call .collect() first.")
    if not _looks_like_a_frame(source):
        return None
    # Names are checked before narwhals sees them: it refuses doubled ones in its own words.
    native: Any = source
    names, notes = _column_names(list(native.columns), "the table")
    try:
        frame = nw.from_native(native, eager_only=True)
    except TypeError:
        return None
    except (ValueError, nw.exceptions.NarwhalsError) as error:
        raise InputError(f"the table cannot be read: {error}") from error
    cells = tuple(_cells(frame, position) for position in range(len(names)))
    index = nw.maybe_get_index(frame)
    is_key = index is not None and (index.name is not None or str(index.dtype) in _TEXT_TYPES)
    if index is not None and getattr(index, "nlevels", 1) > 1:
        raise InputError(
            "the table has an index of several levels, but an entity has one name. "
            "Join the levels, or call .reset_index() and name the key column (key=)."
        )
    frame_index = list(index) if index is not None and is_key else None
    index_name = str(index.name) if index is not None and index.name is not None else None
    return Frame(names, cells, len(frame), "the table", notes, frame_index, index_name)


_TEXT_TYPES = ("object", "str", "string", "category")


def keyed(
    frame: Frame, key: str | None, *, names_suffice: bool = False
) -> tuple[tuple[str, ...], Frame]:
    """Split off the entity names: the column `key`, or else pandas' index, or the first column.

    Unless `names_suffice`, a table that has nothing but names is refused.

    Examples
    --------
    >>> entities, rest = keyed(frame_of(pa.table({"name": ["iron"], "mass": [55.8]})), None)
    >>> entities, rest.names
    (('iron',), ('mass',))
    """
    position: int | None
    if key is not None and key in frame.names:
        position = frame.names.index(key)
    elif key is not None and frame.index is not None and key == frame.index_name:
        position = None
    elif key is not None:
        raise InputError(
            f"{frame.label} has no column {key!r}.{did_you_mean(key, frame.names)} Its columns are "
            f"{listed(frame.names, 10)}."
        )
    else:
        position = None if frame.index is not None else 0
    if frame.n_rows == 0:
        raise InputError(f"{frame.label} has no rows. A table needs one row for each entity.")
    if not frame.names and not (names_suffice and frame.index is not None):
        raise InputError(f"{frame.label} has no columns. Entities need features.")
    if position is None:
        assert frame.index is not None
        where, raw, positions = f"{frame.label}, index", frame.index, range(len(frame.names))
    else:
        where = f"{frame.label}, key column {frame.names[position]!r}"
        raw = objects(frame.cells[position])
        # Another index that pandas wrote beside the key describes nobody.
        positions = [
            number
            for number, name in enumerate(frame.names)
            if number != position and not is_nameless_index(name)
        ]
    entities = unique_entities(raw, where=where)
    if not positions and frame.names:
        _refuse_one_column(frame, names_suffice=names_suffice)
    if len(positions) > MAX_COLUMNS:
        raise InputError(
            f"{frame.label} has {len(positions):,} columns, more than {MAX_COLUMNS:,} dense ones. "
            "Reduce the columns first, or pass a SciPy sparse matrix in Python."
        )
    features = Frame(
        tuple(frame.names[number] for number in positions),
        tuple(frame.cells[number] for number in positions),
        frame.n_rows,
        frame.label,
        frame.notes,
    )
    return entities, features


def _refuse_one_column(frame: Frame, *, names_suffice: bool) -> None:
    title = frame.names[0]
    advice = (
        "Give each entity features in further columns, or impute from the names alone with "
        "names='auto'."
    )
    if any(mark in title for mark in ";\t|"):
        advice = "Its header looks separated by another character: give separator=."
    elif names_suffice:
        return
    raise InputError(f"{frame.label} has one column only, {title[:80]!r}. {advice}")


def comes_from(source: Any, package: str) -> bool:
    """Tell whether the type of an object, or one that it is derived from, belongs to a package.

    Examples
    --------
    >>> comes_from(pa.array([1]), "pyarrow"), comes_from(1, "pyarrow")
    (True, False)
    """
    return any(kind.__module__.partition(".")[0] == package for kind in type(source).__mro__)


def objects(cells: Cells) -> list[Any]:
    """Return the cells as Python objects.

    Examples
    --------
    >>> objects(pa.chunked_array([["a", None]]))
    ['a', None]
    """
    return cells if isinstance(cells, list) else cells.to_pylist()


def _from_arrow(table: pa.Table, label: str) -> Frame:
    names, notes = _column_names(table.column_names, label)
    return Frame(names, tuple(table.columns), table.num_rows, label, notes)


def _column_names(names: Sequence[object], label: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names as text, each once; a column without one is numbered and reported."""
    for name in names:
        if isinstance(name, tuple):
            raise InputError(
                f"{label} has column names of several levels, such as {name!r}. Join them into "
                "one name each."
            )
    texts = ["" if name is None else str(name).strip() for name in names]
    doubled = [name for name, count in Counter(texts).items() if count > 1 and name]
    if doubled:
        raise InputError(
            f"{label}: column {listed(doubled)} present more than once. Rename or remove one."
        )
    notes: list[str] = []
    for number, text in enumerate(texts):
        if not text:
            texts[number] = f"column {number + 1}"
            while texts.count(texts[number]) > 1:
                texts[number] += "'"
            if number > 0:  # the first is the key, which pandas writes without a name
                notes.append(f"Column {number + 1} has no name; it is called {texts[number]!r}.")
    return tuple(texts), tuple(notes)


def _cells(frame: nw.DataFrame[Any], position: int) -> Cells:
    series = frame[:, position]
    try:
        arrow = series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return series.to_list()
    return arrow if isinstance(arrow, pa.ChunkedArray) else pa.chunked_array([arrow])


def _looks_like_a_frame(source: object) -> bool:
    return hasattr(source, "columns") and hasattr(source, "shape")


def _is_lazy(source: object) -> bool:
    return type(source).__name__ == "LazyFrame" or (
        hasattr(source, "collect") and not hasattr(source, "shape")
    )
