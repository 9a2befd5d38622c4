"""The demo does the whole job on the bundled sample."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.views.test_report import data_of
from vecfill import InputError, read_embedding
from vecfill.jobs.demo import EXPLAINED, main, run_demo


@pytest.mark.slow
def test_the_demo_does_the_whole_job(tmp_path):
    said = []
    demo = run_demo(tmp_path / "demo", say=said.append)
    assert demo.evaluation.has_signal
    assert demo.verification.ok
    assert (demo.verification.n_known, demo.verification.n_added) == (2730, 1235)
    assert len(read_embedding(demo.enriched)) == 2730 + 1235
    assert 100_000 < demo.page.stat().st_size < 5_000_000
    how = data_of(demo.page)["how"]
    for _, path, size, digest in how["files"]:
        content = Path(path).read_bytes()
        assert (size, digest) == (len(content), hashlib.sha256(content).hexdigest())
    assert dict(how["counts"])["added"] == "1,235"
    assert dict(how["options"])["ignore"] == "population"
    told = "\n".join(said)
    assert all(name in told for name in EXPLAINED)
    assert str(demo.page) in told
    # A town whose name is another word: in GloVe, man is not a town of the Ivory Coast.
    assert "Man" in {doubt.entity for doubt in demo.result.suspicious}


def test_files_of_an_earlier_demo_are_kept_unless_told(tmp_path, capsys):
    (tmp_path / "cities.csv").write_text("mine")
    with pytest.raises(InputError, match=r"cities\.csv"):
        run_demo(tmp_path)
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "cities.csv" in capsys.readouterr().err
    assert (tmp_path / "cities.csv").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="file"):
        run_demo(tmp_path / "file" / "demo")
