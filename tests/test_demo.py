"""The demo does the whole job on the bundled sample."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.views.test_report import data_of
from vecfill import InputError, read_embedding
from vecfill.jobs.demo import SHOWN, main, run_demo


@pytest.mark.slow
def test_the_demo_does_the_whole_job(tmp_path):
    lines = []
    demo = run_demo(tmp_path / "demo", say=lines.append)
    assert demo.evaluation.has_signal
    assert demo.verification.ok
    assert (demo.verification.n_known, demo.verification.n_added) == (
        7591,
        len(demo.result.embedding),
    )
    assert len(read_embedding(demo.enriched)) == 7591 + len(demo.result.embedding)
    assert 100_000 < demo.page.stat().st_size < 5_000_000
    how = data_of(demo.page)["how"]
    for _, path, size, digest in how["files"]:
        content = Path(path).read_bytes()
        assert (size, digest) == (len(content), hashlib.sha256(content).hexdigest())
    assert dict(how["options"])["text"] == "description"
    story = "\n".join(lines)
    assert all(name in story for name in SHOWN)
    assert str(demo.page) in story
    assert demo.refusal is not None
    assert "no signal" in demo.refusal


@pytest.mark.slow
def test_in_the_demo_no_other_method_has_as_near_vectors(tmp_path):
    evaluation = run_demo(tmp_path, say=lambda line: None).evaluation
    for rival in evaluation.scores.keys() - {"auto"}:
        assert evaluation.difference("auto", rival, "centred_cosine")[0] > 0, rival
        assert evaluation.difference("auto", rival, "hits_at_10")[1] > 0.03, rival


def test_files_of_an_earlier_demo_are_kept_unless_told(tmp_path, capsys):
    (tmp_path / "animals.csv").write_text("mine")
    with pytest.raises(InputError, match=r"animals\.csv"):
        run_demo(tmp_path)
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "animals.csv" in capsys.readouterr().err
    assert (tmp_path / "animals.csv").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file"):
        run_demo(tmp_path / "file" / "demo")
