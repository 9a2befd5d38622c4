"""What a person sees who looks around a new vector in the whole file of words."""

from __future__ import annotations

import json

import numpy as np
import pytest

import vecfill as vf
from vecfill.inputs.rarity import absent_for_another_reason
from vecfill.model.predictors import Mean
from vecfill.trust.choose.rareness import MOST_ODDS
from vecfill.trust.prove.sanity import Look, Sanity

N_WORDS = 20_000
N_TOWNS = 600


def letters(number: int) -> str:
    return "".join(chr(ord("a") + int(digit)) for digit in str(number))


@pytest.fixture(scope="module")
def file_and_towns():
    """A file in which rare words lie elsewhere, and towns: known, rare, and of several words."""
    rng = np.random.default_rng(0)
    drift = np.log(np.arange(N_WORDS) + 1.0)[:, None] * rng.normal(size=(1, 16)) / 3
    vectors = rng.normal(size=(N_WORDS, 16)) + drift
    words = np.array([f"w{letters(row)}" for row in range(N_WORDS)], dtype=object)
    domain = rng.normal(size=(N_TOWNS, 4))
    meaning = np.sin(domain @ rng.normal(size=(4, 16))) * 2.0
    # The first 360 are known, spread over the ranks; then come rare ones and names of two words.
    ranks = np.sort(rng.permutation(N_WORDS - 2000)[:360])
    names = [f"town{letters(row)}" for row in range(N_TOWNS)]
    words[ranks] = names[:360]
    vectors[ranks] = meaning[:360] + drift[ranks]
    names[420:] = [f"new {name}" for name in names[420:]]
    table = dict(zip(names, domain, strict=True))
    return vf.Embedding(words.tolist(), vectors), table, meaning


@pytest.fixture(scope="module")
def result(file_and_towns):
    base, table, _ = file_and_towns
    return vf.impute(table, base, names="off")


def test_names_of_several_words_are_not_taken_for_rare(result, file_and_towns):
    base, _, meaning = file_and_towns
    spared = np.array([" " in name for name in result.embedding.words])
    assert spared.sum() == 180
    assert result.alignment.rarity.spares_several
    if result.model.offsets is not None:
        assert not result.model.offsets.is_rare[spared].any()
    # They come back about where the known towns are, and not at the rare end of the file.
    new = result.embedding.vectors[spared]
    known, rarest = result.known.vectors.mean(axis=0), np.asarray(base.vectors)[-500:].mean(axis=0)
    assert np.linalg.norm(new.mean(axis=0) - known) < np.linalg.norm(new.mean(axis=0) - rarest)
    truth = meaning[420:] - meaning[:360].mean(axis=0)
    steps = new - known
    cosines = (steps * truth).sum(axis=1)
    cosines /= np.linalg.norm(steps, axis=1) * np.linalg.norm(truth, axis=1)
    assert cosines.mean() > 0.7


def test_new_vectors_are_as_spread_as_known_ones_and_near_different_words(result):
    sanity = result.sanity
    assert sanity.verdict == "fine"
    assert sanity.warning is None
    assert abs(sanity.hidden.spread - sanity.true.spread) < 0.1
    assert sanity.imputed.n_nearest > 0.5 * sanity.imputed.n_vectors
    assert sanity.is_whole_file
    assert len(sanity.examples) == len(sanity.hidden_examples) == 5
    assert "nearest     " in repr(result)
    assert json.loads(json.dumps(result.to_dict()))["sanity"]["verdict"] == "fine"


def test_the_stretch_leaves_known_rows_and_directions_as_they_are(result, file_and_towns):
    base, _, _ = file_and_towns
    known = np.asarray(base[list(result.known.words)])
    assert result.known.vectors.tobytes() == known.tobytes()
    assert result.decision.stretch.plain >= 1.0


def test_collapsed_vectors_are_refused_and_forced_ones_carry_a_warning(file_and_towns):
    base, table, _ = file_and_towns
    with pytest.raises(vf.CollapseError, match="collapsed: they are nearly one vector"):
        vf.impute(table, base, names="off", method=Mean())
    forced = vf.impute(table, base, names="off", method=Mean(), force=True)
    assert forced.sanity.verdict == "collapsed"
    assert forced.notes[0].startswith("The imputed vectors have collapsed")
    assert "warning" in repr(forced).splitlines()[1]


def test_a_few_alike_entities_are_no_collapse():
    crowd = Look(19, 0.99, 1, 1.0, "word")
    true = Look(300, 0.1, 290, 0.01, "other")
    assert Sanity(crowd, None, true, None, (), (), True).verdict == "fine"
    many = Look(20, 0.99, 1, 1.0, "word")
    assert Sanity(many, None, true, None, (), (), True).verdict == "collapsed"
    # Unless the known entities that they are made of are as much alike.
    assert Sanity(many, None, true, 0.95, (), (), True).verdict != "collapsed"
    crowded = Look(500, 0.4, 300, 0.02, "word")
    assert Sanity(crowded, None, true, None, (), (), True).verdict == "crowded"


def test_the_offset_can_be_switched_off(result, file_and_towns):
    base, table, _ = file_and_towns
    assert vf.impute(table, base, names="off", offset="off").decision.rule is None
    odds = result.decision.odds_of_rare
    assert 1.0 / MOST_ODDS <= odds <= MOST_ODDS
    with pytest.raises(vf.OptionError, match="offset='off' is about what auto does"):
        vf.impute(table, base, names="off", method="paper", offset="off")


def test_a_trait_that_known_names_share_is_no_reason_for_being_unknown():
    films = [f"the film {letters(row)}" for row in range(40)]
    spared, spares_several = absent_for_another_reason(films, np.arange(40) < 20, set("thefilm "))
    assert not spared.any()
    assert not spares_several
    # Characters that no word of the file has are as good a reason as a space.
    odd = [*(letters(row) for row in range(100, 130)), *(f"§{row}" for row in range(20))]
    spared, _ = absent_for_another_reason(odd, np.arange(50) < 25, set("abcdefghij"))
    assert spared.tolist() == [False] * 30 + [True] * 20


def test_parts_of_a_name_are_near_its_vector_though_no_known_name_has_parts():
    rng = np.random.default_rng(0)
    words = [f"w{letters(row)}" for row in range(3000)]
    vectors = rng.normal(size=(3000, 12))
    table = {name: vectors[row, :3] for row, name in enumerate(words[:200])}
    table |= {f"{words[row]} {words[row + 1]}": vectors[row, :3] for row in range(500, 540)}
    result = vf.impute(table, vf.Embedding(words, vectors))
    assert [report.name for report in result.sources if report.is_kept][-1] == "parts"
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    ranks = []
    for row in range(500, 540):
        nearness = directions @ result.embedding[f"{words[row]} {words[row + 1]}"]
        ranks.append(int((nearness > nearness[row]).sum()))
    assert np.median(ranks) < 150  # 1,500 by chance
    assert "parts" in result.explain(f"{words[500]} {words[501]}").source_shares
