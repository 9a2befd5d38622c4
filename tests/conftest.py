"""What several tests need: where the shared data is, and settings that make runs repeatable."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "vecfill",
    deadline=None,
    derandomize=True,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("vecfill")

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def finance() -> Path:
    """Return the folder of the paper's experiment, or skip."""
    folder = DATA / "finance"
    if not folder.is_dir():
        pytest.skip("the shared data folder ../shared/data/finance is not on this machine")
    return folder
