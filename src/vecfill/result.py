"""What one imputation gives: a model with names, and everything there is to say about it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from vecfill.embedding import Embedding, printable
from vecfill.errors import InputError
from vecfill.inputs.alignment import Alignment
from vecfill.inputs.names.match_report import MatchReport
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.filling import Filling, filled
from vecfill.io.provenance import provenance
from vecfill.living.fitted import living_model
from vecfill.living.model import LivingModel
from vecfill.method.scaling import in_range_of
from vecfill.model.fitted import Model
from vecfill.model.predictors import Predictor
from vecfill.trust.choose.choice import Choice
from vecfill.trust.choose.columns import ColumnReport, columns_in_words
from vecfill.trust.choose.decision import Decision
from vecfill.trust.choose.fusion import SourceReports
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.explain import Explanation, explained, place_of
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.leaks import Leak
from vecfill.trust.prove.proof import Proof, Suspicion
from vecfill.trust.prove.sanity import Sanity
from vecfill.trust.prove.strata import Stratum
from vecfill.trust.tables import arrow_table, html_rows, pandas_frame
from vecfill.wording import count, html_details, html_facts, percent, wrapped

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_N_SHOWN = 5
_IN_TABLES = ("sources", "", "entities")
_HIDDEN = {"random": "hidden entities", "rarest": "the rarest known entities, hidden"}


@dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What was imputed, how, from what, and how far to trust it.

    Examples
    --------
    >>> from vecfill import impute
    >>> from vecfill.sample import towns
    >>> places, known = towns()
    >>> result = impute(places, known)
    >>> len(result.embedding), len(result.known), len(result.enriched)
    (10, 50, 60)
    >>> print(result.explain("town55", n=2))
    town55:
    100 % comes from the linear trend of the domain (column 0 99 % of it)
    """

    alignment: Alignment = field(repr=False)
    model: Model
    decision: Decision
    """How it was decided to impute."""
    proof: Proof = field(repr=False)
    """What hidden known rows prove."""
    is_kept: np.ndarray
    """Which of the unknown entities are given vectors; the others lack confidence."""
    notes: tuple[str, ...]
    sanity: Sanity | None = None
    """What a person sees of the new vectors: how alike they are, and what they are near."""
    leaks: tuple[Leak, ...] = ()
    columns: tuple[ColumnReport, ...] = ()
    """What each column of the tables adds, helps or hurts."""
    """Sources and columns that give known entities away, so that hidden ones prove too much."""

    @cached_property
    def confidence(self) -> Confidence | None:
        """How far to trust each entity, aligned with `embedding`.

        ``None`` when too few entities are known to learn it.
        """
        confidence = self.proof.confidence
        return None if confidence is None else confidence.rows(self.is_kept)

    @property
    def heldout(self) -> RowScores | None:
        """Scores of known rows like the unknown ones, hidden and imputed by the chosen predictor.

        `evaluate` scores the choice itself, against rivals.
        """
        return self.proof.heldout

    @property
    def choice(self) -> Choice | None:
        """How the predictor was chosen; ``None`` if one was asked for."""
        return self.decision.choice

    @property
    def sources(self) -> SourceReports:
        """What became of each source: weight, own score, presence, kept or dropped and why.

        Empty if there was one table.
        """
        return SourceReports(() if self.choice is None else self.choice.sources)

    @property
    def suspicious(self) -> tuple[Suspicion, ...]:
        """Known entities that their neighbours contradict, worst first."""
        return self.proof.suspicious

    @property
    def unusual(self) -> dict[str, str]:
        """Imputed entities of which hidden known ones teach nothing, and why; they have no bound.

        They lie farther from the known entities than any that was hidden, say. A bound of -1 is
        none, and their confidence is at most what the outermost hidden entities reached.
        """
        names = self.alignment.unknown
        return {names[place]: why for place, why in self.proof.unusual.items()}

    @property
    def strata(self) -> tuple[Stratum, ...]:
        """Kinds of entities, and what is proved about each."""
        return self.proof.strata

    @cached_property
    def embedding(self) -> Embedding:
        """The imputed entities and their vectors."""
        vectors = in_range_of(
            self.model.embedding.dtype, self.model.prediction.vectors[self.is_kept]
        )
        names = np.array(self.alignment.unknown, dtype=object)
        return Embedding(names[self.is_kept].tolist(), vectors)

    @cached_property
    def known(self) -> Embedding:
        """The known entities, by their names in the table, and their vectors."""
        return Embedding(self.alignment.known, self.model.known)

    @cached_property
    def enriched(self) -> Embedding:
        """Known and imputed entities together, known ones first."""
        words = (*self.known.words, *self.embedding.words)
        return Embedding(words, np.vstack([self.known.vectors, self.embedding.vectors]))

    @property
    def predictor(self) -> Predictor:
        """How the vectors were imputed."""
        return self.model.predictor

    @property
    def domain(self) -> Domain:
        """What described the entities."""
        return self.alignment.domain

    @property
    def matches(self) -> MatchReport:
        """Which word each entity was matched to."""
        return self.alignment.matches

    @property
    def abstained(self) -> tuple[str, ...]:
        """Entities left out because their confidence was below what was asked for."""
        names = np.array(self.alignment.unknown, dtype=object)
        return tuple(names[~self.is_kept].tolist())

    def explain(self, word: str, n: int = 10) -> Explanation:
        """Return the `n` known entities that contribute most to an imputed one."""
        unknown, known = self.alignment.unknown, self.alignment.known
        place = place_of(word, unknown, known)
        return explained(self.model, word, place, known, n=n, columns=self.domain.columns)

    def contributions(self, places: Iterable[int]) -> np.ndarray:
        """Return shares of all known entities (across) in some unknown ones (down).

        Unknown entities are numbered in the order of the table, those left out included.
        """
        return self.model.shares(np.fromiter(places, np.int64))

    def to_model(self) -> LivingModel:
        """Return the model behind the result, which can go on: add, update, forget, save."""
        return living_model(
            self.alignment,
            self.model,
            self.proof,
            rule=self.decision.rule,
            is_left_out=~self.is_kept,
            reports=self.sources,
            notes=self.notes,
            about=self._about(),
        )

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model behind the result to one file; `vecfill.load` opens it.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from vecfill import impute, load
        >>> hues = {"red": [680.0], "orange": [610.0], "yellow": [580.0], "amber": [595.0]}
        >>> known = {"red": [1.0], "orange": [2.0], "yellow": [3.0]}
        >>> result = impute(hues, known, method="paper")
        >>> result.save(Path(tempfile.mkdtemp()) / "hues.vecfill")
        """
        self.to_model().save(path, overwrite=overwrite)

    def _about(self) -> dict[str, Any]:
        """Return what is said about a model: when and how it was made, and how good it is."""
        table = self.alignment.table
        return {
            **provenance(import_module("vecfill").__version__),
            **({} if table is None else {"vector": table.vector}),
            "n_known": len(self.known),
            "n_imputed": len(self.embedding),
            "n_dims": self.known.n_dims,
            "method": str(self.predictor),
            "sources": [str(report) for report in self.sources],
            "heldout": None if self.heldout is None else self.heldout.means(),
            "proof": self.proof.speaks,
            "coverage": None if self.confidence is None else self.confidence.coverage,
        }

    def to_arrow(self) -> pa.Table:
        """Return one row for each known and imputed entity: name, vector, confidence, bound."""
        return arrow_table(self.known, self.embedding, self.confidence)

    def to_table(self, confidence: str | None = None) -> Any:
        """Return the one table that held features and vectors, with its null vectors filled.

        It is of the kind that was passed: pandas, polars or Arrow; a file comes back as an Arrow
        table. Rows keep their order, columns their types, and every cell that was not null its
        bits. `confidence` names a column to add, with the confidence of each new vector.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from vecfill import impute
        >>> hues = [[1.0], [2.0], [3.0], None]
        >>> table = pa.table({"id": [1, 2, 3, 4], "wave": [680, 610, 580, 595], "hue": hues})
        >>> result = impute(table, vector="hue", method="paper")
        >>> result.to_table()["hue"].null_count, table["hue"].null_count
        (0, 1)
        """
        table = self.alignment.table
        if table is None:
            raise InputError(
                "to_table fills the vector column of one table, vecfill.impute(table, vector=...). "
                "This result has table and embedding apart: use to_pandas or to_arrow."
            )
        return filled(table.source, self.filling(confidence))

    def filling(self, confidence: str | None = None) -> Filling:
        """Return which cells of the one table are filled, and with what."""
        table = self.alignment.table
        assert table is not None
        is_imputed = np.zeros(len(self.domain), np.bool_)
        is_imputed[np.flatnonzero(~self.alignment.is_known)[self.is_kept]] = True
        # Entities may be treated as unknown although they have a vector, which they keep.
        is_filled = ~table.has_vector[is_imputed]
        sure = None if self.confidence is None else self.confidence.values[is_filled]
        rows = np.flatnonzero(is_imputed)[is_filled]
        vectors = self.embedding.vectors[is_filled]
        return Filling(table.vector, rows, vectors, confidence, sure)

    def to_pandas(self) -> pd.DataFrame:
        """Return the table of `to_arrow` as a pandas data frame, entities as index."""
        return pandas_frame(self.to_arrow())

    def __repr__(self) -> str:
        title, *facts = self._facts()
        lines = [title[1]]
        for label, text in facts:
            lines += wrapped(f"  {label:10}  {text}", 100, subsequent_indent=" " * 14)
        return "\n".join(lines)

    def _facts(self) -> list[tuple[str, str]]:
        """Return what a summary says, as labels and texts; the first is its title."""
        n_new, n_known = len(self.embedding), len(self.known)
        facts = [
            ("", f"Result: {count(n_new, 'entity')} imputed from {count(n_known, 'known one')}")
        ]
        if self.sanity is not None and self.sanity.warning is not None:
            facts.append(("warning", self.sanity.warning))
        facts += [("warning", str(leak)) for leak in self.leaks if leak.lowers_trust]
        facts.append(("method", self.predictor.in_words()))
        facts += [("" if at else "sources", str(report)) for at, report in enumerate(self.sources)]
        if self.columns:
            facts.append(("columns", columns_in_words(self.columns)))
        if self.decision.rule is not None:
            facts.append(("offset", "new vectors are moved to where rare entities lie"))
        if self.heldout is not None:
            means, hidden = self.heldout.means(), _HIDDEN[self.proof.speaks]
            scores = f"{hidden}: centred cosine {means['centred_cosine']:.2f}"
            facts.append(
                ("proof", f"{scores}, {percent(means['hits_at_10'])} among the ten nearest")
            )
        if self.heldout is not None:
            ratio = float(np.median(self.heldout.norm_ratio))
            facts.append(("lengths", f"hidden entities: {ratio:.2f} of their true length"))
        if self.confidence is not None and n_new:
            low, middle, high = np.quantile(self.confidence.values, [0.25, 0.5, 0.75])
            facts.append(("confidence", f"{middle:.2f} (half of them {low:.2f} to {high:.2f})"))
        if self.sanity is not None:
            facts += self.sanity.lines()
        words = ", ".join(printable(word) for word in self.embedding.words[:_N_SHOWN])
        if words:
            more = ", ..." if n_new > _N_SHOWN else ""
            facts.append(("entities", words[:80].rstrip(", ") + more))
        if n_out := len(self.abstained):
            facts.append(("left out", f"{count(n_out, 'entity')}, because of low confidence"))
        return facts

    def _repr_html_(self) -> str:
        title, *facts = self._facts()
        rows = [fact for fact in facts if fact[0] not in _IN_TABLES]
        parts = [f"<p><strong>{escape(title[1])}</strong></p>", html_facts(rows)]
        if self.sources:
            parts.append(self.sources._repr_html_())
        if len(self.embedding):
            parts.append(html_rows(self.known, self.embedding, self.confidence, _N_SHOWN))
        parts.append(html_details("exact setting", f"<code>{escape(str(self.predictor))}</code>"))
        return "".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON and manifests."""
        return {
            "n_known": len(self.known),
            "n_imputed": len(self.embedding),
            "method": self.predictor.to_dict(),
            "rarity": None if self.alignment.rarity is None else self.alignment.rarity.basis,
            "offset": self._offset_dict(),
            "sources": [source.to_dict() for source in self.sources],
            "proof": self.proof.to_dict(),
            "matched": dict(self.matches.counts),
            "heldout": None if self.heldout is None else self.heldout.means(),
            "p_value": None if self.choice is None else self.choice.p_value,
            "sanity": None if self.sanity is None else self.sanity.to_dict(),
            "leaks": [leak.to_dict() for leak in self.leaks],
            "columns": [column.to_dict() for column in self.columns],
            "confidence": self._confidence_dict(),
            "suspicious": [vars(suspicion).copy() for suspicion in self.suspicious],
            "abstained": list(self.abstained),
            "notes": list(self.notes),
        }

    def _offset_dict(self) -> dict[str, Any] | None:
        rule, offsets = self.decision.rule, self.model.offsets
        if rule is None or offsets is None or self.alignment.rarity is None:
            return None
        return {
            **rule.to_dict(),
            "basis": self.alignment.rarity.basis,
            "assumed_rarity": float(np.median(offsets.assumed[offsets.is_rare])),
            "n_moved": int(offsets.is_rare.sum()),
            "on_hidden_rarest": self.decision.on_block,
        }

    def _confidence_dict(self) -> dict[str, Any] | None:
        if self.confidence is None:
            return None
        confidence = self.confidence
        bounds = zip(confidence.lower_bound, confidence.plain_lower_bound, strict=True)
        rows = zip(self.embedding.words, confidence.values, bounds, strict=True)
        return {
            "level": confidence.level,
            "proof": confidence.proof,
            "coverage": confidence.coverage,
            "kept": confidence.curve(),
            "entities": {
                word: {
                    "confidence": float(value),
                    "lower_bound": float(bound),
                    "plain_lower_bound": float(plain),
                }
                for word, value, (bound, plain) in rows
            },
        }
