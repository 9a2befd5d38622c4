"""Several sources: which of them help, how they are weighed, and what is said about them."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import vecfill as vf
from vecfill.inputs.sources import are_sources
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER
from vecfill.model.sources import Member, SourcesSpace
from vecfill.model.space import Space
from vecfill.model.wanted import Unknown
from vecfill.trust.choose import fusion as fusion_module
from vecfill.trust.choose.choice import FewerDims, choose
from vecfill.trust.choose.folds import hidden_folds, rarest_block
from vecfill.trust.choose.fusion import _helpful, choose_sources, for_rare, weighed
from vecfill.trust.choose.scores import RowScores
from vecfill.trust.choose.unseen import OutOfFold, importance_like, out_of_fold

N = 300
NAMES = [f"e{row}" for row in range(N)]


def made(seed: int = 0):
    """Two halves of what makes the vectors, each missing for some rows, and a source of noise."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(N, 6))
    embedding = np.sin(latent @ rng.normal(size=(6, 16)))
    rows = {"left": np.arange(0, 250), "right": np.arange(50, N), "noise": np.arange(N)}
    parts = {"left": latent[:, :3], "right": latent[:, 3:], "noise": rng.normal(size=(N, 3))}
    return rows, parts, embedding


def as_user(rows, parts):
    return {
        name: {NAMES[row]: parts[name][row] for row in rows[name]} for name in ("left", "right")
    }


def space_of(rows, parts) -> SourcesSpace:
    return SourcesSpace(
        [
            [Member(name, Space(parts[name][rows[name]]), rows[name], N)]
            for name in ("left", "right", "noise")
        ]
    )


def centred_cosines(found, truth, centre):
    found, truth = found - centre, truth - centre
    return (found * truth).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(truth, axis=1)


@pytest.fixture(scope="module")
def result():
    rows, parts, embedding = made()
    sources = {
        name: {NAMES[row]: parts[name][row] for row in rows[name]}
        for name in ("left", "right", "noise")
    }
    base = vf.Embedding(NAMES[::2], embedding[::2])
    return vf.impute(sources, base), base, embedding


def test_fused_sources_beat_each_of_them(result):
    fused, base, embedding = result
    rows, parts, _ = made()
    centre = embedding[::2].mean(axis=0)

    for source in as_user(rows, parts).values():
        alone = vf.impute(source, base)
        shared = [word for word in alone.embedding.words if word in fused.embedding.words]
        both = [
            centred_cosines(
                run.embedding[shared], embedding[[int(word[1:]) for word in shared]], centre
            ).mean()
            for run in (fused, alone)
        ]
        assert both[0] > both[1] + 0.03


def test_every_entity_of_any_source_is_imputed_and_the_known_ones_stay(result):
    fused, base, _ = result
    assert set(fused.embedding.words) == set(NAMES[1::2])
    assert fused.known.vectors.tobytes() == np.asarray(base[list(fused.known.words)]).tobytes()


def test_a_source_of_noise_is_dropped_and_reported(result):
    fused, _, _ = result
    left, right, noise = fused.sources
    assert (left.is_kept, right.is_kept, noise.is_kept) == (True, True, False)
    assert "no signal" in noise.why
    assert (left.n_known, left.n_unknown, noise.weight) == (125, 125, 0.0)
    assert left.weight > 0.5
    assert any("Source 'noise' was dropped" in note for note in fused.notes)
    told = json.loads(json.dumps(fused.to_dict()))["sources"]
    assert [each["name"] for each in told] == ["left", "right", "noise"]
    assert "noise: describes" in repr(fused)


def test_shares_make_the_vector_and_sources_share_it(result):
    fused, _, _ = result
    told = fused.explain("e151", n=3)
    assert set(told.source_shares) == {"left", "right"}
    assert sum(told.source_shares.values()) == pytest.approx(1.0)
    only_left = fused.explain("e1", n=3)
    assert only_left.source_shares == {"left": pytest.approx(1.0)}
    shares = fused.contributions(range(5))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, atol=1e-9)


