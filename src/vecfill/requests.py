"""What a user asks for, option by option: built once, passed whole, recorded whole.

`Reading` says how files, tables and names are read, `Method` how to impute, `Trust` what to say
about the result. Python functions take their fields as keyword arguments (`takes`) and commands as
shell options, so an option is described here and nowhere else. This module loads nothing heavy,
because ``vecfill --help`` needs it.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, ClassVar, TypeVar, cast

from vecfill.errors import OptionError

KINDS = ("features", "embedding", "similarities", "distances", "edges")
LEVELS = ("exact", "case", "loose")
NAME_MODES = ("auto", "off", "spelling", "parts")

TABLE_OPTIONS = ("key", "standardize", "categorical", "categorical_weight", "ignore")
TEXT_OPTIONS = ("encoding", "separator", "header")
EDGE_OPTIONS = ("edge_columns", "n_dims")
DOMAIN_OPTIONS = ("kind", "names", *TABLE_OPTIONS, *TEXT_OPTIONS, *EDGE_OPTIONS)
NAME_OPTIONS = ("match", "aliases", "exclude", "min_count", "from_rank")
RARITY_OPTIONS = ("counts",)
FILE_OPTIONS = ("format", "member")

Returned = TypeVar("Returned")


@dataclass(frozen=True, kw_only=True)
class Described:
    """What an option means and which values it takes."""

    what: str
    type: type = str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    metavar: str | None = None
    several: bool = False
    """Whether it takes a list, and may be repeated in a shell."""
    in_shell: bool = True
    panel: str = ""
    """Heading under which a command's help lists it; by default that of its request."""


def _option(default: Any, what: str, **details: Any) -> Any:
    return field(default=default, metadata={"option": Described(what=what, **details)})


