"""Planted leaks: each is refused or reported by name, and honest sources are left alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from vecfill.inputs.later_rows import Facts
from vecfill.inputs.prepared import Domain, Source, joint
from vecfill.model.sources import space_of
from vecfill.model.space import Space
from vecfill.trust.choose import candidates
from vecfill.trust.choose.choice import choose
from vecfill.trust.choose.dependence import permutation_p_value
from vecfill.trust.choose.folds import hidden_folds, rarest_block
from vecfill.trust.choose.twins import twins_of
from vecfill.trust.prove.leaks import leaks_of

N_KNOWN, N_UNKNOWN, N_DIMS = 120, 60, 8
N_ROWS = N_KNOWN + N_UNKNOWN
IS_KNOWN = np.arange(N_ROWS) < N_KNOWN
NAMES = [f"item{row:03d}" for row in range(N_ROWS)]


def table_of(columns, names=NAMES):
    return pd.DataFrame(columns, index=pd.Index(names, name="name"))


def facts_and_vectors(seed=0):
    """Three honest facts, and vectors of which they say most."""
    rng = np.random.default_rng(seed)
    facts = rng.normal(size=(N_ROWS, 3))
    vectors = facts @ rng.normal(size=(3, N_DIMS)) + 0.7 * rng.normal(size=(N_ROWS, N_DIMS))
    return table_of(facts).set_axis(["a", "b", "c"], axis=1), vectors


def answer_of(vectors, seed=1):
    """The truth for known rows, and noise of the same spread for the others."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=vectors.shape) * vectors.std(axis=0)
    return table_of(np.where(IS_KNOWN[:, None], vectors, noise)).add_prefix("f")


def known_of(vectors, names=NAMES):
    return dict(zip(names[:N_KNOWN], vectors, strict=False))


def of_kind(leaks, kind):
    return [leak for leak in leaks if leak.kind == kind]


def leaks_in(rows_of, vectors, is_known=IS_KNOWN):
    entities = tuple(map(str, range(len(vectors))))
    sources = [
        Source(name, (Domain(entities, rows, tuple(f"{name} {i}" for i in range(rows.shape[1]))),))
        for name, rows in rows_of.items()
    ]
    domain = joint(sources)
    return leaks_of(space_of(domain), domain, vectors, is_known)


# --- A source that holds the answer -------------------------------------------------------------


def test_a_table_with_the_answer_is_named_and_gets_no_confidence_and_no_bounds():
    _, vectors = facts_and_vectors()
    result = vf.impute(answer_of(vectors), known_of(vectors), candidates="classic")
    (leak,) = of_kind(result.leaks, "answer")
    assert leak.source == "table"
    assert set(leak.columns) <= {f"f{number}" for number in range(N_DIMS)}
    assert result.confidence.values.max() == 0.0
    assert result.confidence.lower_bound.max() == -1.0
    assert result.confidence.plain_lower_bound.max() == -1.0
    assert any("holds" in note or "hold the answer" in note for note in result.notes)
    assert "hold the answer" in repr(result)
    assert result.to_dict()["leaks"][0]["source"] == "table"


def test_entities_that_come_later_get_no_confidence_from_a_leak_either():
    _, vectors = facts_and_vectors()
    answer = answer_of(vectors)
    model = vf.impute(answer, known_of(vectors), candidates="classic").to_model()
    later = answer.iloc[-5:].set_axis([f"new{row}" for row in range(5)])
    added = model.add(later.rename_axis("name"))
    assert added.confidence.values.max() == 0.0
    assert added.confidence.lower_bound.max() == -1.0


def test_beside_an_honest_table_a_leak_is_not_used():
    facts, vectors = facts_and_vectors()
    result = vf.impute(
        {"facts": facts, "leak": answer_of(vectors)}, known_of(vectors), candidates="classic"
    )
    used = {source.name: source.is_kept for source in result.sources}
    assert used == {"facts": True, "leak": False}
    assert [leak.source for leak in of_kind(result.leaks, "answer")] == ["leak"]
    alone = vf.impute({"facts": facts}, known_of(vectors), candidates="classic")
    np.testing.assert_allclose(result.embedding.vectors, alone.embedding.vectors, atol=1e-6)
    assert result.confidence.values.mean() > 0.3


def test_an_evaluation_names_a_leak_and_does_not_use_it():
    facts, vectors = facts_and_vectors()
    report = vf.evaluate(
        {"facts": facts, "leak": answer_of(vectors)},
        known_of(vectors),
        folds=2,
        candidates="classic",
    )
    assert [leak.source for leak in of_kind(report.leaks, "answer")] == ["leak"]
    assert report.to_dict()["leaks"][0]["kind"] == "answer"
    assert "hold the answer" in str(report)
    # With the leak, hidden vectors come back whole.
    assert report.methods["auto"]["centred_cosine"] < 0.95


