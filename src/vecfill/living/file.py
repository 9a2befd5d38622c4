"""What is kept of a fitted model, and its file: each part is read when it is first needed.

`Kept` has one typed part for everything but the space. The file is one safetensors file. Its
metadata says the version, what the model is, and how each part is put together from arrays. Only
classes in `CLASSES` are ever made from a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from vecfill.errors import FormatError, InputError, VecfillError
from vecfill.inputs import later_rows, matrices
from vecfill.inputs.graphs.typed_features import TriplesReader
from vecfill.inputs.groups import Groups
from vecfill.inputs.names.kept_names import KeptNames
from vecfill.inputs.names.near_spellings import NearSpellings
from vecfill.inputs.names.ngrams import NGramModel
from vecfill.inputs.names.parts import PartsModel
from vecfill.inputs.names.readers import NamesReader, SpellingReader
from vecfill.inputs.names.spelling_model import SpellingModel
from vecfill.inputs.rarity import Rarity, VocabularyMeans
from vecfill.inputs.table.column_facts import ColumnFacts
from vecfill.inputs.table.column_types import COLUMN_TYPES
from vecfill.inputs.table.columns_reader import ColumnsReader
from vecfill.inputs.texts.text import EncoderReader, TextReader
from vecfill.inputs.texts.text_rows import TextModel, WordsReader
from vecfill.io.mapped import MappedArrays, write_mapped
from vecfill.io.packing import Packer, Unpacker
from vecfill.model import predictors
from vecfill.model.offset import Curve, OffsetRule
from vecfill.model.predictors import Predictor
from vecfill.model.predictors.fused import Fused
from vecfill.model.preparation import FittedPreparation
from vecfill.model.space import SpaceSize
from vecfill.model.stack import Stack
from vecfill.model.stretch import Stretch
from vecfill.trust.choose.fusion import SourceReport
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.hidden import Cosines, Hidden
from vecfill.trust.prove.learning import Teacher, Teachers
from vecfill.trust.prove.lessons import Lessons
from vecfill.trust.prove.proof import Suspicion
from vecfill.trust.prove.strata import Stratum


@dataclass(frozen=True, eq=False)
class Kept:
    """What is kept of a fitted model; its domain is kept by the `Space`.

    From a file, each part is read and checked when it is first asked for.
    """

    names: KeptNames
    """Names of all entities, known and imputed."""
    columns: tuple[str, ...]
    """Names of the columns of the domain."""
    predictor: Predictor
    """How the vectors were imputed, with everything that was chosen."""
    embedding: np.ndarray = field(repr=False)
    """(n_rows, n_dims) vectors of all entities, known and imputed."""
    is_known: np.ndarray = field(repr=False)
    """(n_rows,) which entities have a known vector."""
    is_left_out: np.ndarray = field(repr=False)
    """(n_rows,) which entities are imputed but not given."""
    sources: tuple[later_rows.KeptSource, ...] = field(repr=False)
    """How every source was read."""
    rule: OffsetRule | None
    """How the offset of rare entities is found, if there is one."""
    stretch: Stretch
    """By what the steps of imputed rows from the mean are multiplied."""
    rarity: np.ndarray = field(repr=False)
    """(n_rows,) how rare each entity is."""
    has_rarity: np.ndarray = field(repr=False)
    """(n_rows,) whether that is known."""
    is_spared: np.ndarray | None = field(repr=False)
    """(n_rows,) which entities are unknown for another reason than rarity."""
    groups: Groups | None = field(repr=False)
    """Groups that were named at the fit, for every entity; ``None`` if there were none."""
    teachers: Teachers | None = field(repr=False)
    """From what confidence is learnt; ``None`` if too few entities are known."""
    lessons: Lessons | None = field(repr=False)
    """From what the confidence of entities that lack facts is learnt; ``None`` in older files."""
    gaps: np.ndarray | None = field(repr=False)
    """(n_rows, n_facts) which facts each entity lacks; ``None`` in older files."""
    is_beyond: np.ndarray | None = field(repr=False)
    """(n_rows,) which entities are unlike all that were hidden; ``None`` in older files."""
    confidence: Confidence | None = field(repr=False)
    """Of every imputed row; ``None`` if it is to be learnt when it is first asked for."""
    reports: tuple[SourceReport, ...] = field(repr=False)
    """What became of each source at the fit; empty if there was one table."""
    strata: tuple[Stratum, ...] = field(repr=False)
    """Kinds of entities, and what was proved about each at the fit."""
    suspicious: tuple[Suspicion, ...] = field(repr=False)
    """Known entities that their neighbours contradict, worst first."""
    notes: tuple[str, ...] = field(repr=False)
    """What there was to say at the fit."""
    signals: tuple[str, ...]
    """Names of the signals from which confidence is learnt, in the order of their columns."""
    for_adding: Mapping[str, Any] | None = field(repr=False)
    """What the predictor keeps so that adding is quick; ``None`` if it is to be computed again."""

    @classmethod
    def of_parts(cls, parts: Mapping[str, Any]) -> Kept:
        """Return parts that are read when they are asked for."""
        model = object.__new__(cls)
        vars(model)["_parts"] = parts
        return model

    def __getattr__(self, name: str) -> Any:
        # Only what was not read before comes here.
        if "_parts" not in vars(self) or name not in NAMES:
            raise AttributeError(name)
        vars(self)[name] = part = vars(self)["_parts"][name]
        return part

    def changed(self, **parts: Any) -> Kept:
        """Return the same with other parts; what was not read yet stays in its file."""
        assert set(parts) <= set(NAMES)
        model = object.__new__(Kept)
        vars(model).update(vars(self) | parts)
        return model

    def by_name(self) -> dict[str, Any]:
        """Return all parts, read."""
        return {name: getattr(self, name) for name in NAMES}


NAMES = tuple(part.name for part in fields(Kept))

KIND = "vecfill model"
VERSION = 2
OLDER_VERSIONS = (1,)

_NEW_NAMES = {"server": "for_adding"}
"""Parts that have another name in files of version 1."""

_SIGNALS_OF_VERSION_1 = (
    "agreement",
    "concentration",
    "length",
    "misfit",
    "straight",
    "trend_length",
    "tightness",
)

_CLASSES = (
    ColumnsReader,
    ColumnFacts,
    matrices.ArrayReader,
    matrices.DistancesReader,
    later_rows.NoReader,
    TriplesReader,
    TextReader,
    WordsReader,
    EncoderReader,
    NamesReader,
    SpellingReader,
    NearSpellings,
    NGramModel,
    PartsModel,
    later_rows.KeptSource,
    KeptNames,
    Rarity,
    VocabularyMeans,
    SpellingModel,
    TextModel,
    predictors.LatentSemantic,
    predictors.KernelRidge,
    predictors.LeafKernel,
    predictors.LinearRidge,
    predictors.MatchingPursuit,
    predictors.Mean,
    predictors.Guessed,
    predictors.Nearest,
    predictors.Sparsemax,
    Stack,
    Fused,
    FittedPreparation,
    Groups,
    Curve,
    OffsetRule,
    Stretch,
    SpaceSize,
    Confidence,
    SourceReport,
    Hidden,
    Suspicion,
    Teacher,
    Teachers,
    Lessons,
    Cosines,
    RowScores,
    Stratum,
)

CLASSES: Mapping[str, type] = {kind.__name__: kind for kind in _CLASSES}
"""What a file may hold, besides types of columns."""


def classes() -> dict[str, type]:
    """Return what a file may hold, by name.

    Types of columns and readers of sources that others wrote are there as soon as they are loaded.
    """
    added = (*COLUMN_TYPES, *later_rows.Reader.__subclasses__())
    return {**{kind.__name__: kind for kind in added}, **CLASSES}


_OF_OLDER_FILES: Mapping[str, Any] = {
    "groups": None,
    "lessons": None,
    "gaps": None,
    "is_beyond": None,
}
"""Parts that files of earlier versions of vecfill lack: groups could not be named then, and nothing
was learnt of missing facts."""

_OF_VERSION_1 = {
    "stretch": {"#": "object", "class": "Stretch", "fields": {}},
    "is_spared": None,
}
"""Parts that files of version 1 lack, and what they mean there: nothing was stretched."""


def _scores_of_version_1(**values: Any) -> RowScores:
    unknown = np.zeros(len(values["cosine"]))
    return RowScores(**values, agreement=unknown, crowding=unknown, hubs=unknown)


def _hidden_of_version_1(**values: Any) -> Hidden:
    if values["moved"] is not None:
        values["moved"] = Cosines(values["moved"].centred_cosine, values["moved"].cosine)
    return Hidden(**values, net=values["scores"].centred_cosine)


def _teachers_of_version_1(**values: Any) -> Teachers:
    features, kinds = values["told"], (values["kinds"],)
    return Teachers(
        None, Teacher(features, kinds, values["proof"], values["other"]), values["level"]
    )


CLASSES_OF_VERSION_1: Mapping[str, Callable[..., Any]] = {
    "RowScores": _scores_of_version_1,
    "Hidden": _hidden_of_version_1,
    "Teachers": _teachers_of_version_1,
}

_KINDS = {
    "names": "KeptNames",
    "embedding": "array",
    "is_known": "array",
    "sources": "tuple",
    "strata": "tuple",
    "layout": "dict",
}
"""What must be what, so that a file which was changed by hand is refused when it is opened."""


def write_model(
    path: str | os.PathLike[str],
    model: Kept,
    spaces: Mapping[str, Any],
    about: Mapping[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Write the parts of a model and of its spaces, and what is to be said about it, to a file.

    What could not be loaded again is refused.
    """
    packer, parts = Packer(classes()), {**model.by_name(), **spaces}
    packed = {name: packer.pack(parts[name], name) for name in parts}
    summary = {"model": dict(about), "parts": packed}
    write_mapped(path, packer.arrays, summary, kind=KIND, version=VERSION, overwrite=overwrite)


