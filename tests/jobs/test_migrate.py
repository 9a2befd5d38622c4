"""From one embedding to another: what stays, what is translated, and what is advised."""

from __future__ import annotations

import json

import numpy as np
import pytest

import vecfill as vf
from vecfill.errors import InputError
from vecfill.machine.lengths import unit
from vecfill.model.predictors import Adjoint, Affine, AffineKernel, Procrustes
from vecfill.testing import check_predictor

N_DOCUMENTS, N_PAIRS = 400, 150
NAMES = [f"doc{number}" for number in range(N_DOCUMENTS)]


def made(noise: float = 0.1, *, dtype: type = np.float32) -> tuple[vf.Embedding, vf.Embedding]:
    """Return documents of an old model, all of them, and of a new one; both of length 1."""
    rng = np.random.default_rng(0)
    meaning = rng.normal(size=(N_DOCUMENTS, 8))
    old = unit(meaning @ rng.normal(size=(8, 12)) + noise * rng.normal(size=(N_DOCUMENTS, 12)))
    new = unit(meaning @ rng.normal(size=(8, 16)) + noise * rng.normal(size=(N_DOCUMENTS, 16)))
    return vf.Embedding(NAMES, old.astype(dtype)), vf.Embedding(NAMES, new.astype(dtype))


def some(embedding: vf.Embedding, n: int = N_PAIRS) -> vf.Embedding:
    return vf.Embedding(embedding.words[:n], embedding.vectors[:n])


@pytest.mark.parametrize(
    "predictor", [Procrustes(), Affine(), Affine(strength=0.5), AffineKernel(), Adjoint()], ids=str
)
def test_maps_can_be_used_wherever_predictors_can(predictor):
    check_predictor(predictor)


def test_reembedded_vectors_come_back_bit_for_bit():
    old, new = made()
    embedding = vf.migrate(old, some(new)).embedding
    assert embedding is not None
    assert embedding.words == old.words
    np.testing.assert_array_equal(embedding[NAMES[:N_PAIRS]], new.vectors[:N_PAIRS])


def test_translated_vectors_are_near_what_reembedding_gives():
    old, new = made()
    embedding = vf.migrate(old, some(new)).embedding
    assert embedding is not None
    cosines = (embedding.vectors[N_PAIRS:] * new.vectors[N_PAIRS:]).sum(axis=1)
    assert cosines.mean() > 0.95


def test_unit_vectors_are_translated_to_unit_vectors():
    old, new = made()
    migration = vf.migrate(old, some(new))
    lengths = np.linalg.norm(migration.query(old.vectors[N_PAIRS:]), axis=1)
    np.testing.assert_allclose(lengths, 1.0, atol=1e-5)
    longer = vf.Embedding(new.words, 3.0 * new.vectors)
    lengths = np.linalg.norm(vf.migrate(old, some(longer)).query(old.vectors), axis=1)
    assert 1.5 < lengths.mean() < 3.5


def test_bounds_of_translated_vectors_hold_about_as_often_as_they_say():
    held = []
    for seed in range(4):
        old, new = made(0.5)
        rows = np.random.default_rng(seed).permutation(N_DOCUMENTS)
        sample = vf.Embedding([NAMES[row] for row in rows[:200]], new.vectors[rows[:200]])
        migration = vf.migrate(old, sample)
        mean = sample.vectors.mean(axis=0)
        assert migration.embedding is not None
        words = list(migration.words)
        steps, truth = (unit(side[words] - mean) for side in (migration.embedding, new))
        held.append(((steps * truth).sum(axis=1) >= migration.lower_bound).mean())
    assert 0.85 < np.mean(held) < 0.95


def test_documents_that_came_out_worst_are_to_be_embedded_first():
    old, new = made()
    vectors = old.vectors.copy()
    odd = np.arange(N_DOCUMENTS) % 10 == 9
    vectors[odd] = unit(np.random.default_rng(1).normal(size=(odd.sum(), 12)))
    migration = vf.migrate(vf.Embedding(NAMES, vectors), some(new))
    first = [int(name[3:]) for name in migration.first(20)]
    # A tenth of the documents is odd, so of twenty any order would have two.
    assert odd[first].sum() > 10


def test_queries_are_brought_to_the_old_space_and_documents_stay():
    old, new = made()
    migration = vf.migrate(old, some(new), side="queries", method=Affine())
    assert migration.embedding is None
    moved = migration.query(new.vectors[N_PAIRS:])
    found = (moved @ old.vectors.T).argmax(axis=1)
    assert (found == np.arange(N_PAIRS, N_DOCUMENTS)).mean() > 0.9
    single = migration.query(new.vectors[-1])
    np.testing.assert_allclose(single, moved[-1], atol=1e-6)


