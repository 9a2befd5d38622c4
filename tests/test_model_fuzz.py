"""Files of models that were damaged, cut or edited: refused by our own error, or still valid."""

from __future__ import annotations

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vecfill as vf
from vecfill.io.mapped import digest_of
from vecfill.model.predictors import KernelRidge, LatentSemantic, Nearest
from vecfill.model.stack import Stack

N_FITTED, N_KNOWN = 60, 40

METHODS = {
    "stack": Stack((LatentSemantic(min_degree=4), KernelRidge(), Nearest()), (0.5, 0.3, 0.2)),
    "trend": LatentSemantic(min_degree=4, residual_share=0.5, preparation="rank_normal"),
}


def table(n_rows: int) -> dict[str, dict[str, Any]]:
    rng = np.random.default_rng(0)
    words = np.array(["river", "coast", "hill", "lake"])
    return {
        f"e{row}": {
            "mass": float(rng.normal()),
            "kind": str(words[rng.integers(4)]),
            "about": " ".join(words[rng.integers(0, 4, 5)]) + f" number {row}",
        }
        for row in range(n_rows)
    }


FACTS = table(N_FITTED + 3)
LATER = {name: FACTS[name] for name in list(FACTS)[N_FITTED:]}


@pytest.fixture(scope="module", params=METHODS)
def saved(request, tmp_path_factory) -> bytes:
    import pyarrow as pa

    rng = np.random.default_rng(1)
    fitted = pa.Table.from_pylist(
        [{"name": name, **FACTS[name]} for name in list(FACTS)[:N_FITTED]]
    )
    known = {f"e{row}": rng.normal(size=4) for row in range(N_KNOWN)}
    path = tmp_path_factory.mktemp("models") / "m.vecfill"
    vf.impute(fitted, known, method=METHODS[request.param], names="off").save(path)
    use(path)
    return path.read_bytes()


def use(path: Path) -> None:
    """Do everything that a model can do."""
    model = vf.load(path)
    _ = repr(model), model.known, model.embedding, model.confidence, model.strata, model.notes
    _ = model.suspicious, model.sources
    added = model.add(LATER)
    _ = added.explain(added.embedding.words[0]), added.to_dict(), repr(added)
    model.explain(model.embedding.words[0])
    model.update(known={model.embedding.words[0]: model.known.vectors[0]})
    model.forget([model.known.words[0]])


def is_refused(content: bytes, path: Path) -> bool:
    """Tell whether a model is refused by an error of ours; any other fails the test."""
    path.write_bytes(content)
    try:
        use(path)
    except vf.VecfillError:
        return True
    return False


def split(content: bytes) -> tuple[dict[str, Any], bytes]:
    end = 8 + int.from_bytes(content[:8], "little")
    return json.loads(content[8:end]), content[end:]


def joined(header: Any, body: bytes) -> bytes:
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + body


def signed(header: dict[str, Any], about: Any, body: bytes) -> bytes:
    """Return a file whose digests are right: edited on purpose, not damaged."""
    for name, entry in header.items():
        if name != "__metadata__" and name in about.get("digests", {}):
            first, last = entry["data_offsets"]
            about["digests"][name] = digest_of(np.frombuffer(body[first:last], np.uint8))
    text = json.dumps(about)
    digest = hashlib.sha256(text.encode()).hexdigest()
    header["__metadata__"] |= {"about": text, "about_sha256": digest}
    return joined(header, body)


@pytest.mark.parametrize("seed", range(2))
def test_flipped_and_overwritten_bytes(saved, seed, tmp_path):
    rng = np.random.default_rng(seed)
    end = 8 + int.from_bytes(saved[:8], "little")
    for _ in range(50):
        bad = bytearray(saved)
        place = int(rng.integers(end if rng.random() < 0.5 else len(bad)))
        if rng.random() < 0.5:
            bad[place] ^= 1 << int(rng.integers(8))
        else:
            n_bytes = int(rng.integers(1, 40))
            bad[place : place + n_bytes] = rng.bytes(min(n_bytes, len(bad) - place))
        assert is_refused(bytes(bad), tmp_path / "m.vecfill") or bytes(bad) == saved


def test_files_that_end_early_or_late(saved, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / "m.vecfill"
    for size in [0, 1, 7, 8, 9, *rng.integers(10, len(saved), 30)]:
        assert is_refused(saved[:size], path)
    for more in (1, 8, 1000):
        is_refused(saved + bytes(more), path)
    for first in rng.integers(8, len(saved) - 1, 20):
        n_bytes = int(rng.integers(1, 5000))
        assert is_refused(saved[:first] + saved[first + n_bytes :], path)


ODD = (None, True, -1, 0, 1, 7, 10**30, 0.5, "", "x", "#", [], {}, [1, "a"], {"#": "array"})


def mutated(value: Any, rng: np.random.Generator) -> Any:
    """Return JSON with one thing changed, at any depth."""
    if isinstance(value, dict | list) and value and rng.random() < 0.93:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key, copied = keys[int(rng.integers(len(keys)))], copy.copy(value)
        if rng.random() < 0.06:
            del copied[key]
        else:
            copied[key] = mutated(value[key], rng)
        return copied
    if isinstance(value, bool | int | float) and rng.random() < 0.5:
        return value + [1, -1, 5, 0.5, -(10**6)][int(rng.integers(5))]
    return ODD[int(rng.integers(len(ODD)))]


@pytest.mark.parametrize("seed", range(2))
def test_an_edited_description_with_the_right_digest(saved, seed, tmp_path):
    rng, (header, body) = np.random.default_rng(seed), split(saved)
    about = json.loads(header["__metadata__"]["about"])
    for _ in range(60):
        part = ["parts", "parts", "parts", "model"][int(rng.integers(4))]
        edited = {**about, part: mutated(about[part], rng)}
        is_refused(signed(copy.deepcopy(header), edited, body), tmp_path / "m.vecfill")


@pytest.mark.parametrize("seed", range(2))
def test_edited_arrays_with_the_right_digests(saved, seed, tmp_path):
    rng, (header, body) = np.random.default_rng(seed), split(saved)
    about = json.loads(header["__metadata__"]["about"])
    names = [name for name in header if name != "__metadata__"]
    for _ in range(40):
        copied, bad = copy.deepcopy(header), bytearray(body)
        name = names[int(rng.integers(len(names)))]
        entry = copied[name]
        first, last = entry["data_offsets"]
        if rng.random() < 0.5 and last > first:
            place = int(rng.integers(first, last))
            bad[place] = int(rng.integers(256))
        else:
            other = names[int(rng.integers(len(names)))]
            copied[name], copied[other] = copied[other], entry
        is_refused(signed(copied, copy.deepcopy(about), bytes(bad)), tmp_path / "m.vecfill")


def test_an_edited_header(saved, tmp_path):
    rng, (header, body) = np.random.default_rng(0), split(saved)
    for _ in range(40):
        is_refused(joined(mutated(header, rng), body), tmp_path / "m.vecfill")