@pytest.mark.parametrize("values", ["zeros", "mean"])
def test_an_answer_with_blanks_for_unknown_entities_is_found(values):
    _, vectors = facts_and_vectors()
    blank = 0.0 if values == "zeros" else vectors[IS_KNOWN].mean(axis=0)
    leaking = np.where(IS_KNOWN[:, None], vectors, blank)
    assert of_kind(leaks_in({"leak": leaking}, vectors), "answer")


def honest_rows(kind):
    facts, vectors = facts_and_vectors(seed=3)
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(N_ROWS, 4))
    if kind == "table":
        return facts.to_numpy(), vectors
    if kind == "exact":
        return rows, rows @ rng.normal(size=(4, N_DIMS))
    if kind == "of low rank":
        mixed = rows[:, :2] @ rng.normal(size=(2, 6))
        return mixed, mixed @ rng.normal(size=(6, N_DIMS))
    if kind == "another embedding":
        return vectors @ rng.normal(size=(N_DIMS, 12)) + 0.1 * rng.normal(
            size=(N_ROWS, 12)
        ), vectors
    # The unknown ones lie beyond the known ones, as rare entities may.
    rows = rows[np.argsort(rows[:, 0])]
    return rows, rows @ rng.normal(size=(4, N_DIMS))


@pytest.mark.parametrize("kind", ["table", "exact", "of low rank", "another embedding", "beyond"])
def test_honest_sources_hold_no_answer(kind):
    rows, vectors = honest_rows(kind)
    assert not of_kind(leaks_in({"facts": rows}, vectors), "answer")


def test_an_honest_source_is_not_blamed_for_the_leak_beside_it():
    rows, vectors = honest_rows("another embedding")
    leaking = answer_of(vectors).to_numpy()
    leaks = of_kind(leaks_in({"facts": rows, "leak": leaking}, vectors), "answer")
    assert [leak.source for leak in leaks] == ["leak"]


# --- Two names of one thing ---------------------------------------------------------------------


def noise_with_twins():
    rng = np.random.default_rng(0)
    facts, vectors = rng.normal(size=(N_ROWS, 4)), rng.normal(size=(N_ROWS, N_DIMS))
    twin = np.arange(15)
    names = NAMES + [f"{NAMES[row]} Inc." for row in twin]
    table = table_of(np.vstack([facts, facts[twin]]), names)
    known = known_of(vectors) | {names[N_ROWS + row]: vectors[row] for row in twin}
    return table, known


def test_noise_with_twins_is_refused_and_the_twins_are_named():
    table, known = noise_with_twins()
    with pytest.raises(vf.NoSignalError, match=r"15 known entities have .*item000 Inc. = item000"):
        vf.impute(table, known, candidates="classic")


def test_twins_are_hidden_together():
    twins = np.arange(60)
    twins[50:] = np.arange(10)
    is_known = np.ones(60, bool)
    folds = list(hidden_folds(is_known, n_folds=5, seed=0, twins=twins))
    assert sorted(row for fold in folds for row in fold.hidden.tolist()) == list(range(60))
    for fold in folds:
        hidden = set(fold.hidden.tolist())
        assert all((row in hidden) == (row + 50 in hidden) for row in range(10))
    block = rarest_block(is_known, np.arange(60.0), share=0.1, twins=twins)
    assert block.hidden.tolist() == [*range(4, 10), *range(54, 60)]


def test_without_twins_folds_are_the_same_as_ever():
    is_known = np.random.default_rng(0).random(40) < 0.6
    plain = hidden_folds(is_known, n_folds=4, seed=2)
    none_alike = hidden_folds(is_known, n_folds=4, seed=2, twins=np.arange(40))
    for fold, again in zip(plain, none_alike, strict=True):
        assert fold.hidden.tolist() == again.hidden.tolist()
    some = np.arange(40)
    first, last = np.flatnonzero(is_known)[[0, -1]]
    some[last] = first
    for fold, again in zip(
        hidden_folds(is_known, n_folds=4, seed=2),
        hidden_folds(is_known, n_folds=4, seed=2, twins=some),
        strict=True,
    ):
        # But for the twin itself, every row is hidden where it would be anyway.
        assert set(fold.hidden) - {last} == set(again.hidden) - {last}
    assert twins_of(np.random.default_rng(0).normal(size=(40, 5)), is_known) is None


def test_vectors_that_differ_by_rounding_are_twins():
    vectors = np.random.default_rng(0).normal(size=(30, 5))
    vectors[20] = vectors[3].round(5)
    twins = twins_of(vectors, np.ones(30, bool))
    assert twins is not None
    assert np.flatnonzero(twins != np.arange(30)).tolist() == [20]
    assert twins[20] == 3


def test_vectors_that_stand_for_classes_are_no_twins():
    classes = np.eye(4)[np.arange(40) % 4]
    assert twins_of(classes, np.ones(40, bool)) is None


def test_twins_are_one_piece_of_evidence():
    rng = np.random.default_rng(0)
    truth, predicted = rng.normal(size=(40, 5)), rng.normal(size=(40, 5))
    twice = np.r_[np.arange(40), np.arange(15)]
    once = permutation_p_value(predicted, truth)
    assert permutation_p_value(predicted[twice], truth[twice]) == pytest.approx(once)


