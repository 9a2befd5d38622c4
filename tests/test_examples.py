"""The worked examples run as they stand, and what they write holds what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.views.test_report import data_of
from vecfill import read_embedding
from vecfill.io import verify
from vecfill.sample import VECTORS

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def run(name: str, folder: Path) -> str:
    """Run an example as a reader would, in a folder of its own; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), "out"],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "MPLCONFIGDIR": str(folder)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def steps(text: str) -> list[str]:
    """Return the numbered lines, without their numbers: those may differ between machines."""
    return [re.sub(r"[\d.,]+", "#", line) for line in re.findall(r"^\d\. .*$", text, re.MULTILINE)]


def printed_in_readme(name: str) -> str:
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    return readme.partition(f"$ python examples/{name} OUT\n")[2].partition("```")[0]


def test_every_example_has_a_test_and_its_output_in_the_readme():
    names = {path.name for path in EXAMPLES.glob("*.py")}
    assert names == {"cities.py", "colour_names.py", "service.py"}
    # The service prints nothing; its own test asks it through HTTP.
    assert all(printed_in_readme(name) for name in names - {"service.py"})


def test_colours_of_names_come_from_names_spelt_alike(tmp_path):
    pytest.importorskip("matplotlib", reason="the example draws: pip install 'vecfill[plot]'")
    told = run("colour_names.py", tmp_path)
    assert steps(told) == steps(printed_in_readme("colour_names.py"))
    out = tmp_path / "out"
    proof = verify(out / "survey.csv", out / "enriched.csv")
    assert proof.ok
    assert "mediumturquoise" in proof.added
    assert "linen" not in proof.added  # it resembles no name of the survey
    colours = read_embedding(out / "enriched.csv")
    lightness, green_red, _ = colours["palevioletred"]
    assert green_red > 30
    assert colours["darkgoldenrod"][2] > 30
    assert colours["mediumseagreen"][1] < -10
    assert 0 < lightness < 100
    # The surest third came nearer to the truth than the least sure.
    found = [float(each) for each in re.findall(r"expected, (-?\d\.\d\d) found", told)]
    assert len(found) == 3
    assert found[0] > 0.6 > found[2] + 0.1
    how = data_of(out / "report.html")["how"]
    assert dict(how["counts"])["added"] == str(proof.n_added)
    assert dict(how["options"])["names"].endswith("more")
    assert (out / "colours.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_city_taken_for_another_word_is_found_and_imputed(tmp_path):
    told = run("cities.py", tmp_path)
    assert steps(told) == steps(printed_in_readme("cities.py"))
    out = tmp_path / "out"
    proof = verify(VECTORS, out / "enriched.bin")
    assert proof.ok
    assert proof.n_added > 144  # those excluded are imputed as well
    cities = read_embedding(out / "enriched.bin")
    assert np.isfinite(cities.vectors).all()
    assert "rabat" in [word for word, _ in cities.most_similar("Salé", n=5)]
    assert "rabat" not in [word for word, _ in cities.most_similar("sale", n=50)]
    data = data_of(out / "report.html")
    assert data["heldout"] is not None
    assert data["map"]["kind"] == "given"
    assert [path for _, path, *_ in data["how"]["files"]] == [str(VECTORS)]
    assert "Salé" in dict(data["how"]["options"])["exclude"]
