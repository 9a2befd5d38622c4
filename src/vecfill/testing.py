"""Checks for what you add to vecfill, as scikit-learn has `check_estimator` for estimators.

Each check runs its subject through everything that vecfill does with one of its own, and raises
`AssertionError` with what does not hold.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.embedding import Embedding
from vecfill.errors import InputError, VecfillError
from vecfill.exchange.stores import Columns, Filled, NewCells, Store, fill
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

__all__ = [
    "Change",
    "Interrupted",
    "check_codec",
    "check_predictor",
    "check_signal",
    "check_store",
]

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
        of_model, of_file = model.add(later), load(path).add(later)
        assert of_model.embedding.equals(of_file.embedding), "a loaded model adds other vectors"


def _check_rows(predictor: Predictor) -> None:
    """Check what a predictor gives to some rows, to all, and to rows that come later."""
    rows, vectors = _made()
    space, is_known = Space(rows[:N_FITTED]), np.arange(N_FITTED) < N_KNOWN
    known_rows = KnownRows(np.where(is_known[:, None], vectors[:N_FITTED], np.nan), is_known)
    before = known_rows.embedding.copy()
    every = predictor.predict(space, known_rows)
    assert every.vectors.shape == (N_FITTED - N_KNOWN, N_DIMS), "vectors of another shape"
    np.testing.assert_array_equal(known_rows.embedding, before, "predict changed what it was given")
    of_two = predictor.predict(space, known_rows, Unknown(np.array([1, 7])))
    np.testing.assert_allclose(
        of_two.vectors,
        every.vectors[[1, 7]],
        atol=1e-6,
        err_msg="asking for some rows changes them",
    )
    for prediction, wanted in ((every, ALL), (of_two, Unknown(np.array([1, 7])))):
        n_wanted, mix = len(prediction.vectors), prediction.composition.mix
        shares = mix.shares(np.arange(n_wanted))
        spread = mix.spread(known_rows.known, tol=1e-10)
        np.testing.assert_allclose(
            shares @ known_rows.known, spread, atol=1e-6, err_msg="spread is not the sum of shares"
        )
        if prediction.composition.trend is None:
            np.testing.assert_allclose(
                spread, prediction.vectors, atol=1e-6, err_msg="vectors are not what is mixed"
            )
        for name in ("misfit", "straight", "tightness"):
            column = getattr(mix, name)()
            assert column.shape == (n_wanted,), f"{name} has not one number for each wanted row"
        assert wanted.numbers(known_rows).size == n_wanted
    later = predictor.predict(space, known_rows, New(rows[N_FITTED:]))
    alone = predictor.predict(space, known_rows, New(rows[-1:]))
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
    known_rows = KnownRows(np.where(is_known[:, None], vectors[:N_FITTED], np.nan), is_known)
    for wanted in (ALL, New(rows[N_FITTED:])):
        predicted = seen_of(known_rows, PAPER.predict(space, known_rows, wanted), wanted)
        column = signal(predicted)
        assert column.shape == (len(predicted.vectors),), "not one number for each row"
        assert np.isfinite(column).all(), "some number is not finite"
        np.testing.assert_array_equal(signal(predicted), column, "another number when asked again")


@dataclass(frozen=True)
class Change:
    """What another client does to one row of a store."""

    action: str
    """``"insert"``, ``"update"``, ``"delete"``, or ``"fill"``: update if the vector is null."""
    cells: dict[str, Any]
    """The key, and the cells to insert or to update."""


Client = Callable[[Change], int | None]
"""Another client; it returns how many rows it changed, at least for a fill.

