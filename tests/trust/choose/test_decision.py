"""Rare entities: the offset, whether unknown rows are rare, and proofs that do not leak."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace

import numpy as np
import pytest

import vecfill as vf
from vecfill.inputs.rarity import RankSample, Rarity, moves_with, rank_bins
from vecfill.model.fitted import fit
from vecfill.model.known import KnownRows
from vecfill.model.offset import Curve, OffsetRule, curve_of_known
from vecfill.model.predictors import PAPER
from vecfill.model.sources import Member, SourcesSpace
from vecfill.model.space import Space
from vecfill.trust.choose import decision as decision_module
from vecfill.trust.choose.decision import (
    RARE,
    decide,
    hidden_offsets,
    is_clearly_better,
    least_within_noise,
    rules_for,
)
from vecfill.trust.choose.folds import rarest_block
from vecfill.trust.choose.fusion import weighed
from vecfill.trust.choose.rareness import odds_of_rare
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.prove.hidden import Cosines, Hidden, Region, drift_of, hide_and_impute
from vecfill.trust.prove.learning import learn_confidence
from vecfill.trust.prove.strata import kind_of_name


def drifting(n_rows: int = 400, n_known: int = 280, *, drift: float = 2.0, seed: int = 0):
    """Rows sorted by rarity, the unknown ones rarest; vectors drift along one direction."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_rows, 4))
    rarity = np.log(np.arange(n_rows) * 50 + 1.0)
    # The domain tells a little about rarity, as a real one does.
    domain = np.c_[
        np.tanh(latent @ rng.normal(size=(4, 8))), 0.5 * rarity + rng.normal(size=n_rows)
    ]
    embedding = np.sin(latent @ rng.normal(size=(4, 12)))
    embedding += drift * np.outer(rarity - rarity.mean(), rng.normal(size=12)) / 3
    is_known = np.arange(n_rows) < n_known
    told = np.where(is_known, rarity, np.nan)
    return domain, embedding, is_known, Rarity(told, "order"), rarity


def cosine(left, right):
    return float(
        (
            (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)
        ).mean()
    )


def test_the_offset_is_kept_where_it_helps_rare_rows_and_then_it_does():
    domain, embedding, is_known, rarity, _ = drifting()
    found = decide(Space(domain), embedding, is_known, rarity=rarity)
    assert found.proof == "rarest"
    assert found.rule is not None
    centre = embedding[is_known].mean(axis=0)
    given = KnownRows(embedding, is_known)
    scores = {}
    for name, offsets in (("with", found.rule.offsets(rarity.values, given)), ("without", None)):
        model = fit(found.predictor, Space(domain), embedding, is_known, offsets=offsets)
        scores[name] = cosine(model.embedding[~is_known] - centre, embedding[~is_known] - centre)
        assert model.known.tobytes() == embedding[is_known].tobytes()
    assert scores["with"] > scores["without"] + 0.05


def test_of_rules_that_are_level_the_one_that_assumes_least_is_taken():
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.1, size=(3, 400))

    def scores(level, chance):
        return RowScores(*[level + chance] * 8)

    near, far, none = OffsetRule(0.5), OffsetRule(2.0), scores(0.3, noise[0])
    level = {None: none, near: scores(0.5, noise[1]), far: scores(0.502, noise[2])}
    assert least_within_noise(level, "balanced") == near
    better = {None: none, near: scores(0.5, noise[1]), far: scores(0.6, noise[2])}
    assert least_within_noise(better, "balanced") == far
    worse = {None: scores(0.7, noise[0]), near: scores(0.5, noise[1])}
    assert least_within_noise(worse, "balanced") is None


def test_a_rule_that_crowds_gives_way_to_one_that_does_not(monkeypatch):
    """Whatever crowds is left out before the best is sought, so its score cannot decide."""
    domain, embedding, is_known, rarity, _ = drifting()
    usual = decide(Space(domain), embedding, is_known, rarity=rarity).rule
    scored = decision_module._Trial.scored

    def tempting(trial, rule):
        scores = scored(trial, rule)
        if rule != usual:
            return scores
        best = {name: np.ones_like(scores.cosine) for name in ("reciprocal_rank", "hits_at_10")}
        return replace(scores, crowding=np.ones_like(scores.cosine), **best)

    monkeypatch.setattr(decision_module._Trial, "scored", tempting)
    found = decide(Space(domain), embedding, is_known, rarity=rarity).rule
    assert found is not None
    assert found != usual
    monkeypatch.setattr(decision_module, "has_collapsed", lambda scores: True)
    assert decide(Space(domain), embedding, is_known, rarity=rarity).rule is None


