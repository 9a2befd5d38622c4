"""A model that goes on: saved, loaded, added to, updated."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

import vecfill as vf
from vecfill.errors import FormatError, InputError
from vecfill.living.model import LivingModel
from vecfill.model.fitted import fit
from vecfill.model.offset import Curve, OffsetRule
from vecfill.model.predictors import (
    KernelRidge,
    LatentSemantic,
    LinearRidge,
    MatchingPursuit,
    Mean,
    Nearest,
    Sparsemax,
)
from vecfill.model.stack import Stack
from vecfill.model.stretch import Stretch

N_KNOWN, N_FITTED, N_NEW = 90, 130, 20

PREDICTORS = {
    "paper": LatentSemantic(),
    "trend": LatentSemantic(residual_share=0.6, preparation="standardized", ridge=0.1),
    "trend alone": LatentSemantic(residual_share=0.0),
    "first component": LatentSemantic(preparation="unit_rows_without_first_component"),
    "kernel": KernelRidge(preparation="rank_normal"),
    "linear kernel": KernelRidge(kernel="linear"),
    "smooth": KernelRidge("smooth", "linear"),
    "smooth trend": LatentSemantic("smooth", residual_share=0.6),
    "stack": Stack(
        (LatentSemantic(), KernelRidge(preparation="unit_rows"), Nearest()), (0.5, 0.4, 0.2)
    ),
    "ridge": LinearRidge(preparation="standardized"),
    "nearest": Nearest(preparation="rank_normal_unit_rows", by_distance=True),
    "mean": Mean(),
    "pursuit": MatchingPursuit(),
    "sparsemax": Sparsemax(preparation="unit_rows"),
}


class World:
    """Entities with features and vectors: some known, some unknown, some that come later."""

    def __init__(self, seed: int = 0, n_dims: int = 6) -> None:
        rng = np.random.default_rng(seed)
        latent = rng.normal(size=(N_FITTED + N_NEW, 4))
        self.rows = np.exp(latent @ rng.normal(size=(4, 5)) / 3)
        self.vectors = np.tanh(latent @ rng.normal(size=(4, n_dims)))
        self.names = [f"town{number}" for number in range(len(latent))]
        self.domain = dict(zip(self.names[:N_FITTED], self.rows, strict=False))
        self.known = dict(zip(self.names[:N_KNOWN], self.vectors, strict=False))
        later = zip(self.names[N_FITTED:], self.rows[N_FITTED:], strict=True)
        self.later = dict(later)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def imputed(world: World, method: object) -> vf.Result:
    # The mean gives everybody one vector, which is refused unless it is forced.
    return vf.impute(world.domain, world.known, method=method, names="off", force=True)


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_model_that_was_saved_and_loaded_gives_the_same_bits(name, world, tmp_path):
    result = imputed(world, PREDICTORS[name])
    result.save(tmp_path / "towns.vecfill")
    loaded, model = vf.load(tmp_path / "towns.vecfill"), result.to_model()
    assert loaded.embedding.equals(result.embedding)
    assert loaded.known.equals(result.known)
    assert loaded.confidence.lower_bound.tobytes() == result.confidence.lower_bound.tobytes()
    for word in result.embedding.words[:2]:
        told, again = result.explain(word), loaded.explain(word)
        assert told.contributors == again.contributors
        assert told.shares.tobytes() == again.shares.tobytes()
        assert (told.trend_share, told.offset_share) == (again.trend_share, again.offset_share)
    one, other = model.add(world.later), loaded.add(world.later)
    assert one.embedding.equals(other.embedding)
    assert one.confidence.values.tobytes() == other.confidence.values.tobytes()
    assert one.explain("town140").shares.tobytes() == other.explain("town140").shares.tobytes()
    loaded.save(tmp_path / "again.vecfill")
    assert vf.load(tmp_path / "again.vecfill").add(world.later).embedding.equals(one.embedding)


@pytest.mark.parametrize("name", PREDICTORS)
def test_added_entities_get_about_what_a_full_run_gives_them(name, world):
    predictor = PREDICTORS[name]
    everyone = {**world.domain, **world.later}
    full = vf.impute(everyone, world.known, method=predictor, names="off", force=True).embedding
    added = imputed(world, predictor).to_model().add(world.later).embedding
    centre = np.mean(list(world.known.values()), axis=0)
    one, other = added.vectors - centre, full[list(added.words)] - centre
    if name == "mean":
        np.testing.assert_allclose(one, 0.0, atol=1e-12)
        return
    cosines = (one * other).sum(axis=1)
    cosines /= np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    assert np.median(cosines) > 0.97


@pytest.mark.parametrize("name", PREDICTORS)
def test_each_added_entity_is_the_mix_of_known_ones_that_is_told(name, world):
    added = imputed(world, PREDICTORS[name]).to_model().add(world.later)
    told = added.explain("town135", n=N_KNOWN)
    if told.trend_share == 0:
        mixed = told.shares @ np.array([world.known[each] for each in told.contributors])
        np.testing.assert_allclose(mixed, added.embedding["town135"], atol=1e-7)
    alone = imputed(world, PREDICTORS[name]).to_model().add({"town135": world.later["town135"]})
    np.testing.assert_allclose(alone.embedding.vectors[0], added.embedding["town135"], atol=1e-12)


@pytest.mark.parametrize("name", ["paper", "trend", "kernel", "stack", "nearest"])
def test_an_update_gives_what_a_full_run_with_the_same_graph_gives(name, world):
    model = imputed(world, PREDICTORS[name]).to_model()
    new = {each: world.vectors[int(each[4:])] for each in ("town95", "town120")}
    new["town3"] = -world.vectors[3]  # one that is corrected
    vectors = np.full((N_FITTED, 6), np.nan)
    is_known = np.zeros(N_FITTED, bool)
    for each, vector in {**world.known, **new}.items():
        vectors[int(each[4:])], is_known[int(each[4:])] = vector, True
    again = fit(model.predictor, model.space, vectors, is_known)
    model.update(known=new)
    np.testing.assert_array_equal(model.known["town3"], new["town3"])
    np.testing.assert_allclose(model.embedding.vectors, again.prediction.vectors, atol=1e-8)
    assert "town95" not in model.embedding
    assert len(model.confidence.values) == N_FITTED - N_KNOWN - 2


def test_a_known_vector_that_is_forgotten_is_imputed_from_the_others(world):
    model = imputed(world, LatentSemantic()).to_model()
    before = model.add(world.later).embedding.vectors
    model.forget(["town3"])
    assert "town3" not in model.known
    known = {each: vector for each, vector in world.known.items() if each != "town3"}
    full = vf.impute(world.domain, known, method=LatentSemantic(), names="off")
    np.testing.assert_allclose(model.embedding["town3"], full.embedding["town3"], atol=1e-8)
    model.update(known={"town3": world.known["town3"]})
    np.testing.assert_allclose(model.add(world.later).embedding.vectors, before, atol=1e-7)


def test_an_imputed_entity_that_is_forgotten_is_no_longer_given(world):
    model = imputed(world, LatentSemantic()).to_model()
    model.forget("town100")
    assert "town100" not in model.embedding
    assert len(model.confidence.values) == len(model.embedding) == N_FITTED - N_KNOWN - 1


def test_entities_that_are_there_already_are_told_apart(world):
    added = (
        imputed(world, LatentSemantic())
        .to_model()
        .add({"town1": world.rows[1], "town100": world.rows[100], "newtown": world.rows[140]})
    )
    assert added.already_known == ("town1",)
    assert added.already_imputed == ("town100",)
    assert added.embedding.words == ("newtown",)


def test_added_entities_serve_later_ones_only_if_kept(world):
    far = {"far": world.rows.max(axis=0) * 1.2}
    beside = {"beside": far["far"] * 1.001}
    model = imputed(world, LatentSemantic(weight_floor=0.0)).to_model()
    without = model.add(beside).embedding.vectors
    first = model.add(far).embedding.vectors
    np.testing.assert_array_equal(model.add(beside).embedding.vectors, without)
    model.add(far, keep=True)
    np.testing.assert_array_equal(model.embedding["far"], first[0])
    assert model.add(far).already_imputed == ("far",)
    model.update(known={"far": np.full(6, 7.0)})
    np.testing.assert_allclose(model.add(beside).embedding.vectors[0], 7.0)


def test_a_kept_entity_can_become_known_and_be_saved(world, tmp_path):
    model = imputed(world, PREDICTORS["stack"]).to_model()
    model.add(world.later, keep=True)
    model.update(known={"town140": world.vectors[140]})
    model.save(tmp_path / "m.vecfill")
    loaded = vf.load(tmp_path / "m.vecfill")
    np.testing.assert_array_equal(loaded.known["town140"], world.vectors[140])
    assert loaded.embedding.equals(model.embedding)


def test_a_model_of_distances_takes_distances_to_the_fitted_entities(world, tmp_path):
    rows = np.array(list(world.domain.values()))
    apart = np.linalg.norm(rows[:, None] - rows, axis=2)
    names = list(world.domain)
    result = vf.impute(
        vf.as_domain(apart, names=names, kind="distances"), world.known,
        method=LatentSemantic(), names="off",
    )  # fmt: skip
    later = np.array(list(world.later.values()))
    to_fitted = np.linalg.norm(later[:, None] - rows, axis=2)
    result.save(tmp_path / "m.vecfill")
    added = vf.load(tmp_path / "m.vecfill").add(to_fitted, names=list(world.later))
    same = imputed(world, LatentSemantic()).to_model().add(world.later)
    np.testing.assert_allclose(added.embedding.vectors, same.embedding.vectors, atol=1e-5)


def test_sparse_rows_are_added_as_they_were_fitted(world, tmp_path):
    rng = np.random.default_rng(1)
    rows = csr_array(world.rows * (rng.random(world.rows.shape) < 0.6))
    domain = vf.as_domain(rows[:N_FITTED], names=world.names[:N_FITTED])
    result = vf.impute(domain, world.known, method=KernelRidge(), names="off")
    result.save(tmp_path / "m.vecfill")
    added = vf.load(tmp_path / "m.vecfill").add(rows[N_FITTED:], names=world.names[N_FITTED:])
    full = vf.impute(
        vf.as_domain(rows, names=world.names), world.known, method=KernelRidge(), names="off"
    )
    found, truth = added.embedding.vectors, full.embedding[list(added.embedding.words)]
    assert np.corrcoef(found.ravel(), truth.ravel())[0, 1] > 0.97


def tables(n_rows: int, seed: int = 0) -> tuple[pa.Table, np.ndarray]:
    """A table with numbers, gaps, categories and text, and vectors that it explains."""
    rng = np.random.default_rng(seed)
    mass, kind = rng.normal(50, 10, n_rows), rng.integers(0, 3, n_rows)
    words = np.array(["river", "coast", "hill", "desert", "forest", "lake"])
    about = rng.integers(0, 6, (n_rows, 5))
    mass[::9] = np.nan
    texts = [" ".join(words[row]) + f" number {place}" for place, row in enumerate(about)]
    table = pa.table(
        {
            "name": [f"place {number}" for number in range(n_rows)],
            "mass": pa.array(mass, from_pandas=True),
            "kind": [("gas", "metal", "salt")[each] for each in kind],
            "about": texts,
        }
    )
    hints = np.array([[(row == word).sum() for word in range(6)] for row in about])
    latent = np.column_stack([np.nan_to_num((mass - 50) / 10), np.eye(3)[kind], hints])
    return table, np.tanh(latent @ rng.normal(size=(10, 8)) / 2)


def test_columns_of_a_table_are_read_as_at_the_fit(tmp_path):
    table, vectors = tables(160)
    known = dict(zip(table["name"].to_pylist()[:100], vectors, strict=False))
    result = vf.impute(table[:140], known, method=KernelRidge(), names="off", key="name")
    assert any("TF-IDF" in note for note in result.notes)
    result.save(tmp_path / "m.vecfill")
    model = vf.load(tmp_path / "m.vecfill")
    again = model.space.prepared_new("as_given", result.domain.vectors)
    np.testing.assert_array_equal(again, result.domain.vectors)
    later = model.add(table[140:])
    assert later.unusual == {}
    shuffled = table[140:].select(["about", "kind", "name", "mass"])
    assert model.add(shuffled, key="name").embedding.equals(later.embedding)
    fitted = model._kept.sources[0].reader
    from vecfill.inputs.later_rows import facts_of

    read = fitted.read(facts_of(table[:140], key="name"))
    np.testing.assert_allclose(read.rows, result.domain.vectors, atol=1e-6)


def test_what_is_unlike_anything_fitted_is_told_and_bounded_with_caution():
    table, vectors = tables(160)
    known = dict(zip(table["name"].to_pylist()[:100], vectors, strict=False))
    model = vf.impute(table[:140], known, method=KernelRidge(), names="off").to_model()
    facts = {"mass": 51.0, "kind": "metal", "about": "river coast hill lake number"}
    added = model.add(
        {
            "usual": facts,
            "heavy": {**facts, "mass": 5e6},
            "odd": {**facts, "kind": "plasma"},
            "mute": {**facts, "about": "zzz qqq"},
        }
    )
    assert set(added.unusual) == {"heavy", "odd", "mute"}
    assert "mass is 5e+06, far beyond" in added.unusual["heavy"][0]
    assert "'plasma', which no fitted entity had" in added.unusual["odd"][0]
    assert "no word of the fitted texts" in added.unusual["mute"][0]
    reached = np.sort(added.confidence.actual)
    floor = reached[int(0.1 * (reached.size + 1)) - 1]
    assert (added.confidence.lower_bound[1:] <= floor).all()
    assert "3 new entities are unlike anything fitted" in added.notes[0]


def test_a_new_category_is_usual_where_many_fitted_entities_had_one_of_their_own():
    rng = np.random.default_rng(0)
    size = rng.normal(size=700)
    few, many = [f"tag {n % 300}" for n in range(700)], rng.integers(0, 600, 700)
    known = {f"e{n}": [size[n], size[n] ** 2, 1.0] for n in range(500)}
    for labels, is_usual in ((few, False), ([f"tag {n}" for n in many], True)):
        names = [f"e{n}" for n in range(700)]
        table = pa.table({"name": names, "size": size, "label": labels})
        model = vf.impute(table, known, method=KernelRidge(), names="off").to_model()
        added = model.add({"x": {"size": 0.1, "label": "never seen"}})
        assert (not added.unusual) == is_usual


def test_refusals_of_a_living_model_say_what_to_do(world, tmp_path):
    model = imputed(world, LatentSemantic()).to_model()
    with pytest.raises(InputError, match=r"not an entity of the model.*keep=True"):
        model.update(known={"nowhere": np.ones(6)})
    with pytest.raises(InputError, match="must have 6 finite numbers"):
        model.update(known={"town3": np.ones(5)})
    with pytest.raises(InputError, match="all known vectors would be forgotten"):
        model.forget(list(world.known))
    with pytest.raises(InputError, match=r"vectors of 2 numbers|has 2 numbers"):
        model.add({"newtown": [1.0, 2.0]})
    with pytest.raises(InputError, match="'standardize' is no option of add"):
        model.add(world.later, standardize=True)
    with pytest.raises(InputError, match="counts= has no effect"):
        model.add(world.later, counts={"town140": 3})
    with pytest.raises(InputError, match="is known: its vector is the embedding's own"):
        model.explain("town1")
    model.save(tmp_path / "m.vecfill")
    with pytest.raises(InputError, match="exists already"):
        model.save(tmp_path / "m.vecfill")
    edges = vf.edges([(f"town{n}", f"town{(n * 7 + 1) % 130}") for n in range(130)])
    graph = vf.impute(edges, world.known, method=LatentSemantic(), names="off", force=True)
    with pytest.raises(InputError, match="made from the whole graph"):
        graph.to_model().add({"newtown": [1.0]})


@pytest.fixture(scope="module")
def saved(world, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "m.vecfill"
    imputed(world, PREDICTORS["stack"]).save(path)
    return path


def use(path, world: World) -> None:
    """Do everything that a model can do."""
    model = vf.load(path, check=True)
    model.add(world.later).explain("town140")
    _ = model.embedding, model.known, model.confidence, model.strata, repr(model)
    model.explain("town100")


def test_a_damaged_model_is_refused_by_place_and_reason(saved, world, tmp_path):
    good, rng = saved.read_bytes(), np.random.default_rng(0)
    header = 8 + int.from_bytes(good[:8], "little")
    places = [*rng.integers(0, header, 60), *rng.integers(header, len(good), 60)]
    for number, place in enumerate(places):
        bad = bytearray(good)
        bad[place] ^= 1 << (number % 8)
        path = tmp_path / f"{number}.vecfill"
        path.write_bytes(bad)
        with pytest.raises(FormatError) as refused:
            use(path, world)
        assert str(path) in str(refused.value)
    for size in (0, 5, 100, header, len(good) - 1):
        path = tmp_path / f"cut{size}.vecfill"
        path.write_bytes(good[:size])
        with pytest.raises(FormatError):
            use(path, world)


def test_a_damaged_array_is_refused_before_it_is_used(saved, world, tmp_path):
    bad = bytearray(saved.read_bytes())
    start = 8 + int.from_bytes(bad[:8], "little")
    entry = json.loads(bytes(bad[8:start]))["space 0 rows as_given"]
    bad[start + entry["data_offsets"][0] + 3] ^= 1
    path = tmp_path / "m.vecfill"
    path.write_bytes(bad)
    model = vf.load(path)
    assert len(model.embedding) == N_FITTED - N_KNOWN
    with pytest.raises(FormatError, match=r"'space 0 rows as_given'.*is not what was written"):
        model.add(world.later)
    with pytest.raises(FormatError, match="is not what was written"):
        vf.load(path, check=True)


def test_a_file_that_is_no_model_and_one_of_another_version_are_refused(world, tmp_path):
    vf.write_embedding(vf.Embedding(["a"], [[1.0]]), tmp_path / "e.safetensors")
    with pytest.raises(FormatError, match="is not a vecfill model"):
        vf.load(tmp_path / "e.safetensors")
    (tmp_path / "words.txt").write_text("hello\n")
    with pytest.raises(FormatError, match="is not a vecfill model"):
        vf.load(tmp_path / "words.txt")
    from vecfill.io.mapped import write_mapped

    write_mapped(tmp_path / "m.vecfill", {"x": np.ones(1)}, {}, kind="vecfill model", version=7)
    with pytest.raises(FormatError, match=r"version '7'.*reads versions up to 2.*save again"):
        vf.load(tmp_path / "m.vecfill")


def test_a_model_of_several_sources_adds_entities_that_lack_some_of_them(tmp_path):
    table, vectors = tables(220)
    names = table["name"].to_pylist()
    known = dict(zip(names[:150], vectors, strict=False))
    facts, text = table.select(["name", "mass", "kind"]), table.select(["name", "about"])
    sources = {"facts": facts[:200], "text": vf.text(text[:180])}
    result = vf.impute(sources, known, names="off")
    assert all(each.is_kept for each in result.sources)
    result.save(tmp_path / "m.vecfill")
    model = vf.load(tmp_path / "m.vecfill")
    assert model.embedding.equals(result.embedding)
    assert [each.name for each in model.sources] == ["facts", "text"]
    added = model.add({"facts": facts[200:], "text": text[200:]})
    assert added.unusual == {}
    assert model.add(table[200:], key="name").embedding.equals(added.embedding)
    assert result.to_model().add(table[200:]).embedding.equals(added.embedding)
    truth, centre = vectors[200:], vectors[:150].mean(axis=0)
    assert _cosine(added.embedding.vectors - centre, truth - centre) > 0.7
    shares = added.explain("place 210").source_shares
    assert set(shares) == {"facts", "text"}
    assert sum(shares.values()) == pytest.approx(1.0)
    alone = model.add({"text": text[200:]})
    assert set(alone.unusual) == set(names[200:])
    assert "no fitted entity had exactly these sources" in alone.unusual["place 210"][0]
    assert _cosine(alone.embedding.vectors - centre, truth - centre) > 0.4
    mute = model.add({"text": {"x": {"about": "zzz"}}})
    assert mute.undescribed == ("x",)
    with pytest.raises(InputError, match="'texts' is no source of this model"):
        model.add({"facts": facts[200:], "texts": text[200:]})
    model.update(known={"place 160": vectors[160]})
    np.testing.assert_array_equal(model.known["place 160"], vectors[160])
    model.add({"facts": facts[200:]}, keep=True)
    assert "place 210" in model.embedding


def _cosine(one: np.ndarray, other: np.ndarray) -> float:
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(((one * other).sum(axis=1) / lengths).mean())


def stretched(world: World, **parts: object) -> LivingModel:
    """Return a model whose imputed rows are twice as far from the mean; rare ones three times."""
    model = imputed(world, "paper").to_model()
    model._set(stretch=Stretch(2.0, 3.0), **parts)
    model.update({})
    return model


def test_a_source_that_was_dropped_makes_no_added_entity_unusual(tmp_path):
    """An entity that is taken out and added again gets what the fit gave it."""
    rng = np.random.default_rng(0)
    names = [f"place {number}" for number in range(220)]
    latent = rng.normal(size=(220, 4))
    vectors = latent @ rng.normal(size=(4, 8))
    rows = {
        "left": (latent[:, :2], range(220)),
        "right": (latent[:, 2:], range(0, 220, 2)),
        "noise": (rng.normal(size=(220, 3)), range(220)),
    }
    whole, late = (
        {
            title: {names[row]: values[row] for row in described if row >= first}
            for title, (values, described) in rows.items()
        }
        for first in (0, 190)
    )
    result = vf.impute(whole, dict(zip(names[:150], vectors, strict=False)), names="off")
    assert [source.name for source in result.sources if source.is_kept] == ["left", "right"]
    result.save(tmp_path / "m.vecfill")
    in_memory, loaded = result.to_model(), vf.load(tmp_path / "m.vecfill")
    for model in (in_memory, loaded):
        model.forget(names[190:])
    added = loaded.add(late)
    assert (added.unusual, added.notes) == ({}, ())
    fitted = np.stack([result.embedding[name] for name in added.embedding.words])
    assert _cosine(added.embedding.vectors, fitted) > 0.99
    assert in_memory.add(late).embedding.equals(added.embedding)
    del late["noise"]
    assert loaded.add(late).embedding.equals(added.embedding)
    del late["left"]
    (why,) = loaded.add(late).unusual[names[190]][:1]
    assert "no fitted entity had exactly these sources" in why


def test_entities_added_to_a_loaded_model_are_stretched_as_those_of_the_fit(world, tmp_path):
    stretched(world).save(tmp_path / "model.vecfill")
    model, plain = vf.load(tmp_path / "model.vecfill"), imputed(world, "paper").to_model()
    mean = plain.known.vectors.mean(axis=0)
    found, before = model.add(world.later), plain.add(world.later)
    np.testing.assert_allclose(
        found.embedding.vectors - mean, 2 * (before.embedding.vectors - mean), atol=1e-4
    )
    assert found.explain(world.names[N_FITTED]).stretch == 2.0
    model.add(world.later, keep=True)
    np.testing.assert_allclose(model.embedding[list(world.later)], found.embedding.vectors)


def test_a_loaded_model_still_knows_who_is_not_rare(world, tmp_path):
    """Those who are spared get no offset of rarity, and are stretched as others are."""
    names = world.names[:N_FITTED]
    curve = Curve(np.array([0.0, 9.0]), np.vstack([np.zeros(6), np.full(6, 9.0)]))
    is_known = np.arange(N_FITTED) < N_KNOWN
    is_spared = ~is_known & (np.arange(N_FITTED) % 2 == 0)
    model = stretched(
        world,
        rule=OffsetRule(beyond=1.0, curve=curve, spares_several=True),
        rarity=np.where(is_known, np.arange(N_FITTED) / N_KNOWN, 0.0),
        has_rarity=is_known,
        is_spared=is_spared,
    )
    vectors = model.embedding[names[N_KNOWN:]]
    model.save(tmp_path / "model.vecfill")
    loaded = vf.load(tmp_path / "model.vecfill")
    loaded.update({})
    np.testing.assert_allclose(loaded.embedding[names[N_KNOWN:]], vectors, atol=1e-8)
    # The offset moves all dimensions by as much as the entity is rare.
    heights = vectors.mean(axis=1)
    assert heights[is_spared[N_KNOWN:]].mean() < heights[~is_spared[N_KNOWN:]].mean() - 0.5
    row = world.later[world.names[N_FITTED]]
    added = loaded.add({"new town": row, "newtown": row})
    assert [added.explain(name).stretch for name in added.embedding.words] == [2.0, 3.0]
    one_word, several = added.embedding["newtown"].mean(), added.embedding["new town"].mean()
    assert one_word > several + 0.5


def test_an_entity_is_kept_with_the_vector_that_its_count_gave_it(tmp_path):
    rng = np.random.default_rng(0)
    names = [f"e{row}" for row in range(260)]
    latent, rarity = rng.normal(size=(260, 4)), np.linspace(0.0, 5.0, 260)
    vectors = np.sin(latent @ rng.normal(size=(4, 12))) + np.outer(rarity, rng.normal(size=12))
    facts = np.tanh(latent @ rng.normal(size=(4, 8)))
    counts = {name: float(np.exp(12 - rare)) for name, rare in zip(names, rarity, strict=True)}
    order = rng.permutation(200)
    base = vf.Embedding([names[row] for row in order], vectors[order])
    table = dict(zip(names[:240], facts[:240], strict=True))
    fitted = {name: counts[name] for name in table}
    model = vf.impute(table, base, names="off", counts=fitted).to_model()
    assert model._kept.rule.uses_own
    later = dict(zip(names[240:], facts[240:], strict=True))
    of_later = {name: counts[name] for name in list(later)[:10]}
    added = model.add(later, counts=of_later, keep=True)
    for name in later:
        np.testing.assert_array_equal(model.embedding[name], added.embedding[name])
    # Whatever is derived from the kept rows takes out the offset that they got.
    rows = [model.names.row(name) for name in later]
    assumed = model._offsets.assumed[np.searchsorted(model._unknown, rows)]
    np.testing.assert_allclose(assumed[:10], [-np.log(counts[name]) for name in of_later])
    model.save(tmp_path / "m.vecfill")
    again = vf.load(tmp_path / "m.vecfill")
    np.testing.assert_array_equal(again.embedding["e245"], added.embedding["e245"])
