"""What a fit costs: its own memory, not what the process held before it."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux resets the high-water mark"
)
def test_a_small_fit_takes_memory_although_the_process_held_more_before():
    fit_cost = importlib.import_module("fit_cost").fit_cost
    setting = {"min_degree": 4}
    config = {"seed": 0, "known_share": 0.4, "n_dims": 200, "setting": setting}
    config |= {"made_features": 100, "n_clusters": 5}
    held = np.ones(20_000_000)  # 160 MB, more than the fit takes
    del held
    cost = fit_cost("made", 2000, "", config)
    assert 0 < cost["memory, MB"] < 150