def test_the_length_beside_an_offset_is_the_longest_good_one_that_does_not_crowd(monkeypatch):
    domain, embedding, is_known, rarity, _ = drifting()
    block = rarest_block(is_known, rarity.values, share=1 / 3)
    (rule, *_) = rules_for(rarity, is_known)

    def factor():
        trial = decision_module._Trial(
            Space(domain), PAPER, embedding, is_known, rarity.values, block, None
        )
        monkeypatch.setattr(trial.judge, "scored", lambda vectors, _: as_scores(vectors))
        return trial.stretch(rule)

    def as_scores(vectors):
        """The longer the better; what lies near its mean crowds."""
        length = np.linalg.norm(vectors - vectors.mean(axis=0), axis=1)
        crowding = 1.0 if length.mean() < limit else 0.0
        values = {each.name: 1.0 / length for each in fields(RowScores)}
        return RowScores(
            **{**values, "crowding": np.full(length.size, crowding), "hubs": 0 * length}
        )

    monkeypatch.setattr(decision_module, "stretch_of", lambda *_: 4.0)
    limit = 0.0
    shortest = factor()
    trial = decision_module._Trial(
        Space(domain), PAPER, embedding, is_known, rarity.values, block, None
    )
    start, steps = trial._parts(rule)
    own = start + 2.2 * steps
    limit = np.linalg.norm(own - own.mean(axis=0), axis=1).mean()
    assert shortest < 2.0
    assert factor() == pytest.approx(2.5)


def test_confidence_falls_along_the_clear_part_of_the_line_through_the_block():
    rng = np.random.default_rng(0)
    rarity = rng.uniform(0.0, 1.0, 400)
    values = 0.6 - 0.3 * rarity + rng.normal(scale=0.05, size=400)

    def drift(values, farther=0.5, moved=None):
        scores = RowScores(*[np.asarray(values)] * 8)
        hidden = Hidden(np.arange(400), np.zeros(400), np.empty((400, 1)), scores, values)
        return drift_of(replace(hidden, moved=moved), rarity, farther)

    slope, error = 0.3, 0.05 / np.sqrt(400 / 12)
    found, plain = drift(values)
    assert found == plain
    assert 0.5 * (slope - 4 * error) < found < 0.5 * slope
    assert drift(values, 1.0)[0] == pytest.approx(2 * found)
    # Rarer rows are never taken to be better, and chance is not followed.
    assert drift(1.0 - values) == (0.0, 0.0)
    assert drift(rng.normal(size=400)) == (0.0, 0.0)
    assert drift(values, 0.0) == (0.0, 0.0)
    # What the region takes off is not taken off again.
    assert drift(values, moved=Cosines(values - 0.05, values))[0] == pytest.approx(found - 0.05)


def test_the_drift_lowers_confidence_without_counts_and_not_with_them(monkeypatch):
    names = [f"e{i}" for i in range(400)]
    domain, embedding, _, _, every = drifting()
    asked = []

    def impute(drop, **options):
        def drift(hidden, values, farther):
            asked.append((hidden.rows, values, farther))
            return drop, 0.0

        monkeypatch.setattr("vecfill.trust.prove.proof.drift_of", drift)
        base = vf.Embedding(names[:280], embedding[:280])
        return vf.impute(dict(zip(names, domain, strict=True)), base, **options).confidence

    usual, lowered = impute(0.0), impute(0.3)
    assert usual.proof == "rarest"
    lower = usual.values.mean() - lowered.values.mean()
    assert 0.2 < lower < 0.301
    assert (lowered.lower_bound <= usual.lower_bound).all()
    assert lowered.coverage == usual.coverage
    rows, values, farther = asked[0]
    np.testing.assert_array_equal(values, np.log(rows + 1.0))
    # Unknown rows are taken to begin where known ones end, and to span as much as the block.
    assert farther == pytest.approx(np.log(280) - np.log(rows.min()))
    n_asked = len(asked)
    counts = dict(zip(names, np.exp(20 - every), strict=True))
    assert impute(0.3, counts=counts).proof == "rarest"
    assert len(asked) == n_asked


