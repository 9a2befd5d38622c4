"""A job on datasets from the shell."""

from __future__ import annotations

import json

import pytest

from tests.distributed.made import Made, made
from vecfill.cli import main


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("items"), n_rows=400)


def test_a_job_in_pieces_runs_from_the_shell_and_status_tells_of_it(
    items: Made, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [str(items.known), str(items.features), "-o", str(items.folder / "shell out")]
    words += ["--ridge", "0.1", "--engine", "serial", "--work", str(items.folder / "shell")]
    assert main(["impute", *words]) == 0
    assert f"Imputed    {(~items.is_known).sum()} by as_given" in capsys.readouterr().out
    items.imputed("python")
    assert items.table("shell").equals(items.table("python"))
    assert main(["status", str(items.folder / "shell"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["is_running"] is False
    assert told["stages"]["emit"] == [1, 1]
    assert main(["status", str(items.folder / "shell")]) == 0
    assert f"(complete, written to {items.folder / 'shell out'})" in capsys.readouterr().out


def test_an_interrupt_says_how_to_resume_and_resuming_works(
    items: Made, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    work = items.folder / "interrupted"
    words = [str(items.known), str(items.features), "-o", str(items.folder / "interrupted out")]
    words += ["--ridge", "0.1", "--work", str(work)]
    with monkeypatch.context() as patch:
        patch.setattr("vecfill.distributed.methods.weighed", interrupt)
        assert main(["impute", *words]) == 130
    assert f"kept in {work}. Run the same command again" in capsys.readouterr().err
    assert main(["status", str(work)]) == 0
    told = capsys.readouterr().out
    assert "(stopped; run the same command again to resume)" in told
    assert "weights" not in told
    assert main(["impute", *words]) == 0
    items.imputed("python again")
    assert items.table("interrupted").equals(items.table("python again"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--engine", "processes"], "--work"),
        (["--work", "w", "--report", "a.html"], "--report cannot be used with --work"),
        (["--work", "w", "--replace", "suspicious"], "replaces no rows"),
        (["--work", "w", "--text", "gloss"], "does not know it"),
        (["--work", "w", "--scheduler", "tcp://x:1"], "--engine 'dask'"),
    ],
)
def test_what_a_job_in_pieces_cannot_do_is_refused(
    items: Made,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    more: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(items.folder)
    paths = [str(items.known), str(items.features), "-o", str(items.folder / "never")]
    assert main(["impute", *paths, *more]) == 2
    assert words in capsys.readouterr().err
    assert not (items.folder / "never").exists()
