"""The comparison of methods on hidden rows: samples, folds, intervals and tables."""

from __future__ import annotations

import json

import numpy as np
import pytest

from vecfill.model.space import Space


@pytest.fixture
def comparing():
    import comparing

    return comparing


@pytest.fixture
def data():
    from quality_set import Set

    rng = np.random.default_rng(0)
    names = [f"town{i}" for i in range(80)]
    latent = rng.normal(size=(80, 3))
    embedding = (latent @ rng.normal(size=(3, 6))).astype(np.float32)
    embedding[60:] = np.nan
    words = [name if row < 60 else None for row, name in enumerate(names)]
    return Set("towns", names, np.tanh(latent), embedding, words, texts={"name": names})


def test_a_sample_keeps_the_parts_of_an_entity_together(comparing, data):
    some = comparing.fewer(data, 30)
    assert len(some.entities) == len(some.domain) == len(some.embedding) == 30
    rows = [data.entities.index(name) for name in some.entities]
    assert (some.domain == data.domain[rows]).all()
    assert some.words == [data.words[row] for row in rows]
    assert some.texts["name"] == some.entities
    assert comparing.fewer(data, None) is comparing.fewer(data, 80) is data


def test_folds_stop_once_enough_is_hidden(comparing, data):
    hidden = [fold.hidden for fold in comparing.folds_of(data, 20)]
    assert [each.size for each in hidden] == [12, 12]
    assert not set(hidden[0]) & set(hidden[1])
    assert len(comparing.folds_of(data, 1000)) == 5


def test_every_method_is_scored_on_the_same_hidden_rows(comparing, data):
    folds = comparing.folds_of(data, 20)
    found = comparing.compared(
        Space(data.domain), data, folds, "balanced", candidates="classic", rivals={}
    )
    assert set(found.scores) == {"auto", "paper"}
    assert {each.cosine.size for each in found.scores.values()} == {24}
    assert len(found.decisions) == 2


def test_hidden_vectors_are_seen_by_nobody(comparing, data):
    folds = comparing.folds_of(data, 10)
    options = {"candidates": "classic", "rivals": {}}
    first = comparing.compared(Space(data.domain), data, folds, "balanced", **options)
    hidden = folds[0].hidden
    data.embedding[hidden] = data.embedding[hidden[::-1]]
    again = comparing.compared(Space(data.domain), data, folds, "balanced", **options)
    assert str(first.decisions[0].predictor) == str(again.decisions[0].predictor)
    assert again.scores["auto"].cosine.mean() < first.scores["auto"].cosine.mean()


def test_an_interval_holds_the_mean_and_follows_weights(comparing):
    gap = np.random.default_rng(0).normal(1.0, 1.0, 400)
    low, high = comparing.interval(gap)
    assert low < gap.mean() < high
    heavy = np.where(gap > 1.0, 9.0, 1.0)
    assert comparing.interval(gap, heavy)[0] > high


def test_tables_show_what_was_measured(comparing, tmp_path, capsys, monkeypatch):
    import tables

    methods = ("auto", "auto, classic", "paper", *tables.RIVALS)
    means = {
        name: dict.fromkeys(comparing.MEASURES, 0.5 + 0.01 * place)
        for place, name in enumerate(methods)
    }
    gaps = {name: dict.fromkeys(comparing.MEASURES, (-0.004, 0.012)) for name in methods[1:]}
    comparing.keep(
        tmp_path,
        "table-towns",
        {
            "set": "towns",
            "n_known": 1200,
            "n_unknown": 20,
            "n_hidden": 400,
            "goals": {
                goal: {"methods": means, "differences": gaps}
                for goal in ("balanced", "cosine", "rank")
            },
            "chosen": "mean",
            "cost_of_choice": 61.4,
            "coverage_80": 0.8,
            "coverage_90": 0.9,
            "spearman": 0.5,
            "bottom_third": 0.1,
            "top_third": 0.9,
            "shuffled_refused": True,
            "shuffled_p": 0.5,
        },
    )
    assert json.loads((tmp_path / "table-towns.json").read_text())["n_known"] == 1200
    monkeypatch.setattr("sys.argv", ["tables.py", str(tmp_path)])
    tables.main()
    told = capsys.readouterr().out
    assert "| towns | 1,200 | 20 | 400 | .500/.500/.500 |" in told
    assert "OMP: -.004 to +.012" in told
