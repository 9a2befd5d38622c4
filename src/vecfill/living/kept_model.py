"""What is kept of a fitted model, and what is derived from it when first needed."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from vecfill import checks
from vecfill.embedding import printable
from vecfill.errors import InputError
from vecfill.inputs.names.kept_names import KeptNames
from vecfill.inputs.rarity import has_several_words
from vecfill.living.file import Kept, fitting_parts
from vecfill.method.engine import row_blocks
from vecfill.model.fitted import Model, as_predicted, fit
from vecfill.model.known import KnownRows
from vecfill.model.offset import Offsets
from vecfill.model.predictors import Predictor
from vecfill.model.sources import AnySpace
from vecfill.trust.choose.fusion import SourceReport
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.proof import Suspicion
from vecfill.trust.prove.signals import mixed_values, signals
from vecfill.trust.prove.strata import Stratum, kinds_of
from vecfill.wording import count

ROWS_PER_BLOCK = 8192

Asked = ParamSpec("Asked")
Given = TypeVar("Given")


def fitting(
    method: Callable[Concatenate[Any, Asked], Given],
) -> Callable[Concatenate[Any, Asked], Given]:
    """Return a method that refuses the model's file if parts of it do not fit together."""

    @wraps(method)
    def guarded(self: KeptModel, *args: Asked.args, **options: Asked.kwargs) -> Given:
        with fitting_parts(self._path):
            return method(self, *args, **options)

    return guarded


