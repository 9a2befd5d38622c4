"""Benchmarks are scripts: their modules are found where a script finds them, beside it."""

from __future__ import annotations

import sys
from pathlib import Path

# Last, because `experiments` has a module `run` as well.
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "quality"))
