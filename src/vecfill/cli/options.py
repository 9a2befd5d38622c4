"""The options that commands share, and what becomes of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from vecfill.io.codecs import FORMAT_NAMES

Command = Callable[..., None]

Kind = Literal["features", "embedding", "similarities", "distances", "edges"]
if TYPE_CHECKING:
    FormatName = str
else:
    FormatName = Literal[FORMAT_NAMES]

EmbeddingFile = Annotated[
    Path,
    typer.Argument(
        metavar="EMBEDDING",
        help="A file of word vectors, of any size: word2vec, GloVe, fastText, ...",
    ),
]
TableFile = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="What describes the entities, a row each: CSV, TSV, Parquet, or word vectors.",
    ),
]
KeyOption = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="COLUMN",
        help="The column that names the entities; if not given, the first.",
    ),
]
KindOption = Annotated[
    Kind,
    typer.Option(
        "--kind",
        help="What TABLE holds: columns that describe, word vectors, a square matrix, or a graph.",
    ),
]
MatchOption = Annotated[
    Literal["exact", "case", "loose"],
    typer.Option(
        "--match",
        help="How far a name may differ from its word: not at all, in case, or loosely (also in "
        "separators, accents, legal suffixes).",
    ),
]
AliasesOption = Annotated[
    Path | None,
    typer.Option(
        "--aliases",
        metavar="FILE",
        help="A CSV file of two columns, entity and word, for names that matching cannot tie.",
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="NAME|FILE",
        help="An entity to take as unknown, since the word of its name means another thing; or a "
        "file of such, one a line.",
    ),
]
StandardizeOption = Annotated[
    bool,
    typer.Option(
        "--standardize",
        help="Give numeric columns mean 0 and variance 1, so that units do not matter.",
    ),
]
CategoricalOption = Annotated[
    list[str] | None,
    typer.Option(
        "--categorical", metavar="COLUMN", help="A column whose numbers are codes of categories."
    ),
]
IgnoreOption = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="COLUMN", help="A column to leave out.")
]
EncodingOption = Annotated[
    str,
    typer.Option(
        "--encoding", metavar="NAME", help="How a CSV or TSV table is encoded, such as latin-1."
    ),
]
SeparatorOption = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHAR",
        help="What stands between cells of a text table, such as ; or tab. If not "
        "given, a comma or a tab, as the file tells.",
    ),
]
FormatOption = Annotated[
    FormatName | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="The format of EMBEDDING; if not given, it is told by suffix and content.",
    ),
]
MemberOption = Annotated[
    str | None,
    typer.Option(
        "--member", metavar="NAME", help="Which file to read, if EMBEDDING is a zip of several."
    ),
]
MethodOption = Annotated[
    Literal["auto", "paper"] | None,
    typer.Option(
        "--method",
        help="auto, unless a setting is asked for: the best on hidden known rows. paper: the "
        "paper to the letter.",
    ),
]
_HOW_ROWS = (
    "Ask for one setting, not for a choice: rows as_given, standardized, unit_rows or "
    "unit_rows_without_first_component."
)
PreparationOption = Annotated[
    Literal["as_given", "standardized", "unit_rows", "unit_rows_without_first_component"] | None,
    typer.Option("--preparation", metavar="NAME", help=_HOW_ROWS),
]
MinDegreeOption = Annotated[
    int | None,
    typer.Option(
        "--min-degree",
        min=1,
        metavar="N",
        help="Ask for one setting: how many neighbours a row has at least (8 in the paper).",
    ),
]
RidgeOption = Annotated[
    float | None,
    typer.Option(
        "--ridge",
        min=0.0,
        metavar="R",
        help="Ask for one setting: how far weights are drawn to be even (0 in the paper).",
    ),
]
GammaOption = Annotated[
    float | None,
    typer.Option(
        "--gamma",
        min=0.0,
        max=1.0,
        metavar="G",
        help="Ask for one setting: a linear trend, and this share of what it misses.",
    ),
]
ForceOption = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Impute even if TABLE says nothing about EMBEDDING, or too little is known to tell.",
    ),
]
OverwriteOption = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Replace files that are there already; without it they are kept, and it ends.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed", min=0, metavar="N", help="Where chance begins: the same number, the same result."
    ),
]
JobsOption = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        min=1,
        metavar="N",
        help="How many threads; if not given, all cores. The result is the same.",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print JSON, for programs, in place of text.")
]


@dataclass(frozen=True)
class Reading:
    """How EMBEDDING and TABLE are read and their names matched."""

    key: KeyOption = None
    kind: KindOption = "features"
    match: MatchOption = "loose"
    aliases: AliasesOption = None
    exclude: ExcludeOption = None
    standardize: StandardizeOption = False
    categorical: CategoricalOption = None
    ignore: IgnoreOption = None
    encoding: EncodingOption = "utf-8"
    separator: SeparatorOption = None
    format: FormatOption = None
    member: MemberOption = None

    def keywords(self) -> dict[str, Any]:
        """Return them as `enrich` and `read_inputs` take them."""
        return {
            "match": self.match,
            "aliases": self.aliases,
            "exclude": _excluded(self.exclude),
            "format": self.format,
            "member": self.member,
            "kind": self.kind,
            "key": self.key,
            "standardize": self.standardize,
            "categorical": self.categorical or (),
            "ignore": self.ignore or (),
            "encoding": self.encoding,
            "separator": _one_character(self.separator),
        }


@dataclass(frozen=True)
class OneSetting:
    """One setting in place of a choice, as far as it was asked for."""

    preparation: PreparationOption = None
    min_degree: MinDegreeOption = None
    ridge: RidgeOption = None
    gamma: GammaOption = None

    def or_method(self, method: str | None) -> Any:
        """Return the setting, or the method's name if none was asked for."""
        asked = {name: value for name, value in vars(self).items() if value is not None}
        if not asked:
            return method or "auto"
        if method is not None:
            from vecfill.errors import InputError

            first = next(iter(asked)).replace("_", "-")
            raise InputError(
                f"--method {method} and --{first} contradict each other: the one chooses a "
                "setting, the other asks for one. Leave one of them out."
            )
        from vecfill.settings import Setting

        return Setting(**asked)