def test_without_a_drift_no_offset_is_taken():
    domain, embedding, is_known, rarity, _ = drifting(drift=0.0)
    assert decide(Space(domain), embedding, is_known, rarity=rarity).rule is None


def test_rows_hidden_at_random_do_not_look_rare():
    domain, embedding, _, _, every = drifting(600)
    is_known = np.random.default_rng(1).random(600) < 0.7
    rarity = Rarity(np.where(is_known, every, np.nan), "order")
    found = decide(Space(domain), embedding, is_known, rarity=rarity)
    assert (found.proof, found.rule) == ("random", None)


def test_a_predictor_that_was_asked_for_gets_no_offset():
    domain, embedding, is_known, rarity, _ = drifting()
    found = decide(Space(domain), embedding, is_known, asked=PAPER, rarity=rarity)
    assert (found.predictor, found.rule, found.proof) == (PAPER, None, "rarest")


def test_a_hidden_row_never_uses_its_own_rank_unless_unknown_rows_have_counts():
    _, embedding, is_known, rarity, every = drifting()
    block = rarest_block(is_known, rarity.values, share=0.3)
    given = KnownRows(embedding, block.is_seen)
    seen_most = rarity.values[block.is_seen].max()
    assumed = hidden_offsets(OffsetRule(beyond=0.5), rarity.values, given, block).assumed
    np.testing.assert_allclose(assumed, seen_most + 0.5)
    own = hidden_offsets(OffsetRule(beyond=0.5, uses_own=True), every, given, block)
    np.testing.assert_allclose(own.assumed[block.places], every[block.hidden])


def test_the_curve_of_known_rows_is_learnt_on_seen_rows_alone(monkeypatch):
    domain, embedding, is_known, rarity, _ = drifting()
    block = rarest_block(is_known, rarity.values, share=0.3)
    asked = []

    def recorded(values, vectors, *, degree):
        asked.append(len(values))
        return curve_of_known(values, vectors, degree=degree)

    monkeypatch.setattr("vecfill.model.offset.curve_of_known", recorded)
    rule = OffsetRule(beyond=0.5)
    known = embedding[is_known]
    hide_and_impute(
        Space(domain), embedding, known, PAPER, [block], rule=rule, rarity=rarity.values
    )
    assert asked == [int(block.is_seen.sum())]


def test_the_block_hides_the_rarest_rows_and_nothing_else():
    is_known = np.array([True, False, True, True, True])
    block = rarest_block(is_known, np.array([3.0, np.nan, 9.0, 1.0, 7.0]), share=0.5)
    assert block.hidden.tolist() == [2, 4]
    assert block.is_seen.tolist() == [True, False, False, True, False]


def test_confidence_is_learnt_on_the_block_when_unknown_rows_are_rare(monkeypatch):
    names = [f"e{i}" for i in range(400)]
    domain, embedding, is_known, rarity, _ = drifting()
    hidden = []

    def recorded(space, vectors, known, predictor, folds, **options):
        folds = list(folds)
        hidden.append([fold.hidden for fold in folds])
        return hide_and_impute(space, vectors, known, predictor, folds, **options)

    monkeypatch.setattr("vecfill.trust.prove.proof.hide_and_impute", recorded)
    base = vf.Embedding(names[:280], embedding[:280])
    result = vf.impute(dict(zip(names, domain, strict=True)), base)
    assert result.confidence.proof == "rarest"
    # What comes after is about rows that lack facts, or lie far away.
    random, block, *_ = hidden
    assert len(random) == 5
    assert len(block) == 1
    assert block[0].min() > 180
    assert result.confidence.actual.size == block[0].size
    assert result.heldout.cosine.size == block[0].size
    assert set(result.proof.scores) == {"random", "rarest"}
    assert "offset" in repr(result)
    assert result.to_dict()["offset"]["learnt_on"] == "known rows"
    told = result.explain("e390")
    assert told.offset_share > 0
    assert "offset of rare entities" in str(told)
    assert any("offset of rare entities" in note for note in result.notes)
    assert is_known.sum() == len(result.known)
    assert rarity.basis == "order"