def described(request: type[Request], name: str) -> Described:
    """Return what an option of a request means."""
    return next(each for each in fields(request) if each.name == name).metadata["option"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """A group of options; every value is checked when it is built."""

    panel: ClassVar[str] = "Options"
    """Heading under which a command's help lists them."""

    def __post_init__(self) -> None:
        for each in fields(self):
            checked = _checked(each.name, getattr(self, each.name), each.metadata["option"])
            object.__setattr__(self, each.name, checked)

    def asked(self) -> list[str]:
        """Return the options that differ from their defaults.

        Examples
        --------
        >>> Reading(key="name", match="loose").asked()
        ['key']
        """
        return [each.name for each in fields(self) if getattr(self, each.name) != each.default]

    def refuse_unused(self, used: Collection[str], among: Collection[str], why: str) -> None:
        """Refuse the options `among` some that were asked for and would not be used.

        Examples
        --------
        >>> Reading(key="name").refuse_unused((), ("key",), "an Embedding has its words")
        Traceback (most recent call last):
        vecfill.errors.OptionError: key='name' cannot be used here: an Embedding has its words.
        """
        for name in self.asked():
            if name in among and name not in used:
                raise OptionError(f"{name}={getattr(self, name)!r} cannot be used here: {why}.")

    def to_dict(self) -> dict[str, Any]:
        """Return every option with its value, for manifests."""
        return {each.name: _plain(getattr(self, each.name)) for each in fields(self)}


@dataclass(frozen=True, kw_only=True)
class Reading(Request):
    """How an embedding and a table are read, and how their names are matched.

    Examples
    --------
    >>> Reading(match="exact").match
    'exact'
    """

    panel: ClassVar[str] = "Input"

    key: str | None = _option(
        None, "Column that names the entities. By default the first column.", metavar="COLUMN"
    )
    vector: str | None = _option(
        None, "Column of vectors. If EMBEDDING is left out, it is in TABLE.", metavar="COLUMN"
    )
    kind: str = _option(
        "features",
        "What TABLE holds: feature columns, word vectors, a square matrix, or a graph.",
        choices=KINDS,
    )
    names: Any = _option(
        None,
        "Whether the names of entities are a source of their own: by their spelling, by their "
        "parts if they have several words, or both (auto). By default auto if EMBEDDING has many "
        "words besides those of the entities. In Python also the entity names of the rows of an "
        "array.",
        metavar="auto|off|spelling|parts",
        panel="Names",
    )
    text: tuple[str, ...] = _option(
        (), "Column of TABLE that holds a text about each entity, as a source of its own.",
        several=True, metavar="COLUMN",
    )  # fmt: skip
    encoder: Any = _option(
        None,
        "Folder of a sentence-transformers or model2vec model that turns texts into vectors. By "
        "default TF-IDF, or the word vectors of EMBEDDING.",
        metavar="FOLDER",
    )
    source: tuple[str, ...] = _option(
        (),
        "Another file that describes the entities, as NAME=FILE or NAME=FILE:KIND (features, "
        "embedding, distances, similarities, edges).",
        several=True, metavar="NAME=FILE[:KIND]",
    )  # fmt: skip
    match: str = _option(
        "loose",
        "How far a name may differ from its word: not at all, in case only, or loosely (also in "
        "separators, accents and legal suffixes).",
        choices=LEVELS,
        panel="Names",
    )
    aliases: Mapping[str, str] | str | os.PathLike[str] | None = _option(
        None, "CSV file with two columns, entity and word, for names that do not match by "
        "themselves.", metavar="FILE", panel="Names",
    )  # fmt: skip
    exclude: tuple[str, ...] = _option(
        (),
        "Treat this entity as unknown even if its name matches a word; or a file of such names, "
        "one per line.",
        several=True,
        metavar="NAME|FILE",
        panel="Names",
    )
    counts: Any = _option(
        None,
        "How often each entity was counted, which tells how rare it is: a file of entity and "
        "count, or a column of TABLE. By default the order of EMBEDDING tells.",
        metavar="FILE|COLUMN",
        panel="Names",
    )
    min_count: float | None = _option(
        None, "Treat entities with a lower count than this as unknown. Needs counts.",
        type=float, low=0.0, metavar="N", panel="Names",
    )  # fmt: skip
    from_rank: int | None = _option(
        None, "Treat words at this row of EMBEDDING or later as unknown; the first row is 1.",
        type=int, low=1, metavar="N", panel="Names",
    )  # fmt: skip
    standardize: bool = _option(
        False, "Scale numeric columns to mean 0 and variance 1, so that units do not matter.",
        type=bool,
    )  # fmt: skip
    categorical: tuple[str, ...] = _option(
        (), "Column whose numbers are codes of categories.", several=True, metavar="COLUMN"
    )
    categorical_weight: float = _option(
        1.0, "Weight of a categorical column relative to a standardized numeric one.",
        type=float, low=0.0, metavar="W", in_shell=False,
    )  # fmt: skip
    ignore: tuple[str, ...] = _option((), "Column to leave out.", several=True, metavar="COLUMN")
    edge_columns: tuple[str, ...] | None = _option(
        None, "Column of an edge list: give one for each end and, as a third, one for the weight.",
        several=True, metavar="COLUMN",
    )  # fmt: skip
    n_dims: int = _option(
        128, "Length of the vectors made from an edge list.", type=int, low=1, metavar="N"
    )
    encoding: str = _option(
        "utf-8", "Encoding of a CSV or TSV table, for example latin-1.", metavar="NAME"
    )
    separator: str | None = _option(
        None, "Separator of a text table, for example ; or tab. By default a comma or a tab, "
        "whichever the file uses.", metavar="CHAR",
    )  # fmt: skip
    header: bool = _option(
        True, "Whether the first line of a text table names the columns.", type=bool,
        in_shell=False,
    )  # fmt: skip
    format: str | None = _option(
        None, "Format of EMBEDDING. By default it is detected.", metavar="FORMAT"
    )
    member: str | None = _option(
        None, "File to read if EMBEDDING is a zip of several.", metavar="NAME"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.names, str) and self.names not in NAME_MODES:
            raise OptionError(
                f"names={self.names!r} is none of {', '.join(NAME_MODES)}. The entity names of an "
                "array are passed as a list."
            )
        if self.encoder is not None and not self.text:
            raise OptionError(
                "encoder= turns texts into vectors, and there is no text. Name its column with "
                "text=, or pass the texts as a source of their own."
            )

    @property
    def name_mode(self) -> str | None:
        """How names serve as a source; ``None`` if that was not said."""
        return self.names if isinstance(self.names, str) else None

    @property
    def row_names(self) -> Any:
        """Entity names of the rows of an array; ``None`` if there are none."""
        return None if isinstance(self.names, str) else self.names


@dataclass(frozen=True, kw_only=True)
class Method(Request):
    """How to impute: a method that chooses, or one predictor.

    Examples
    --------
    >>> Method(min_degree=5).setting()
    {'min_degree': 5}
    >>> Method(method="paper", ridge=0.1)
    Traceback (most recent call last):
    vecfill.errors.OptionError: method='paper' and ridge=0.1 contradict each other: ...
    """

    panel: ClassVar[str] = "Method"

    method: Any = _option(
        None,
        "auto (the default) chooses the method that imputes hidden known rows best; paper is the "
        "method of the paper, to the letter.",
        choices=("auto", "paper"),
    )
    preparation: str | None = _option(
        None, "Use this preparation of the rows instead of choosing one: as_given, standardized, "
        "unit_rows, unit_rows_without_first_component, rank_normal or rank_normal_unit_rows.",
        metavar="NAME",
    )  # fmt: skip
    min_degree: int | None = _option(
        None, "Use this least number of neighbours instead of choosing one (8 in the paper).",
        type=int, low=1, metavar="N",
    )  # fmt: skip
    ridge: float | None = _option(
        None, "Use this smoothing of the weights instead of choosing one (0 in the paper).",
        type=float, low=0.0, metavar="R",
    )  # fmt: skip
    residual_share: float | None = _option(
        None, "Use a linear trend plus this share of what it misses, instead of choosing.",
        type=float, low=0.0, high=1.0, metavar="S",
    )  # fmt: skip
    goal: str = _option(
        "balanced",
        "What to choose the method by: cosine with the truth, rank of the truth among all known "
        "vectors, or both.",
        choices=("balanced", "cosine", "rank"),
    )
    candidates: str = _option(
        "all",
        "What auto tries: all it has, or only the classic candidates, latent semantic imputation "
        "under four preparations.",
        choices=("all", "classic"),
    )
    force: bool = _option(
        False,
        "Impute even if TABLE carries no signal about EMBEDDING, or too few entities are known to "
        "tell.",
        type=bool,
    )
    seed: int = _option(
        0, "Random seed. The same seed gives the same result.", type=int, low=0, metavar="N"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        setting = self.setting()
        if setting and self.method is not None:
            name, value = next(iter(setting.items()))
            raise OptionError(
                f"method={self.method!r} and {name}={value!r} contradict each other: the one says "
                "how to choose, the other asks for one setting. Leave one of them out."
            )

        if self.candidates != "all" and (setting or self.method not in (None, "auto")):
            raise OptionError(
                f"candidates={self.candidates!r} is about what auto tries, and here nothing is "
                "chosen. Leave it out, or leave out the method or setting."
            )

    def setting(self) -> dict[str, Any]:
        """Return the fields of a `LatentSemantic` that were asked for."""
        names = ("preparation", "min_degree", "ridge", "residual_share")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


@dataclass(frozen=True, kw_only=True)
class Trust(Request):
    """What to say about the vectors, and which of them to leave out.

    Examples
    --------
    >>> Trust(level=0.8).level
    0.8
    """

    panel: ClassVar[str] = "Trust"

    level: float = _option(
        0.9, "Coverage level of the lower bounds, for example 0.9.", type=float, low=0.01,
        high=0.999, metavar="P",
    )  # fmt: skip
    min_confidence: float | None = _option(
        None, "Leave out entities with a lower confidence.", type=float, low=-1.0, high=1.0,
        metavar="C",
    )  # fmt: skip
    min_bound: float | None = _option(
        None, "Leave out entities with a lower bound below this.", type=float, low=-1.0, high=1.0,
        metavar="B",
    )  # fmt: skip
    calibrate_norms: bool = _option(
        False, "Scale new vectors so that their lengths are distributed as the known ones'.",
        type=bool,
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Replacement(Request):
    """Which rows that a file has are replaced by imputed ones; by default none.

    Examples
    --------
    >>> Replacement(replace="suspicious").asked()
    ['replace']
    """

    panel: ClassVar[str] = "Output"

    replace: Any = _option(
        None, "Replace rows in place: of entities treated as unknown (excluded), contradicted by "
        "their neighbours (suspicious), or named in a file.", metavar="excluded|suspicious|FILE",
    )  # fmt: skip
    blend: float | None = _option(
        None, "Replace a row by count/(count+K) of the old and K/(count+K) of the new vector. "
        "Needs counts.", type=float, low=0.0, metavar="K",
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.replace, Iterable) and not isinstance(self.replace, str):
            object.__setattr__(self, "replace", tuple(self.replace))


@dataclass(frozen=True, kw_only=True)
class Scale(Request):
    """How to run a job on datasets that do not fit in memory, or on several machines.

    Examples
    --------
    >>> Scale(engine="processes", work="work").asked()
    ['engine', 'work']
    """

    panel: ClassVar[str] = "Beyond memory"

    engine: Any = _option(
        None, "Run in pieces, by this process, a pool of processes, or Dask. EMBEDDING and TABLE "
        "are Parquet files or folders of parts, OUTPUT is a folder. Needs work.",
        choices=("serial", "processes", "dask"),
    )  # fmt: skip
    work: Any = _option(
        None, "Folder for the pieces of the job, which all workers can see. The same command with "
        "the same folder goes on where an earlier one ended.", metavar="DIR",
    )  # fmt: skip
    workers: int | None = _option(
        None, "Number of processes. By default all cores; the result is the same.",
        type=int, low=1, metavar="N",
    )  # fmt: skip
    scheduler: str | None = _option(
        None, "Address of a Dask scheduler. By default a local cluster is started.",
        metavar="ADDRESS",
    )  # fmt: skip
    memory: Any = _option(
        "4GB", "What all processes of the job may hold together on one machine.", metavar="SIZE"
    )
    recall: float | None = _option(
        None, "Share of the true nearest neighbours to find; 1 looks at all pairs. By default all "
        "pairs where that is quick, otherwise 0.95.", type=float, low=0.1, high=1.0, metavar="R",
    )  # fmt: skip
    patience: float = _option(
        3600.0, "Seconds without a finished task after which the job stops and names the task.",
        type=float, low=0.0, metavar="SECONDS",
    )  # fmt: skip


def takes(
    **groups: type[Request],
) -> Callable[[Callable[..., Returned]], Callable[..., Returned]]:
    """Let a function take request objects while its callers pass their fields as keywords.

    An option that does not exist is refused by name, with the nearest one that does.

    Examples
    --------
    >>> @takes(reading=Reading)
    ... def show(table, *, reading):
    ...     print(table, reading.key, reading.match)
    >>> show("towns.csv", key="name")
    towns.csv name loose
    >>> show("towns.csv", kye="name")
    Traceback (most recent call last):
    vecfill.errors.OptionError: kye is not an option of show. Did you mean key?
    """
    option_of = {each.name: group for group, kind in groups.items() for each in fields(kind)}

    def with_options(function: Callable[..., Returned]) -> Callable[..., Returned]:
        own = inspect.signature(function).parameters
        plain = [each for each in own.values() if each.name not in groups]
        names = {each.name for each in plain}

        @wraps(function)
        def called(*args: Any, **values: Any) -> Returned:
            given: dict[str, dict[str, Any]] = {group: {} for group in groups}
            for name in [name for name in values if name not in names]:
                if name not in option_of:
                    raise OptionError(
                        _unknown_option(name, function.__name__, names | {*option_of})
                    )
                given[option_of[name]][name] = values.pop(name)
            requests = {group: kind(**given[group]) for group, kind in groups.items()}
            return function(*args, **values, **requests)

        shown = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default)
            for kind in groups.values()
            for each in fields(kind)
            if each.name not in names
        ]
        cast(Any, called).__signature__ = inspect.Signature([*plain, *shown])
        called.__doc__ = _with_options(function.__doc__ or "", groups.values())
        return called

    return with_options


def _with_options(text: str, kinds: Collection[type[Request]]) -> str:
    """Return a docstring with a list of all options before its examples."""
    lines = ["    Options", "    -------"]
    for kind in kinds:
        for each in fields(kind):
            lines += [
                f"    {each.name}={each.default!r}",
                f"        {each.metadata['option'].what}",
            ]
    head, mark, examples = text.partition("    Examples\n")
    return f"{head}{chr(10).join(lines)}\n\n{mark}{examples}"


def _unknown_option(name: str, where: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f" Did you mean {near[0]}?" if near else f" Options are {', '.join(sorted(known))}."
    return f"{name} is not an option of {where}.{hint}"


def _checked(name: str, value: Any, option: Described) -> Any:
    """Return a value as its option holds it, or refuse it by name."""
    from vecfill import checks  # noqa: PLC0415

    if value is None:
        return None
    if option.several:
        return (value,) if isinstance(value, str) else tuple(value)
    if option.type is bool:
        return checks.true_or_false(value, name)
    if option.type is int:
        return checks.whole_number(value, name, low=int(option.low or 0))
    if option.type is float:
        low = -float("inf") if option.low is None else option.low
        return checks.number(value, name, low=low, high=option.high)
    if option.choices and isinstance(value, str):
        return checks.one_of(value, name, option.choices)
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict") and not isinstance(value, Mapping):
        return value.to_dict()
    return os.fspath(value) if isinstance(value, os.PathLike) else value
