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


@pytest.mark.extra
@pytest.mark.parametrize("cutoffs", [[], [4, 10]])
def test_probabilities_of_the_next_word_sum_to_one(cutoffs):
    torch = importlib.import_module("torch")
    lstm = importlib.import_module("lstm")
    torch.manual_seed(0)
    model = lstm.LanguageModel(20, 6, RECIPE | {"cutoffs": cutoffs})
    word = torch.full((1, 1), 3)
    losses = [model.loss(word, torch.full((1, 1), following), None)[0] for following in range(20)]
    total = sum(float(torch.exp(-loss.detach())) for loss in losses)
    assert total == pytest.approx(1.0, abs=1e-5)


@pytest.mark.extra
def test_the_same_seed_trains_the_same_model():
    lstm = importlib.import_module("lstm")
    stream = np.random.default_rng(0).integers(20, size=400)
    vectors = np.full((20, 6), np.nan)
    recipe = RECIPE | {"cutoffs": [4, 10]}
    task = lstm.Task("random", 1, vectors, stream, stream, stream, recipe)
    first, second = lstm.train(task), lstm.train(task)
    assert first["test"] == second["test"]
    assert len(first["epochs"]) <= RECIPE["n_epochs"]


@pytest.mark.extra
def test_text_without_rare_words_still_trains():
    lstm = importlib.import_module("lstm")
    stream = np.random.default_rng(0).integers(3, size=400)
    recipe = RECIPE | {"cutoffs": [4, 10]}
    task = lstm.Task("random", 1, np.full((20, 6), np.nan), stream, stream, stream, recipe)
    assert lstm.train(task)["test"] < 20


@pytest.mark.extra
def test_a_word_without_a_vector_gets_the_same_noise_under_every_start():
    lstm = importlib.import_module("lstm")
    nothing = np.full((3, 2), np.nan)
    something = np.array([[1.0, 2.0], [np.nan, np.nan], [np.nan, np.nan]])
    first, second = (lstm._filled(rows, 0.3, seed=0) for rows in (nothing, something))
    assert second[0].tolist() == [1.0, 2.0]
    assert (first[1:] == second[1:]).all()


SMALL = {"n_dims": 8, "n_layers": 2, "n_heads": 2, "n_steps": 6}


@pytest.mark.extra
def test_perplexity_is_that_of_the_losses_of_its_tokens_in_order():
    torch = importlib.import_module("torch")
    lstm = importlib.import_module("lstm")
    torch.manual_seed(0)
    recipe = RECIPE | {"cutoffs": [], "batch": 1}
    model = lstm.LanguageModel(20, 6, recipe)
    stream = np.random.default_rng(0).integers(20, size=60)
    losses = lstm.token_losses(model, stream, recipe)
    hidden, _ = model.lstm(model.embedding(torch.from_numpy(stream[:-1])[:, None]))
    scores = torch.log_softmax(model.output(hidden[:, 0]), dim=1).detach().numpy()
    np.testing.assert_allclose(losses, -scores[np.arange(59), stream[1:]], rtol=1e-4)
    assert lstm.perplexity(model, stream, recipe) == pytest.approx(np.exp(losses.mean()))


def test_imputed_names_and_what_follows_them_are_told_from_the_rest():
    module = importlib.import_module("imputed_tokens")
    nothing = np.full((4, 2), np.nan)
    some = nothing.copy()
    some[2] = 1.0
    config = {"claims": [["self", "self + returns"]], "count_bins": [0, 3]}
    test = np.array([0, 2, 1, 3, 2, 2, 0])
    groups = module.token_groups(
        config, {"self": nothing, "self + returns": some}, np.array([9, 9, 2, 9]), test
    )
    found = {name.removeprefix("self + returns: "): mask for name, mask in groups.items()}
    assert np.flatnonzero(found["imputed names"]).tolist() == [1, 4, 5]
    assert np.flatnonzero(found["tokens after an imputed name"]).tolist() == [2, 6]
    assert np.flatnonzero(found["all other tokens"]).tolist() == [0, 3]
    assert np.flatnonzero(found["imputed names, seen 0 to 2 times"]).tolist() == [1, 4, 5]
    assert not found["imputed names, seen 3 times or more"].any()


