"""The checks for what others add: they pass what is right, and name what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from vecfill.model.predictors import RIVALS, KernelRidge, LatentSemantic, Nearest
from vecfill.model.wanted import ALL
from vecfill.testing import check_predictor, check_signal
from vecfill.trust.prove.signals import SIGNALS


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_passes(name):
    check_predictor(RIVALS[name])


@pytest.mark.parametrize(
    "predictor", [LatentSemantic(), LatentSemantic(residual_share=0.6), KernelRidge()]
)
def test_the_predictors_of_auto_pass(predictor):
    check_predictor(predictor)


@pytest.mark.parametrize("name", SIGNALS)
def test_every_signal_passes(name):
    check_signal(SIGNALS[name])


@dataclass(frozen=True)
class Own(Nearest):
    """A predictor of one's own, which no model file can hold."""


def test_a_predictor_of_ones_own_passes():
    check_predictor(Own())


@dataclass(frozen=True)
class Moved(Nearest):
    """Its vectors are not what it mixes."""

    def predict(self, space, given, wanted=ALL, *, tol=1e-10):
        prediction = super().predict(space, given, wanted, tol=tol)
        return replace(prediction, vectors=prediction.vectors + 1.0)


@dataclass(frozen=True)
class Crowd(Nearest):
    """What it gives to a row depends on the others."""

    def predict(self, space, given, wanted=ALL, *, tol=1e-10):
        prediction = super().predict(space, given, wanted, tol=tol)
        middle = prediction.vectors.mean(axis=0)
        return replace(prediction, vectors=prediction.vectors - middle)


@pytest.mark.parametrize(
    ("predictor", "why"),
    [(Moved(), "vectors are not what is mixed"), (Crowd(), "asking for some rows changes them")],
)
def test_what_is_wrong_with_a_predictor_is_named(predictor, why):
    with pytest.raises(AssertionError, match=why):
        check_predictor(predictor)


def test_a_signal_of_another_shape_is_named():
    with pytest.raises(AssertionError, match="not one number for each row"):
        check_signal(lambda seen: seen.vectors)
    with pytest.raises(AssertionError, match="not finite"):
        check_signal(lambda seen: np.full(len(seen.vectors), np.nan))
