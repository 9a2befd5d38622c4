"""New tokens tried out on models that torch runs: distilled, levelled, and checked for harm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import vecfill as vf
from tests.exchange.test_real_models import rows, write_model
from vecfill.errors import MissingExtraError
from vecfill.exchange.huggingface import fitting as fitting_module
from vecfill.exchange.huggingface import judging, level, running
from vecfill.exchange.huggingface.adding import prepared_tokens
from vecfill.exchange.huggingface.example import write_small_model
from vecfill.exchange.huggingface.fitting import Fitting
from vecfill.exchange.huggingface.folder import ModelFolder
from vecfill.exchange.huggingface.imputing import TokenImputation
from vecfill.exchange.huggingface.level import Frequencies, OutputSample, levelled
from vecfill.exchange.huggingface.running import RunningModel
from vecfill.exchange.huggingface.sentences import ORDINARY

pytestmark = pytest.mark.extra
pytest.importorskip("torch")
pytest.importorskip("transformers")
N_DIMS = 16


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A random model of each kind."""
    made = {}
    for kind, is_tied in (("llama", True), ("gpt2", False), ("bert", True)):
        made[kind] = tmp_path_factory.mktemp(kind) / "model"
        write_model(made[kind], kind, tied=is_tied, n_padding=0, shard="5GB")
    return made


def run(folder: Path) -> RunningModel:
    model = ModelFolder(folder)
    return RunningModel(model, model.tokenizer.entries(list(rows(N_DIMS))))


def test_rows_have_the_mean_probability_that_is_asked_for(folders: dict[str, Path]):
    model = run(folders["llama"])
    sample = OutputSample(model, [model.split(text) for text in ORDINARY[:8]])
    new = np.stack(list(rows(N_DIMS).values()))
    targets = np.array([0.01, 0.02, 0.05, 0.1])
    moved = sample.moved(new, targets)
    scores = sample.states.numpy() @ moved.T - sample.normalizers.numpy()[:, None]
    np.testing.assert_allclose(np.exp(scores).mean(axis=0), targets, rtol=1e-3)
    # No step makes a row less likely everywhere; then it is as unlikely as a step can make it.
    least = [sample.taken(row[None])[0] for row in sample.moved(new, 1e-9 * targets)]
    assert max(least) < 0.01
    step = sample.direction()
    across = (moved - new) - np.outer((moved - new) @ step / (step @ step), step)
    assert np.abs(across).max() < 1e-6