def test_counts_say_how_rare_unknown_entities_are():
    names = [f"e{i}" for i in range(400)]
    domain, embedding, _, _, every = drifting()
    order = np.random.default_rng(0).permutation(280)
    base = vf.Embedding([names[i] for i in order], embedding[order])
    table = dict(zip(names, domain, strict=True))
    counts = {name: float(np.exp(12 - rare)) for name, rare in zip(names, every, strict=True)}
    result = vf.impute(table, base, counts=counts)
    assert result.decision.rule.uses_own
    np.testing.assert_allclose(
        result.model.offsets.assumed, -np.log([counts[name] for name in result.embedding.words])
    )
    assert vf.impute(table, base).decision.rule is None
    with pytest.raises(vf.InputError, match="counts name 0 of the 280 known"):
        vf.impute(table, base, counts={"nobody": 3})
    with pytest.raises(vf.InputError, match="count of 'e1' is -2"):
        vf.impute(table, base, counts={"e1": -2})


def test_counts_come_from_a_column_or_a_file(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(30, 2)), columns=["x", "y"])
    table.insert(0, "name", [f"e{i}" for i in range(30)])
    table["seen"] = np.arange(30) + 1
    base = vf.Embedding([f"e{i}" for i in range(20)], rng.normal(size=(20, 3)))
    by_column = vf.impute(table, base, method="paper", counts="seen")
    assert by_column.domain.columns == ("x", "y")
    (tmp_path / "counts.csv").write_text(
        "entity,count\n" + "".join(f"e{i},{i + 1}\n" for i in range(30))
    )
    plain = table.drop(columns="seen")
    by_file = vf.impute(plain, base, method="paper", counts=tmp_path / "counts.csv")
    for found in (by_column, by_file):
        np.testing.assert_allclose(found.alignment.rarity.values, -np.log(np.arange(30) + 1.0))
    with pytest.raises(vf.InputError, match="neither a file nor a column"):
        vf.impute(table, base, method="paper", counts="sene")


def test_an_arbitrary_order_is_not_taken_for_frequency():
    rng = np.random.default_rng(0)
    order = np.log(np.arange(500) + 1.0)
    assert not any(moves_with(order, rng.normal(size=(500, 20))) for _ in range(20))


def test_bins_cover_every_rank_once_and_samples_add_up():
    bins = list(rank_bins(5000))
    assert bins[0][0] == 0
    assert all(one[1] == other[0] for one, other in itertools.pairwise(bins))
    vectors = np.random.default_rng(0).normal(size=(5000, 3))
    whole, parts = RankSample(), RankSample()
    for sample, step in ((whole, 5000), (parts, 700)):
        for first in range(0, 5000, step):
            batch = vectors[first : first + step]
            places = sample.places(first_row=first, n_rows=len(batch))
            sample.add(first_row=first, places=places, vectors=batch[places])
    found, again = (each.means(n_words=5000) for each in (whole, parts))
    np.testing.assert_allclose(found.means, again.means)
    np.testing.assert_allclose(found.means[0], vectors[:200].mean(axis=0))
    np.testing.assert_allclose(found.spreads, again.spreads)
    np.testing.assert_allclose(found.spreads[0], np.sqrt(vectors[:200].var(axis=0).sum()))
    assert (np.diff(found.rarity) > 0).all()


def test_a_parabola_is_not_followed_far():
    rarity = Rarity(np.r_[np.linspace(0, 3, 50), np.nan], "order")
    rules = rules_for(rarity, np.arange(51) < 50)
    assert max(rule.beyond for rule in rules if rule.degree == 2) == 0.5
    assert max(rule.beyond for rule in rules if rule.degree == 1) == 3.0