@contextmanager
def fitting_parts(path: str | os.PathLike[str] | None) -> Iterator[None]:
    """Refuse a file whose parts do not fit together; without a file, let every error out.

    Damage is found by digests before a part is used. But a file that was edited, digests and all,
    can hold arrays of other lengths, or name rows that are not there.
    """
    try:
        yield
    except (VecfillError, MemoryError, OSError):
        raise
    except UnicodeEncodeError as error:
        # What is read from a file was decoded, so this is a text of the caller.
        raise InputError(
            f"a text holds {error.object[error.start : error.end]!a}, half of a surrogate pair, "
            "which is no character. Correct the text."
        ) from error
    except Exception as error:
        if path is None:
            raise
        raise FormatError(
            f"{path}: its parts do not fit together ({error!r}). If nobody has edited the file, "
            "please report this as an error of vecfill."
        ) from error


class FileParts(Mapping[str, Any]):
    """The parts of a model in a file."""

    def __init__(self, path: str | os.PathLike[str], *, check: bool = False) -> None:
        self._arrays = MappedArrays(path, kind=KIND, versions=(*OLDER_VERSIONS, VERSION))
        packed, about = self._arrays.about.get("parts"), self._arrays.about.get("model")
        if not isinstance(packed, dict) or not isinstance(about, dict):
            raise FormatError(f"{path} has no model in it. Save the model again.")
        for name, part_packed in packed.items():
            kind = "SpaceSize" if name.endswith(" size") else _KINDS.get(name)
            if kind is not None and kind not in _described(part_packed):
                raise FormatError(
                    f"{path}: the part {name!r} is not of the kind {kind}. The file was changed: "
                    "save the model again."
                )
        if self._arrays.version == 1:
            packed = {_NEW_NAMES.get(name, name): part for name, part in packed.items()}
            signals = [*_SIGNALS_OF_VERSION_1]
            packed = {**packed, **_OF_VERSION_1, "signals": {"#": "tuple", "items": signals}}
            if packed.get("rule") is not None:
                # What known rows carry for additions has their rarity by now: computed again.
                packed["for_adding"] = None
        if packed.get("calibrates_norms") is True:
            raise FormatError(
                f"{path} was saved with calibrate_norms= by an earlier version, which scaled the "
                "mean of all vectors too. Fit and save the model again."
            )
        self._packed: dict[str, Any] = {**_OF_OLDER_FILES, **packed}
        self.about: dict[str, Any] = about
        self._found: dict[str, Any] = {}
        of_version = CLASSES_OF_VERSION_1 if self._arrays.version == 1 else {}
        self._unpacker = Unpacker({**classes(), **of_version}, self._array, str(path))
        self.path = path
        if check:
            self._arrays.check()
            for name in packed:
                _ = self[name]

    def _array(self, name: str) -> Any:
        if name not in self._arrays.names:
            raise FormatError(f"{self.path}: the array {name!r} is missing. Save the model again.")
        return self._arrays[name]

    def __getitem__(self, name: str) -> Any:
        if name not in self._packed:
            raise self.lacking(name)
        if name not in self._found:
            self._found[name] = self._unpacker.unpack(self._packed[name], name)
        return self._found[name]

    def lacking(self, name: str) -> FormatError:
        """Return what to say if a part is not there."""
        return FormatError(f"{self.path}: the part {name!r} is missing. Save the model again.")

    def __contains__(self, name: object) -> bool:
        return name in self._packed

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed)

    def __len__(self) -> int:
        return len(self._packed)


def _described(packed: Any) -> tuple[Any, ...]:
    """Return the kind of a packed part, and its class if it has one."""
    return (packed.get("#"), packed.get("class")) if isinstance(packed, dict) else ()