It raises `TimeoutError` if the store has locked the row.
"""


class Interrupted:
    """A client of a database, or what one of its methods returned, interrupted before each call."""

    def __init__(self, client: Any, meanwhile: Callable[[], None]) -> None:
        self._client, self._meanwhile = client, meanwhile

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if not callable(attribute):
            return attribute

        def call(*args: Any, **options: Any) -> Any:
            self._meanwhile()
            returned = attribute(*args, **options)
            # Cursors, transactions and builders talk to the database as well.
            is_client = any(hasattr(returned, word) for word in ("execute", "__enter__"))
            return Interrupted(returned, self._meanwhile) if is_client else returned

        return call

    def __enter__(self) -> Any:
        self._meanwhile()
        return Interrupted(self._client.__enter__(), self._meanwhile)

    def __exit__(self, *about: object) -> Any:
        self._meanwhile()
        return self._client.__exit__(*about)


Place = Callable[[pa.Table, Callable[[], None]], tuple[Store, Client]]

_COLUMNS = Columns("id", "embedding", "sure")
_LACKING = range(4)  # ids of the rows that lack a vector
_FOREIGN = [0.5] * N_DIMS
_HARMLESS = (
    Change("insert", {"id": 900, "x": 0.1, "y": 0.2, "z": 0.3, "embedding": _FOREIGN}),
    Change("insert", {"id": 901, "x": 0.4, "y": 0.5, "z": 0.6, "embedding": None}),
    Change("update", {"id": _LACKING[0], "x": 7.5}),
    Change("update", {"id": 20, "embedding": _FOREIGN}),
    Change("delete", {"id": 21}),
)
_OVERLAPPING = (
    Change("fill", {"id": _LACKING[1], "embedding": _FOREIGN}),
    Change("delete", {"id": _LACKING[2]}),
)


def check_store(place: Place) -> None:
    """Check that a store loses nothing while another client writes to it.

    The other client inserts, fills, changes and deletes rows between reading and writing, and
    before each call while vectors are written. Nothing of its rows may be lost, none of ours may
    be half there, what an error says must be true, and a second run must finish the job.

    Parameters
    ----------
    place
        A function of an Arrow table (columns ``id``, ``x``, ``y``, ``z``, ``embedding``) and of a
        function `meanwhile`. It makes a new place that holds the table and returns a `Store` of it
        and another client: a function of a `Change`. The store calls `meanwhile` whenever it talks
        to the database; `Interrupted` does this for the client that the store is made of.

    Examples
    --------
    >>> def place(table, meanwhile):
    ...     connection = duckdb.connect()
    ...     ...
    ...     store = DuckDBTable(Interrupted(connection, meanwhile), "items")
    ...     return store, other_client
    >>> check_store(place)  # doctest: +SKIP
    """
    for changes in (_HARMLESS, *((*_HARMLESS, change) for change in _OVERLAPPING)):
        call, is_reached = 0, True
        while is_reached:
            is_reached = _StoreCheck(place, changes, call).passes()
            call += 1


class _StoreCheck:
    """One job on a store while another client makes changes before one of the calls."""

    def __init__(self, place: Place, changes: tuple[Change, ...], call: int) -> None:
        rows, vectors = _made()
        cells = [None if row in _LACKING else vectors[row].tolist() for row in range(N_KNOWN)]
        table = pa.table(
            {
                "id": pa.array(range(N_KNOWN), pa.int64()),
                **{name: rows[:N_KNOWN, column] for column, name in enumerate("xyz")},
                "embedding": pa.array(cells, pa.list_(pa.float32(), N_DIMS)),
            }
        )
        self.made: list[Change] = []
        self.waiting, self.call = list(changes), call
        self.is_writing, self.n_calls = False, 0
        self.store, self.other = place(table, self._meanwhile)
        self.before = self._rows()
        self.where = f"another client writes before call {call} of a write: "

    def passes(self) -> bool:
        """Run the job twice; tell whether the store makes so many calls in a write."""
        keys, message = None, ""
        try:
            keys = self._filled(_Observed(self)).keys
        except InputError as error:
            message = str(error)
        is_reached = self.n_calls >= self.call
        self._act(is_last=True)
        self._check(keys, message)
        self._filled(self.store)
        self._check(None, "")
        is_whole = all(row["embedding"] is not None for row in self._rows().values())
        assert is_whole, f"{self.where}a second run leaves rows without a vector"
        assert self._filled(self.store).result is None, f"{self.where}a third run is not idle"
        return is_reached

    def _filled(self, store: Store) -> Filled:
        key, vector, confidence = vars(_COLUMNS).values()
        return fill(store, key=key, vector=vector, confidence=confidence, method="paper")

    def _meanwhile(self) -> None:
        if self.is_writing:
            self.n_calls += 1
            if self.n_calls == self.call:
                self._act()

    def _act(self, *, is_last: bool = False) -> None:
        """Make the changes that are not made yet; those that are locked out wait for the end."""
        self.is_writing = False  # the other client is not interrupted
        blocked = []
        for change in self.waiting:
            try:
                n_changed = self.other(change)
            except TimeoutError:
                assert not is_last, f"{self.where}rows stay locked"
                blocked.append(change)
            else:
                self.made += [] if change.action == "fill" and not n_changed else [change]
        self.waiting = blocked
        self.is_writing = not is_last

    def _rows(self) -> dict[int, dict[str, Any]]:
        table = self.store.read(_COLUMNS).to_pylist()
        return {int(row["id"]): row for row in table}

    def _check(self, keys: tuple[Any, ...] | None, message: str) -> None:
        """Compare the store with what both clients wrote."""
        rows, foreign = self._rows(), {key: dict(row) for key, row in self.before.items()}
        for change in self.made:
            key = change.cells["id"]
            foreign[key] = foreign.get(key, {}) | change.cells
            if change.action == "delete":
                del foreign[key]
        assert rows.keys() == foreign.keys(), f"{self.where}rows are lost, or come back"
        theirs = {key for key, row in foreign.items() if row["embedding"] is not None}
        for key, row in foreign.items():
            for name, value in row.items():
                if name != "embedding" or key in theirs:
                    _check_cell(rows[key][name], value, f"{self.where}{name} of row {key} is lost")
        ours = {key for key, row in rows.items() if row["embedding"] is not None} - theirs
        sure = {key for key, row in rows.items() if row.get("sure") is not None}
        assert ours == sure, f"{self.where}vector or confidence is there without the other"
        if keys is not None:
            filled = {int(key) for key in keys} & rows.keys()
            assert filled == ours, f"{self.where}other rows are filled than were named"
        elif message and ours:
            # What cannot be taken back must at least be counted.
            assert f"Written: {len(ours)} " in message, f"{self.where}wrong message {message!r}"


def _check_cell(value: Any, expected: Any, message: str) -> None:
    if expected is None:
        assert value is None, message
    else:
        assert value is not None, message
        np.testing.assert_allclose(value, expected, rtol=1e-6, err_msg=message)


class _Observed(Store):
    """A store that says when it writes."""

    def __init__(self, check: _StoreCheck) -> None:
        self.check, self.store = check, check.store
        self.key = check.store.key

    @property
    def name(self) -> str:
        return self.store.name

    def errors(self) -> tuple[type[Exception], ...]:
        return self.store.errors()

    def read(self, columns: Columns) -> pa.Table:
        return self.store.read(columns)

    def write(self, cells: NewCells, columns: Columns) -> None:
        if self.check.call == 0:
            self.check._act()
        self.check.is_writing = True
        try:
            self.store.write(cells, columns)
        finally:
            self.check.is_writing = False


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