def test_the_odds_stay_open_if_the_domain_says_nothing_about_rarity():
    rng = np.random.default_rng(0)
    domain, rarity = rng.normal(size=(200, 3)), np.r_[np.linspace(0, 5, 150), np.full(50, np.nan)]
    is_known = np.arange(200) < 150
    block = rarest_block(is_known, rarity, share=1 / 3)
    assert 0.2 < odds_of_rare(Space(domain), PAPER, rarity, is_known, block) < RARE


def test_frequent_entities_with_many_neighbors_do_not_make_unknown_rows_look_frequent():
    # Frequent rows lie in the middle and are in every mix, so all rows are imputed to be frequent.
    rng = np.random.default_rng(0)
    n_rows = 300
    scale = np.linspace(0.3, 3.0, n_rows)
    domain, every = rng.normal(size=(n_rows, 6)) * scale[:, None], np.log(np.arange(n_rows) + 1.0)
    is_known = rng.random(n_rows) < 0.7
    rarity = np.where(is_known, every, np.nan)
    block = rarest_block(is_known, rarity, share=1 / 3)
    given = KnownRows(rarity[:, None], is_known)
    imputed = PAPER.predict(Space(domain), given).vectors
    assert imputed.mean() < given.known.mean() - 0.1
    assert odds_of_rare(Space(domain), PAPER, rarity, is_known, block) < RARE


def region(**changes):
    curve = Curve(np.array([0.0, 4.0]), np.array([[0.0, 0.0], [4.0, 0.0]]), np.array([2.0, 1.0]))
    same = {"middle": np.zeros(2), "offset": np.array([4.0, 0.0]), "length": 1.0}
    return Region(
        **{"curve": curve, **same, "hidden": (0.0, 2.0), "unknown": (2.0, 4.0), **changes}
    )


def test_hidden_rows_are_carried_to_the_rarity_of_unknown_ones():
    from vecfill.trust.prove.hidden import _carried

    # By hand: from rarity 0 to 2 the mean moves from (0, 0) to (2, 0), the spread from 2 to 1.5.
    rest, truth = np.array([[0.0, 3.0]]), np.array([[0.0, 4.0]])
    net, cosine = _carried(rest, truth, np.zeros(1), region())
    assert cosine.item() == pytest.approx(
        np.array([4.0, 1.0]) @ np.array([2.0, 3.0]) / np.sqrt(17.0 * 13.0)
    )
    # From the offset, (4, 0), the step is (0, 1) and the truth lies at (-2, 3).
    assert net.item() == pytest.approx(3.0 / np.sqrt(13.0))
    # Steps that start elsewhere have another cosine, net and plain.
    moved = _carried(rest, truth, np.zeros(1), region(middle=np.array([1.0, 0.0])))
    assert moved[0].item() == pytest.approx(3.0 / np.sqrt(18.0))
    assert moved[1].item() != cosine.item()


def test_confidence_is_learnt_where_unknown_rows_lie_and_scores_stay_those_of_hidden_rows():
    domain, embedding, is_known, rarity, every = drifting()
    block = rarest_block(is_known, rarity.values, share=1 / 3)
    knots = np.linspace(0, 12, 5)
    spreads = np.linspace(5.0, 1.0, 5)
    curve = Curve(knots, np.zeros((5, 12)), spreads)
    place = Region(curve, np.zeros(12), np.ones(12), 1.0, (0.0, 9.0), (9.0, 12.0))
    asked = (Space(domain), embedding, embedding[is_known], PAPER, [block])
    options = {"rule": OffsetRule(0.5, curve=curve), "rarity": rarity.values}
    carried = hide_and_impute(*asked, **options, region=place)
    plain = hide_and_impute(*asked, **options)
    assert plain.moved is None
    assert (carried.scores.centred_cosine == plain.scores.centred_cosine).all()
    assert not np.allclose(carried.carried.net, plain.net)
    learnt = learn_confidence(carried, carried.signals)
    assert (learnt.actual == carried.carried.net).all()
    assert every.size == is_known.size


