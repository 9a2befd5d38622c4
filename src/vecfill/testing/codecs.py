"""Check that a file format reads, writes, appends, replaces and verifies."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from vecfill.embedding import Embedding
from vecfill.errors import InputError, VecfillError
from vecfill.io import (
    Scan,
    append_rows,
    iter_words,
    read_embedding,
    replace_rows,
    verify,
    write_embedding,
)
from vecfill.io.codec import Codec
from vecfill.io.codecs import codec_for_writing, codec_named, codec_of
from vecfill.io.sources import Source
from vecfill.model.predictors import PAPER
from vecfill.run import impute
from vecfill.testing.made import N_FITTED, N_KNOWN, N_ROWS, made
from vecfill.testing.predictors import check_file


def check_codec(name: str) -> None:
    """Check that a format in `CODECS` can be used wherever one of vecfill's own can.

    A file is written and told by its content, and read whole, in part, packed and cut. Rows are
    added and replaced, which `verify` must prove and must not take for unchanged. Then vectors of
    the file are imputed from, and the model is saved and loaded. A format that can only be read
    must refuse to be written; no more of it is checked.

    Examples
    --------
    >>> check_codec("glove")
    """
    codec: Codec[Any] = codec_named(name)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"made{codec.suffixes[0] if codec.suffixes else ''}"
        rows, vectors = made()
        names = [f"entity{row}" for row in range(N_ROWS)]
        awkward = [codec.word_of(word) for word in ("New York", "zürich", "a,b", "it's", '"', "7")]
        words = [*awkward, *(codec.word_of(word) for word in names[len(awkward) : N_KNOWN])]
        embedding = Embedding(words, vectors[:N_KNOWN].astype(np.float32))
        if codec.read_only:
            _must_refuse(lambda: write_embedding(embedding, path, format=name), "to be written")
            return
        write_embedding(embedding, path, format=name)
        _check_reading(codec, path, embedding)
        _check_adding(codec, path, embedding)
        _check_replacing(path, embedding)
        facts = dict(zip([*words, *names[N_KNOWN:]], rows.tolist(), strict=True))
        later = {entity: facts.pop(entity) for entity in names[N_FITTED:]}
        result = impute(facts, path, method=PAPER, names="off", force=True)
        assert set(result.embedding.words) == set(names[N_KNOWN:N_FITTED]), "others were imputed"
        check_file(result.to_model(), later)


def _detected(path: Path) -> Codec[Any]:
    with Source(path) as source:
        return codec_of(source)


def _must_refuse(action: Callable[[], object], deed: str) -> None:
    try:
        action()
    except VecfillError:
        return
    raise AssertionError(f"the format does not refuse {deed}")


def _check_reading(codec: Codec[Any], path: Path, embedding: Embedding) -> None:
    """Check that a file is known for what it is, and gives back what was written."""
    content = path.read_bytes()
    for suffix in codec.suffixes:
        assert codec_for_writing(f"x{suffix}") is codec, f"{suffix} asks for another format"
    assert _detected(path) is codec, "its file is taken for another format"
    assert read_embedding(path).equals(embedding), "what is read is not what was written"
    assert read_embedding(path, dtype="float32").equals(embedding), "dtype= changes what is read"
    some = [embedding.words[7], embedding.words[0]]
    part = read_embedding(path, [*some, "absent"])
    assert part.words == tuple(some), "words= reads others"
    assert np.array_equal(part.vectors, embedding[some]), "words= reads other vectors"
    listed = [word for batch in iter_words(path) for word in batch]
    assert listed == list(embedding.words), "iter_words gives other words"
    with Scan(path) as scan:
        n_words = sum(len(batch.words) for batch in scan)
    assert n_words == scan.n_words == len(embedding), "a scan counts other rows"
    packed = path.with_name(f"{path.name}.gz")
    packed.write_bytes(gzip.compress(content))
    assert read_embedding(packed).equals(embedding), "inside gzip it is read as something else"
    cut = path.with_name(f"cut{path.suffix}")
    for n_bytes in (1, len(content) // 2, len(content) - 1):
        cut.write_bytes(content[:n_bytes])
        try:
            n_read = len(read_embedding(cut, format=codec.name))
        except VecfillError:
            continue
        assert n_read <= len(embedding), "a file that is cut short has more rows"


def _check_adding(codec: Codec[Any], path: Path, embedding: Embedding) -> None:
    """Check that rows are added behind those of a file, which stay as they are."""
    before, target = path.read_bytes(), path.with_name(f"longer{path.suffix}")
    added = Embedding(["new1", "new2"], -embedding.vectors[:2])
    append_rows(path, target, added)
    assert _detected(target) is codec, "the file with more rows is taken for another format"
    longer = read_embedding(target)
    assert longer.words == (*embedding.words, *added.words), "other words after adding two"
    n_known = len(embedding)
    assert np.array_equal(longer.vectors[:n_known], embedding.vectors), "adding changes vectors"
    assert np.allclose(longer.vectors[n_known:], added.vectors, rtol=1e-4, atol=1e-4), (
        "added vectors are read as others"
    )
    proof = verify(path, target)
    assert proof.ok, f"verify sees a difference: {proof.difference}"
    assert proof.added == added.words, f"verify sees other words added: {proof.added}"
    assert path.read_bytes() == before, "adding rows changed the original"
    known = Embedding(embedding.words[:1], embedding.vectors[:1])
    other = path.with_name(f"twice{path.suffix}")
    _must_refuse(lambda: append_rows(path, other, known), "a word that it has already")
    _must_refuse(lambda: _proven(verify(target, path)), "a file that lacks rows")


def _proven(proof: Any) -> None:
    if not proof.ok:
        raise InputError(proof.difference)


def _check_replacing(path: Path, embedding: Embedding) -> None:
    """Check that one row becomes another, and that this does not go unseen."""
    target = path.with_name(f"other{path.suffix}")
    word, row = embedding.words[3], 3
    vector = (embedding.vectors[row] * 2).astype(np.float32)
    changes = replace_rows(path, target, Embedding([word], vector[None]))
    assert [(change.word, change.row) for change in changes] == [(word, row + 1)], (
        f"other rows are said to be replaced: {changes}"
    )
    changed = read_embedding(target)
    expected = embedding.vectors.copy()
    expected[row] = changed.vectors[row]
    assert np.allclose(changed.vectors[row], vector, rtol=1e-4, atol=1e-4), "the row is another"
    assert np.array_equal(changed.vectors, expected), "replacing a row changes others"
    assert verify(path, target, replaced=[word]).ok, "verify denies a row that was replaced"
    proof = verify(path, target)
    assert not proof.ok, "verify does not see another vector"
    assert proof.differing_word == word, "verify names another word than the one that differs"
