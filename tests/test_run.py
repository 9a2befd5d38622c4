from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from vecfill.model.predictors import LatentSemantic


@pytest.fixture(scope="module")
def towns():
    """A table of 80 towns and an embedding that knows 60 of them."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(80, 3))
    table = pd.DataFrame(
        np.tanh(latent @ rng.normal(size=(3, 6))),
        index=pd.Index([f"town{i}" for i in range(80)], name="town"),
    )
    table.columns = [f"c{i}" for i in range(6)]
    vectors = np.sin(latent @ rng.normal(size=(3, 9))).astype(np.float32)
    return table, vf.Embedding([f"Town{i}" for i in range(60)], vectors[:60])


@pytest.fixture(scope="module")
def result(towns):
    return vf.impute(*towns)


def test_unknown_entities_are_imputed_and_known_ones_untouched(towns, result):
    _, embedding = towns
    assert list(result.embedding.words) == [f"town{i}" for i in range(60, 80)]
    assert result.known.vectors.tobytes() == embedding.vectors.tobytes()
    assert result.embedding.vectors.dtype == np.float32
    assert np.isfinite(result.embedding.vectors).all()


def test_explanations_reproduce_the_vectors(result):
    shares = result.contributions(range(20))
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    trend = result.model.composition.trend
    if trend is None:
        again = shares @ result.known.vectors
    else:
        again = trend.values[60:] + result.predictor.residual_share * shares @ trend.residuals
    # All of them are stretched by one factor, away from the mean of the known vectors.
    mean, factor = result.known.vectors.mean(axis=0), result.explain("town70").stretch
    again = mean + factor * (again - mean)
    np.testing.assert_allclose(again, result.embedding.vectors, atol=1e-6)
    told = result.explain("town70", n=60)
    assert told.shares.sum() == pytest.approx(1.0)
    assert 0 <= told.trend_share <= 1


def test_a_known_entity_cannot_be_explained(result):
    with pytest.raises(vf.InputError, match="'town3' is known"):
        result.explain("town3")


def test_every_entity_has_a_confidence_and_a_bound(result):
    assert result.confidence.values.shape == result.confidence.lower_bound.shape == (20,)
    assert ((result.confidence.values >= 0) & (result.confidence.values <= 1)).all()


def test_entities_below_the_asked_confidence_are_left_out_by_name(towns, result):
    limit = float(np.median(result.confidence.values))
    strict = vf.impute(*towns, min_confidence=limit)
    assert set(strict.embedding.words) | set(strict.abstained) == set(result.embedding.words)
    assert strict.abstained
    assert (strict.confidence.values >= limit).all()
    assert strict.explain(strict.abstained[0]).contributors


def test_the_run_is_plain_json(result):
    told = json.loads(json.dumps(result.to_dict()))
    assert told["n_known"] == 60
    assert told["n_imputed"] == 20
    assert set(told["confidence"]["entities"]) == set(result.embedding.words)


def test_the_paper_is_the_estimator(towns):
    table, embedding = towns
    vectors = np.full((80, 9), np.nan, np.float32)
    vectors[:60] = embedding.vectors
    expected = vf.LatentSemanticImputer().fit(table.to_numpy(), vectors).embedding_[60:]
    result = vf.impute(table, embedding, method="paper")
    np.testing.assert_array_equal(result.embedding.vectors, expected)


def test_a_single_setting_can_be_asked_for(towns):
    wanted = LatentSemantic("unit_rows", 5, 0.2, 0.5)
    assert vf.impute(*towns, method=wanted).predictor == wanted


def test_a_shuffled_domain_is_refused_unless_forced(towns):
    table, embedding = towns
    shuffled = pd.DataFrame(
        table.to_numpy()[np.random.default_rng(2).permutation(80)],
        index=table.index,
        columns=table.columns,
    )
    with pytest.raises(vf.NoSignalError, match=r"no signal.*force=True"):
        vf.impute(shuffled, embedding)
    assert len(vf.impute(shuffled, embedding, force=True).embedding) == 20


def test_calibrated_steps_from_the_mean_are_as_long_as_real_ones(towns):
    table, embedding = towns
    common = 20 * np.ones(embedding.n_dims)
    embedding = vf.Embedding(embedding.words, embedding.vectors + common)
    result = vf.impute(table, embedding, method="paper", calibrate_norms=True)
    plain = vf.impute(table, embedding, method="paper")
    mean = result.known.vectors.mean(axis=0)
    steps = {
        name: part.vectors - mean
        for name, part in {
            "known": result.known, "new": result.embedding, "plain": plain.embedding,
        }.items()
    }  # fmt: skip
    lengths = {name: np.sqrt((rows**2).sum(axis=1).mean()) for name, rows in steps.items()}
    assert lengths["plain"] < 0.9 * lengths["known"]
    assert lengths["new"] == pytest.approx(lengths["known"], rel=0.1)
    factor = result.explain(result.embedding.words[0]).stretch
    np.testing.assert_allclose(steps["new"], factor * steps["plain"], rtol=1e-6, atol=1e-9)


def test_calibrated_lengths_serve_later_entities_and_need_known_ones(towns, tmp_path):
    table, embedding = towns
    result = vf.impute(table.iloc[:79], embedding, calibrate_norms=True)
    result.save(tmp_path / "model.vecfill")
    model = vf.load(tmp_path / "model.vecfill")
    factor = result.explain(result.embedding.words[0]).stretch
    assert model.add(table.iloc[79:]).explain(table.index[79]).stretch == pytest.approx(factor)
    nine = vf.Embedding(list(embedding.words)[:9], embedding.vectors[:9])
    with pytest.raises(vf.InputError, match=r"calibrate_norms= learns .* Leave it out"):
        vf.impute(table, nine, method="paper", calibrate_norms=True)


def test_nothing_unknown_imputes_nothing(towns):
    table, embedding = towns
    result = vf.impute(table.iloc[:60], embedding)
    assert len(result.embedding) == 0
    assert vf.impute(table.iloc[:60], embedding, min_confidence=0.5).abstained == ()


def test_too_few_known_entities_need_the_paper_or_force(towns):
    table, embedding = towns
    few = vf.Embedding(["Town0", "Town1"], embedding[["Town0", "Town1"]])
    with pytest.raises(vf.InputError, match="Only 2 entities are known"):
        vf.impute(table, few)
    for options in ({"method": "paper"}, {"force": True}):
        result = vf.impute(table, few, **options)
        assert len(result.embedding) == 78
        assert result.confidence is None
    with pytest.raises(vf.InputError, match="min_confidence needs a confidence"):
        vf.impute(table, few, method="paper", min_confidence=0.5)


def test_fewer_entities_than_neighbors_lower_the_degree_and_say_so(towns):
    table, embedding = towns
    result = vf.impute(table.iloc[56:62], embedding, method="paper")
    assert len(result.embedding) == 2
    assert any("min_degree is 5 and not 8" in note for note in result.notes)


def test_no_entity_known_is_refused(towns):
    table, _ = towns
    with pytest.raises(vf.InputError):
        vf.impute(table, vf.Embedding(["paris"], np.ones((1, 3))))


def test_evaluate_tells_how_well_hidden_entities_come_back(towns):
    report = vf.evaluate(*towns, folds=3)
    assert report.has_signal
    assert report.methods["auto"]["centred_cosine"] > 0.3
    with pytest.raises(vf.InputError, match="Only 60 entities are known; 70 are needed"):
        vf.evaluate(*towns, folds=70)


def test_distances_can_be_the_domain(towns):
    table, embedding = towns
    values = table.to_numpy()
    distances = np.sqrt(((values[:, None] - values[None]) ** 2).sum(axis=2))
    square = pd.DataFrame(distances, index=table.index, columns=list(table.index))
    result = vf.impute(square, embedding, kind="distances")
    assert len(result.embedding) == 20
    with pytest.raises(vf.InputError, match="only distances"):
        vf.impute(square, embedding, kind="distances", method=LatentSemantic(residual_share=0.3))


def test_a_contradicted_entity_is_named_with_its_word(towns):
    table, embedding = towns
    # Unknown entities come first, so that a row number is not a place among the known.
    moved = table.iloc[::-1]
    vectors = embedding.vectors.copy()
    vectors[41] = -3 * vectors[41]
    result = vf.impute(moved, vf.Embedding(embedding.words, vectors))
    assert (result.suspicious[0].entity, result.suspicious[0].word) == ("town41", "Town41")


def test_known_and_imputed_entities_come_as_one_embedding_and_as_tables(result):
    assert result.enriched.words == (*result.known.words, *result.embedding.words)
    assert result.enriched["town70"].tobytes() == result.embedding["town70"].tobytes()
    table = result.to_pandas()
    assert table.loc["town3", "vector"].tolist() == result.known["town3"].tolist()
    assert not table.loc["town3", "is_imputed"]
    assert np.isnan(table.loc["town3", "confidence"])
    row = result.embedding.row("town70")
    assert table.loc["town70", "confidence"] == result.confidence.values[row]
    assert table.loc["town70", "lower_bound"] == result.confidence.lower_bound[row]
    assert result.to_arrow().num_rows == 80


def test_a_result_can_be_pickled_and_copied(result):
    for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result)):
        assert again.embedding.equals(result.embedding)
        assert again.confidence.values.tobytes() == result.confidence.values.tobytes()
        assert str(again.explain("town70")) == str(result.explain("town70"))
        assert again.to_dict() == result.to_dict()


def test_a_result_is_shown_in_a_few_lines(result):
    for shown in (repr(result), repr(result.confidence), repr(result.choice), repr(result.model)):
        assert len(shown) < 1000
    assert "20 entities imputed from 60 known ones" in repr(result)
    assert "<table>" in result._repr_html_()
    assert "share kept" in result.confidence._repr_html_()


def test_the_seed_and_the_level_are_honoured(towns, result):
    other = vf.impute(*towns, seed=5)
    assert other.choice.means != result.choice.means
    assert other.heldout.cosine.tolist() != result.heldout.cosine.tolist()
    plain = [vf.impute(*towns, method="paper", seed=seed).heldout.cosine for seed in (0, 1)]
    assert plain[0].tolist() != plain[1].tolist()
    cautious = vf.impute(*towns, level=0.97)
    assert (cautious.confidence.lower_bound < result.confidence.lower_bound).all()
    assert cautious.confidence.level == 0.97