def test_only_one_of_several_twins_races():
    vectors = np.random.default_rng(0).normal(size=(30, 5))
    vectors[25:] = vectors[:5]
    raced = candidates.race_sample(candidates.KnownRows(vectors, np.ones(30, bool)))
    assert np.flatnonzero(raced.is_known).tolist() == list(range(25))


def test_no_twin_helps_to_choose():
    rng = np.random.default_rng(0)
    rows, vectors = rng.normal(size=(90, 4)), rng.normal(size=(90, 8))
    twice = np.r_[np.arange(90), np.arange(30)]
    choice = choose(Space(rows[twice]), vectors[twice], np.ones(120, bool))
    assert choice.honest.centred_cosine.mean() < 0.15


# --- Columns that tell who is known -------------------------------------------------------------


def test_a_column_that_numbers_the_rows_is_named():
    facts, vectors = facts_and_vectors()
    result = vf.impute(facts.assign(id=np.arange(N_ROWS)), known_of(vectors), candidates="classic")
    (leak,) = of_kind(result.leaks, "order")
    assert leak.columns == ("id",)
    assert any("'id'" in note and "numbers the rows" in note for note in result.notes)


def test_a_timestamp_that_is_the_same_for_all_unknown_entities_is_named():
    facts, vectors = facts_and_vectors()
    times = np.full(N_ROWS, float(N_ROWS))
    times[:N_KNOWN] = np.argsort(np.argsort(vectors[:N_KNOWN, 0]))
    result = vf.impute(facts.assign(time=times), known_of(vectors), candidates="classic")
    (leak,) = of_kind(result.leaks, "apart")
    assert leak.columns == ("time",)


def test_a_rank_that_only_known_entities_can_have_is_named():
    facts, vectors = facts_and_vectors()
    ranks = np.random.default_rng(0).permutation(N_KNOWN) + 1.0
    ranks = np.r_[ranks, 1000.0 + np.arange(N_UNKNOWN) % 7]
    result = vf.impute(facts.assign(rank=ranks), known_of(vectors), candidates="classic")
    assert [leak.columns for leak in of_kind(result.leaks, "apart")] == [("rank",)]


def test_facts_that_all_unknown_entities_lack_are_named_and_are_no_leak():
    facts, vectors = facts_and_vectors()
    lacking = facts.assign(a=np.where(IS_KNOWN, facts.a, facts.a[:N_KNOWN].mean()))
    leaks = leaks_in({"facts": lacking.to_numpy()}, vectors)
    assert [(leak.kind, leak.columns) for leak in leaks] == [("apart", ("facts 0",))]


def test_rarity_that_overlaps_is_no_leak():
    facts, vectors = facts_and_vectors()
    people = np.random.default_rng(0).normal(size=N_ROWS) + 2.0 * IS_KNOWN
    result = vf.impute(facts.assign(people=people), known_of(vectors), candidates="classic")
    assert result.leaks == ()


# --- Texts that give their entity's word away ---------------------------------------------------


@pytest.mark.parametrize(
    ("name", "form"),
    [("{}", "{}"), ("{}", "{}s"), ("{}é", "{}e"), ("{}y", "{}ies"), ("{}", "{}ed")],
    ids=["word", "plural", "spelling", "other plural", "past"],
)
def test_a_text_does_not_give_away_the_word_of_its_entity(name, form):
    rng = np.random.default_rng(0)
    letters = rng.choice(list("bcdfghklmnprst"), size=(N_ROWS, 6))
    stems = [f"{''.join(row[:3])}a{''.join(row[3:])}{''.join(row[::-1])}" for row in letters]
    names = [name.format(stem) for stem in stems]
    vectors = rng.normal(size=(N_ROWS, N_DIMS))
    known = {word: rng.normal(size=N_DIMS) for word in ("red", "blue", "green")}
    near = vectors + 0.1 * rng.normal(size=vectors.shape)
    known |= {form.format(stem): near[row] for row, stem in enumerate(stems[:N_KNOWN])}
    known |= known_of(vectors, names)
    colours = rng.choice(["red", "blue", "green"], size=N_ROWS)
    texts = [f"{colours[row]} {form.format(stem)}" for row, stem in enumerate(stems)]
    with pytest.raises(vf.NoSignalError):
        vf.impute(
            {"texts": vf.text(table_of({"text": texts}, names))},
            known,
            names="off",
            candidates="classic",
        )


def test_a_text_that_comes_later_loses_the_forms_of_its_entity_too():
    rng = np.random.default_rng(0)
    base = vf.Embedding(["soft", "hard", "metal", "sofas", "gas"], rng.normal(size=(5, 4)))
    texts = {"iron": "hard metal sofas", "lead": "soft metal", "neon": "gas", "tin": "soft metal"}
    reader = vf.text(texts).variants(base)[1].reader
    later = reader.read(Facts(("sofa", "seat"), {"text": ["soft sofas", "soft"]}))
    np.testing.assert_array_equal(later.rows[0], later.rows[1])