def test_a_file_with_its_rarest_words_first_is_not_read_the_wrong_way_round():
    domain, embedding, *_ = drifting()
    names = [f"e{i:0{1 + i // 40}d}" for i in range(400)]
    table = dict(zip(names, domain, strict=True))
    right = vf.impute(table, vf.Embedding(names[:280], embedding[:280]), method="paper")
    assert right.to_dict()["rarity"] == "order"
    turned = vf.Embedding(names[:280][::-1], embedding[:280][::-1])
    wrong = vf.impute(table, turned, method="paper")
    assert wrong.to_dict()["rarity"] is None
    assert any("as if the rarest words came first" in note for note in wrong.notes)


def test_the_offset_of_the_vocabulary_is_constant_beyond_its_end():
    curve = Curve(np.array([0.0, 1.0]), np.array([[0.0], [1.0]]))
    rule = OffsetRule(beyond=50.0, curve=curve)
    given = KnownRows(np.array([[0.0], [np.nan]]), np.array([True, False]))
    assert rule.offsets(np.array([0.5, np.nan]), given).unknown.tolist() == [[1.0]]


def test_kinds_about_which_nothing_is_proved_are_named_and_get_a_cautious_bound():
    names = [f"town{i}" for i in range(150)] + [f"New Town {i}" for i in range(30)]
    rng = np.random.default_rng(0)
    domain = rng.normal(size=(180, 3))
    embedding = np.sin(domain @ rng.normal(size=(3, 8)))
    result = vf.impute(
        dict(zip(names, domain, strict=True)), vf.Embedding(names[:120], embedding[:120])
    )
    several, one = sorted(result.strata, key=lambda each: each.n_known)
    assert (several.n_unknown, several.n_known, several.is_proved) == (30, 0, False)
    assert (one.n_unknown, one.n_known, one.is_proved) == (30, 120, True)
    assert any(
        "Cannot be proved: 30 unknown entities have names of several" in n for n in result.notes
    )
    is_several = np.array([kind_of_name(word) == several.name for word in result.embedding.words])
    floor = np.quantile(result.confidence.actual, 0.1)
    assert result.confidence.lower_bound[is_several].max() <= floor + 0.02
    # One word proves its kind, so good signals raise its bounds, as far as a bound can go.
    assert floor < result.confidence.lower_bound[~is_several].max() <= 1.0
    assert result.to_dict()["proof"]["strata"][0]["is_proved"] in (True, False)


def test_a_cautious_bound_is_never_higher():
    from vecfill.trust.prove.confidence import Confidence

    rng = np.random.default_rng(0)
    values = rng.random(10)
    found = Confidence(values, values - 0.1, values, 0.9, values, values, values > 0)
    again = found.cautious(np.arange(10) < 5)
    assert (again.lower_bound <= found.lower_bound).all()
    assert (again.lower_bound[5:] == found.lower_bound[5:]).all()


def test_evaluate_can_hide_the_rarest():
    names = [f"e{i}" for i in range(400)]
    domain, embedding, *_ = drifting()
    table, base = dict(zip(names, domain, strict=True)), vf.Embedding(names[:280], embedding[:280])
    report = vf.evaluate(table, base, hide="rarest")
    assert (report.hide, report.folds) == ("rarest", 2)
    assert report.scores["auto"].cosine.size == round(0.2 * 280) + round(0.4 * 280)
    assert report.methods["auto"]["centred_cosine"] > report.methods["ridge"]["centred_cosine"]
    assert "rare hidden entit" in report.verdict
    order = np.random.default_rng(0).permutation(280)
    mixed = vf.Embedding([names[i] for i in order], embedding[order])
    with pytest.raises(vf.InputError, match=r"Pass counts=\."):
        vf.evaluate(table, mixed, hide="rarest")


