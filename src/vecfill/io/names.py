"""Files of names, one per line, and of pairs."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from vecfill.errors import FormatError, InputError
from vecfill.io.tables import read_table


def read_names(path: str | PathLike[str]) -> list[str]:
    r"""Read a file of names, one per line; blank lines are skipped.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "names.txt"
    >>> _ = path.write_text("Oslo\n\nBern\n")
    >>> read_names(path)
    ['Oslo', 'Bern']
    """
    try:
        # Not `splitlines`, which also splits at characters that a name may hold.
        lines = Path(path).read_text("utf-8-sig").split("\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}. Check the path.") from error
    except UnicodeError as error:
        raise InputError(
            f"{path}: cannot be read as UTF-8 text: {error}. Save it as UTF-8."
        ) from error
    return [line.strip() for line in lines if line.strip()]


def read_pairs(path: str | PathLike[str], *, second: str = "word") -> list[tuple[str, str]]:
    r"""Read a file of two columns, such as aliases: an entity and the word it stands for.

    A first line that reads `entity,word` is a header; any other first line is a pair.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "aliases.csv").write_text("Facebook,Meta\nIBM Corp,ibm\n")
    ...     read_pairs(Path(folder) / "aliases.csv")
    [('Facebook', 'Meta'), ('IBM Corp', 'ibm')]
    """
    try:
        table = read_table(path, header=False)
    except FormatError as error:
        # The option is about the table, not about files of pairs.
        message = str(error).partition(" If the file is in another encoding")
        raise FormatError(message[0] + (" Save it as UTF-8." if message[1] else "")) from error
    if table.num_columns != 2:
        raise FormatError(
            f"{path} has {table.num_columns} columns, but pairs need two: an entity and its "
            f"{second}."
        )
    entities, partners = (
        [str(cell if cell is not None else "").strip() for cell in column.to_pylist()]
        for column in table.columns
    )
    pairs = list(zip(entities, partners, strict=True))
    if (pairs[0][0].lower(), pairs[0][1].lower()) == ("entity", second):
        pairs = pairs[1:]
    for row, (entity, word) in enumerate(pairs, start=1):
        if not entity or not word:
            raise FormatError(
                f"{path}, pair {row}: {entity!r}, {word!r}. Both an entity and a {second} "
                "are needed."
            )
    return pairs
