"""The web service of the examples, through HTTP."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import vecfill as vf

pytestmark = pytest.mark.extra


def test_the_service_gives_a_vector_confidence_and_reasons(tmp_path, monkeypatch):
    testclient = pytest.importorskip("fastapi.testclient", reason="FastAPI is not installed")
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(80, 2))
    vectors = np.tanh(latent @ rng.normal(size=(2, 5)))
    names = [f"item{n}" for n in range(80)]
    table = pa.table({"name": names, "a": latent[:, 0], "b": latent[:, 1]})
    known = dict(zip(names[:60], vectors, strict=False))
    vf.impute(table, known, names="off").save(tmp_path / "m.vecfill")
    path = Path(__file__).parents[1] / "examples" / "service.py"
    spec = importlib.util.spec_from_file_location("service", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "service", module)  # pydantic looks types up there
    spec.loader.exec_module(module)
    users = [f"user{n}" for n in range(12)]
    tastes = vf.Embedding(users, rng.normal(size=(12, 5)))
    vf.write_embedding(tastes, tmp_path / "users.vec")
    paths = str(tmp_path / "m.vecfill"), str(tmp_path / "users.vec")
    client = testclient.TestClient(module.service(*paths))
    assert client.get("/").json()["entities"] == 80
    answer = client.post("/entities", json={"name": "new", "facts": {"a": 0.1, "b": -0.2}})
    told = answer.json()
    assert answer.status_code == 200
    assert len(told["vector"]) == 5
    assert 0 <= told["confidence"] <= 1
    assert len(told["reasons"]) == 5
    scores = [user["score"] for user in told["users"]]
    best = [users[place] for place in np.argsort(-(tastes.vectors @ told["vector"]))[:10]]
    assert [user["user"] for user in told["users"]] == best
    assert scores == sorted(scores, reverse=True)
    there = client.post("/entities", json={"name": "item3", "facts": {"a": 0.1, "b": -0.2}})
    assert there.status_code == 409
    bad = client.post("/entities", json={"name": "new", "facts": {"c": 1}})
    assert bad.status_code == 422
    assert "lacks 'a', 'b', which the model was fitted with" in bad.json()["detail"]
    halves = [
        b'{"name": "a\\ud800", "facts": {"a": 0.1, "b": 1}}',
        b'{"name": "a", "facts": {"a": "\\ud800", "b": 1}}',
        b'{"name": 5, "facts": "\\ud800"}',
    ]
    headers = {"content-type": "application/json"}
    for body in halves:
        refused = client.post("/entities", content=body, headers=headers)
        assert refused.status_code == 422
        assert "surrogates not allowed" in refused.text or "valid string" in refused.text