def test_the_goal_decides_by_what_methods_are_chosen():
    from vecfill.trust.choose.scores import RowScores
    from vecfill.trust.choose.trials import standing

    def scored(cosine, rank, looks=(0.0, 0.0)):
        measures = (cosine, rank, rank, cosine, 1.0, rank, *looks)
        return RowScores(*(np.full(50, value) for value in measures))

    rows = np.arange(50)
    near, ranked, level = scored(0.6, 0.1), scored(0.5, 0.3), scored(0.58, 0.2)
    assert standing([near, ranked, level], rows, "cosine").argmax() == 0
    assert standing([near, ranked, level], rows, "rank").argmax() == 1
    # The best ranks are too far from the best cosine, and those within 5 % of it are not.
    assert standing([near, ranked, level], rows, "balanced").argmax() == 2
    # Nobody can use vectors that crowd or share their nearest words, whatever their scores.
    for looks in ((0.5, 0.0), (0.0, 0.3)):
        for goal in ("cosine", "rank", "balanced"):
            assert standing([scored(0.9, 0.9, looks), level], rows, goal).argmax() == 1
            assert standing([scored(0.9, 0.9, looks)], rows, goal).argmax() == 0


def test_entities_below_the_asked_bound_are_left_out():
    rng = np.random.default_rng(0)
    places = {f"town{i}": rng.normal(size=3) for i in range(120)}
    known = {name: np.sin(place @ np.ones((3, 6))) + 0.3 * rng.normal(size=6)
             for name, place in list(places.items())[:90]}  # fmt: skip
    every = vf.impute(places, known)
    limit = float(np.median(every.confidence.lower_bound))
    some = vf.impute(places, known, min_bound=limit)
    assert 0 < len(some.embedding) < len(every.embedding)
    assert (some.confidence.lower_bound >= limit).all()
    curve = every.confidence.curve()
    assert curve[-1]["share"] == 1.0
    assert curve[0]["threshold"] >= curve[-1]["threshold"]
    assert curve[-1]["centred_cosine"] == pytest.approx(every.confidence.actual.mean())


def drifting_files(n_known: int = 280):
    names = [f"e{i}" for i in range(400)]
    domain, embedding, *_ = drifting()
    table = dict(zip(names, domain, strict=True))
    return table, vf.Embedding(names[:n_known], embedding[:n_known])


def test_the_decision_of_an_evaluation_imputes_what_auto_imputes():
    table, base = drifting_files()
    report = vf.evaluate(table, base, folds=3)
    assert report.decision.rule is not None
    again = vf.impute(table, base, method=report.decision)
    result = vf.impute(table, base)
    assert again.embedding.vectors.tobytes() == result.embedding.vectors.tobytes()
    assert again.confidence.lower_bound.tobytes() == result.confidence.lower_bound.tobytes()
    assert again.decision.on_block == result.decision.on_block


def test_rows_hidden_at_random_are_not_imputed_as_rare_ones():
    table, base = drifting_files()
    rng = np.random.default_rng(0)
    order = rng.permutation(280)
    # The same vectors in an order that means nothing: no rarity, so no offset.
    mixed = vf.Embedding([base.words[i] for i in order], np.asarray(base.vectors)[order])
    told, untold = (vf.evaluate(table, each, folds=3) for each in (base, mixed))
    assert (told.decision.rule is not None, untold.decision.rule) == (True, None)
    assert told.methods["auto"] == pytest.approx(untold.methods["auto"], abs=0.03)


def test_suspicion_does_not_fall_on_entities_for_being_frequent():
    table, base = drifting_files()
    result = vf.impute(table, base)
    assert result.decision.rule is not None
    without_offset = vf.impute(table, base, method=result.predictor)
    # Rows hidden at random are as rare as what they are made of, so nearly nothing is moved.
    named = {suspicion.entity for suspicion in result.suspicious}
    others = {suspicion.entity for suspicion in without_offset.suspicious}
    assert len(named & others) >= 0.7 * len(others)
    assert np.mean([int(name[1:]) < 140 for name in named]) < 0.8


def test_the_offset_alone_is_told_apart_from_what_tells_entities_apart():
    table, base = drifting_files()
    result = vf.impute(table, base)
    told = result.to_dict()["offset"]["on_hidden_rarest"]
    assert told["none"]["centred_cosine"] < told["offset_alone"]["centred_cosine"]
    assert told["offset_alone"]["hits_at_10"] < told["offset"]["hits_at_10"]
    assert any("The offset alone, the same vector for all, has" in note for note in result.notes)