def test_shares_reproduce_vectors_where_no_source_has_a_trend():
    rows, parts, embedding = made()
    space = space_of(rows, parts)
    from vecfill.model.predictors.fused import Fused

    patterns = sorted({tuple(row) for row in space.presence.tolist()})
    weights = tuple((each, (0.4 * each[0], 0.4 * each[1], 0.0)) for each in patterns)
    fused = Fused(space.names, (0, 0, 0), (PAPER, PAPER, None), weights)
    given = KnownRows(embedding, np.arange(N) % 2 == 0)
    found = fused.predict(space, given)
    shares = found.composition.mix.shares(np.arange(given.unknown.size))
    np.testing.assert_allclose(shares @ given.known, found.vectors, atol=1e-8)
    some = fused.predict(space, given, Unknown(np.array([3, 70, 149])))
    np.testing.assert_allclose(some.vectors, found.vectors[[3, 70, 149]], atol=1e-9)


def test_out_of_fold_predictions_have_not_seen_what_they_predict():
    rng = np.random.default_rng(0)
    embedding = rng.normal(size=(N, 200))
    parts = {"left": rng.normal(size=(N, 3))}
    space = SourcesSpace([[Member("left", Space(parts["left"]), np.arange(N), N)]])

    is_known = np.ones(N, bool)
    folds = list(hidden_folds(is_known, n_folds=5, seed=0))
    unseen = out_of_fold(space, [PAPER], embedding, is_known, folds, FewerDims(None))
    cosine = (unseen.predicted[0] * unseen.truth).sum(1)
    cosine /= np.linalg.norm(unseen.predicted[0], axis=1) * np.linalg.norm(unseen.truth, axis=1)
    assert abs(cosine.mean()) < 0.03


def test_weights_of_a_hidden_row_are_learnt_without_its_group():
    rows, parts, embedding = made()
    space = space_of(rows, parts)

    is_known = np.ones(N, bool)
    folds = list(hidden_folds(is_known, n_folds=5, seed=0))
    unseen = out_of_fold(space, [PAPER, PAPER, None], embedding, is_known, folds, FewerDims(None))
    before = unseen.fused([0, 1])
    # Vectors of one group turned around: weights of that group stay, and so do its predictions.
    unseen.truth[unseen.group == 0] *= -1
    after = unseen.fused([0, 1])
    np.testing.assert_array_equal(before[unseen.group == 0], after[unseen.group == 0])
    assert not np.array_equal(before[unseen.group == 1], after[unseen.group == 1])


def test_kinds_count_as_much_as_among_the_unknown_rows():
    kinds = np.array(["one"] * 200 + ["several"] * 40 + ["other"] * 5 + ["several"] * 100)
    is_known = np.arange(kinds.size) < 245
    hidden = np.flatnonzero(is_known)
    weights = importance_like(kinds, is_known, hidden)
    assert weights.mean() == pytest.approx(1.0)
    assert weights[kinds[hidden] == "one"].sum() == 0.0
    # Few rows of a kind are never raised, or they would decide about all.
    assert importance_like(kinds[::-1], is_known[::-1], np.flatnonzero(is_known[::-1])).max() < 7