def test_starts_are_compared_on_the_same_names_and_paired_by_seed():
    module = importlib.import_module("imputed_tokens")
    config = {
        "claims": [["a", "a + b", "a + b (shuffled)", "not trained"]],
        "sizes": [{"name": "all"}],
        "count_bins": [0, 1],
    }
    losses = {("a", 0): 3.0, ("a", 1): 4.0, ("a + b", 0): 2.0, ("a + b", 1): 3.0,
              ("a + b (shuffled)", 1): 4.0}  # fmt: skip
    names, after = "a + b: imputed names", "a + b: tokens after an imputed name"
    runs = [
        {"size": "all", "start": start, "seed": seed,
         "groups": {"all tokens": [loss, 2], names: [loss, 1], after: [0.0, 0],
                    "a + b: all other tokens": [0.0, 0], f"{names}, seen 0 times": [loss, 1],
                    f"{after}, seen 0 times": [0.0, 0], f"{names}, seen 1 times or more": [0.0, 0],
                    f"{after}, seen 1 times or more": [0.0, 0]}}
        for (start, seed), loss in losses.items()
    ]  # fmt: skip
    table = module.compared(config, runs)
    assert table["start"].tolist() == ["a + b", "a + b", "a + b (shuffled)"]
    assert table["against"].tolist() == ["a", "a + b (shuffled)", "a"]
    assert table["seeds"].tolist() == [2, 1, 1]
    decrease = 100 * (1 - np.exp(-1))
    assert table["imputed names"].tolist() == [
        f"37.34 to 13.74 ({decrease:.2f} ± 0.00 %)",
        f"54.60 to 20.09 ({decrease:.2f} %)",
        "54.60 to 54.60 (0.00 %)",
    ]
    assert table["all other tokens"].tolist() == [""] * 3
    by_count = module.compared_by_count(config, runs)
    assert by_count["name seen"].tolist() == ["0 times"] * 3
    assert by_count["test tokens"].tolist() == [1, 1, 1]
    assert by_count["imputed names"].tolist() == table["imputed names"].tolist()


@pytest.mark.extra
def test_a_training_that_is_done_is_not_repeated(tmp_path, monkeypatch):
    lstm, trainings = (importlib.import_module(name) for name in ("lstm", "trainings"))
    config = dict.fromkeys(trainings._MATTERS, 0) | {
        "sizes": [{"name": "all"}], "finished": False, "n_processes": 1, "claims": [["a", "b"]],
    }  # fmt: skip
    stream = np.zeros(10, np.int64)
    task = lstm.Task("self", 3, np.zeros((2, 2)), stream, stream, stream, {}, {}, "all")
    folder = trainings._folder(config, config["sizes"][0], tmp_path)
    trainings._path(folder, "self", 3).write_text('{"start": "self", "test": 9.5}')
    assert list(trainings.trained([task], config, tmp_path)) == [{"start": "self", "test": 9.5}]
    other = lstm.Task("random", 3, np.zeros((2, 2)), stream, stream, stream, {}, {}, "all")
    found = trainings.trained([task, other], config | {"finished": True}, tmp_path)
    assert len(list(found)) == 1
    for name, value, same in (
        ("recipe", 1, False),
        ("claims", [["a", "c"]], False),
        ("claims", [["a", "b", "c"]], True),
    ):
        changed = trainings._folder(config | {name: value}, config["sizes"][0], tmp_path)
        assert (changed == folder) is same


@pytest.mark.extra
def test_a_start_that_is_kept_is_not_made_again(tmp_path):
    trainings = importlib.import_module("trainings")
    config = dict.fromkeys(trainings._MATTERS, 0) | {"claims": [], "starts": ["a", "a + b (auto)"]}
    asked = []

    def make(starts):
        asked.append(starts)
        return [(start, np.full((2, 2), float(len(start)))) for start in starts]

    first = trainings.kept_starts(config, {"name": "all"}, tmp_path, make)
    more = config | {"starts": [*config["starts"], "c"]}
    second = trainings.kept_starts(more, {"name": "all"}, tmp_path, make)
    assert asked == [["a", "a + b (auto)"], ["c"]]
    np.testing.assert_array_equal(second["a + b (auto)"], first["a + b (auto)"])


@pytest.mark.extra
def test_shuffling_deals_out_imputed_vectors_and_leaves_the_known_ones():
    pd = importlib.import_module("pandas")
    module = importlib.import_module("start_vectors")
    names = ["known", *"abcdefgh", "not a word"]
    vectors = pd.DataFrame(np.arange(20.0).reshape(10, 2), index=names)
    found = module._shuffled(vectors, 1, names[:-1], seed=0)
    assert found.index.tolist() == names[:-1]
    assert found.loc["known"].tolist() == [0.0, 1.0]
    assert sorted(found[0]) == vectors[0].tolist()[:-1]
    assert (found != vectors[:-1]).any().any()
