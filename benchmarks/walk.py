"""How many modules a reader meets who follows one call: a model that adds, and a whole run.

    python benchmarks/walk.py [--names]

Counts the modules of vecfill of which a function is called: for ``vf.load(model).add(table)``, with
a model of the bundled cities, and for ``vecfill impute`` on them. What is only imported does not
count, and neither do the bodies of classes.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import io
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import vecfill as vf
from vecfill.cli import main as shell
from vecfill.sample import CITIES, VECTORS

ROOT = Path(vf.__file__).parent
LATER = "name,latitude,longitude,country\nNowhere,46.1,4.2,France\n"


def walked(call: Callable[[], object]) -> list[str]:
    """Return the modules of which a function is called, in the order in which they are met."""
    met: dict[str, None] = {}

    def seen(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        # Bodies of modules and classes are not optimised code: they run when they are imported.
        if event == "call" and code.co_flags & inspect.CO_OPTIMIZED:
            met.setdefault(code.co_filename)

    threading.setprofile(seen)
    sys.setprofile(seen)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    paths = [Path(name) for name in met]
    return [str(path.relative_to(ROOT)) for path in paths if path.is_relative_to(ROOT)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", action="store_true", help="show the modules as well")
    options = parser.parse_args()
    said = io.StringIO()
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stdout(said):
        folder = Path(name)
        words = ["impute", str(VECTORS), str(CITIES), "--ignore", "population"]
        saved, later = folder / "model.vecfill", folder / "later.csv"
        later.write_text(LATER, encoding="utf-8")
        # Once before, so that what runs while modules are imported is not counted.
        shell([*words, "-o", str(folder / "first.txt"), "--save", str(saved)])
        vf.load(saved).add(later)
        calls: dict[str, Callable[[], object]] = {
            "vf.load(model).add(table)": lambda: vf.load(saved).add(later),
            "vecfill impute": lambda: shell([*words, "-o", str(folder / "second.txt")]),
        }
        met = {label: walked(call) for label, call in calls.items()}
    for label, modules in met.items():
        print(f"{label:30}{len(modules):>5}")
        if options.names:
            print("".join(f"  {module}\n" for module in sorted(modules)), end="")


if __name__ == "__main__":
    main()
