"""Checks for what you add to vecfill, as scikit-learn has `check_estimator` for estimators.

Each check runs its subject through everything that vecfill does with one of its own, and raises
`AssertionError` with what does not hold.
"""

from __future__ import annotations

import gzip
import json
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
from vecfill.living.model import LivingModel, load
from vecfill.model.known import KnownRows
from vecfill.model.predictors import PAPER, Predictor
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, New, Unknown
from vecfill.run import impute
from vecfill.trust.prove.signals import Seen, seen_of

__all__ = ["check_codec", "check_predictor", "check_signal"]

N_KNOWN, N_FITTED, N_ROWS, N_DIMS = 60, 80, 90, 5

Signal = Callable[[Seen], np.ndarray]


def _made() -> tuple[np.ndarray, np.ndarray]:
    """Return rows that tell their vectors, and the vectors."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, 3))
    return rows, np.tanh(rows @ rng.normal(size=(3, N_DIMS)))


def check_predictor(predictor: Predictor) -> None:
    """Check that a predictor can be used wherever one of vecfill's own can.

    It is run through `impute`, `explain`, `add`, `save` and `load`. A predictor that no model file
    can hold must be refused by `save`.

    Examples
    --------
    >>> from vecfill.model.predictors import Nearest
    >>> check_predictor(Nearest(n_neighbors=3))
    """
    _check_rows(predictor)
    rows, vectors = _made()
    names = [f"entity {row}" for row in range(N_ROWS)]
    facts = dict(zip(names, rows.tolist(), strict=True))
    later = {name: facts.pop(name) for name in names[N_FITTED:]}
    known = dict(zip(names[:N_KNOWN], vectors, strict=False))
    # A mean, say, gives everybody one vector, and that is what it is for.
    result = impute(facts, known, method=predictor, names="off", force=True)
    assert np.isfinite(result.embedding.vectors).all(), "some imputed vector is not finite"
    assert result.confidence is not None, "no confidence was learnt"
    json.dumps(predictor.to_dict())
    assert predictor.in_words(), "in_words gives nothing to say"
    assert result.explain(result.embedding.words[0]).contributors, "nothing explains a vector"
    model = result.to_model()
    added = model.add(later)
    assert np.isfinite(added.embedding.vectors).all(), "some added vector is not finite"
    added.explain(names[-1])
    _check_file(model, later)


def _check_file(model: LivingModel, later: dict[str, list[float]]) -> None:
    """Check that a model comes back from its file, or is not written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.vecfill"
        try:
            model.save(path)
        except InputError:
            assert not path.exists(), "save refused the model, and left a file"
            return
        one, other = model.add(later), load(path).add(later)
        assert one.embedding.equals(other.embedding), "a loaded model adds other vectors"


def _check_rows(predictor: Predictor) -> None:
    """Check what a predictor gives to some rows, to all, and to rows that come later."""
    rows, vectors = _made()
    space, is_known = Space(rows[:N_FITTED]), np.arange(N_FITTED) < N_KNOWN
    given = KnownRows(np.where(is_known[:, None], vectors[:N_FITTED], np.nan), is_known)
    before = given.embedding.copy()
    every = predictor.predict(space, given)
    assert every.vectors.shape == (N_FITTED - N_KNOWN, N_DIMS), "vectors of another shape"
    np.testing.assert_array_equal(given.embedding, before, "predict changed what it was given")
    some = predictor.predict(space, given, Unknown(np.array([1, 7])))
    np.testing.assert_allclose(
        some.vectors, every.vectors[[1, 7]], atol=1e-6, err_msg="asking for some rows changes them"
    )
    for prediction, wanted in ((every, ALL), (some, Unknown(np.array([1, 7])))):
        n_wanted, mix = len(prediction.vectors), prediction.composition.mix
        shares = mix.shares(np.arange(n_wanted))
        spread = mix.spread(given.known, tol=1e-10)
        np.testing.assert_allclose(
            shares @ given.known, spread, atol=1e-6, err_msg="spread is not the sum of shares"
        )
        if prediction.composition.trend is None:
            np.testing.assert_allclose(
                spread, prediction.vectors, atol=1e-6, err_msg="vectors are not what is mixed"
            )
        for name in ("misfit", "straight", "tightness"):
            column = getattr(mix, name)()
            assert column.shape == (n_wanted,), f"{name} has not one number for each wanted row"
        assert wanted.numbers(given).size == n_wanted
    later = predictor.predict(space, given, New(rows[N_FITTED:]))
    alone = predictor.predict(space, given, New(rows[-1:]))
    np.testing.assert_allclose(
        alone.vectors[0],
        later.vectors[-1],
        atol=1e-6,
        err_msg="a row that comes later depends on those that come with it",
    )


def check_signal(signal: Signal) -> None:
    """Check that a signal tells one finite number of each row, whenever the row came.

    Examples
    --------
    >>> check_signal(lambda seen: np.abs(seen.vectors).max(axis=1))
    """
    rows, vectors = _made()
    space, is_known = Space(rows[:N_FITTED]), np.arange(N_FITTED) < N_KNOWN
    given = KnownRows(np.where(is_known[:, None], vectors[:N_FITTED], np.nan), is_known)
    for wanted in (ALL, New(rows[N_FITTED:])):
        seen = seen_of(given, PAPER.predict(space, given, wanted), wanted)
        column = signal(seen)
        assert column.shape == (len(seen.vectors),), "not one number for each row"
        assert np.isfinite(column).all(), "some number is not finite"
        np.testing.assert_array_equal(signal(seen), column, "another number when asked again")


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
        rows, vectors = _made()
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
        _check_file(result.to_model(), later)


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
