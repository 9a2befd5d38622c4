"""What is seen of rows of a dataset is what is seen of them in memory."""

from __future__ import annotations

import numpy as np
import pytest

from vecfill.distributed import judging
from vecfill.model.known import KnownRows
from vecfill.model.predictors import LatentSemantic
from vecfill.model.space import Space
from vecfill.trust.prove import signals as signals_module
from vecfill.trust.prove.signals import SIGNALS, signals

from .made import made


@pytest.mark.parametrize("share", [None, 0.6])
def test_signals_are_those_in_memory(share, tmp_path, monkeypatch):
    predictor, found = LatentSemantic(ridge=0.1, residual_share=share), []

    def watched(seen, *names):
        found.append(signals_module.signals_of(seen, *names))
        return found[-1]

    monkeypatch.setattr(judging, "signals_of", watched)
    data = made(tmp_path, n_rows=800)
    data.imputed("work", method=predictor)
    space, given = Space(data.rows, n_jobs=1), KnownRows(data.vectors, data.is_known)
    expected = signals(given, predictor.predict(space, given))
    # Hidden rows come first; then the unknown ones, part by part.
    seen = np.vstack(found)[-len(expected) :]
    for column, name in enumerate(SIGNALS):
        # Other random signs are drawn for a dataset.
        tol = 0.6 if name == "concentration" else 1e-4
        np.testing.assert_allclose(seen[:, column], expected[:, column], atol=tol, err_msg=name)


def test_a_new_signal_is_computed_for_datasets_too(tmp_path, monkeypatch):
    asked = []

    def first(seen):
        asked.append(len(seen.vectors))
        return seen.vectors[:, 0]

    monkeypatch.setattr(signals_module, "SIGNALS", {**SIGNALS, "first": first})
    data = made(tmp_path, n_rows=600)
    assert data.imputed("work").coverage is not None
    assert sum(asked) > (~data.is_known).sum()
