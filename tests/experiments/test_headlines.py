"""The headlines and the language model on them, on examples small enough to check by hand."""

from __future__ import annotations

import importlib

import numpy as np
import pytest


def test_the_parts_share_no_line_and_lose_none(finance):
    headlines = importlib.import_module("headlines")
    parts = headlines.read_headlines(finance.parent, seed=0, train_share=0.7, valid_share=0.15)
    sizes = [len(part) for part in (parts.train, parts.valid, parts.test)]
    assert sum(sizes) == 29_395
    assert sizes[0] == round(0.7 * 29_395)


def test_rare_and_unseen_words_are_unknown():
    headlines = importlib.import_module("headlines")
    train = [["a", "b"], ["a", "c"], ["a"]]
    words = headlines.vocabulary(train, min_count=3)
    assert words == ["<eos>", "a", "<unk>"]
    assert headlines.as_numbers([["a", "b", "z"]], words).tolist() == [1, 2, 2, 0]


RECIPE = {
    "n_units": 8, "n_layers": 2, "n_steps": 5, "batch": 4, "learning_rate": 0.5,
    "full_rate_epochs": 2, "n_epochs": 3, "max_norm": 5.0, "init_scale": 0.1, "missing_std": 0.3,
}  # fmt: skip


@pytest.mark.parametrize("cutoffs", [[], [4, 10]])
def test_probabilities_of_the_next_word_sum_to_one(cutoffs):
    torch = pytest.importorskip("torch", reason="pip install 'vecfill[experiments]'")
    lstm = importlib.import_module("lstm")
    torch.manual_seed(0)
    model = lstm.LanguageModel(20, 6, RECIPE | {"cutoffs": cutoffs})
    word = torch.full((1, 1), 3)
    losses = [model.loss(word, torch.full((1, 1), following), None)[0] for following in range(20)]
    total = sum(float(torch.exp(-loss.detach())) for loss in losses)
    assert total == pytest.approx(1.0, abs=1e-5)


def test_the_same_seed_trains_the_same_model():
    pytest.importorskip("torch", reason="pip install 'vecfill[experiments]'")
    lstm = importlib.import_module("lstm")
    stream = np.random.default_rng(0).integers(20, size=400)
    vectors = np.full((20, 6), np.nan)
    recipe = RECIPE | {"cutoffs": [4, 10]}
    task = lstm.Task("random", 1, vectors, stream, stream, stream, recipe)
    first, second = lstm.train(task), lstm.train(task)
    assert first["test"] == second["test"]
    assert len(first["epochs"]) <= RECIPE["n_epochs"]


def test_text_without_rare_words_still_trains():
    pytest.importorskip("torch", reason="pip install 'vecfill[experiments]'")
    lstm = importlib.import_module("lstm")
    stream = np.random.default_rng(0).integers(3, size=400)
    recipe = RECIPE | {"cutoffs": [4, 10]}
    task = lstm.Task("random", 1, np.full((20, 6), np.nan), stream, stream, stream, recipe)
    assert lstm.train(task)["test"] < 20


def test_a_word_without_a_vector_gets_the_same_noise_under_every_start():
    pytest.importorskip("torch", reason="pip install 'vecfill[experiments]'")
    lstm = importlib.import_module("lstm")
    nothing = np.full((3, 2), np.nan)
    something = np.array([[1.0, 2.0], [np.nan, np.nan], [np.nan, np.nan]])
    first, second = (lstm._filled(rows, 0.3, seed=0) for rows in (nothing, something))
    assert second[0].tolist() == [1.0, 2.0]
    assert (first[1:] == second[1:]).all()