def test_a_file_gets_the_bits_that_memory_gets(tmp_path):
    old, new = made()
    vf.write_embedding(old, tmp_path / "old.parquet")
    vf.write_embedding(some(new), tmp_path / "sample.safetensors")
    table = tmp_path / "first.csv"
    output = tmp_path / "new.safetensors"
    migration = vf.migrate(
        tmp_path / "old.parquet", tmp_path / "sample.safetensors", output=output, table=table
    )
    in_memory = vf.migrate(old, some(new), n_jobs=1)
    assert in_memory.embedding is not None
    assert migration.embedding is None
    assert vf.read_embedding(output).equals(in_memory.embedding)
    lines = table.read_text().splitlines()
    assert len(lines) == 1 + N_DOCUMENTS - N_PAIRS
    assert lines[1].split(",")[0].strip('"') == migration.first(1)[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "first.csv", "new.safetensors", "old.parquet", "sample.safetensors"
    ]  # fmt: skip


def test_documents_that_only_the_new_model_has_are_kept():
    old, new = made()
    more = vf.Embedding([*new.words[:N_PAIRS], "fresh"], new.vectors[: N_PAIRS + 1])
    embedding = vf.migrate(old, more).embedding
    assert embedding is not None
    assert embedding.words[-1] == "fresh"
    np.testing.assert_array_equal(embedding["fresh"], new.vectors[N_PAIRS])


def noisy(embedding: vf.Embedding, noise: float) -> vf.Embedding:
    rng = np.random.default_rng(2)
    vectors = embedding.vectors + noise * rng.normal(size=embedding.vectors.shape)
    return vf.Embedding(embedding.words, unit(vectors).astype(np.float32))


def test_one_stays_if_the_new_model_is_worse():
    old, new = made()
    new = noisy(new, 0.5)
    queries = [f"q{row}" for row in range(N_DOCUMENTS)]
    asked = vf.Embedding(queries, noisy(old, 0.1).vectors), vf.Embedding(queries, new.vectors)
    relevant = {query: [name] for query, name in zip(queries, NAMES, strict=True)}
    evaluation = vf.evaluate_migration(old, some(new, 200), queries=asked, relevant=relevant, k=3)
    assert evaluation.best == "stay"
    assert evaluation.verdict.startswith("Stay")


def test_one_translates_if_the_old_model_is_worse_and_little_is_lost():
    old, new = made(0.02)
    queries = [f"q{row}" for row in range(N_DOCUMENTS)]
    asked = (
        vf.Embedding(queries, noisy(old, 0.6).vectors),
        vf.Embedding(queries, noisy(new, 0.05).vectors),
    )
    relevant = {query: [name] for query, name in zip(queries, NAMES, strict=True)}
    evaluation = vf.evaluate_migration(old, some(new, 200), queries=asked, relevant=relevant, k=3)
    assert evaluation.best in ("queries", "documents")
    assert "Translate the" in evaluation.verdict
    assert "relevant=" not in evaluation.verdict


def test_without_answers_the_verdict_says_what_it_does_not_know():
    old, new = made()
    evaluation = vf.evaluate_migration(old, some(new))
    assert "relevant=" in evaluation.verdict
    assert evaluation.mean("everything") == 1.0
    json.dumps(evaluation.to_dict())


def test_no_more_is_reembedded_than_the_budget_allows():
    old, new = made(0.6)
    free = vf.evaluate_migration(old, some(new), budget=0.0)
    assert set(free.options) == {"stay", "queries", "documents"}
    assert free.best in free.options


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"new_sample": lambda new: some(new, 20)}, "20 documents have a vector in both"),
        ({"side": "both"}, "side"),
        ({"queries": made()[1]}, "queries= is for side='queries'"),
        ({"side": "queries", "queries": made()[0]}, "have 12 dimensions"),
        ({"side": "queries", "output": "new.npz"}, "nothing to write"),
    ],
    ids=["few pairs", "side", "queries of documents", "dimensions", "output"],
)
def test_what_cannot_be_translated_is_refused(change, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    old, new = made()
    sample = change.pop("new_sample", some)(new)
    with pytest.raises(InputError, match=message):
        vf.migrate(old, sample, **change)
    assert not list(tmp_path.iterdir())


def test_queries_without_an_answer_are_refused():
    old, new = made()
    with pytest.raises(InputError, match="no query can be judged"):
        vf.evaluate_migration(old, some(new), queries=(old, new), relevant={"doc1": ["nowhere"]})


def test_the_shell_advises_and_translates(tmp_path, capsys):
    from vecfill.cli import main

    old, new = made()
    vf.write_embedding(old, tmp_path / "old.vec")
    vf.write_embedding(some(new), tmp_path / "sample.vec")
    files = [str(tmp_path / "old.vec"), str(tmp_path / "sample.vec")]
    assert main(["migrate", *files]) == 0
    assert "re-embed everything" in capsys.readouterr().out
    assert main(["migrate", *files, "-o", str(tmp_path / "new.vec"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n_translated"] == N_DOCUMENTS - N_PAIRS
    assert len(vf.read_embedding(tmp_path / "new.vec")) == N_DOCUMENTS
    assert main(["migrate", *files, "--table", str(tmp_path / "first.csv")]) == 2
    assert main(["migrate", *files, "-o", str(tmp_path / "new.vec"), "--relevant", files[0]]) == 2
