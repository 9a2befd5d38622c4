"""Experiments are scripts: their modules are found where `run.py` finds them, beside it."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "experiments"
sys.path.insert(0, str(FOLDER))
