"""A fitted predictor -> its server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vecfill.model.known import KnownRows
from vecfill.model.prediction import Composition
from vecfill.model.predictors import KernelRidge, LatentSemantic, Predictor
from vecfill.model.predictors.fused import Fused, FusedMix
from vecfill.model.serving.base import Ground, Server
from vecfill.model.serving.fixed import FixedServer
from vecfill.model.serving.fused import FusedServer, member_ground
from vecfill.model.serving.kernel import KernelServer
from vecfill.model.serving.latent import LatentServer
from vecfill.model.serving.stacked import StackServer
from vecfill.model.sources import SourcesSpace
from vecfill.model.space import Space
from vecfill.model.stack import Stack, StackMix


def server_of(
    predictor: Predictor,
    ground: Ground,
    *,
    kept: Mapping[str, Any] | None = None,
    mix: Any = None,
    is_alone: bool = True,
) -> Server:
    """Return the server of a fitted predictor.

    `kept` is what a server of the same predictor gave as its arrays; `mix` is that of the fit, from
    which some work can be taken over. Without both it is made anew. A predictor that `is_alone` has
    imputed the rows as they are; one of several has imputed other vectors.
    """
    if isinstance(predictor, Stack):
        mixes = mix.mixes if isinstance(mix, StackMix) else [None] * len(predictor.members)
        members = [
            server_of(
                each,
                ground,
                kept=None if kept is None else kept[str(number)],
                mix=its,
                is_alone=False,
            )
            for number, (each, its) in enumerate(zip(predictor.members, mixes, strict=True))
        ]
        return StackServer(predictor, ground, members)
    if isinstance(predictor, Fused):
        return _fused(predictor, ground, kept, mix)
    if isinstance(predictor, LatentSemantic):
        return LatentServer(predictor, ground, kept, is_alone=is_alone)
    if isinstance(predictor, KernelRidge):
        return KernelServer(predictor, ground, kept, mix)
    return FixedServer(predictor, ground)


def _fused(
    predictor: Fused, ground: Ground, kept: Mapping[str, Any] | None, mix: Any
) -> FusedServer:
    space = ground.space
    assert isinstance(space, SourcesSpace)
    members = space.of_variants(predictor.variants).members
    mixes = {each.number: each.mix for each in mix.members} if isinstance(mix, FusedMix) else {}
    servers: dict[int, Server] = {}
    for number, (member, each) in enumerate(zip(members, predictor.members, strict=True)):
        if each is not None:
            its = None if kept is None else kept[str(number)]
            own = member_ground(ground, member)
            mix_of = mixes.get(number)
            servers[number] = server_of(each, own, kept=its, mix=mix_of, is_alone=False)
    return FusedServer(predictor, ground, members, servers)


def settled(predictor: Predictor, space: Space, rows: KnownRows) -> Predictor:
    """Return the predictor with everything chosen that it would choose by itself.

    A model that goes on keeps the widths and strengths with which it was fitted.
    """
    if isinstance(predictor, KernelRidge):
        return predictor.tuned(space, rows)
    if isinstance(predictor, Stack):
        return replace(
            predictor, members=tuple(settled(each, space, rows) for each in predictor.members)
        )
    if isinstance(predictor, Fused):
        assert isinstance(space, SourcesSpace)
        members = space.of_variants(predictor.variants).members
        chosen = tuple(
            None if each is None else settled(each, member.space, member.given(rows))
            for member, each in zip(members, predictor.members, strict=True)
        )
        return replace(predictor, members=chosen)
    return predictor


def composition_of(predictor: Predictor, space: Space, rows: KnownRows) -> Composition:
    """Return what the imputed rows of a fitted predictor are made of.

    Of a model that was loaded, this is computed when first asked for.
    """
    if isinstance(predictor, LatentSemantic):
        return predictor.composition(space, rows)
    return predictor.predict(space, rows).composition
