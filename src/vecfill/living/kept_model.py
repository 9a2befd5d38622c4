"""What is kept of a fitted model, and what is derived from it when first needed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Self

import numpy as np

from vecfill import checks
from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.names.kept_names import KeptNames
from vecfill.inputs.rarity import counts_of, has_several_words, minus_log_count
from vecfill.living.file import FileParts, Kept, fitting_parts
from vecfill.living.state import State, derived
from vecfill.method.engine import row_blocks
from vecfill.model.fitted import Model, as_predicted, fit
from vecfill.model.known import KnownRows
from vecfill.model.offset import Offsets
from vecfill.model.predictors import Predictor
from vecfill.model.sources import AnySpace, stored_space
from vecfill.trust.choose.fusion import SourceReport
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.proof import Suspicion
from vecfill.trust.prove.signals import mixed_values, signals
from vecfill.trust.prove.strata import Stratum, kinds_of
from vecfill.wording import count

ROWS_PER_BLOCK = 8192


class KeptModel:
    """What is kept of a model, in memory or in a file, and everything derived from it."""

    def __init__(
        self,
        model: Kept,
        *,
        about: Mapping[str, Any],
        space: AnySpace,
        path: str | os.PathLike[str] | None = None,
    ) -> None:
        self._state = State(model, space, dict(about), path)
        self._changes = Lock()

    @classmethod
    def _read(cls, path: str | os.PathLike[str], *, check: bool, n_jobs: int | None) -> Self:
        """Return the model in a file."""
        with fitting_parts(path):
            parts = FileParts(path, check=check)
            model = Kept.of_parts(parts)
            space = stored_space(parts, len(model.is_known), n_jobs=n_jobs)
            return cls(model, about=parts.about, space=space, path=parts.path)

    def reload(self, *, check: bool = False) -> None:
        """Go on with the model that its file holds by now; what was not saved is dropped.

        A model that was loaded keeps what the file held then, also when another process saves a
        new model there. Calls that are running in other threads end with the model they began with.
        If the new file cannot be loaded, the model stays as it is.

        Parameters
        ----------
        check
            Whether to check the whole file now.
        """
        with self._changes:
            path, n_jobs = self._state.path, self.space.n_jobs
            if path is None:
                raise InputError(
                    "this model was not loaded from a file, so there is nothing to reload. Save "
                    "it, and load it from there."
                )
            self._state = self._read(path, check=check, n_jobs=n_jobs)._state

    def _now(self) -> Self:
        """Return the model as it is now; changes of either do not show in the other."""
        now = object.__new__(type(self))
        vars(now).update(vars(self))
        return now

    @property
    def _kept(self) -> Kept:
        return self._state.parts

    @property
    def space(self) -> AnySpace:
        """The rows that describe the entities, as they are compared."""
        return self._state.space

    @property
    def about(self) -> dict[str, Any]:
        """What the model is: when it was made, with what, from what, how good it is."""
        return self._state.about

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

    @derived
    def _unknown(self) -> np.ndarray:
        return np.flatnonzero(~self.is_known)

    @derived
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

    @derived
    def _offsets(self) -> Offsets | None:
        if self._kept.rule is None:
            return None
        known_rows = KnownRows(self._kept.embedding, self.is_known)
        return self._kept.rule.offsets(self._rarity, known_rows, self._is_spared)

    @derived
    def _rest(self) -> KnownRows:
        """All rows as the predictor saw and gave them: without offset, not stretched."""
        known_rows = KnownRows(self._kept.embedding, self.is_known, is_imputed=True)
        return as_predicted(known_rows, self._offsets, self._kept.stretch)

    @derived
    def _given(self) -> KnownRows:
        """The same, with what was computed and kept so that rows can be added quickly."""
        if self._kept.for_adding is not None:
            self.predictor.restore(self.space, self._rest, self._kept.for_adding)
        return self._rest

    @derived
    def _mixed(self) -> tuple[np.ndarray, np.ndarray]:
        return mixed_values(self._rest)

    @derived
    def _carried(self) -> np.ndarray:
        """What known rows carry to be mixed as vectors are; with an offset, rarity comes last."""
        values, _ = self._mixed
        if self._kept.rule is None:
            return values
        return np.column_stack([values, self._rarity[self.is_known]])

    @derived
    def _centre(self) -> np.ndarray:
        """The mean of the known vectors, as the predictor saw them."""
        # Block by block: a copy of all known rows would cost more than all the rest of an `add`.
        rows, total = self._rest, np.zeros(self._kept.embedding.shape[1])
        for block in row_blocks(rows.is_known.size, ROWS_PER_BLOCK):
            known = rows.embedding[block][rows.is_known[block]]
            total += known.sum(axis=0, dtype=np.float64)
        return total / rows.n_known

    @derived
    def _model(self) -> Model:
        composition = self.predictor.composition(self.space, self._rest)
        known_rows = KnownRows(self._kept.embedding, self.is_known)
        return Model(
            self.space, self.predictor, known_rows, composition, self._offsets, self._kept.stretch
        )

    @derived
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
        groups = self._kept.groups
        of_unknown = None if groups is None else groups.at(self._unknown)
        confidence = teachers.of_names(columns, names, of_unknown)
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

    def _given_row(self, name: str) -> int | None:
        """Return the row of an entity that is known or given; None if it was forgotten, or new."""
        row = self.names.row(name)
        return None if row is None or self._kept.is_left_out[row] else row

    def _rows_of(self, names: Iterable[str]) -> np.ndarray:
        """Return the rows of entities that are there."""
        if not isinstance(names, Iterable):
            raise InputError(
                f"names is {type(names).__name__}. Pass names of entities, such as ['Oslo']."
            )
        chosen = [names] if isinstance(names, str) else names
        return np.array([self._row(name) for name in chosen], np.int64)

    def _vectors_of(self, known: Mapping[str, Any]) -> dict[int, np.ndarray]:
        """Return new vectors by row."""
        if not isinstance(known, Mapping | Embedding):
            raise InputError(
                f"known is {type(known).__name__}, not a mapping. Pass the new vector of each "
                "entity, such as {'Oslo': [0.1, 0.2]}."
            )
        like = self._kept.embedding
        return {
            self._row(name): checks.vector_like(known[name], like, printable(name))
            for name in known
        }

    def _offsets_of_new(
        self, names: Sequence[str], counts: Mapping[str, float], rarity_of_mix: np.ndarray
    ) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return what is put back into the vectors of new entities for their rarity.

        `rarity_of_mix` is the rarity of what each of them is made of.
        """
        if self._kept.rule is None:
            if counts:
                raise InputError(
                    "counts= has no effect: the model takes no offset of rare entities into "
                    "account. Leave it out."
                )
            return np.zeros((len(names), 1)), ()
        of_counts = counts_of(counts, names)
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

    def _rarity_of_new(
        self, names: Sequence[str], counts: Mapping[str, float], rarity_of_mix: np.ndarray
    ) -> np.ndarray:
        """Return the rarity with which new entities are kept; NaN: taken as the rarest.

        It gives a kept row the offset that the added one got. With another one, the row would
        change as soon as anything is derived from it.
        """
        if self._kept.rule is None:
            return np.full(len(names), np.nan)
        of_counts = minus_log_count(counts_of(counts, names))
        return np.where(self._are_spared(names), rarity_of_mix, of_counts)

    def _are_spared(self, names: Sequence[str]) -> np.ndarray:
        """Tell which new entities are unknown for another reason than rarity."""
        if self._kept.rule is None or not self._kept.rule.spares_several:
            return np.zeros(len(names), np.bool_)
        return has_several_words(names)

    def _factors_of_new(self, names: Sequence[str]) -> np.ndarray:
        """Return by what the steps of new entities from the mean are multiplied, a column."""
        is_plain = np.full(len(names), self._kept.rule is None) | self._are_spared(names)
        return np.where(is_plain, self._kept.stretch.plain, self._kept.stretch.rare)[:, None]

    def _set(self, *, space: AnySpace | None = None, **parts: Any) -> None:
        """Go on with another state: nothing that was derived from the one before."""
        before = self._state
        space = before.space if space is None else space
        self._state = State(before.parts.changed(**parts), space, before.about, before.path)

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