def test_hidden_rows_like_the_unknown_ones_decide_about_weights():
    """One source tells rows of one kind, the other those of another; the unknown are all of one."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(N, 4))
    embedding = latent @ rng.normal(size=(4, 10))
    is_several = np.arange(N) % 2 == 0
    noise = rng.normal(size=(N, 4))
    parts = {
        "spelling": np.where(is_several[:, None], noise, latent),
        "parts": np.where(is_several[:, None], latent, noise),
    }
    every = np.arange(N)
    variants = [[Member(name, Space(rows), every, N)] for name, rows in parts.items()]
    is_known = (every < 200) | ~is_several
    kinds = np.where(is_several, "names of several words", "names of one word").tolist()
    spaces = SourcesSpace(variants), SourcesSpace(variants, kinds=kinds)
    blind, seeing = (
        choose_sources(space, embedding, is_known, candidates="classic") for space in spaces
    )
    weight = [{each.name: each.weight for each in choice.sources} for choice in (blind, seeing)]
    assert weight[0]["spelling"] > 0.3
    assert weight[1]["spelling"] < 0.1
    assert weight[1]["parts"] > weight[0]["parts"]


def test_strata_tell_entities_apart_by_the_sources_that_describe_them(result):
    fused, _, _ = result
    told = {each.name: each for each in fused.strata}
    assert told["a description by left only"].n_unknown == 25
    assert told["a description by right only"].n_known == 25
    both = told["a description by left + right"]
    assert (both.n_unknown, both.n_known) == (100, 100)
    assert both.is_proved
    assert both.centred_cosine > told["a description by left only"].centred_cosine
    assert any("have a description by left only" in note for note in fused.notes)


def test_the_best_variant_of_a_source_is_taken():
    _, parts, embedding = made()
    good, bad = parts["left"], parts["noise"]
    every = np.arange(N)
    space = SourcesSpace(
        [[Member("text", Space(bad), every, N), Member("text", Space(good), every, N)]]
    )
    choice = choose_sources(space, embedding, every < 200)
    assert choice.sources[0].variant == 1
    assert choice.predictor.variants == (1,)


def test_what_counts_as_several_sources():
    table = {"iron": [1.0, 2.0]}
    assert are_sources({"facts": table, "more": table})
    assert are_sources([vf.edges([("a", "b"), ("b", "c")])])
    assert not are_sources(table)
    assert not are_sources([("a", "b"), ("b", "c")])
    assert not are_sources("table.csv")


def test_a_source_that_few_known_rows_have_is_used_where_few_rows_are_known():
    """All but five of 36 known rows have the better source; it used to be dropped."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(60, 3))
    embedding = latent @ rng.normal(size=(3, 8)) + 0.1 * rng.normal(size=(60, 8))
    every, some = np.arange(60), np.arange(5, 60)
    variants = [
        [Member("left", Space(latent[:, :1]), every, 60)],
        [Member("right", Space(latent[some, 1:]), some, 60)],
    ]
    choice = choose_sources(SourcesSpace(variants), embedding, every < 36, candidates="classic")
    assert choice.sources[1].is_kept
    assert choice.sources[1].share > 0.5


def test_together_sources_have_no_signal_if_none_has_one_alone():
    rows, parts, embedding = made()
    space, is_known = space_of(rows, parts), np.arange(len(NAMES)) % 2 == 0
    choice = choose_sources(space, embedding, is_known, candidates="classic")
    assert choice.has_signal
    silent = [replace(each, has_signal=False) for each in choice.sources]
    folds = list(hidden_folds(is_known, n_folds=5, seed=0))
    found = weighed(space, silent, embedding, is_known, folds, "balanced")
    assert not found.has_signal
    assert any(each.is_kept for each in found.sources)


def test_rare_rows_weigh_sources_for_patterns_that_are_mostly_rare_and_no_others():
    """The second source describes frequent rows and is noise for rare ones."""
    rng = np.random.default_rng(3)
    latent = rng.normal(size=(N, 6))
    embedding = np.sin(latent @ rng.normal(size=(6, 16)))
    is_known, rarity = np.arange(N) % 4 > 0, np.arange(N, dtype=np.float64)
    second = latent[:, 3:].copy()
    second[200:] = rng.normal(size=(100, 3))
    spared = np.arange(0, 200, 4)
    rows = {"left": np.arange(N), "right": np.arange(N), "third": spared}
    # A guess that no hidden row can judge stays, and what describes a row decides by its pattern.
    parts = {"left": latent[:, :3], "right": second, "third": 0.1 * rng.normal(size=(N, 16))}
    space = SourcesSpace(
        [
            [Member(name, Space(parts[name][rows[name]]), rows[name], N, name == "third")]
            for name in rows
        ]
    )
    usual = choose_sources(space, embedding, is_known, candidates="classic")
    block = rarest_block(is_known, rarity, share=1 / 3)
    rare = weighed(space, usual.sources, embedding, is_known, [block], "balanced")
    may_be_rare = ~is_known & (rarity >= 200)
    found = for_rare(space, usual, rare, is_known, may_be_rare)
    plain, of_spared = (True, True, False), (True, True, True)
    assert found.predictor.weights_of_pattern(plain)[1] < 0.2
    assert usual.predictor.weights_of_pattern(plain)[1] > 0.5
    same = usual.predictor.weights_of_pattern(of_spared)
    assert (found.predictor.weights_of_pattern(of_spared) == same).all()
    told = [each.weight for each in found.sources]
    described = space.presence[~is_known]
    weights = np.where(described, found.predictor.weights_of(described), 0.0)
    assert told == pytest.approx((weights.sum(axis=0) / described.sum(axis=0)).tolist())
    kept = [each.is_kept for each in found.sources]
    assert kept == [each is not None for each in found.predictor.members]
    # Where all unknown rows may be rare, only rare rows are asked.
    whole = for_rare(space, usual, rare, is_known, ~is_known)
    assert dict(whole.predictor.weights) == dict(rare.predictor.weights)
    assert whole.honest is rare.honest


