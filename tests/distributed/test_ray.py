"""The recipe for Ray in docs/scale.md runs as it is printed."""

from __future__ import annotations

import re
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from tests.distributed.made import Made, made

ray: Any = pytest.importorskip("ray", reason="Ray is not installed")

pytestmark = [
    pytest.mark.extra,
    # Ray leaves sockets and files to the collector when it ends.
    pytest.mark.filterwarnings("ignore"),
]

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def recipe() -> type[Executor]:
    """Return the class of the page's recipe."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    code = next(block for block in blocks if "class OnRay" in block)
    found: dict[str, Any] = {}
    exec(code.split("\nvf.impute_dataset(")[0], found)
    return found["OnRay"]


def test_the_recipe_for_ray_gives_the_bits_of_one_process(tmp_path: Path) -> None:
    items: Made = made(tmp_path, n_rows=400)
    items.imputed("serial")
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error")
    try:
        items.imputed("ray", engine=recipe()(), workers=2)
    finally:
        ray.shutdown()
    assert items.table("ray").equals(items.table("serial"))
