"""Run the worked examples, and put what they print into `examples/README.md`.

python scripts/build_examples.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
README = EXAMPLES / "README.md"
NAMES = ("cities.py", "colour_names.py")


def main() -> None:
    """Replace each block that starts with the command of an example."""
    text = README.read_text(encoding="utf-8")
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            printed = subprocess.run(
                [sys.executable, str(EXAMPLES / name), "out"],
                cwd=folder,
                capture_output=True,
                encoding="utf-8",
                check=True,
            ).stdout
        command = f"$ python examples/{name} OUT\n"
        before, found, rest = text.partition(command)
        assert found, f"{README} does not show {name}"
        text = before + command + printed + rest[rest.index("```") :]
    README.write_text(text, encoding="utf-8")
    print(f"Written: {README}")


if __name__ == "__main__":
    main()