def test_rows_that_only_a_dropped_source_tells_apart_have_the_same_weights():
    """New rows are not read in it, so the weights of a row must not depend on it."""
    rng = np.random.default_rng(0)
    every, latent = np.arange(N), rng.normal(size=(N, 4))
    embedding = latent @ rng.normal(size=(4, 10))
    rows = {"left": every, "right": every[::2], "noise": every[::3]}
    parts = {"left": latent[:, :2], "right": latent[:, 2:], "noise": rng.normal(size=(N, 3))}
    kinds = np.where(every % 3 == 0, "names of several words", "names of one word").tolist()
    variants = [[Member(name, Space(parts[name][rows[name]]), rows[name], N)] for name in rows]
    space = SourcesSpace(variants, kinds=kinds)
    choice = choose_sources(space, embedding, every < 200, candidates="classic")
    assert [report.is_kept for report in choice.sources] == [True, True, False]
    with_noise, without = space.presence, space.presence & [True, True, False]
    fused = choice.predictor
    np.testing.assert_array_equal(fused.weights_of(with_noise), fused.weights_of(without))
    # So it is in files of earlier versions, but for rows of the fit, which keep their weights.
    before = replace(fused, weights=(((True, False, True), (1.0, 0.0, 0.0)), *fused.weights))
    assert before.weights_of_pattern((True, False, True)).tolist() == [1.0, 0.0, 0.0]
    of_left = dict(fused.weights)[True, False, False]
    assert before.weights_of_pattern((True, False, False)).tolist() == list(of_left)


def test_sources_without_signal_are_refused_unless_forced():
    rng = np.random.default_rng(0)
    noise = {name: {each: rng.normal(size=3) for each in NAMES} for name in ("left", "right")}
    base = vf.Embedding(NAMES[::2], rng.normal(size=(len(NAMES[::2]), 6)))
    with pytest.raises(vf.NoSignalError, match=r"no signal.*force=True"):
        vf.impute(noise, base)
    assert list(vf.impute(noise, base, force=True).embedding.words) == NAMES[1::2]


def test_one_predictor_is_refused_for_several_sources(result):
    rows, parts, embedding = made()
    base = vf.Embedding(NAMES[::2], embedding[::2])
    with pytest.raises(
        vf.OptionError, match="is for one table, and the sources here are: left, right"
    ):
        vf.impute(as_user(rows, parts), base, method="paper")
    with pytest.raises(vf.OptionError, match="read each with its own options"):
        vf.impute(as_user(rows, parts), base, standardize=True)


def test_sources_without_known_entities_are_refused_by_name():
    rows, parts, embedding = made()
    base = vf.Embedding(NAMES[:4], embedding[:4])
    with pytest.raises(vf.InputError, match="left: it describes only 4 known"):
        vf.impute(as_user(rows, parts), base)


