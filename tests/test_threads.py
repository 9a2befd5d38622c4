"""A model that several threads use, and whose file others replace meanwhile."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vecfill as vf
from vecfill.errors import FormatError, InputError
from vecfill.io.mapped import digest_of
from vecfill.model.predictors import KernelRidge, LatentSemantic

N_ROWS, N_KNOWN, N_LATER, N_DIMS, N_THREADS = 40, 30, 30, 4, 8
RNG = np.random.default_rng(0)
PLACES = dict(zip([f"town{n}" for n in range(N_ROWS + N_LATER)],
                  RNG.normal(size=(N_ROWS + N_LATER, 3)), strict=True))  # fmt: skip
FITTED, LATER = list(PLACES)[:N_ROWS], list(PLACES)[N_ROWS:]
VECTORS = {name: np.tanh(place @ np.ones((3, N_DIMS)) + place[0]) for name, place in PLACES.items()}


@pytest.fixture(scope="module")
def result() -> vf.Result:
    known = {name: VECTORS[name] for name in FITTED[:N_KNOWN]}
    places = {name: PLACES[name] for name in FITTED}
    return vf.impute(places, known, method=LatentSemantic(), names="off", force=True)


@pytest.fixture
def path(result: vf.Result, tmp_path: Path) -> Path:
    result.save(tmp_path / "towns.vecfill")
    return tmp_path / "towns.vecfill"


def fingerprint(model: vf.LivingModel) -> tuple[str, ...]:
    """Return what differs between two states of a model."""
    known, imputed = model.known, model.embedding
    names = " ".join([*known.words, "|", *imputed.words])
    return names, digest_of(known.vectors), digest_of(imputed.vectors)


def test_a_reader_keeps_the_model_that_it_opened(path):
    reader, writer = vf.load(path), vf.load(path)
    before = fingerprint(vf.load(path))
    writer.update({"town35": np.ones(N_DIMS)})
    writer.save(path, overwrite=True)
    assert fingerprint(reader) == before, "nothing of it was read before the file was replaced"
    assert fingerprint(vf.load(path)) == fingerprint(writer) != before
    reader.reload()
    assert fingerprint(reader) == fingerprint(writer)


def test_a_reload_that_fails_leaves_the_model_as_it_was(path):
    model = vf.load(path)
    before = fingerprint(model)
    path.unlink()
    with pytest.raises(InputError, match="does not exist"):
        model.reload()
    assert fingerprint(model) == before


def test_a_model_that_was_never_in_a_file_cannot_be_reloaded(result):
    with pytest.raises(InputError, match="was not loaded from a file"):
        result.to_model().reload()


def test_a_file_that_others_wrote_into_is_named_as_such(path):
    model = vf.load(path)
    with path.open("r+b") as file:
        file.seek(-8, os.SEEK_END)
        file.write(b"x" * 8)
    os.utime(path, ns=(0, 0))  # Two writes in one tick of the clock have one time.
    with pytest.raises(FormatError, match="written into after it was opened"):
        _ = model.embedding


def test_a_change_that_is_refused_changes_nothing(result):
    model = result.to_model()
    before = fingerprint(model)
    with pytest.raises(InputError, match="at least one must stay"):
        model.forget(FITTED)
    with pytest.raises(InputError, match="must have 4 finite numbers"):
        model.update({"town0": np.zeros(N_DIMS), "town1": [1.0]})
    assert fingerprint(model) == before


def test_what_was_added_is_explained_by_the_model_that_added_it(result):
    model = result.to_model()
    added = model.add({"town50": PLACES["town50"]})
    explanation = added.explain("town50")
    model.forget(list(explanation.contributors)[:3])
    again = added.explain("town50")
    assert again.contributors == explanation.contributors
    assert again.shares.tobytes() == explanation.shares.tobytes()


def test_an_entity_that_was_forgotten_can_be_added_again(result, tmp_path):
    model, place = result.to_model(), {"town38": PLACES["town60"]}
    model.forget("town38")
    added = model.add(place, keep=True)
    assert added.embedding.words == ("town38",)
    model.save(tmp_path / "m.vecfill")
    loaded = vf.load(tmp_path / "m.vecfill")
    np.testing.assert_array_equal(loaded.embedding["town38"], added.embedding["town38"])
    assert loaded.embedding.words.count("town38") == 1
    assert loaded.add(place).already_imputed == ("town38",)
    loaded.update({"town38": np.ones(N_DIMS)})
    assert "town38" in loaded.known
    assert "town38" not in loaded.embedding


@pytest.mark.parametrize(
    ("misuse", "message"),
    [
        (lambda model: model.update(None), "known is NoneType, not a mapping"),
        (lambda model: model.forget(None), "names is NoneType. Pass names"),
        (lambda model: model.update({"town0": [1e300] * 4}), "holds 1e.300, .*float32.*at most"),
        (lambda model: model.update({"town0": [[1.0], [1.0, 2.0]]}), "the vector of 'town0' is no"),
        (lambda model: model.explain("town38", n="3"), "n='3', but at least one"),
        (
            lambda model: model.add({"a": dict.fromkeys("012", "\ud800")}),
            "half of a surrogate pair",
        ),
        (lambda model: model.add(np.ones((1, 3)), names=5), "needs a list of names"),
    ],
)
def test_a_mistake_of_the_caller_is_not_blamed_on_the_file(misuse, message, tmp_path):
    vectors = np.array([VECTORS[name] for name in FITTED[:N_KNOWN]], np.float32)
    known = vf.Embedding(FITTED[:N_KNOWN], vectors)
    places = {name: PLACES[name] for name in FITTED}
    vf.impute(places, known, method="paper", names="off").save(tmp_path / "m.vecfill")
    with pytest.raises(InputError, match=message):
        misuse(vf.load(tmp_path / "m.vecfill"))


class Calls:
    """Calls of many threads on one model, and the order in which those that change it came."""

    def __init__(self, model: vf.LivingModel, folder: Path) -> None:
        self.model, self.folder = model, folder
        self.calling = threading.local()
        self.in_order: list[Callable[[Any], Any]] = []
        self.seen: set[tuple[str, ...]] = set()
        self.n_refused, self.strange = 0, []
        self._lock, model._changes = model._changes, self

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.in_order.append(self.calling.change)
        self._lock.release()

    def make(self, number: int, n_calls: int) -> None:
        """Make calls of all kinds, chosen by the number of the thread."""
        rng = np.random.default_rng(number)
        for _ in range(n_calls):
            kind = rng.choice(["add", "keep", "update", "forget", "explain", "look", "save"],
                              p=[0.25, 0.1, 0.2, 0.2, 0.1, 0.1, 0.05])  # fmt: skip
            try:
                self._call(kind, str(rng.choice(list(PLACES))), rng.normal(size=N_DIMS), number)
            except InputError:
                self.n_refused += 1
            except Exception as error:
                self.strange.append((kind, repr(error)))

    def _call(self, kind: str, name: str, vector: np.ndarray, number: int) -> None:
        model = self.model
        if kind == "add":
            added = model.add({name: PLACES[name], "town unheard of": PLACES[name]})
            added.explain("town unheard of")
        elif kind == "explain":
            model.explain(name)
        elif kind == "look":
            self.seen.add(fingerprint(model._now()))
        elif kind == "save":
            file = self.folder / f"{number}.vecfill"
            model.save(file, overwrite=True)
            self.seen.add(fingerprint(vf.load(file, check=True)))
        else:
            self.calling.change = change = {
                "keep": lambda model: model.add({name: PLACES[name]}, keep=True),
                "update": lambda model: model.update({name: vector}),
                "forget": lambda model: model.forget([name]),
            }[kind]
            change(model)


def checked_in_threads(model: vf.LivingModel, serial: vf.LivingModel, folder: Path, n: int) -> None:
    """Let threads make `n` calls; the end, and all that was seen, is that of a serial order."""
    calls = Calls(model, folder)
    threads = [threading.Thread(target=calls.make, args=(number, n // N_THREADS))
               for number in range(N_THREADS)]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not calls.strange
    assert calls.n_refused < n / 2
    states = {fingerprint(serial)}
    for change in calls.in_order:
        try:
            change(serial)
        except InputError:
            continue
        states.add(fingerprint(serial))
    assert fingerprint(model) == fingerprint(serial)
    assert calls.seen <= states, "somebody saw a model that never was"
    model.save(folder / "end.vecfill")
    assert fingerprint(vf.load(folder / "end.vecfill", check=True)) == fingerprint(serial)


@pytest.mark.parametrize("method", [LatentSemantic(), KernelRidge()], ids=["paper", "kernel"])
def test_calls_of_eight_threads_are_those_of_some_serial_order(method, tmp_path):
    known = {name: VECTORS[name] for name in FITTED[:N_KNOWN]}
    places = {name: PLACES[name] for name in FITTED}
    fitted = vf.impute(places, known, method=method, names="off", force=True)
    checked_in_threads(fitted.to_model(), fitted.to_model(), tmp_path, 240)


@pytest.mark.slow
def test_ten_thousand_calls_of_eight_threads_are_those_of_some_serial_order(result, tmp_path):
    checked_in_threads(result.to_model(), result.to_model(), tmp_path, 10_000)