def test_a_level_is_learnt_from_words_whose_frequency_is_known(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(level, "FEWEST_KNOWN", 20)
    model = run(folders["llama"])
    sample = OutputSample(model, [model.split(text) for text in ORDINARY[:8]])
    n_known = model.n_rows
    ids = {f"w{row}": row for row in range(n_known)}
    logs = np.log(sample.mean_chances[:n_known])
    known = {word: float(2 * logs[row] + 3) for word, row in ids.items()}
    of_term = 2 * np.log(0.02) + 3
    frequencies = Frequencies("counts", known, dict.fromkeys(model.terms, of_term))
    outcome = levelled(sample, np.stack(list(rows(N_DIMS).values())), model.terms, ids, frequencies)
    assert not isinstance(outcome, str)
    # Four terms of .02 each, as shares of a whole that they are part of.
    assert outcome.after == pytest.approx(0.08 / 1.08, rel=0.1)
    shuffled = dict(zip(known, np.random.default_rng(0).normal(size=n_known), strict=True))
    reason = levelled(sample, outcome.rows, model.terms, ids, replace(frequencies, known=shuffled))
    assert "do not go with how likely" in str(reason)
    refusal = levelled(sample, outcome.rows, model.terms, {"w1": 1}, frequencies)
    assert "are known for 1 whole words" in str(refusal)


@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_distilled_rows_are_read_more_like_the_pieces_and_nothing_else_changes(
    folders: dict[str, Path], tmp_path: Path, kind: str
):
    far = {term: 3 * row for term, row in rows(N_DIMS).items()}
    runs = [
        vf.add_tokens(folders[kind], far, tmp_path / name, distil=True) for name in ("one", "two")
    ]
    fit = runs[0].fitted
    assert fit is not None
    assert fit.distilled is not None
    assert fit.distilled.after < fit.distilled.before
    assert fit.distilled.n_steps > 0
    assert vf.verify_model(folders[kind], tmp_path / "one").ok
    first, second = (vf.read_model(tmp_path / name) for name in ("one", "two"))
    np.testing.assert_array_equal(first["radium"], second["radium"])
    assert not np.allclose(first["radium"], far["radium"], atol=1e-3)


def test_rows_that_are_read_in_passing_are_those_in_the_table(folders: dict[str, Path]):
    for kind in ("llama", "bert"):
        model = run(folders[kind])
        new = np.stack(list(rows(N_DIMS).values())).astype(np.float32)
        texts = [model.joined(f"iron {term} tin") for term in model.terms]
        with model.reading(model.torch.tensor(new)):
            passing = [states.numpy() for states in model.hidden(texts)]
        model.put(new)
        for one, other in zip(passing, model.hidden(texts), strict=True):
            np.testing.assert_array_equal(one, other.numpy())


def test_tokens_that_do_harm_are_refused_unless_forced(folders: dict[str, Path], tmp_path: Path):
    huge = {term: 100 * row for term, row in rows(N_DIMS).items()}
    with pytest.raises(
        vf.HarmError, match=r"Nothing was written.*too much probability.*force=True"
    ):
        vf.add_tokens(folders["llama"], huge, tmp_path / "new", check=True)
    assert not (tmp_path / "new").exists()
    added = vf.add_tokens(folders["llama"], huge, tmp_path / "new", check=True, force=True)
    check = added.to_dict()["check"]
    assert check["mass"] > 0.1
    assert check["is_unchanged"]
    assert "harm" in str(added.fitted.harm)


@pytest.mark.parametrize(("of_terms", "is_harm"), [(0.5, True), (0.9, False)])
def test_tokens_farther_from_their_pieces_than_words_do_harm(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, of_terms: float, is_harm: bool
):
    nearness = iter([of_terms, 0.9])

    def agreement(_model, joined, _split):
        return next(nearness) + np.where(np.arange(len(joined)) % 2 == 0, 0.0, 0.01)

    monkeypatch.setattr(judging, "_agreement", agreement)
    monkeypatch.setattr(judging, "_words", lambda *_: ([[1]] * 60, [[1]] * 60))
    check = judging.harm_of(run(folders["bert"]), ModelFolder(folders["bert"]), None)
    assert bool(check.harms) == is_harm
    assert ("farther from the reading" in str(check)) == is_harm


def test_an_output_table_of_its_own_is_levelled_and_the_input_left_alone(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
):
    model = ModelFolder(folders["gpt2"])
    new, head = rows(N_DIMS), {term: -row for term, row in rows(N_DIMS).items()}
    lively = run(folders["gpt2"])
    assert not lively.is_tied

    def moved(sample, table_rows, *_):
        return fitting_module.Levelled(table_rows + 1.0, "rank", 0.1, 0.2)

    monkeypatch.setattr(fitting_module, "levelled", moved)
    tables = [np.stack(list(part.values())) for part in (new, head)]
    outcome = fitting_module.fitted(
        model,
        model.tokenizer.entries(list(new)),
        *tables,
        {"rank": Frequencies("rank", {}, {})},
        Fitting(check=False),
    )
    np.testing.assert_array_equal(outcome.rows, tables[0])
    np.testing.assert_array_equal(outcome.head, tables[1] + 1.0)


def test_a_model_that_changes_its_scores_has_no_level(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert run(folders["gpt2"]).has_plain_scores()
    monkeypatch.setattr(RunningModel, "has_plain_scores", lambda _: False)
    model, words = ModelFolder(folders["llama"]), {"rank": Frequencies("rank", {}, {})}
    new = np.stack(list(rows(N_DIMS).values()))
    entries = model.tokenizer.entries(list(rows(N_DIMS)))
    todo = Fitting(check=True, force=True)
    outcome = fitting_module.fitted(model, entries, new, None, words, todo)
    assert "are not products of hidden states" in outcome.notes[0]
    assert outcome.harm is not None
    assert outcome.harm.mass is None
    with pytest.raises(vf.InputError, match="level='rank' cannot be used here"):
        fitting_module.fitted(model, entries, new, None, words, replace(todo, level="rank"))


def test_what_cannot_be_done_is_refused_or_left_out_by_name(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    small = write_small_model()
    new = {"radon": np.ones(4)}
    with pytest.raises(vf.InputError, match="neither an encoder nor a causal model"):
        vf.add_tokens(small, new, tmp_path / "a", distil=True)
    prepared = prepared_tokens(small, new, fitting=Fitting())
    assert "were not tried out: it is neither" in prepared.fitted.notes[0]
    with pytest.raises(vf.InputError, match="is no causal language model"):
        vf.add_tokens(folders["bert"], rows(N_DIMS), tmp_path / "a", level="rank")
    with pytest.raises(vf.InputError, match=r"needs counts="):
        vf.add_tokens(folders["llama"], rows(N_DIMS), tmp_path / "a", level="counts")
    with pytest.raises(vf.InputError, match="is none of counts, rank, off"):
        vf.add_tokens(folders["llama"], rows(N_DIMS), tmp_path / "a", level="high")

    def absent(name, *, extra):
        raise MissingExtraError(f"{name} is not installed. Type: pip install 'vecfill[{extra}]'")

    monkeypatch.setattr(running, "library", absent)
    with pytest.raises(vf.InputError, match=r"pip install 'vecfill\[lm\]'"):
        vf.add_tokens(folders["bert"], rows(N_DIMS), tmp_path / "a", distil=True)
    assert not (tmp_path / "a").exists()


def test_ranks_and_counts_reach_the_level():
    folder = write_small_model()
    metals = vf.Embedding(
        ["iron", "gold", "zinc", "radon", "lead", "tin"],
        np.random.default_rng(0).normal(size=(6, 3)),
    )
    counts = {"iron": 9.0, "radon": 2.0}
    imputation = vf.impute_tokens(folder, ["radon"], metals, force=True, counts=counts)
    assert isinstance(imputation, TokenImputation)
    assert imputation.ranks["radon"] == 4
    assert imputation.ranks["gold"] == 2
    assert imputation.counts == counts
    with pytest.raises(vf.InputError, match="is no file"):
        vf.impute_tokens(folder, ["radon"], metals, force=True, counts="population")