def test_entities_that_no_kept_source_describes_are_left_out_and_counted():
    rows, parts, embedding = made()
    sources = as_user(rows, parts)
    rng = np.random.default_rng(1)
    sources["noise"] = {f"x{row}": rng.normal(size=3) for row in range(40)}
    sources["noise"] |= {NAMES[row]: rng.normal(size=3) for row in range(100)}
    base = vf.Embedding(NAMES[::2], embedding[::2])
    fused = vf.impute(sources, base)
    assert set(fused.abstained) == {f"x{row}" for row in range(40)}
    assert any("40 entities are described only by sources" in note for note in fused.notes)
    assert len(fused.confidence.values) == len(fused.embedding)


def test_one_table_without_names_is_what_it_was_before_there_were_sources():
    """The paper's candidates on one table: chosen, fitted and scored without any fusion."""
    from vecfill.model.known import KnownRows
    from vecfill.trust.choose.choice import choose

    rows, parts, embedding = made()
    table = {NAMES[row]: parts["left"][row] for row in rows["left"]}
    base = vf.Embedding(NAMES[:250:2], embedding[:250:2])
    result = vf.impute(table, base, names="off", candidates="classic")
    space, is_known = Space(parts["left"][:250]), np.arange(250) % 2 == 0
    choice = choose(space, embedding[:250], is_known, candidates="classic")
    found = choice.predictor.predict(space, KnownRows(embedding[:250], is_known))
    assert result.predictor == choice.predictor
    assert result.sources == ()
    mean = embedding[:250][is_known].mean(axis=0)
    again = mean + choice.stretch * (found.vectors - mean)
    np.testing.assert_allclose(result.embedding.vectors, again, rtol=1e-12)


def test_progress_of_an_encoder_is_told(tmp_path):
    rows, parts, embedding = made()
    texts = {NAMES[row]: f"about {row}" for row in range(N)}
    sources = {
        "left": {NAMES[row]: parts["left"][row] for row in rows["left"]},
        "text": vf.text(texts, encoder=lambda asked: [[len(t)] * 2 for t in asked], cache=tmp_path),
    }
    told = []
    vf.impute(
        sources,
        vf.Embedding(NAMES[::2], embedding[::2]),
        candidates="classic",
        progress=lambda what, done, total: told.append((what, done, total)),
    )
    assert ("Encoding texts", N, N) in told


def test_a_source_that_says_nothing_adds_nothing_however_much_it_weighs():
    """Its known rows have a mean of their own, which is no reason to move rows there."""
    from vecfill.model.predictors import Mean
    from vecfill.model.predictors.fused import Fused

    rows, parts, embedding = made()
    space = space_of(rows, parts)
    patterns = sorted({tuple(row) for row in space.presence.tolist()})
    weights = tuple((each, (7.0 * each[0], 0.0, 0.0)) for each in patterns)
    given = KnownRows(embedding, np.arange(N) % 2 == 0)
    fused = Fused(space.names, (0, 0, 0), (Mean(), None, None), weights)
    found = fused.predict(space, given).vectors
    np.testing.assert_allclose(found, np.tile(given.known.mean(axis=0), (150, 1)), atol=1e-9)


def test_a_text_alone_is_a_source():
    _, _, embedding = made()
    kinds = ["lamp light", "chair seat", "desk drawer", "rug wool"]
    texts = {NAMES[row]: f"{kinds[row % 4]} {kinds[row % 4][::-1]}" for row in range(120)}
    vectors = embedding[np.arange(120) % 4] + 0.1 * embedding[:120]
    base = vf.Embedding(NAMES[:80], vectors[:80])
    result = vf.impute(vf.text(texts), base, candidates="classic")
    assert [each.name for each in result.sources] == ["text"]
    assert result.sources[0].share == pytest.approx(1.0)
    assert len(result.embedding) == 40


def test_a_source_that_alone_describes_some_rows_is_kept_though_hidden_ones_do_without():
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(N, 4))
    embedding = latent @ rng.normal(size=(4, 10))
    blurred = latent + 1.5 * rng.normal(size=(N, 4))
    is_known = np.arange(N) < 200

    def kept(n_alone: int) -> list[bool]:
        # The clear source lacks the last unknown rows; the blurred one has them.
        clear = np.arange(N - n_alone)
        members = [
            [Member("clear", Space(latent[clear]), clear, N)],
            [Member("blurred", Space(blurred), np.arange(N), N)],
        ]
        choice = choose_sources(SourcesSpace(members), embedding, is_known, seed=0)
        return [report.is_kept for report in choice.sources]

    assert kept(n_alone=0) == [True, False]
    assert kept(n_alone=20) == [True, True]


