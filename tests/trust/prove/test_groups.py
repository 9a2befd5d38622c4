"""Groups that a user names get their own expectation and their own bounds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vecfill as vf

N_KNOWN = 400


class World:
    """Entities of three countries; those of Peru come back worse, which no feature shows."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(900, 5))
        country = rng.choice(["Chile", "Peru", "Cuba"], p=[0.6, 0.37, 0.03], size=900)
        noise = np.where(country == "Peru", 1.6, 0.2)[:, None]
        self.vectors = np.sin(rows) @ rng.normal(size=(5, 10)) + noise * rng.normal(size=(900, 10))
        names = pd.Index([f"e{row:03d}" for row in range(900)], name="name")
        self.table = pd.DataFrame(rows, index=names, columns=list("abcde"))
        self.country, self.names = country, names
        self.known = dict(zip(names[:N_KNOWN], self.vectors[:N_KNOWN], strict=True))

    def shares_held(self, embedding: vf.Embedding, bounds: np.ndarray) -> dict[str, float]:
        """The share of bounds that hold, by country."""
        rows = np.array([self.names.get_loc(word) for word in embedding.words])
        centre = self.vectors[:N_KNOWN].mean(axis=0)
        left, right = np.asarray(embedding.vectors) - centre, self.vectors[rows] - centre
        lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        holds = (left * right).sum(axis=1) / lengths >= bounds
        return {name: holds[self.country[rows] == name].mean() for name in ("Chile", "Peru")}


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def result(world) -> vf.Result:
    table = world.table[:700].assign(country=world.country[:700])
    method = vf.LatentSemantic(min_degree=8, preparation="standardized")
    return vf.impute(table, world.known, method=method, groups="country", ignore=("country",))


def test_bounds_hold_in_every_group_that_was_named(world, result):
    held = world.shares_held(result.embedding, result.confidence.lower_bound)
    plain = vf.impute(world.table[:700], world.known, method=result.predictor)
    held_before = world.shares_held(plain.embedding, plain.confidence.lower_bound)
    assert held_before["Peru"] < 0.85
    assert held_before["Chile"] > 0.95
    for share in held.values():
        assert share == pytest.approx(0.9, abs=0.08)
    # Groups change what is said about vectors, never the vectors.
    np.testing.assert_array_equal(plain.embedding.vectors, result.embedding.vectors)


def test_groups_of_few_known_entities_are_one_kind_that_is_not_proved(result):
    strata = {stratum.name: stratum for stratum in result.strata}
    assert strata["country Peru"].is_proved
    assert not strata["any other country"].is_proved
    assert any("any other country" in note for note in result.notes)


def test_new_entities_have_the_bounds_of_their_group(world, result, tmp_path):
    result.save(tmp_path / "m.vecfill")
    later = world.table[700:]
    for model in (result.to_model(), vf.load(tmp_path / "m.vecfill")):
        added = model.add(later.assign(country=world.country[700:]))
        held = world.shares_held(added.embedding, added.confidence.lower_bound)
        assert min(held.values()) > 0.84
        told = model.add(later, groups=dict(zip(later.index, world.country[700:], strict=True)))
        np.testing.assert_array_equal(told.confidence.values, added.confidence.values)


def test_new_entities_without_a_group_are_judged_as_all_and_a_note_says_so(world, result):
    model, later = result.to_model(), world.table[700:710]
    none = model.add(later)
    assert any("10 new entities have no country" in note for note in none.notes)
    peru = model.add(later.assign(country="Peru")).confidence.values
    chile = model.add(later.assign(country="Chile")).confidence.values
    unseen = model.add(later.assign(country="Bhutan")).confidence.values
    assert (peru < none.confidence.values).all()
    assert (none.confidence.values < chile).all()
    # What cannot be proved is taken to be as bad as the worst group that can.
    assert (unseen < none.confidence.values).all()


def test_kept_entities_keep_their_group(world, result):
    model = result.to_model()
    added = model.add(world.table[700:710].assign(country="Peru"), keep=True)
    np.testing.assert_allclose(model.confidence.values[-10:], added.confidence.values, atol=0.02)


def test_groups_that_cannot_be_read_are_refused(world):
    table, known = world.table[:500], world.known
    with pytest.raises(vf.InputError, match=r"groups='country' is no column of the table"):
        vf.impute(table, known, method="paper", groups="country")
    with pytest.raises(vf.InputError, match="names a column, and the table has none"):
        vf.impute(dict(zip(table.index, table.to_numpy(), strict=True)), known, groups="country")
    with pytest.raises(vf.InputError, match="groups is an object of type int"):
        vf.impute(table, known, method="paper", groups=3)
    model = vf.impute(table, known, method="paper").to_model()
    with pytest.raises(vf.InputError, match="groups= has no effect"):
        model.add(world.table[700:], groups={"e700": "Peru"})


def test_a_job_on_files_reads_groups_from_a_column_of_the_table(world, tmp_path):
    table = world.table[:500].assign(country=world.country[:500])
    table.to_csv(tmp_path / "table.csv")
    known = vf.Embedding([*world.known], world.vectors[:N_KNOWN])
    vf.write_embedding(known, tmp_path / "known.txt")
    done = vf.enrich(
        tmp_path / "known.txt",
        tmp_path / "table.csv",
        tmp_path / "out.txt",
        groups="country",
        ignore=("country",),
        method="paper",
    )
    names = [stratum.name for stratum in done.result.strata]
    assert "country Peru" in names
    assert done.result.confidence.values.size == 100
