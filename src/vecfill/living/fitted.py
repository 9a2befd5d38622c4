"""What `impute` fitted -> a model that can go on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from vecfill.inputs.alignment import Alignment
from vecfill.inputs.later_rows import KeptSource
from vecfill.inputs.names.kept_names import KeptNames
from vecfill.living.file import Kept
from vecfill.living.model import LivingModel
from vecfill.model.fitted import Model
from vecfill.model.offset import OffsetRule
from vecfill.trust.choose.fusion import SourceReport
from vecfill.trust.prove.proof import Proof
from vecfill.trust.prove.signals import SIGNALS


def living_model(
    alignment: Alignment,
    model: Model,
    proof: Proof,
    *,
    rule: OffsetRule | None,
    is_left_out: np.ndarray,
    reports: Sequence[SourceReport],
    notes: Sequence[str],
    about: Mapping[str, Any],
) -> LivingModel:
    """Return a fitted model with everything that it needs to serve and to go on."""
    rarity = np.zeros(len(alignment.domain))
    has_rarity = np.zeros(len(alignment.domain), np.bool_)
    is_spared = np.zeros(len(alignment.domain), np.bool_)
    if model.offsets is None or alignment.rarity is None:
        rule = None
    else:
        values = alignment.rarity.values.copy()
        if alignment.rarity.spared is not None:
            is_spared = alignment.rarity.spared & ~alignment.is_known
            # As rare as what they are made of, which a model that is loaded need not find again.
            values[is_spared] = model.offsets.assumed[is_spared[model.rows.unknown]]
        has_rarity = np.isfinite(values)
        rarity = np.where(has_rarity, values, 0.0)
    left_out = np.zeros(len(alignment.domain), np.bool_)
    left_out[model.rows.unknown] = is_left_out
    predictor = model.predictor.settled(model.space, model.as_predicted())
    # Only the way of reading each source that was chosen goes on.
    predictor, space = predictor.with_chosen_variants(model.space)
    parts = Kept(
        names=KeptNames.of(alignment.domain.entities),
        columns=tuple(alignment.domain.columns),
        predictor=predictor,
        embedding=model.embedding,
        is_known=model.is_known,
        is_left_out=left_out,
        sources=_sources(alignment, model),
        rule=rule,
        stretch=model.stretch,
        rarity=rarity,
        has_rarity=has_rarity,
        is_spared=is_spared,
        groups=alignment.groups,
        teachers=proof.teachers,
        lessons=proof.lessons,
        gaps=proof.gaps,
        is_beyond=proof.is_beyond(model.is_known),
        confidence=proof.confidence,
        reports=tuple(reports),
        strata=proof.strata,
        suspicious=proof.suspicious,
        notes=tuple(notes),
        signals=tuple(SIGNALS),
        for_adding=None,
    )
    return LivingModel(parts, about=about, space=space)


def _sources(alignment: Alignment, model: Model) -> tuple[KeptSource, ...]:
    """Return how every source was read, and the range of the known entities in it."""
    domain, is_known = alignment.domain, alignment.is_known
    row_of = {name: row for row, name in enumerate(domain.entities)}
    sources = []
    for number, source in enumerate(domain.sources):
        variant = source.variants[model.predictor.variant_of(number)]
        rows = np.array([row_of[name] for name in variant.entities], np.int64)
        sources.append(KeptSource.of(source.name, variant, is_known[rows]))
    return tuple(sources)