def seen_by(predicted, truth, *, is_guess, is_present=None, importance=None) -> OutOfFold:
    """Return hidden rows as some sources predict them, in five groups."""
    n_rows = len(truth)
    return OutOfFold(
        np.stack(predicted),
        truth,
        np.ones((n_rows, len(predicted)), bool) if is_present is None else is_present,
        np.arange(n_rows) % 5,
        truth,
        np.arange(n_rows),
        np.ones(n_rows) if importance is None else importance,
        None,
        np.zeros(truth.shape[1]),
        np.array(is_guess),
    )


def test_few_rows_hardly_change_how_much_a_guess_counts_and_many_do():
    """The other source says all that is true: a guess adds nothing where it can be judged."""
    rng = np.random.default_rng(0)
    truth, guess = rng.normal(size=(2, 4000, 6))
    is_present = np.ones((4000, 2), bool)
    weights = []
    for n_guessed in (40, 4000):
        is_present[:, 1] = np.arange(4000) < n_guessed
        predicted = [truth, np.where(is_present[:, 1:], guess, 0.0)]
        unseen = seen_by(predicted, truth, is_guess=[False, True], is_present=is_present)
        weights.append(unseen.weights((True, True), [0, 1], np.arange(4000)))
    np.testing.assert_allclose([each[0] for each in weights], 1.0, atol=0.1)
    # As 100 rows that say 1 beside 1,040 that say 0, and beside 5,000.
    assert weights[0][1] == pytest.approx(100 / 1140, abs=0.03)
    assert weights[1][1] == pytest.approx(100 / 5100, abs=0.01)


def test_rows_without_a_guess_teach_how_much_the_other_source_counts():
    """It predicts forty rows with a guess twice too long, and a thousand others as they are."""
    rng = np.random.default_rng(0)
    truth, guess = rng.normal(size=(2, 1040, 6))
    is_guessed = np.arange(1040) < 40
    predicted = [
        truth * np.where(is_guessed, 2.0, 1.0)[:, None],
        np.where(is_guessed[:, None], guess, 0.0),
    ]
    is_present = np.column_stack([np.ones(1040, bool), is_guessed])
    unseen = seen_by(predicted, truth, is_guess=[False, True], is_present=is_present)
    weight, _ = unseen.weights((True, True), [0, 1], np.arange(1040))
    # Those forty alone would say 0.5. They count as 1,040, the others as 1,000.
    assert weight == pytest.approx((1040 * 2 + 1000) / (1040 * 4 + 1000), abs=0.02)


def test_a_few_rows_without_a_guess_do_not_decide_where_most_have_one():
    """The other source predicts the forty rows without a guess twice too long."""
    rng = np.random.default_rng(0)
    truth, guess = rng.normal(size=(2, 1040, 6))
    is_guessed = np.arange(1040) >= 40
    predicted = [
        truth * np.where(is_guessed, 1.0, 2.0)[:, None],
        np.where(is_guessed[:, None], guess, 0.0),
    ]
    is_present = np.column_stack([np.ones(1040, bool), is_guessed])
    unseen = seen_by(predicted, truth, is_guess=[False, True], is_present=is_present)
    weight, _ = unseen.weights((True, True), [0, 1], np.arange(1040))
    # Each counts once; the others count twice, as what they are and for being a thousand.
    assert weight == pytest.approx((2000 + 40 * 2) / (2000 + 40 * 4), abs=0.01)


