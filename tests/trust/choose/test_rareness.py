"""Whether unknown rows are rare: compared with random rows, not with nothing."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.model.predictors import PAPER
from vecfill.model.space import Space
from vecfill.trust.choose import rareness
from vecfill.trust.choose.folds import rarest_block
from vecfill.trust.choose.rareness import odds_of_rare


@pytest.mark.parametrize(("shift", "is_rare"), [(1.0, False), (2.0, True)])
def test_a_shift_that_random_rows_have_as_well_is_no_sign_of_rarity(monkeypatch, shift, is_rare):
    is_known, rarity = np.arange(200) < 150, np.r_[np.linspace(0, 5, 150), np.full(50, np.nan)]
    block = rarest_block(is_known, rarity, share=1 / 3)

    def shifts(space, predictor, columns, is_seen, places):
        if columns.shape[1] > 1:
            return np.linspace(-0.3, 0.3, columns.shape[1])
        if is_seen is is_known:
            return np.array([shift])
        # Random rows come out 1.0 rarer than the seen ones, the rarest ones 2.0.
        return np.array([2.0 if is_seen is block.is_seen else 1.0])

    monkeypatch.setattr(rareness, "_shifts", shifts)
    odds = odds_of_rare(Space(np.eye(200)), PAPER, rarity, is_known, block)
    assert (odds > 2.0) is is_rare
    assert (odds < 0.5) is not is_rare
