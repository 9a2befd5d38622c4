"""What notebooks show: tables of results, pictures without magic, progress, an executed example."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import vecfill as vf
from vecfill.trust.choose.fusion import SourceReport, SourceReports
from vecfill.views import plots

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "cities.ipynb"
RUDE = "<script>alert(1)</script>"


def test_a_result_shows_what_was_imputed_and_escapes_names(small_run):
    text = small_run._repr_html_()
    assert "17 entities imputed from 50 known" in text
    assert small_run.predictor.in_words() in text
    assert "<summary>exact setting</summary>" in text
    assert "<script>" not in text
    assert text.count("<table") == text.count("</table>") == 2


def test_a_confidence_shows_its_histogram_and_what_thresholds_keep(small_run):
    text = small_run.confidence._repr_html_()
    assert text.count("<rect") == 20
    last = small_run.confidence.curve(5)[-1]
    assert f"{last['centred_cosine']:.2f}" in text
    assert "100 %" in text


def test_sources_are_a_tuple_that_shows_as_a_table():
    one = SourceReport(RUDE, True, "it helps", 10, 5, 0.5, True, {"centred_cosine": 0.25})
    other = SourceReport("noise", False, "it adds nothing", 10, 5)
    found = SourceReports((one, other))
    assert found == (one, other)
    assert str(found).splitlines() == [str(one), str(other)]
    text = found._repr_html_()
    assert "0.50" in text
    assert "dropped" in text
    assert "&lt;script&gt;" in text
    assert "<script>" not in text


def test_figures_are_pictures_without_magic(small_run):
    picture = plots.reliability(small_run.confidence)._repr_png_()
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    assert 2_000 < len(picture) < 100_000


def test_settings_are_told_as_people_speak():
    plain = vf.LatentSemantic(ridge=0.01, residual_share=0.6)
    assert plain.in_words() == (
        "8 neighbours, light smoothing, linear trend plus 60 % of the remainder"
    )
    assert vf.LatentSemantic().in_words() == "8 neighbours, no smoothing"
    assert vf.LatentSemantic(residual_share=0.0).in_words() == "linear trend alone"


class _Stream:
    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def test_progress_in_a_terminal_is_one_line_that_goes(monkeypatch):
    stream = _Stream()
    monkeypatch.setattr(sys, "stderr", stream)
    show = vf.ProgressBar()
    show("Imputing", 1, 4)
    show("Imputing", 1, 4)
    show("Imputing", 4, 4)
    assert stream.text.count("Imputing 25 %") == 1
    assert "\n" not in stream.text
    assert stream.text.endswith("\r")


def test_progress_goes_nowhere_if_there_is_no_terminal(capsys):
    vf.ProgressBar()("Imputing", 1, 4)
    assert capsys.readouterr() == ("", "")


def test_progress_in_a_notebook_updates_one_display(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=shown.append)

    def display(content, display_id):
        shown.append(content)
        return handle

    shell = type("ZMQInteractiveShell", (), {})()
    module = SimpleNamespace(HTML=str, display=display)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    show = vf.ProgressBar()
    show("Reading <b>", 0, 0)
    show("Imputing", 1, 2)
    show("Imputing", 2, 2)
    assert shown[0] == "<progress></progress> Reading &lt;b&gt;"
    assert shown[1] == '<progress value="1" max="2"></progress> Imputing 50 %'
    assert shown[-1] == ""


def test_the_notebook_was_executed_and_is_small():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    numbers = [cell["execution_count"] for cell in code]
    assert numbers == list(range(1, len(code) + 1))
    outputs = [output for cell in code for output in cell["outputs"]]
    assert not [each for each in outputs if each["output_type"] == "error"]
    kinds = [kind for each in outputs for kind in each.get("data", {})]
    assert kinds.count("image/png") == 2
    assert "text/html" in kinds
    assert NOTEBOOK.stat().st_size < 300_000


@pytest.mark.slow
@pytest.mark.extra
def test_the_notebook_still_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="pip install nbconvert ipykernel")
    nbclient = pytest.importorskip("nbclient", reason="pip install nbconvert ipykernel")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=900, resources={"metadata": {"path": str(tmp_path)}}
    )
    client.execute()
    assert (tmp_path / "cities.html").stat().st_size > 100_000
