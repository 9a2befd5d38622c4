"""Known vectors that are not reliable: treated as unknown, imputed, written in their place."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from tests.shell import N_KNOWN, World
from vecfill.inputs.names.matching import match_names
from vecfill.io import verify
from vecfill.requests import Reading, Replacement

SUFFIXES = ["bin", "vec", "glove", "safetensors", "npz", "parquet", "arrow", "csv", "tsv"]
RARE = ("town3", "town11", "town40")


@pytest.fixture
def world(tmp_path, capsys):
    found = World(tmp_path, capsys)
    found.write("counts.csv", counted(found.towns))
    return found


def counted(towns: list[str]) -> str:
    """Return a file of counts: 5 for the rare towns, 100 for the others."""
    return "entity,count\n" + "".join(f"{town},{5 if town in RARE else 100}\n" for town in towns)


def enriched(world: World, name: str = "base.vec", **options):
    suffix = name.rsplit(".", 1)[1]
    options = {"method": "paper", "overwrite": True, **options}
    return vf.enrich(world.folder / name, world.folder / "towns.csv",
                     world.folder / f"new.{suffix}", **options)  # fmt: skip


def changed_words(world: World, base: vf.Embedding, name: str = "new.vec") -> set[str]:
    new = vf.read_embedding(world.folder / name)
    return {word for word in base.words if not np.array_equal(new[word], base[word])}


def rare(world: World) -> dict[str, object]:
    return {"counts": world.folder / "counts.csv", "min_count": 40}


# What is treated as unknown.


def test_entities_below_a_count_are_unknown_and_keep_their_rows_unless_asked(world):
    done = enriched(world, **rare(world))
    assert done.counts["known"] == N_KNOWN - len(RARE)
    assert done.counts["replaced"] == 0
    assert done.left_out == RARE
    assert verify(world.folder / "base.vec", world.folder / "new.vec").ok
    assert "Treated as unknown: 3 of 45 matched entities, counted less than 40 times." in done.notes


def test_a_count_at_the_limit_is_enough(world):
    assert enriched(world, counts=world.folder / "counts.csv", min_count=5).counts["known"] == 45
    assert enriched(world, counts=world.folder / "counts.csv", min_count=5.5).counts["known"] == 42


def test_words_from_a_rank_on_are_unknown(world):
    # Rows 1 and 2 are "the" and "of": town0 is at row 3, and town40 at row 43.
    done = enriched(world, from_rank=43)
    assert done.left_out == ("town40", "town41", "town42", "town43", "town44")
    told = "Treated as unknown: 5 of 45 matched entities, whose word is at row 43 of the embedding"
    assert any(note.startswith(told) for note in done.notes)


@pytest.mark.parametrize("options", [{"min_count": 40}, {"from_rank": 43}])
def test_a_file_and_an_embedding_in_memory_give_the_same(world, options):
    options = {"counts": world.folder / "counts.csv", "method": "paper", **options}
    table = world.folder / "towns.csv"
    one = vf.impute(table, world.folder / "base.vec", **options)
    other = vf.impute(table, world.base, **options)
    assert one.embedding.equals(other.embedding)
    assert one.matches.set_aside == other.matches.set_aside
    excluded = vf.impute(
        table, world.base, method="paper", counts=options["counts"],
        exclude=[entity for entity, _ in one.matches.set_aside],
    )  # fmt: skip
    assert one.embedding.equals(excluded.embedding)


def test_an_entity_without_a_count_keeps_its_word(world):
    counts = {town: 100 for town in world.towns if town != "town7"} | {"town3": 1}
    done = enriched(world, counts=counts, min_count=40)
    assert done.matches.set_aside == (("town3", "town3"),)
    assert "town7" in done.matches.words


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"min_count": 40}, "min_count=40 needs counts"),
        ({"from_rank": 1}, "No known entity is left to learn from. Treated as unknown: 45 of 45"),
        ({"from_rank": 0}, "from_rank=0 is not a whole number of at least 1"),
        ({"blend": 10.0}, "blend=10 needs replace="),
        ({"blend": 10.0, "replace": True, "exclude": "town3"}, "blend=10 needs counts"),
        ({"blend": 0.0, "replace": True, "counts": {}, "exclude": "town3"}, "blend=0 would keep"),
        ({"replace": True}, "replace='excluded' needs exclude=, min_count= or from_rank="),
        ({"replace": "nothing.txt"}, "replace='nothing.txt' is not a file, nor 'excluded'"),
        ({"replace": 3}, "replace=3 is not understood"),
    ],
)
def test_what_cannot_be_meant_is_refused(world, options, why):
    before = world.names()
    with pytest.raises(vf.InputError, match=re.escape(why)):
        enriched(world, **options)
    assert world.names() == before


def test_matches_and_a_limit_of_counts_contradict_each_other(world):
    matches = match_names(world.towns, world.base.words)
    with pytest.raises(vf.OptionError, match=r"min_count=3\.0 cannot be used here: matches= says"):
        vf.impute(world.folder / "towns.csv", world.base, matches=matches, min_count=3, counts={})


# What is replaced.


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_the_rows_in_question_are_replaced_in_every_format(world, suffix):
    vf.write_embedding(world.base, world.folder / f"b.{suffix}")
    done = enriched(world, f"b.{suffix}", replace=True, **rare(world))
    assert (done.counts["replaced"], done.counts["added"], done.left_out) == (3, 15, ())
    assert changed_words(world, world.base, f"new.{suffix}") == {*RARE}
    new = vf.read_embedding(world.folder / f"new.{suffix}")
    assert new.words == (*world.base.words, *done.added.values())
    for town in RARE:
        assert np.allclose(new[town], done.result.embedding[town], atol=1e-5)
    proof = verify(world.folder / f"b.{suffix}", world.folder / f"new.{suffix}", replaced=RARE)
    assert (proof.ok, proof.n_added) == (True, 15)


def test_nothing_is_replaced_unless_asked(world):
    for options in ({}, {"exclude": ["town3"]}, rare(world), {"from_rank": 10}):
        assert enriched(world, **options).replaced == {}
        assert verify(world.folder / "base.vec", world.folder / "new.vec").ok


def test_the_manifest_lists_what_was_replaced(world):
    done = enriched(world, replace=True, **rare(world))
    about = json.loads((world.folder / "new.vec.manifest.json").read_text())
    assert about["options"]["replace"] is True
    assert about["options"]["min_count"] == 40
    assert set(about["inputs"]) == {"embedding", "table", "counts"}
    assert [each["entity"] for each in about["replaced"]] == list(RARE)
    old, new = ((world.folder / name).read_bytes().splitlines() for name in ("base.vec", "new.vec"))
    for each in about["replaced"]:
        assert each["word"] == each["entity"]
        assert each["row"] == int(each["word"][4:]) + 3
        assert each["sha256_before"] == hashlib.sha256(old[each["row"]]).hexdigest()
        assert each["sha256_after"] == hashlib.sha256(new[each["row"]]).hexdigest()
    assert about["counts"]["replaced"] == len(done.replaced) == 3


def test_excluded_entities_with_a_row_of_their_name_are_replaced(world):
    done = enriched(world, replace=True, exclude=["town3", "nobody"])
    assert list(done.replaced) == ["town3"]
    assert changed_words(world, world.base) == {"town3"}


def test_a_row_that_is_only_like_an_excluded_name_is_not_its_own(world):
    world.write_table("towns.csv", ["Town3 Inc.", *world.towns[:3], *world.towns[4:]], world.places)
    done = enriched(world, replace=True, exclude=["Town3 Inc."])
    assert done.replaced == {}
    assert done.added["Town3 Inc."] == "Town3_Inc."
    assert verify(world.folder / "base.vec", world.folder / "new.vec").ok
    # Too rare is another matter: the word is the right one, and its vector is poor.
    done = enriched(world, replace=True, counts={"Town3 Inc.": 1, **dict.fromkeys(world.towns, 9)},
                    min_count=5)  # fmt: skip
    assert {entity: change.word for entity, change in done.replaced.items()} == {
        "Town3 Inc.": "town3"
    }
    assert changed_words(world, world.base) == {"town3"}


def test_entities_can_be_named_in_a_list_or_in_a_file(world):
    world.write("poor.txt", "town3\n\nnobody\ntown50\n")
    for named in (world.folder / "poor.txt", (name for name in ("town3", "nobody", "town50"))):
        done = enriched(world, replace=named)
        assert list(done.replaced) == ["town3"]
        assert "town50" in done.added
        assert changed_words(world, world.base) == {"town3"}
        assert "1 name to replace is not in the table: 'nobody'." in done.notes
    assert json.loads((world.folder / "new.vec.manifest.json").read_text())["options"][
        "replace"
    ] == ["town3", "nobody", "town50"]


def test_a_named_row_may_hold_nan(world):
    vectors = np.array(world.base.vectors)
    vectors[world.base.row("town3")] = np.nan
    content = b"%d 8\n" % len(vectors)
    for word, vector in zip(world.base.words, vectors, strict=True):
        content += word.encode() + b" " + vector.astype("<f4").tobytes()
    world.write("nan.bin", content)
    with pytest.raises(vf.FormatError, match="'town3' holds NaN"):
        enriched(world, "nan.bin")
    assert list(enriched(world, "nan.bin", replace=["town3"]).replaced) == ["town3"]
    assert np.isfinite(vf.read_embedding(world.folder / "new.bin").vectors).all()


def swapped(world: World) -> vf.Embedding:
    """Write an embedding of many towns in which the vectors of two are swapped."""
    rng = np.random.default_rng(1)
    places = rng.normal(size=(150, 3))
    towns = [f"town{i}" for i in range(150)]
    vectors = (places @ rng.normal(size=(3, 8))).astype(np.float32)
    far = int(np.argmin(vectors @ vectors[5] / np.linalg.norm(vectors, axis=1)))
    vectors[[5, far]] = vectors[[far, 5]]
    world.write_table("towns.csv", towns, places)
    base = vf.Embedding(towns[:140], vectors[:140])
    vf.write_embedding(base, world.folder / "base.vec", overwrite=True)
    return base


def test_suspicious_rows_are_found_by_a_first_run_and_imputed_by_a_second(world):
    base = swapped(world)
    plain = vf.impute(world.folder / "towns.csv", base)
    suspicious = {each.entity for each in plain.suspicious}
    assert "town5" in suspicious
    done = enriched(world, method="auto", replace="suspicious")
    assert set(done.replaced) == suspicious == changed_words(world, base)
    assert not suspicious & set(done.matches.words)
    again = vf.impute(world.folder / "towns.csv", base, exclude=sorted(suspicious))
    assert done.result.embedding.equals(again.embedding)
    assert any("contradicted by their neighbours" in note for note in done.notes)


def test_without_unknown_entities_nothing_is_suspicious_and_it_says_so(world):
    world.write_table("towns.csv", world.towns[:N_KNOWN], world.places)
    done = enriched(world, replace="suspicious")
    assert "No entity is unknown, so no known one was checked for being suspicious." in done.notes
    assert (world.folder / "new.vec").read_bytes() == (world.folder / "base.vec").read_bytes()


def test_a_blend_weighs_the_old_vector_by_its_count(world):
    done = enriched(world, replace=True, **rare(world))
    new, old = done.result.embedding, world.base
    blended = enriched(world, replace=True, blend=15, **rare(world))
    assert blended.manifest["options"]["blend"] == 15
    read = vf.read_embedding(world.folder / "new.vec")
    for town in RARE:  # each was counted 5 times
        assert np.allclose(read[town], 0.25 * old[town] + 0.75 * new[town], atol=1e-5)
    assert changed_words(world, old) == {*RARE}


def test_a_blend_needs_a_count_of_each_replaced_entity(world):
    counts = {town: 50 for town in world.towns if town != "town3"}
    with pytest.raises(vf.InputError, match=r"blend=5 needs a count .* 1 have none: 'town3'"):
        enriched(world, counts=counts, replace=["town3", "town4"], blend=5)


def test_a_row_is_kept_if_its_new_vector_lacks_confidence(world):
    options = {"replace": True, "method": "auto", **rare(world)}
    done = enriched(world, min_confidence=1.0, force=True, **options)
    assert done.replaced == {}
    assert any(note.startswith("3 rows were left unchanged") for note in done.notes)
    assert verify(world.folder / "base.vec", world.folder / "new.vec").ok


# Traps.


def test_a_row_that_two_entities_share_is_not_replaced_for_one_of_them(world):
    world.write_table("towns.csv", ["Town1", "TOWN1", *world.towns[2:]], world.places)
    with pytest.raises(vf.InputError, match=r"'town1' would be replaced for 'TOWN1', but it is al"):
        enriched(world, replace=["TOWN1"])
    with pytest.raises(vf.InputError, match=r"'Town1' and 'TOWN1' would both be written as 'town1"):
        enriched(world, replace=["TOWN1", "Town1"])
    done = enriched(world, replace=["TOWN1"], exclude=["Town1"])
    assert changed_words(world, world.base) == {"town1"}
    assert done.added["Town1"] == "Town1"


def test_an_excluded_name_does_not_take_the_row_of_a_known_entity(world):
    world.write_table("towns.csv", ["Town1 Inc.", *world.towns[1:]], world.places)
    with pytest.raises(vf.InputError, match=r"'town1' would be replaced for 'town1', but it is al"):
        enriched(world, replace=True, exclude=["town1"])


def test_the_row_of_an_alias_is_replaced_and_not_that_of_the_name(world):
    world.write_table("towns.csv", ["town1", *world.towns[10:]], world.places)
    options = {"aliases": {"town1": "the"}, "counts": dict.fromkeys(world.towns, 9) | {"town1": 1}}
    done = enriched(world, replace=True, min_count=5, **options)
    assert done.replaced["town1"].word == "the"
    assert changed_words(world, world.base) == {"the"}
    with pytest.raises(vf.InputError, match="both excluded and given the alias"):
        enriched(world, replace=True, exclude=["town1"], **options)


def test_of_a_word_that_comes_twice_only_the_first_row_is_replaced(world):
    lines = (world.folder / "base.vec").read_text().splitlines()
    twice = lines[6].replace(" 0", " 1").replace(" -0", " -1")
    assert lines[6].startswith("town3 ")
    world.write("base.vec", "\n".join(["48 8", *lines[1:], twice]) + "\n")
    done = enriched(world, replace=["town3"])
    assert done.replaced["town3"].row == 6
    new = (world.folder / "new.vec").read_text().splitlines()
    assert [row for row in range(1, 49) if new[row] != [*lines, twice][row]] == [6]


# In a shell.


def test_the_whole_job_in_a_shell(world):
    status, out, _ = world.run(
        "impute", "base.vec", "towns.csv", "--counts", "counts.csv", "--min-count", "40",
        "--replace", "excluded", "--blend", "15", "--method", "paper", "-o", "new.vec",
    )  # fmt: skip
    assert status == 0
    assert "44 words unchanged, 3 replaced, 15 added" in out
    status, out, _ = world.run(
        "verify", "base.vec", "new.vec", "--replaced", "new.vec.manifest.json"
    )
    assert status == 0
    assert "44 rows unchanged, 3 replaced, 15 added\n~ town3\n~ town11\n~ town40\n+ " in out
    assert "row of 'town3'" in world.run("verify", "base.vec", "new.vec")[2]
    found = world.json("verify", "base.vec", "new.vec", "--replaced", "new.vec.manifest.json")
    assert [each["row"] for each in found["replaced"]] == [6, 14, 43]
    world.run("impute", "base.vec", "towns.csv", "--from-rank", "43", "-o", "rank.vec")
    assert verify(world.folder / "base.vec", world.folder / "rank.vec").ok


def test_a_manifest_of_another_run_is_refused(world):
    for name, blend in (("one.vec", "15"), ("two.vec", "3")):
        world.run(
            "impute", "base.vec", "towns.csv", "--counts", "counts.csv", "--min-count", "40",
            "--replace", "excluded", "--blend", blend, "--method", "paper", "-o", name,
        )  # fmt: skip
    message = world.refused("verify", "base.vec", "two.vec", "--replaced", "one.vec.manifest.json")
    assert "one.vec.manifest.json does not belong to these files" in message


def test_refusals_speak_the_language_of_a_shell(world):
    message = world.refused("impute", "base.vec", "towns.csv", "-o", "x.vec", "--min-count", "4")
    assert "--min-count 4 needs counts" in message
    message = world.refused(
        "impute", "base.vec", "towns.csv", "-o", "x.vec", "--replace", "excluded"
    )
    assert "--replace 'excluded' needs --exclude, --min-count or --from-rank" in message


def test_requests_keep_lists_as_they_were_given():
    assert Replacement(replace={"a": 1}.keys()).replace == ("a",)
    assert Replacement().asked() == []
    assert Reading(min_count=3).min_count == 3


# The paper's own case.


def sector_accuracy(vectors: np.ndarray, sectors: np.ndarray, k: int) -> float:
    """Return how often the sectors of the k nearest companies vote for a company's own."""
    distances = np.linalg.norm(vectors[:, None] - vectors[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    near = np.argsort(distances, axis=1, kind="stable")[:, :k]
    votes = [pd.Series(sectors[each]).value_counts().sort_index().idxmax() for each in near]
    return float(np.mean(np.array(votes) == sectors))


def test_words_below_a_frequency_are_imputed_as_in_the_paper_by_one_command(world, finance):
    told = pd.read_parquet(finance / "authors_fullMat.parquet")
    vectors = told.drop(columns=["label", "freq"]).to_numpy(np.float32)
    vf.write_embedding(vf.Embedding(told.index, vectors), world.folder / "self.vec")
    told["freq"].to_csv(world.folder / "freq.csv", header=["count"], index_label="entity")
    status, out, _ = world.run(
        "impute", "self.vec", str(finance / "sp500_affinity_487.parquet"), "--counts", "freq.csv",
        "--min-count", "40", "--replace", "excluded", "--method", "paper", "-o", "imputed.vec",
    )  # fmt: skip
    assert status == 0
    assert "383 words unchanged, 104 replaced, 0 added" in out
    is_rare = (told["freq"] < 40).to_numpy()
    new = vf.read_embedding(world.folder / "imputed.vec")[list(told.index)]
    assert np.array_equal((new != vectors).any(axis=1), is_rare)
    sectors = told["label"].to_numpy()
    before, after = (sector_accuracy(each, sectors, k=8) for each in (vectors, new))
    print("accuracy of sectors", before, after)
    assert before == pytest.approx(0.150, abs=0.001)  # Table 1 of the paper says 0.150
    assert after == pytest.approx(0.329, abs=0.02)
