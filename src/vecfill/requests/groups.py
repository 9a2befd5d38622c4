"""The options of each group: for each its default, its meaning and the values it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from vecfill.errors import OptionError
from vecfill.requests.option import Request, option

KINDS: dict[str, Any] = {
    "features": "vecfill.inputs.domain:domain_of_features",
    "embedding": "vecfill.inputs.domain:refuse_no_embedding",
    "similarities": "vecfill.inputs.domain:domain_of_square",
    "distances": "vecfill.inputs.domain:domain_of_square",
    "edges": "vecfill.inputs.domain:domain_of_edge_list",
    "triples": "vecfill.inputs.graphs.triples_source:domain_of_triples",
}
"""What a table may hold, and who makes a `Domain` of it: a function of a frame and a `Reading`, or
where it is."""

TEXT_KIND = "text"
"""A further kind that `source` knows: all columns but the names hold text."""

LEVELS: dict[str, Any] = {
    "exact": "vecfill.inputs.names.folding:EXACT",
    "case": "vecfill.inputs.names.folding:CASE",
    "loose": "vecfill.inputs.names.folding:LOOSE",
}
"""How far names and words may differ: a `Folding`, or where it is."""

NAME_MODES = ("auto", "off", "spelling", "parts")

TABLE_OPTIONS = ("key", "standardize", "categorical", "categorical_weight", "ignore")
TEXT_OPTIONS = ("encoding", "separator", "header")
EDGE_OPTIONS = ("edge_columns", "n_dims")
DOMAIN_OPTIONS = ("kind", "names", *TABLE_OPTIONS, *TEXT_OPTIONS, *EDGE_OPTIONS)
NAME_OPTIONS = ("match", "aliases", "exclude", "min_count", "from_rank")
RARITY_OPTIONS = ("counts",)
FILE_OPTIONS = ("format", "member")


@dataclass(frozen=True, kw_only=True)
class Reading(Request):
    """How an embedding and a table are read, and how their names are matched.

    Examples
    --------
    >>> Reading(match="exact").match
    'exact'
    """

    panel: ClassVar[str] = "Input"

    key: str | None = option(
        None, "Column that names the entities. By default the first column.", metavar="COLUMN"
    )  # fmt: skip
    vector: str | None = option(
        None, "Column of vectors. If EMBEDDING is left out, it is in TABLE.", metavar="COLUMN"
    )  # fmt: skip
    kind: str = option(
        "features", "What TABLE holds: feature columns, word vectors, a square matrix, a graph, or "
        "typed triples.",
        choices=KINDS,
    )  # fmt: skip
    names: Any = option(
        None,
        "Use the names of entities as a source: their spelling, the words they consist of (parts), "
        "or both (auto). By default auto if EMBEDDING has many other words. If this is said, TABLE "
        "may have nothing but names. In Python, this can also be a list with the names of the rows "
        "of an array.", metavar="auto|off|spelling|parts", panel="Names",
    )  # fmt: skip
    text: tuple[str, ...] = option(
        (), "Column of TABLE with a text about each entity. It becomes a source of its own.",
        several=True, metavar="COLUMN",
    )  # fmt: skip
    encoder: Any = option(
        None,
        "Folder of a sentence-transformers or model2vec model that turns texts into vectors. By "
        "default TF-IDF, or the word vectors of EMBEDDING.", metavar="FOLDER",
    )  # fmt: skip
    source: tuple[str, ...] = option(
        (),
        "Another file that describes the entities, as NAME=FILE or NAME=FILE:KIND (features, "
        "embedding, distances, similarities, edges, triples, text).",
        several=True, metavar="NAME=FILE[:KIND]",
    )  # fmt: skip
    match: str = option(
        "loose",
        "How far a name may differ from its word: not at all, only in case, or also in separators, "
        "accents and legal suffixes (loose).", choices=LEVELS, panel="Names",
    )  # fmt: skip
    aliases: Mapping[str, str] | str | os.PathLike[str] | None = option(
        None, "CSV file with two columns, entity and word, for names that do not match "
        "automatically.", metavar="FILE", panel="Names",
    )  # fmt: skip
    exclude: tuple[str, ...] = option(
        (),
        "Treat this entity as unknown even if its name matches a word; or a file of such names, "
        "one per line.", several=True, metavar="NAME|FILE", panel="Names",
    )  # fmt: skip
    counts: Any = option(
        None,
        "How often each entity occurs: a file with entity and count, or a column of TABLE. By "
        "default, rarity is taken from the order of the words in EMBEDDING.", metavar="FILE|COLUMN",
        panel="Names",
    )  # fmt: skip
    min_count: float | None = option(
        None, "Treat entities with a lower count than this as unknown. Needs counts=.",
        type=float, low=0.0, metavar="N", panel="Names",
    )  # fmt: skip
    from_rank: int | None = option(
        None, "Treat words at this row of EMBEDDING or later as unknown; the first row is 1.",
        type=int, low=1, metavar="N", panel="Names",
    )  # fmt: skip
    interactions: Any = option(
        None,
        "Who took what: a table with a column of users, one of items and, if there are any, one "
        "called rating. Hidden entities are recommended to users, and methods compared by that. "
        "In Python, this can also be what vecfill.interactions returns.", metavar="FILE",
    )  # fmt: skip
    standardize: bool = option(
        False, "Scale numeric columns to mean 0 and variance 1, so that units do not matter.",
        type=bool,
    )  # fmt: skip
    categorical: tuple[str, ...] = option(
        (), "Column whose numbers are category codes.", several=True, metavar="COLUMN"
    )  # fmt: skip
    categorical_weight: float = option(
        1.0, "Weight of a categorical column relative to a standardized numeric one.",
        type=float, low=0.0, metavar="W", in_shell=False,
    )  # fmt: skip
    ignore: tuple[str, ...] = option((), "Column to leave out.", several=True, metavar="COLUMN")
    edge_columns: tuple[str, ...] | None = option(
        None, "Column of an edge list. Give it for each end and, optionally, for the weight; of "
        "triples, for head, relation and tail.", several=True, metavar="COLUMN",
    )  # fmt: skip
    n_dims: int = option(
        128, "Dimensions of the vectors computed from an edge list or triples, at most.",
        type=int, low=1, metavar="N",
    )  # fmt: skip
    encoding: str = option(
        "utf-8", "Encoding of a CSV or TSV table, for example latin-1.", metavar="NAME"
    )  # fmt: skip
    separator: str | None = option(
        None, "Separator of a text table, for example ; or tab. By default a comma or a tab, "
        "whichever the file uses.", metavar="CHAR",
    )  # fmt: skip
    header: bool = option(
        True, "Whether the first line of a text table names the columns.", type=bool,
        in_shell=False,
    )  # fmt: skip
    format: str | None = option(
        None, "Format of EMBEDDING. By default it is detected.", metavar="FORMAT"
    )  # fmt: skip
    member: str | None = option(
        None, "File to read if EMBEDDING is a zip of several.", metavar="NAME"
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.names, str) and self.names not in NAME_MODES:
            raise OptionError(
                f"names={self.names!r} is none of {', '.join(NAME_MODES)}. The entity names of an "
                "array are passed as a list."
            )
        reads_text = self.text or any(source.endswith(f":{TEXT_KIND}") for source in self.source)
        if self.encoder is not None and not reads_text:
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

    method: Any = option(
        None,
        "auto (the default) chooses the method that restores hidden known rows best; paper is "
        "the method of the paper with the weight floor of its authors' code, which the paper does "
        "not mention and which moves vectors a little. In Python, this can also be a predictor "
        "such as vecfill.LatentSemantic, or the decision of an evaluation of the same table and "
        "embedding, which saves the time of choosing again.", choices=("auto", "paper"),
    )  # fmt: skip
    preparation: str | None = option(
        None, "Use this preparation of the rows instead of choosing one: as_given, standardized, "
        "unit_rows, unit_rows_without_first_component, rank_normal, rank_normal_unit_rows or "
        "smooth.",
        metavar="NAME",
    )  # fmt: skip
    min_degree: int | None = option(
        None, "Use this least number of neighbours instead of choosing one (8 in the paper).",
        type=int, low=1, metavar="N",
    )  # fmt: skip
    ridge: float | None = option(
        None, "Use this smoothing of the weights instead of choosing one (0 in the paper).",
        type=float, low=0.0, metavar="R",
    )  # fmt: skip
    residual_share: float | None = option(
        None, "Use a linear trend plus this share of its residual instead of choosing one.",
        type=float, low=0.0, high=1.0, metavar="S",
    )  # fmt: skip
    goal: str = option(
        "balanced",
        "Criterion for choosing the method: cosine with the true vector; its rank, for which "
        "cosine may be given up by strengthening rare directions; rank and neighbors among "
        "methods that are within 5 % of the best cosine (balanced); or the order in which hidden "
        "entities are recommended (recommend, with interactions).",
        choices=("balanced", "cosine", "rank", "recommend"),
    )  # fmt: skip
    candidates: str = option(
        "all",
        "What auto tries: everything, or only latent semantic imputation with four preparations "
        "(classic).", choices=("all", "classic"),
    )  # fmt: skip
    columns: str = option(
        "auto",
        "Leave out columns of TABLE without which hidden entities come back better (auto), or use "
        "every column (all).", choices=("auto", "all"),
    )  # fmt: skip
    offset: str = option(
        "auto",
        "Move the vectors of entities that are rare themselves to where rare vectors lie, if that "
        "brings hidden rare entities nearer (auto), or never (off).", choices=("auto", "off"),
    )  # fmt: skip
    assume: str | None = option(
        None,
        "Say whether unknown entities are unknown because they are rare (rare) or not "
        "(like_known). By default TABLE decides; if it says too little, bounds hold for both.",
        choices=("rare", "like_known"),
    )  # fmt: skip
    force: bool = option(
        False,
        "Impute even if TABLE carries no signal about EMBEDDING, if the new vectors are nearly one "
        "vector, or if too few entities are known to check.", type=bool,
    )  # fmt: skip
    seed: int = option(
        0, "Random seed. The same seed gives the same result.", type=int, low=0, metavar="N"
    )  # fmt: skip

    def __post_init__(self) -> None:
        super().__post_init__()
        setting = self.setting()
        if setting and self.method is not None:
            name, value = next(iter(setting.items()))
            raise OptionError(
                f"method={self.method!r} and {name}={value!r} contradict each other: the one says "
                "how to choose, the other asks for one setting. Leave one of them out."
            )
        if not setting and self.method in (None, "auto"):
            return
        about = {
            "candidates": "what auto tries",
            "goal": "how auto chooses",
            "columns": "what auto leaves out",
            "offset": "what auto does about rare entities",
        }
        for name, subject in about.items():
            if name in self.asked():
                raise OptionError(
                    f"{name}={getattr(self, name)!r} is about {subject}, and here nothing is "
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

    level: float = option(
        0.9, "Coverage level of the lower bounds, for example 0.9.", type=float, low=0.01,
        high=0.999, metavar="P",
    )  # fmt: skip
    min_confidence: float | None = option(
        None,
        "Leave out entities whose confidence is below this, or that have no bound.",
        type=float, low=-1.0, high=1.0, metavar="C",
    )  # fmt: skip
    min_bound: float | None = option(
        None, "Leave out entities whose lower bound is below this.", type=float, low=-1.0, high=1.0,
        metavar="B",
    )  # fmt: skip
    groups: Any = option(
        None,
        "Column of TABLE whose groups, such as countries, get bounds of their own. In Python, this "
        "can also be a mapping from entity to group.", metavar="COLUMN",
    )  # fmt: skip
    calibrate_norms: bool = option(
        False, "Make new vectors as long as real ones: their steps from the mean of the known "
        "vectors are scaled by a factor that is learnt on hidden known entities.", type=bool,
    )  # fmt: skip