def test_rows_of_other_kinds_keep_a_few_of_one_kind_from_deciding():
    """Forty rows of the kind that is asked for are predicted by half; the others as they are."""
    rng = np.random.default_rng(0)
    truth, noise = rng.normal(size=(2, 1000, 6))
    is_few = np.arange(1000) < 40
    predicted = [truth * np.where(is_few, 2.0, 1.0)[:, None], noise]
    unseen = seen_by(predicted, truth, is_guess=[False, False], importance=is_few * 1.0)
    (weight, _) = unseen.weights((True, True), [0, 1], np.arange(1000))
    # Alone they would say 0.5. Each counts twice, as what it is and as one of a thousand.
    assert weight == pytest.approx((2 * 40 * 2 + 960) / (2 * 40 * 4 + 960), abs=0.01)


def test_a_source_of_noise_is_mostly_dropped_and_one_that_helps_always_stays():
    """Of sources of nothing but noise, some seem to help hidden rows a little."""
    rng = np.random.default_rng(0)
    n_kept = {0.0: 0, 0.9: 0}
    for _ in range(20):
        truth, error, noise = rng.normal(size=(3, 150, 6))
        for share in n_kept:
            predicted = [truth + error, share * truth + noise]
            unseen = seen_by(predicted, truth, is_guess=[False, False])
            n_kept[share] += 1 in _helpful(unseen, [0, 1], np.ones((5, 2), bool), "balanced")
    assert n_kept[0.0] < 10
    assert n_kept[0.9] == 20


def test_what_all_hidden_rows_share_decides_nothing_about_weights():
    rows, parts, embedding = made()
    space, is_known = space_of(rows, parts), np.ones(N, bool)
    folds = list(hidden_folds(is_known, n_folds=5, seed=0))
    # Every prediction from one fold is moved by the mean of the others: that must not be left in.
    drifting = embedding + np.outer(np.linspace(0, 9, N), np.ones(16))
    unseen = out_of_fold(space, [PAPER, PAPER, None], drifting, is_known, folds, FewerDims(None))
    for number in range(3):
        is_present = unseen.is_present[:, number]
        np.testing.assert_allclose(
            unseen.predicted[number, is_present].sum(axis=0), np.zeros(16), atol=1e-8
        )


def test_a_source_without_which_rows_come_back_a_little_worse_is_kept():
    class Unseen:
        """Hidden rows that both sources together predict best."""

        is_guess = np.zeros(2, bool)

        def __init__(self, loss):
            self.loss = loss

        def can_be_judged(self, place):
            return True

        def like_unknown(self, sources):
            level = 0.5 if len(sources) == 2 else 0.5 - self.loss
            return RowScores(*[np.full(10, level)] * 8)

    everywhere = np.ones((5, 2), bool)
    assert _helpful(Unseen(0.01), [0, 1], everywhere, "balanced") == [0, 1]
    assert _helpful(Unseen(0.0), [0, 1], everywhere, "balanced") == [1]


def test_the_luckiest_of_many_sources_is_not_believed(monkeypatch):
    rows, parts, embedding = made()
    space, is_known = space_of(rows, parts), np.arange(len(NAMES)) % 2 == 0
    p_values = iter([0.9, 4e-4, 0.2])
    monkeypatch.setattr(
        fusion_module,
        "choose",
        lambda *given, **options: replace(choose(*given, **options), p_value=next(p_values)),
    )
    choice = choose_sources(space, embedding, is_known, candidates="classic")
    assert [report.has_signal for report in choice.sources] == [False, True, False]
    assert choice.p_value == pytest.approx(3 * 4e-4)
    assert not choice.has_signal


def test_a_source_that_can_be_read_in_two_ways_must_be_twice_as_unlikely(monkeypatch):
    rows, parts, embedding = made()
    is_known = np.arange(len(NAMES)) % 2 == 0
    left = [Member("left", Space(parts["left"][rows["left"]]), rows["left"], N)] * 2
    monkeypatch.setattr(
        fusion_module,
        "choose",
        lambda *given, **options: replace(choose(*given, **options), p_value=6e-4),
    )
    choice = choose_sources(SourcesSpace([left]), embedding, is_known, candidates="classic")
    assert not choice.sources[0].has_signal
    assert choice.p_value == pytest.approx(1.2e-3)