def test_a_kind_that_comes_back_worse_has_its_own_expectation_and_bound():
    names = tuple([f"town{i}" for i in range(200)] + [f"New Town {i}" for i in range(100)])
    rng = np.random.default_rng(0)
    domain = rng.normal(size=(300, 3))
    embedding = np.sin(domain @ rng.normal(size=(3, 8)))
    # Names of several words are known by vectors that have nothing to do with the domain.
    embedding[200:] = rng.normal(size=(100, 8))
    base = vf.Embedding([*names[:150], *names[200:260]], np.r_[embedding[:150], embedding[200:260]])
    result = vf.impute(dict(zip(names, domain, strict=True)), base)
    several = next(each for each in result.strata if "several" in each.name)
    assert several.is_proved
    # Learnt with all kinds together, its bounds would hold for half of them.
    assert not several.falls_short_of(0.9)
    words = np.array(result.embedding.words)
    is_several = np.array([kind_of_name(word) == several.name for word in words])
    assert result.confidence.values[is_several].mean() < several.centred_cosine + 0.15
    assert result.confidence.values[~is_several].mean() > 0.5
    bounds = {
        kind: [
            bound
            for word, bound in zip(
                result.embedding.words, result.confidence.lower_bound, strict=True
            )
            if kind_of_name(word) == kind
        ]
        for kind in ("names of one word", "names of several words")
    }
    assert max(bounds["names of several words"]) < min(0.0, max(bounds["names of one word"]))


def test_bounds_hold_for_both_proofs_while_it_is_open_whether_unknown_rows_are_rare(monkeypatch):
    from vecfill.trust.choose import decision as module

    table, base = drifting_files()
    sure = vf.impute(table, base)
    assert sure.decision.is_sure
    monkeypatch.setattr(module, "SURE", 1e300)
    unsure = vf.impute(table, base)
    assert not unsure.decision.is_sure
    assert (unsure.confidence.lower_bound <= sure.confidence.lower_bound).all()
    assert (unsure.confidence.lower_bound < sure.confidence.lower_bound).any()
    assert (unsure.confidence.values == sure.confidence.values).all()


def test_an_offset_that_gains_cosine_and_loses_ranks_is_not_taken():
    rng = np.random.default_rng(0)

    def scores(cosine, rank):
        noise = 0.01 * rng.normal(size=(2, 100))
        return RowScores(cosine + noise[0], rank + noise[1], *[np.zeros(100)] * 6)

    plain = scores(0.3, 0.3)
    assert is_clearly_better(scores(0.5, 0.3), plain)
    assert not is_clearly_better(scores(0.5, 0.2), plain)


def test_sources_are_weighed_on_rare_rows_where_the_unknown_ones_are_rare(monkeypatch):
    domain, embedding, is_known, rarity, _ = drifting(200, 140)
    every = np.arange(200)
    halves = {"left": domain[:, :5], "right": domain[:, 5:]}
    space = SourcesSpace([[Member(name, Space(rows), every, 200)] for name, rows in halves.items()])
    folds_weighed = []

    def recorded(space, reports, vectors, is_known, folds, *rest):
        folds_weighed.append([fold.hidden for fold in folds])
        choice = weighed(space, reports, vectors, is_known, folds, *rest)
        return replace(choice, p_value=0.25)

    monkeypatch.setattr(decision_module, "weighed", recorded)
    decision = decide(space, embedding, is_known, rarity=rarity, offset="off", candidates="classic")
    assert decision.proof == "rarest"
    (folds,) = folds_weighed
    block = rarest_block(is_known, rarity.values, share=1 / 3)
    np.testing.assert_array_equal(folds, [block.hidden])
    assert decision.choice.p_value == 0.25
    assert decision.predictor == decision.choice.predictor


def test_below_sixty_known_rows_a_note_says_that_rarity_was_left_out():
    table, base = drifting_files(59)
    few = vf.impute(table, base, method="paper", force=True)
    assert few.decision.too_few_for_rarity == 59
    assert any("only 59 known entities tell" in note for note in few.notes)
    table, base = drifting_files(60)
    enough = vf.impute(table, base, method="paper", force=True)
    assert not any("Rarity was not taken into account" in note for note in enough.notes)
