"""The file of a model: its parts by name, each read and checked when it is first needed.

One safetensors file. Its metadata says the version, what the model is, and how each part is put
together from arrays. Only classes in `CLASSES` are ever made from a file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from vecfill.errors import FormatError, VecfillError
from vecfill.inputs import later_rows, matrices
from vecfill.inputs.names.domains import NamesReader
from vecfill.inputs.names.kept_names import KeptNames
from vecfill.inputs.names.ngrams import NGramModel
from vecfill.inputs.names.parts import PartsModel
from vecfill.inputs.names.spelling_model import SpellingModel
from vecfill.inputs.rarity import Rarity, VocabularyMeans
from vecfill.inputs.table.column_types import COLUMN_TYPES
from vecfill.inputs.table.features import ColumnsReader
from vecfill.inputs.texts.text import EncoderReader, TextReader
from vecfill.inputs.texts.text_rows import TextModel, WordsReader
from vecfill.io.mapped import MappedArrays, write_mapped
from vecfill.io.packing import Packer, Unpacker
from vecfill.living.kept import Kept
from vecfill.model import predictors
from vecfill.model.fitted_preparation import FittedPreparation
from vecfill.model.offset import Curve, OffsetRule
from vecfill.model.predictors.fused import Fused
from vecfill.model.sources import Member, SourcesSpace
from vecfill.model.space import Space
from vecfill.model.stack import Stack
from vecfill.model.stored_space import SpaceSize, StoredSpace
from vecfill.model.stretch import Stretch
from vecfill.trust.choose.fusion import SourceReport
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.hidden import Cosines, Hidden
from vecfill.trust.prove.learning import Teacher, Teachers
from vecfill.trust.prove.proof import Suspicion
from vecfill.trust.prove.strata import Stratum

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

_KEPT = (
    ColumnsReader,
    matrices.ArrayReader,
    matrices.DistancesReader,
    later_rows.NoReader,
    TextReader,
    WordsReader,
    EncoderReader,
    NamesReader,
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
    predictors.LinearRidge,
    predictors.MatchingPursuit,
    predictors.Mean,
    predictors.Guessed,
    predictors.Nearest,
    predictors.Sparsemax,
    Stack,
    Fused,
    FittedPreparation,
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
    Cosines,
    RowScores,
    Stratum,
)

CLASSES: Mapping[str, type] = {each.__name__: each for each in _KEPT}
"""What a file may hold, besides types of columns."""


def classes() -> dict[str, type]:
    """Return what a file may hold, by name.

    Types of columns and readers of sources that others wrote are there as soon as they are loaded.
    """
    added = (*COLUMN_TYPES, *later_rows.Reader.__subclasses__())
    return {**{kind.__name__: kind for kind in added}, **CLASSES}


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
    told, kinds = values["told"], (values["kinds"],)
    return Teachers(None, Teacher(told, kinds, values["proof"], values["other"]), values["level"])


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
    kept: Kept,
    spaces: Mapping[str, Any],
    about: Mapping[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Write the parts of a model and of its spaces, and what is to be said about it, to a file.

    What could not be loaded again is refused.
    """
    packer, parts = Packer(classes()), {**kept.by_name(), **spaces}
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
        for name, each in packed.items():
            kind = "SpaceSize" if name.endswith(" size") else _KINDS.get(name)
            if kind is not None and kind not in _described(each):
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
        self._packed: dict[str, Any] = packed
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


def stored_space(parts: Mapping[str, Any], n_all: int, *, n_jobs: int | None = None) -> Space:
    """Return the space of a model of so many rows, or the spaces of its sources."""
    layout = parts["layout"]
    found = [
        StoredSpace(
            parts[f"space {number} size"],
            lambda name, number=number: parts[f"space {number} {name}"],
            n_jobs=n_jobs,
        )
        for number in range(layout["n_spaces"])
    ]
    if not layout["is_joint"]:
        return found[0]
    members = [
        Member(name, space, parts[f"space {number} members"], n_all)
        for number, (name, space) in enumerate(zip(layout["names"], found, strict=True))
    ]
    return SourcesSpace([[member] for member in members])
