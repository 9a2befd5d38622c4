"""What a fuzzed file must hold to, and the valid files that fuzzing starts from.

`tests/io/test_fuzz.py` tries a few thousand inputs in every test run, `scripts/fuzz.py` as many as
its caller has minutes for. Both call `check_answers`.
"""

from __future__ import annotations

import gzip
import tempfile
import zipfile
import zlib
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
from tests.io.conftest import fasttext_bytes

from vecfill import Embedding, impute, load, read_embedding, write_embedding
from vecfill.errors import VecfillError
from vecfill.io import FORMAT_NAMES, Scan, append_rows, verify

DETECTED = "detected"
MODEL = "model"
TARGETS = (*FORMAT_NAMES, DETECTED, MODEL)
"""What can be fuzzed: a file read as each format, one whose format vecfill tells by itself, and the
file of a model, whose bytes an input says how to change."""

NAMES = ("bin", "vec", "glove", "safetensors", "npz", "parquet", "arrow", "csv", "tsv", "vec.gz")
CORPUS = Path(__file__).parent / "corpus"
_WORDS = ("the", "dog")


def seed_files() -> dict[str, bytes]:
    """Return small valid files: one for each suffix, a fastText model, and a zip."""
    vectors = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    made = Embedding(["the", "zürich", "caf\udce9", "x"], vectors)
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in NAMES:
            path = Path(folder) / f"made.{name}"
            write_embedding(made, path)
            found[name] = path.read_bytes()
    found["fasttext"] = fasttext_bytes([b"cat", b"dog"])
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("made.bin", found["bin"])
    found["zip"] = packed.getvalue()
    return found


def corpus_files(target: str) -> dict[str, bytes]:
    """Return files that were answered wrongly once, by what is odd about them."""
    folder = CORPUS / target
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*"))}


def check_answers(path: Path, data: bytes, target: str = DETECTED) -> bool:
    """Write `data` to `path` and use it in every way; return whether it could be read whole.

    Only errors of ours may come out, and where reading works, all ways of reading must agree.
    """
    if target == MODEL:
        return _check_model(path, data)
    kind = None if target == DETECTED else target
    path.write_bytes(data)
    whole = _read(path, kind, None)
    # The other ways take longer, so an eighth of the files that cannot be read must do.
    if whole is not None or zlib.crc32(data) % 8 == 0:
        _check_part(path, kind, whole)
        _check_scan(path, kind, whole)
    if zlib.crc32(data) % 8 == 0:
        _check_appending(path, kind, whole)
    assert path.read_bytes() == data, "an input is never written to"
    return whole is not None


@cache
def model_file() -> bytes:
    """Return the file of a small model."""
    rng = np.random.default_rng(0)
    names = [f"item{n}" for n in range(30)]
    rows = rng.normal(size=(30, 3))
    known = dict(zip(names[:20], rows[:20] @ rng.normal(size=(3, 4)), strict=True))
    found = impute(dict(zip(names, rows, strict=True)), known, method="paper")
    with tempfile.TemporaryDirectory() as folder:
        found.save(Path(folder) / "made.model")
        return (Path(folder) / "made.model").read_bytes()


def changed_model(edits: bytes) -> bytes:
    """Return the file of a model with changes of six bytes each: where, how much, and what."""
    data = bytearray(model_file())
    for first in range(0, len(edits) - 5, 6):
        place = int.from_bytes(edits[first : first + 4], "big") % len(data)
        how_much, value = edits[first + 4 : first + 6]
        data[place : place + how_much % 5] = bytes([value]) * (how_much // 5 % 5)
    return bytes(data)


def _check_model(path: Path, edits: bytes) -> bool:
    """Check that a changed model is refused, or is the model that it was."""
    path.write_bytes(changed_model(edits))
    new = {"new": [0.5, 0.5, 0.5]}
    try:
        found = load(path, check=True)
        added = found.add(new).embedding
    except VecfillError:
        return False
    # Into another file: the first is mapped.
    whole_path = path.with_name("whole.model")
    whole_path.write_bytes(model_file())
    whole = load(whole_path)
    assert repr(found.predictor) == repr(whole.predictor)
    assert found.embedding.vectors.tobytes() == whole.embedding.vectors.tobytes()
    assert added.vectors.tobytes() == whole.add(new).embedding.vectors.tobytes()
    return True


def _read(path: Path, kind: str | None, words: tuple[str, ...] | None) -> Embedding | None:
    try:
        return read_embedding(path, words, format=kind)
    except VecfillError:
        return None


def _check_part(path: Path, kind: str | None, whole: Embedding | None) -> None:
    some = _read(path, kind, _WORDS)
    if whole is None:
        return
    assert np.isfinite(whole.vectors).all()
    assert some is not None, "a file that can be read whole can be read in part"
    wanted = [word for word in _WORDS if word in whole.words]
    assert some.words == tuple(wanted)
    if wanted:
        assert some.vectors.tobytes() == whole[wanted].tobytes()


def _check_scan(path: Path, kind: str | None, whole: Embedding | None) -> None:
    try:
        with Scan(path, format=kind) as scan:
            words = [word for batch in scan for word in batch.words]
    except VecfillError:
        assert whole is None
        return
    if whole is not None:
        assert tuple(dict.fromkeys(words)) == whole.words


def _check_appending(path: Path, kind: str | None, whole: Embedding | None) -> None:
    target = path.with_name("target")
    target.unlink(missing_ok=True)
    n_dims = 3 if whole is None else whole.n_dims
    new = Embedding(["brand-new"], np.ones((1, n_dims), np.float32))
    try:
        append_rows(path, target, new, format=kind)
    except VecfillError:
        assert not target.exists(), "a refusal leaves no file"
        return
    found = verify(path, target, format=kind)
    assert found.ok, found.difference
    assert found.added == ("brand-new",)
    if whole is not None:
        again = read_embedding(target, format=kind)
        assert again.words == (*whole.words, "brand-new")
        assert again[list(whole.words)].tobytes() == whole.vectors.tobytes()


def packed(data: bytes, how: int) -> bytes:
    """Return `data` as it is, or inside gzip, a zip, or the arrays of an `.npz`.

    Checksums keep random changes out of packed files, so these are packed after the change.
    """
    if how == 1:
        return gzip.compress(data, 1, mtime=0)
    if how == 2:
        return _zipped({"made.vec": data})
    if how == 3:
        place = len(data) // 2
        return _zipped({"words.npy": data[:place], "vectors.npy": data[place:]})
    return data


def _zipped(members: dict[str, bytes]) -> bytes:
    file = BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return file.getvalue()