class KeptModel:
    """What is kept of a model, in memory or in a file, and everything derived from it.

    A part that changes makes what was derived from it be computed again.
    """

    def __init__(
        self,
        model: Kept,
        *,
        about: Mapping[str, Any],
        space: AnySpace,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._kept = model
        self._path = path
        self.about = dict(about)
        """What the model is: when it was made, with what, from what, how good it is."""
        self.space = space

    @property
    def names(self) -> KeptNames:
        """Names of all entities, known and imputed."""
        return self._kept.names

    @property
    def predictor(self) -> Predictor:
        """How the vectors were imputed, with everything that was chosen."""
        return self._kept.predictor

    @property
    def is_known(self) -> np.ndarray:
        """(n_rows,) which entities have a known vector."""
        return self._kept.is_known

    @property
    def key(self) -> str | None:
        """Column that named the entities at the fit, if there was one."""
        keys = [getattr(key.reader, "key", None) for key in self._kept.sources]
        return next((key for key in keys if key is not None), None)

    @property
    def schema(self) -> dict[str, dict[str, Any]]:
        """What the columns of each source were like at the fit, as plain values.

        By source and column: ``type`` (``"number"``, ``"category"`` or ``"text"``) and the share
        that was ``missing``; of numbers ``low`` and ``high``, of categories ``n_categories`` and,
        if they are few, ``categories``. A source without named columns has none.

        Examples
        --------
        >>> import pandas as pd
        >>> from vecfill import impute
        >>> hues = pd.DataFrame({"nm": [680, 610, 580, 595]}, index=["red", "amber", "lime", "tan"])
        >>> known = {"red": [1.0], "amber": [2.0], "lime": [3.0]}
        >>> impute(hues, known, method="paper").to_model().schema["table"]
        {'nm': {'type': 'number', 'missing': 0.0, 'low': 580.0, 'high': 680.0}}
        """
        readers = {source.name: source.reader for source in self._kept.sources}
        return {
            name: reader.schema()
            for name, reader in readers.items()
            if reader is not None and not reader.reads_names
        }

    @property
    def sources(self) -> tuple[SourceReport, ...]:
        """What became of each source at the fit; empty if there was one table."""
        return self._kept.reports

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """Kinds of entities, and what was proved about each at the fit."""
        return self._kept.strata

    @property
    def suspicious(self) -> tuple[Suspicion, ...]:
        """Known entities that their neighbours contradict, worst first."""
        return self._kept.suspicious

    @property
    def notes(self) -> tuple[str, ...]:
        """What there was to say at the fit."""
        return self._kept.notes

    @cached_property
    def _unknown(self) -> np.ndarray:
        return np.flatnonzero(~self.is_known)

    @cached_property
    def _known(self) -> np.ndarray:
        return np.flatnonzero(self.is_known)

    @property
    def _is_used(self) -> list[bool]:
        """Which sources the predictor uses."""
        return [predictor is not None for _, predictor in self.predictor.by_source(self.space)]

    @property
    def _is_spared(self) -> np.ndarray:
        """(n_rows,) which entities are unknown for another reason than rarity."""
        # Files of version 1 do not say it: nothing was spared.
        spared = self._kept.is_spared
        return np.zeros(self.is_known.size, np.bool_) if spared is None else spared

    @property
    def _n_carried(self) -> int:
        """How many columns of what known rows carry are for signals."""
        return self._mixed[0].shape[1]

    @property
    def _rarity(self) -> np.ndarray:
        """(n_rows,) how rare each entity is, NaN where nothing is known."""
        return np.where(self._kept.has_rarity, self._kept.rarity, np.nan)

    @cached_property
    def _offsets(self) -> Offsets | None:
        if self._kept.rule is None:
            return None
        known_rows = KnownRows(self._kept.embedding, self.is_known)
        return self._kept.rule.offsets(self._rarity, known_rows, self._is_spared)

    @cached_property
    def _rest(self) -> KnownRows:
        """All rows as the predictor saw and gave them: without offset, not stretched."""
        known_rows = KnownRows(self._kept.embedding, self.is_known, is_imputed=True)
        return as_predicted(known_rows, self._offsets, self._kept.stretch)

    @cached_property
    def _given(self) -> KnownRows:
        """The same, with what was computed and kept so that rows can be added quickly."""
        if self._kept.for_adding is not None:
            self.predictor.restore(self.space, self._rest, self._kept.for_adding)
        return self._rest

    @cached_property
    def _mixed(self) -> tuple[np.ndarray, np.ndarray]:
        return mixed_values(self._rest)

    @cached_property
    def _carried(self) -> np.ndarray:
        """What known rows carry to be mixed as vectors are; with an offset, rarity comes last."""
        values, _ = self._mixed
        if self._kept.rule is None:
            return values
        return np.column_stack([values, self._rarity[self.is_known]])

    @cached_property
    def _centre(self) -> np.ndarray:
        """The mean of the known vectors, as the predictor saw them."""
        # Block by block: a copy of all known rows would cost more than all the rest of an `add`.
        rows, total = self._rest, np.zeros(self._kept.embedding.shape[1])
        for block in row_blocks(rows.is_known.size, ROWS_PER_BLOCK):
            known = rows.embedding[block][rows.is_known[block]]
            total += known.sum(axis=0, dtype=np.float64)
        return total / rows.n_known

    @cached_property
    def _model(self) -> Model:
        composition = self.predictor.composition(self.space, self._rest)
        known_rows = KnownRows(self._kept.embedding, self.is_known)
        return Model(
            self.space, self.predictor, known_rows, composition, self._offsets, self._kept.stretch
        )

    @cached_property
    def _confidence(self) -> Confidence | None:
        """How far to trust every imputed row, those left out included."""
        teachers = self._kept.teachers
        if teachers is None or self._kept.confidence is not None:
            return self._kept.confidence
        known_rows = self._rest
        prediction = replace(
            self._model.prediction, vectors=known_rows.embedding[known_rows.unknown]
        )
        columns = signals(known_rows, prediction, names=self._kept.signals)
        names, gaps = self.names.at(self._unknown), self._kept.gaps
        confidence = teachers.of_names(columns, names)
        if confidence is None or self._kept.lessons is None or gaps is None:
            return confidence
        lessons, kinds = self._kept.lessons, [kinds_of(names)]
        confidence = lessons.applied(confidence, teachers, columns, kinds, gaps[self._unknown])
        is_beyond = self._kept.is_beyond
        if is_beyond is None:
            return confidence
        return confidence.without_bound(is_beyond[self._unknown], lessons.reach)

    def _row(self, name: str) -> int:
        row = self.names.row(name) if isinstance(name, str) else None
        if row is None:
            raise InputError(
                f"{printable(str(name))!r} is not an entity of the model. Give it a vector first: "
                "add(..., keep=True)."
            )
        return row

    def _checked(self, name: str, vector: Any) -> np.ndarray:
        checked = checks.embedding_rows(np.asarray(vector)[None])[0]
        n_dims = self._kept.embedding.shape[1]
        if checked.shape != (n_dims,) or not np.isfinite(checked).all():
            raise InputError(
                f"the vector of {printable(name)!r} must have {n_dims} finite numbers; it has the "
                f"shape {checked.shape}."
            )
        return checked

    def _offsets_of_new(
        self, names: Sequence[str], counts: Mapping[str, float], rarity_of_mix: np.ndarray
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return what is put back into the vectors of new entities for their rarity.

        `mixed` is the rarity of what each of them is made of.
        """
        if self._kept.rule is None:
            if counts:
                raise InputError(
                    "counts= has no effect: the model takes no offset of rare entities into "
                    "account. Leave it out."
                )
            return np.zeros((len(names), 1)), ()
        of_counts = np.array([counts.get(name, np.nan) for name in names], np.float64)
        is_used = self._kept.rule.uses_own
        if counts and not is_used:
            raise InputError(
                "counts= has no effect: the model was fitted without counts. Leave it out."
            )
        known_rows = KnownRows(self._kept.embedding, self.is_known)
        rarity_of_mix = np.where(self._are_spared(names), rarity_of_mix, np.nan)
        offsets = self._kept.rule.offsets_of_new(self._rarity, known_rows, of_counts, rarity_of_mix)
        n_without = int(np.isnan(of_counts).sum())
        if is_used and n_without:
            lacking = count(n_without, "new entity has", "new entities have")
            return offsets, (f"{lacking} no count; taken as the rarest.",)
        return offsets, ()

    def _are_spared(self, names: Sequence[str]) -> np.ndarray:
        """Tell which new entities are unknown for another reason than rarity."""
        if self._kept.rule is None or not self._kept.rule.spares_several:
            return np.zeros(len(names), np.bool_)
        return has_several_words(names)

    def _factors_of_new(self, names: Sequence[str]) -> np.ndarray:
        """Return by what the steps of new entities from the mean are multiplied, a column."""
        is_plain = np.full(len(names), self._kept.rule is None) | self._are_spared(names)
        return np.where(is_plain, self._kept.stretch.plain, self._kept.stretch.rare)[:, None]

    def _set(self, **parts: Any) -> None:
        """Change parts of the model, and forget what was derived from them."""
        self._kept = self._kept.changed(**parts)
        for name in _DERIVED:
            self.__dict__.pop(name, None)

    def _refit(self, embedding: np.ndarray, is_known: np.ndarray) -> None:
        """Impute again with other known rows: the same space, the same predictor.

        `embedding` is the model's own from now on.
        """
        rarity, has_rarity = self._kept.rarity, self._kept.has_rarity
        offsets, spared = None, self._is_spared & ~is_known
        if self._kept.rule is not None:
            # What became known is not rarer than anything known before: nothing says how rare.
            is_new = is_known & (~has_rarity | self._is_spared)
            rarest = float(rarity[is_known & ~is_new].max())
            rarity = np.where(is_new, rarest, rarity)
            has_rarity = has_rarity | is_new
            of_rare = np.where(has_rarity & ~spared, rarity, np.nan)
            offsets = self._kept.rule.offsets(of_rare, KnownRows(embedding, is_known), spared)
        model = fit(
            self.predictor,
            self.space,
            embedding,
            is_known,
            offsets=offsets,
            stretch=self._kept.stretch,
            in_place=True,
        )
        if model.offsets is not None:
            rarity[spared] = model.offsets.assumed[spared[model.rows.unknown]]
        left_out = self._kept.is_left_out & ~is_known
        self._set(
            embedding=model.embedding,
            is_known=is_known,
            is_left_out=left_out,
            rarity=rarity,
            has_rarity=has_rarity,
            is_spared=spared,
            for_adding=None,
            confidence=None,
        )


_DERIVED = (
    "_unknown", "_known", "_offsets", "_rest", "_given", "_mixed", "_carried", "_centre", "_model",
    "_confidence",
)  # fmt: skip