def shared(*, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Let a command take a `Reading` or `OneSetting` where the shell sees an option for each field.

    Options in `without` it does not see, and they keep their default.

    Examples
    --------
    >>> @shared()
    ... def show(table: str, *, reading: Reading) -> None:
    ...     print(table, reading.key, reading.match)
    >>> show(table="towns.csv", key="name")
    towns.csv name loose
    """

    def with_groups(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        groups = {
            name: inspect.signature(each.annotation, eval_str=True).parameters
            for name, each in own.items()
            if each.annotation in (Reading, OneSetting)
        }

        @wraps(command)
        def called(**values: Any) -> None:
            for name, fields in groups.items():
                given = {field: values.pop(field) for field in fields if field in values}
                values[name] = own[name].annotation(**given)
            command(**values)

        seen = [each for name in own for each in groups.get(name, {name: own[name]}).values()]
        cast(Any, called).__signature__ = inspect.Signature(
            [each.replace(kind=each.KEYWORD_ONLY) for each in seen if each.name not in without]
        )
        return called

    return with_groups


def _excluded(values: list[str] | None) -> list[str]:
    """Return names as given, and names in files, one a line."""
    from vecfill.errors import InputError

    names: list[str] = []
    for value in values or ():
        path = Path(value)
        if not path.is_file():
            names.append(value)
            continue
        try:
            lines = path.read_text("utf-8-sig").splitlines()
        except (OSError, UnicodeError) as error:
            raise InputError(f"{value}: cannot be read as UTF-8 text: {error}.") from error
        names += [line.strip() for line in lines if line.strip()]
    return names


def _one_character(separator: str | None) -> str | None:
    from vecfill.errors import InputError

    if separator is None:
        return None
    separator = {"\\t": "\t", "tab": "\t"}.get(separator, separator)
    if len(separator) != 1:
        raise InputError(f"--separator {separator!r} is not one character. Use ',' or 'tab'.")
    return separator
