from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest

from vecfill.machine import memory


@pytest.fixture
def asked(monkeypatch):
    """Return who was asked to give memory back."""
    asked: list[object] = []
    pool = SimpleNamespace(release_unused=lambda: asked.append("arrow"))
    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(default_memory_pool=lambda: pool))
    monkeypatch.setattr(sys, "platform", "linux")
    library = SimpleNamespace(malloc_trim=asked.append)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
    return asked


def test_arrow_and_the_c_library_give_back_what_is_free(asked):
    memory.give_back()
    assert asked == ["arrow", 0]


def test_who_is_not_there_is_not_asked(asked, monkeypatch):
    monkeypatch.delitem(sys.modules, "pyarrow")
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace())
    memory.give_back()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", None)
    memory.give_back()
    assert asked == []
