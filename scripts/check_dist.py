"""Install a built wheel in an environment of its own and run the demo: ``... WHEEL FOLDER``.

The demo runs from another folder, so that what it imports is the wheel and not these sources.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main(wheel: str, folder: str) -> None:
    """Fail if the wheel lacks a file, a dependency or the version that its name says."""
    place = Path(folder).resolve()
    venv.create(place / "venv", with_pip=True, clear=True)
    python = str(place / "venv" / "bin" / "python")
    # Nothing of ours on the path: only the wheel counts.
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [python, *words], cwd=place, env=clean, check=True, stdout=subprocess.PIPE, text=True
        )
        return done.stdout

    pins = str(ROOT / "constraints.txt")
    pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-c", pins, str(Path(wheel).resolve()))
    version = run("-m", "vecfill", "--version").split()[-1]
    assert f"-{version}-" in Path(wheel).name, (version, wheel)
    where = run("-c", "import vecfill; print(vecfill.__file__)")
    assert str(place) in where, where
    print(run("-m", "vecfill.jobs.demo", "demo", "--quick", "--overwrite"))
    page = (place / "demo" / "report.html").read_text(encoding="utf-8")
    assert "class PointMap" in page, "the page lacks its scripts"
    print(f"vecfill {version}: the wheel installs and its demo runs.")


if __name__ == "__main__":
    main(*sys.argv[1:])
