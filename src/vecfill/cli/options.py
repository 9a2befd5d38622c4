"""Shell options made from the request objects, and the few that commands have besides."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from vecfill.cli.console import flag_of, in_shell_words
from vecfill.io.codecs import FORMAT_NAMES
from vecfill.requests import Ask, Described, Method, Output, Request, described

Command = Callable[..., None]

if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[FORMAT_NAMES]

FORMATS = ", ".join(FORMAT_NAMES)


def flag(names: str, panel: str | None, about: str, **details: Any) -> Any:
    """Return an option of a shell: its names, the heading of its group, and what it means."""
    return typer.Option(*names.split(), rich_help_panel=panel, help=about, **details)


def argument(metavar: str, about: str) -> Any:
    """Return an argument of a shell by its place in the help and what it means."""
    return typer.Argument(metavar=metavar, help=about)


_TABLE = "Table with one row per entity: CSV, TSV, Parquet, or word vectors."

EmbeddingFile = Annotated[
    Path,
    argument("EMBEDDING", "File of word vectors, of any size: word2vec, GloVe, fastText, ..."),
]
TableFile = Annotated[Path, argument("TABLE", _TABLE)]
TableOrNone = Annotated[
    Path | None,
    argument(
        "TABLE", f"{_TABLE} With --vector, the table has the vectors too and is the only file."
    ),
]
FormatOption = Annotated[
    FormatName | None,
    flag("--format", "Input", "Format of the files. By default it is detected.", metavar="FORMAT"),
]
MemberOption = Annotated[
    str | None,
    flag("--member", "Input", "Which file to read, if a zip archive has several.", metavar="NAME"),
]
SeedOption = Annotated[
    int, flag("--seed", "Method", described(Method, "seed").meaning, min=0, metavar="N")
]
OverwriteOption = Annotated[
    bool, flag("--overwrite", "Output", described(Output, "overwrite").meaning)
]
JobsOption = Annotated[
    int | None,
    flag(
        "--jobs", None, "Number of threads. By default all cores; the result is the same.",
        min=1, metavar="N",
    ),
]  # fmt: skip
JsonOption = Annotated[bool, flag("--json", "Output", "Print JSON instead of text.")]
VerboseOption = Annotated[
    bool, flag("--verbose", "Output", "Print the exact setting, and seconds by stage, too.")
]


def shared(*kinds: type[Request], without: Collection[str] = ()) -> Any:
    """Let a command take an `Ask` where the shell sees an option for each field of these kinds.

    Options in `without` it does not see, and they keep their default.

    Examples
    --------
    >>> from vecfill.requests import Reading
    >>> @shared(Reading)
    ... def show(table: str, *, ask: Ask) -> None:
    ...     print(table, ask.reading.key, ask.reading.match)
    >>> show(table="towns.csv", key="name")
    towns.csv name loose
    """
    parameters_of_ask = [parameter for kind in kinds for parameter in _parameters(kind, without)]

    def with_options(command: Command) -> Command:
        parameters = inspect.signature(command, eval_str=True).parameters

        @wraps(command)
        def called(**values: Any) -> None:
            _refuse_to_replace_lists(values)
            requested = {
                parameter.name: value
                for parameter in parameters_of_ask
                if (value := values.pop(parameter.name, None)) is not None
            }
            command(**values, ask=Ask.of(**_in_words_of_python(requested)))

        signature = [
            parameter
            for name, own_parameter in parameters.items()
            for parameter in (parameters_of_ask if name == "ask" else [own_parameter])
        ]
        cast(Any, called).__signature__ = inspect.Signature(
            [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in signature]
        )
        return called

    return with_options


def grouped(command: Command) -> Command:
    """Let a command take a dataclass where the shell sees an option for each of its fields.

    Examples
    --------
    >>> from vecfill.trust.prove.sanity import Example
    >>> @grouped
    ... def show(path: str, *, example: Example) -> None:
    ...     print(path, example)
    >>> show(path="terms.txt", entity="silver", nearest=("gold", "iron"))
    terms.txt silver: gold, iron
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    kinds: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in parameters.items()
        if is_dataclass(parameter.annotation)
    }
    fields_of = {
        name: inspect.signature(kind, eval_str=True).parameters for name, kind in kinds.items()
    }

    @wraps(command)
    def called(**values: Any) -> None:
        for name, kind in kinds.items():
            options = {field: values.pop(field) for field in fields_of[name] if field in values}
            values[name] = kind(**options)
        command(**values)

    signature = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, own_parameter in parameters.items()
        for parameter in (fields_of[name].values() if name in kinds else [own_parameter])
    ]
    cast(Any, called).__signature__ = inspect.Signature(signature)
    return called


def _parameters(kind: type[Request], without: Collection[str]) -> list[inspect.Parameter]:
    """Return a typer parameter for each option of a request that the shell has."""
    return [
        _parameter(field.name, field.default, option, kind.panel)
        for field in fields(kind)
        if (option := field.metadata["option"]).in_shell and field.name not in without
    ]


def _parameter(name: str, default: Any, option: Described, panel: str) -> inspect.Parameter:
    names = flag_of(name)
    if default is True:
        names = f"{names}/--no-{name}"
    details: dict[str, Any] = {}
    if option.type in (int, float):
        details = {"min": option.low, "max": option.high}
    if option.metavar is not None:
        details["metavar"] = option.metavar
    value: Any = option.type
    if name == "format":
        value = FormatName
    elif option.choices:
        value = Literal[tuple(option.choices)]
    if option.several:
        value, default = list[value], None
    if default is None:
        value = value | None
    about = in_shell_words(option.meaning.partition(" In Python")[0])
    annotation = Annotated[value, flag(names, option.panel or panel, about, **details)]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


def _in_words_of_python(values: dict[str, Any]) -> dict[str, Any]:
    """Return what a shell's words mean: names in files, `tab` for a tab."""
    if "exclude" in values:
        values["exclude"] = _excluded(values["exclude"])
    if "separator" in values:
        values["separator"] = _one_character(values["separator"])
    return values


def _excluded(values: list[str]) -> list[str]:
    """Return names as they were typed, and names in files, one a line."""
    from vecfill.io.names import read_names

    names: list[str] = []
    for value in values:
        names += read_names(value) if Path(value).is_file() else [value]
    return names


def _refuse_to_replace_lists(values: dict[str, Any]) -> None:
    """Refuse to write a result over a file of names, which is read before anything is checked."""
    from vecfill.io.targets import refuse_input

    lists = [Path(path) for path in values.get("exclude") or () if Path(path).is_file()]
    for name in ("output", "report", "save"):
        if values.get(name) is not None:
            for path in lists:
                refuse_input(Path(values[name]), path)


def _one_character(separator: str) -> str:
    from vecfill.errors import InputError

    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(separator) != 1:
        raise InputError(f"--separator {separator!r} is not one character. Use ',' or 'tab'.")
    return separator


def files(embedding: Path, table: Path | None, vector: str | None) -> tuple[Path | None, Path]:
    """Return the embedding and the table; a single file is a table that holds vectors as well.

    Examples
    --------
    >>> files(Path("items.parquet"), None, "embedding")[0] is None
    True
    """
    from vecfill.errors import InputError

    if table is None and vector is None:
        raise InputError(
            f"{embedding} is the only file. Name a TABLE that describes the entities, or the "
            "column of this one that holds the vectors (--vector)."
        )
    return (None, embedding) if table is None else (embedding, table)
