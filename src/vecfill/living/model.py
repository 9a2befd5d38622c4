"""A model that goes on: it gives vectors to new entities, learns new known ones, saves, loads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.names.kept_names import KeptNames, NamesOfRows
from vecfill.living.adding import (
    Added,
    NewEntities,
    facts_by_source,
    groups_of_new,
    notes_on_groups,
    read_new,
    refuse_unknown_options,
)
from vecfill.living.file import Kept, write_model
from vecfill.living.judging import judgement, kept_of_judged
from vecfill.living.kept_model import KeptModel
from vecfill.living.state import changing, changing_if_kept, fitting
from vecfill.machine.blas import one_blas_thread
from vecfill.method.scaling import in_range_of
from vecfill.model.fitted import shares_of_way
from vecfill.model.prediction import Prediction
from vecfill.model.sources import extended, stored_parts, stored_space
from vecfill.model.wanted import New
from vecfill.trust.explain import Explanation, composed_of, explained
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.signals import SPREAD_TOL, signals
from vecfill.wording import count, percent


class LivingModel(KeptModel):
    """What `impute` fitted, ready to serve and to go on.

    `vecfill.load` and `Result.to_model` give one. `add`, `update` and `forget` need no new fit.
    `update`, `forget` and ``add(..., keep=True)`` change the model itself; a file changes only when
    it is saved again.

    Threads may share a model. Changes are made one after another, each as a whole or not at all,
    and every other call sees the model before or after a change, never between.

    Examples
    --------
    >>> from vecfill import impute
    >>> from vecfill.sample import towns
    >>> places, known = towns()
    >>> model = impute(places, known).to_model()
    >>> model.add({"newtown": [0.1, 0.2]}).embedding["newtown"].round(1)
    array([0.1, 0.2, 0. , 0. , 0. ])
    >>> model.update(known={"town55": np.ones(5)})
    >>> len(model.known), len(model.embedding)
    (51, 9)
    """

    @property
    @fitting
    def known(self) -> Embedding:
        """The known entities and their vectors."""
        rows = np.flatnonzero(self.is_known)
        return Embedding(self.names.at(rows), self._kept.embedding[rows])

    @property
    @fitting
    def embedding(self) -> Embedding:
        """The imputed entities and their vectors."""
        rows = self._unknown[~self._kept.is_left_out[self._unknown]]
        vectors = in_range_of(self._kept.embedding.dtype, self._kept.embedding[rows])
        return Embedding(self.names.at(rows), vectors)

    @property
    @fitting
    def confidence(self) -> Confidence | None:
        """How far to trust each imputed entity, aligned with `embedding`."""
        confidence = self._confidence
        is_kept = ~self._kept.is_left_out[self._unknown]
        return None if confidence is None else confidence.rows(is_kept)

    @fitting
    def explain(self, word: str, n: int = 10) -> Explanation:
        """Return the `n` known entities that contribute most to an imputed one."""
        row = self._row(word)
        if self.is_known[row]:
            raise InputError(
                f"{printable(word)!r} is known: its vector is the embedding's own, and is made of "
                "nothing else. Ask for an imputed entity."
            )
        place = int(np.searchsorted(self._unknown, row))
        names, columns = NamesOfRows(self.names, self._known), self._kept.columns
        return explained(self._model, word, place, names, n=n, columns=columns)

    @fitting
    def __repr__(self) -> str:
        n_known = int(self.is_known.sum())
        lines = [
            f"LivingModel: {count(len(self.names), 'entity')}, {n_known:,} of them known",
            f"  method      {self.predictor}",
        ]
        if "made_at" in self.about:
            lines.append(
                f"  made        {self.about['made_at']} by vecfill {self.about['vecfill']}"
            )
        if heldout := self.about.get("heldout"):
            lines.append(
                f"  proof       hidden entities: centred cosine {heldout['centred_cosine']:.2f}, "
                f"{percent(heldout['hits_at_10'])} among the ten nearest"
            )
        return "\n".join(lines)

    @changing_if_kept
    @one_blas_thread()
    def add(
        self,
        table: Any,
        *,
        key: str | None = None,
        names: Any = None,
        counts: Mapping[str, float] | None = None,
        groups: Mapping[str, Any] | None = None,
        encoder: Any = None,
        keep: bool = False,
        missing: str = "refuse",
        **options: Any,
    ) -> Added:
        """Return vectors, confidence and reasons for entities that were not there at the fit.

        Nothing is fitted again: the predictor that was chosen is applied to the new rows.

        Parameters
        ----------
        table
            What describes the new entities: a table or file with the columns of the fitted one, a
            mapping from entity to its values by column or to its vector, or an array with `names`.
            If the model has several sources, a mapping from source to table; sources may be
            missing, and a single table serves all sources whose columns it has.
        key
            Column that names the entities; by default that of the fit, else the first.
        names
            Entity names of the rows of an array.
        counts
            How often each new entity was counted, if the model was fitted with counts.
        groups
            The group of each new entity. By default the column that named them at the fit.
        encoder
            What turned texts into vectors at the fit, if something did; a model does not keep it.
        keep
            Whether entities that are added later may rest on these.
        missing
            What to do with a table that lacks columns of the fitted one altogether: ``"refuse"``,
            because they may be misspelt, or ``"allow"``, as if every cell were null. Cells that are
            null are always allowed. `schema` has the columns.
        options
            How a text file is read: ``encoding``, ``separator``, ``header``.
        """
        refuse_unknown_options(options)
        sources = self._kept.sources
        how = {"key": key, "names": names, "missing": missing, "guess": self.key}
        tables = facts_by_source(sources, table, **how, **options)
        entities = dict.fromkeys(name for facts in tables.values() for name in facts.entities)
        rows = {name: self._given_row(name) for name in entities}
        new = read_new(
            sources,
            tables,
            {name: row is None for name, row in rows.items()},
            is_used=self._is_used,
            encoder=encoder,
        )
        new = replace(new, groups=groups_of_new(self._kept.groups, tables, new.names, groups))
        fitted = [(name, row) for name, row in rows.items() if row is not None]
        added = self._added(
            new,
            counts or {},
            already_known=tuple(name for name, row in fitted if self.is_known[row]),
            already_imputed=tuple(name for name, row in fitted if not self.is_known[row]),
        )
        if keep and len(added.embedding):
            self._keep(new, added, counts or {})
        return added

    @changing
    def update(self, known: Mapping[str, Any]) -> None:
        """Take vectors that have become known, or were corrected; one propagation, no new graph.

        The model is then that of a full run with the same graph and the same predictor. What was
        learnt about confidence stays; it is applied to the new vectors when first asked for.
        """
        vectors = self._vectors_of(known)
        embedding, is_known = np.array(self._kept.embedding), np.array(self.is_known)
        for row, vector in vectors.items():
            embedding[row], is_known[row] = vector, True
        self._refit(embedding, is_known)

    @changing
    def forget(self, names: Iterable[str]) -> None:
        """Forget what is known about some entities; one propagation.

        A known entity becomes an unknown one: its vector is imputed from the others. An imputed one
        is no longer given. Both keep their row, because others are explained through it. An imputed
        one can be added again, with other facts.
        """
        rows = self._rows_of(names)
        embedding, is_known = np.array(self._kept.embedding), np.array(self.is_known)
        left_out = np.array(self._kept.is_left_out)
        left_out[rows[~is_known[rows]]] = True
        self._set(is_left_out=left_out)
        forgotten = rows[is_known[rows]]
        if forgotten.size == is_known.sum():
            raise InputError("all known vectors would be forgotten; at least one must stay.")
        if forgotten.size:
            is_known[forgotten] = False
            embedding[forgotten] = np.nan
            self._refit(embedding, is_known)

    @fitting
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to one file, whole or not at all.

        A safetensors file with JSON metadata; `vecfill.load` opens it. Nothing in it is executed
        when it is loaded.
        """
        spaces = stored_parts(self.space, self.predictor)
        write_model(path, self._complete(), spaces, self.about, overwrite=overwrite)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a file would hold: copying is saving and loading."""
        return {
            "kept": self._complete().by_name(),
            "spaces": stored_parts(self.space, self.predictor),
            "about": self.about,
            "n_jobs": self.space.n_jobs,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        parts = Kept(**state["kept"])
        space = stored_space(state["spaces"], len(parts.is_known), n_jobs=state["n_jobs"])
        self.__init__(parts, about=state["about"], space=space)

    def _complete(self) -> Kept:
        """Return what is kept, with what would have to be computed after loading."""
        for_adding = self.predictor.kept(self.space, self._given, lambda: self._carried)
        return self._kept.changed(for_adding=for_adding, confidence=self._confidence)

    def _added(
        self, new: NewEntities, counts: Mapping[str, float], **already: tuple[str, ...]
    ) -> Added:
        n_dims, dtype = self._kept.embedding.shape[1], self._kept.embedding.dtype
        if not new.names:
            nothing = Embedding([], np.empty((0, n_dims), dtype))
            return Added(
                nothing, None, {}, **already, undescribed=(), notes=(), _explained=_nothing
            )
        wanted = self._wanted(new)
        prediction, carried = self._predicted(wanted)
        is_described = self.predictor.is_described(self.space, self._given, wanted)
        is_usual = self.predictor.is_usual(self.space, self._given, wanted) | ~is_described
        offsets, assumed_notes = self._offsets_of_new(new.names, counts, carried[:, -1])
        vectors = self._moved(prediction.vectors, new.names) + offsets
        columns = np.empty((len(new.names), 0))
        if self._kept.teachers is not None:
            of_signals = {"carried": carried[:, : self._n_carried], "centre": self._centre}
            options = {"names": self._kept.signals, **of_signals}
            columns = signals(self._given, prediction, wanted, **options)
        trust = judgement(self._kept, new, columns, self._is_used, is_usual)
        unusual, confidence = trust.unusual, trust.confidence
        confidence = None if confidence is None else confidence.rows(is_described)
        described_rows = np.flatnonzero(is_described)
        names = [new.names[row] for row in described_rows]

        def told(place: int, n: int) -> Explanation:
            row = int(described_rows[place])
            return self._explained(prediction, offsets, row, new.names[row], n)

        return Added(
            Embedding(names, in_range_of(dtype, vectors[described_rows])),
            confidence,
            {new.names[row]: unusual[row] for row in described_rows if unusual[row]},
            **already,
            undescribed=tuple(new.names[row] for row in np.flatnonzero(~is_described)),
            notes=(*assumed_notes, *notes_on_groups(new.groups), *trust.notes(new)),
            _explained=told,
        )

    def _wanted(self, new: NewEntities) -> New:
        return New(self.space.new_rows(new.rows))

    def _predicted(self, wanted: New) -> tuple[Prediction, np.ndarray]:
        """Return what the predictor gives to new rows, and the mix of what known rows carry."""
        prediction = self.predictor.predict(self.space, self._given, wanted)
        mix = prediction.composition.mix
        return prediction, mix.carried(lambda: self._carried, tol=SPREAD_TOL)

    def _moved(self, vectors: np.ndarray, names: Sequence[str]) -> np.ndarray:
        """Return vectors of new rows, stretched as the rows of the fit were."""
        if (factors := self._factors_of_new(names)).max(initial=1.0) == 1.0:
            return vectors
        return self._centre + factors * (vectors - self._centre)

    @fitting
    def _explained(
        self, prediction: Prediction, offsets: np.ndarray, row: int, word: str, n: int
    ) -> Explanation:
        composition = prediction.composition
        whole = self._moved(prediction.vectors[[row]], [word]) + offsets[[row]]
        centre = self._kept.embedding[self._known].mean(axis=0, dtype=np.float64)
        offset = None if self._kept.rule is None else offsets[[row]]
        trend = None
        if composition.trend is not None:
            trend = self._moved(composition.trend.at(np.array([row])), [word])
        offset_share, trend_share = shares_of_way(whole, centre, offset, trend)
        is_spared = bool(self._are_spared([word])[0])
        ways = 0.0 if is_spared else float(offset_share[0]), float(trend_share[0])
        known = NamesOfRows(self.names, self._known)
        composed = composed_of(word, row, composition, ways, known, n=n)
        factor = float(self._factors_of_new([word])[0, 0])
        return replace(composed, stretch=factor, whitening=self.predictor.whitened)

    def _keep(self, new: NewEntities, added: Added, counts: Mapping[str, float]) -> None:
        """Let later entities rest on those that were added."""
        is_kept = np.array([name in added.embedding for name in new.names])
        if not is_kept.all():
            raise InputError("keep=True needs every new entity to have a vector.")
        n_new = len(new.names)
        prediction, carried = self._predicted(self._wanted(new))
        offsets, _ = self._offsets_of_new(new.names, counts, carried[:, -1])
        vectors = self._moved(prediction.vectors, new.names) + offsets
        rarity = self._rarity_of_new(new.names, counts, carried[:, -1])
        space, groups = extended(self.space, new.rows, self.predictor), self._kept.groups
        if groups is not None and new.groups is not None:
            groups = groups.followed_by(new.groups)
        nothing = np.zeros(n_new, np.bool_)
        names = KeptNames.of((*self.names.at(range(len(self.names))), *new.names))
        groups = self._kept.groups
        if groups is not None and new.groups is not None:
            groups = groups.followed_by(new.groups)
        self._set(
            names=names,
            embedding=in_range_of(
                self._kept.embedding.dtype, np.vstack([self._kept.embedding, vectors])
            ),
            is_known=np.append(self.is_known, nothing),
            is_left_out=np.append(self._kept.is_left_out, nothing),
            rarity=np.append(self._kept.rarity, np.nan_to_num(rarity)),
            has_rarity=np.append(self._kept.has_rarity, np.isfinite(rarity)),
            is_spared=np.append(self._is_spared, self._are_spared(new.names)),
            groups=groups,
            **kept_of_judged(self._kept, new, added.confidence, self._is_used),
            for_adding=None,
            confidence=None,
            space=space,
        )


def _nothing(row: int, n: int) -> Explanation:
    raise InputError(f"nothing was added, so there is nothing to explain ({row}, {n}).")


def load(
    path: str | os.PathLike[str], *, check: bool = False, n_jobs: int | None = None
) -> LivingModel:
    """Return the model in a file that `Result.save` or `LivingModel.save` wrote.

    The file is opened by memory map. Its header is checked at once, and each array before it is
    used for the first time: a damaged file is refused, and the error says where and why. Nothing in
    the file is executed.

    Parameters
    ----------
    path
        The file.
    check
        Whether to check the whole file now.
    n_jobs
        Number of threads. By default all cores; the result is the same.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from vecfill import impute
    >>> waves = {"red": [680.0], "orange": [610.0], "yellow": [580.0], "amber": [595.0]}
    >>> known = {"red": [1.0], "orange": [2.0], "yellow": [3.0]}
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "hues.vecfill"
    >>> impute(waves, known, method="paper").save(path)
    >>> model = load(path)
    >>> model.embedding, model.add({"lime": [560.0]}).embedding.words
    (Embedding(1 word, 1 dim, float64: 'amber'), ('lime',))
    """
    return LivingModel._read(path, check=check, n_jobs=n_jobs)
