"""Files of a user: matching names and reading their rows is one pass, and reads what two would."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from vecfill import read_embedding
from vecfill.errors import FormatError
from vecfill.inputs.files import read_inputs
from vecfill.requests import Reading

ROWS = [
    ("The", [1.0, 2.0]), ("cat", [3.0, 4.0]), ("Cat", [5.0, 6.0]), ("odd", [np.nan, 1.0]),
    ("cat", [7.0, 8.0]), ("the", [9.0, 1.0]), ("Dog", [np.inf, 0.0]), ("dog", [2.0, 2.0]),
    ("the", [0.0, 0.0]),
]  # fmt: skip


@pytest.fixture
def binary(tmp_path):
    body = b"".join(word.encode() + b" " + struct.pack("<2f", *vector) for word, vector in ROWS)
    path = tmp_path / "rows.bin"
    path.write_bytes(b"%d 2\n" % len(ROWS) + body)
    return path


@pytest.mark.parametrize("entities", [["cat", "the", "new"], ["dog", "Cat"], ["CAT", "none"]])
@pytest.mark.parametrize("level", ["exact", "case", "loose"])
def test_one_pass_reads_the_rows_and_notes_that_two_would(binary, entities, level):
    table = {name: [float(row)] for row, name in enumerate(entities)}
    found = read_inputs(binary, table, Reading(match=level))
    words = list(found.matches.words.values())
    again = read_embedding(binary, words)
    assert found.embedding.equals(again)
    assert found.embedding.notes == again.notes
    assert found.rows == {word: [each for each, _ in ROWS].index(word) for word in words}
    assert (found.n_words, found.format) == (len(ROWS), "word2vec-binary")


def test_a_candidate_with_nan_is_refused_only_if_it_is_matched(binary):
    found = read_inputs(binary, {"dog": [1.0], "new": [2.0]}, Reading())
    assert found.embedding["dog"].tolist() == [2.0, 2.0]
    with pytest.raises(FormatError, match="vector of 'Dog' holds NaN or infinity") as alone:
        read_embedding(binary, ["Dog"])
    with pytest.raises(FormatError) as matched:
        read_inputs(binary, {"Dog": [1.0], "new": [2.0]}, Reading())
    assert str(matched.value) == str(alone.value)


def test_names_are_read_by_the_whole_vocabulary_in_the_same_pass(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("oslo 1 2\nrome 3 4\nfort 5 6\nworth 7 8\n")
    table = {"Oslo": [0.0], "Fort Worth": [1.0]}
    plain = read_inputs(path, table, Reading(names="parts")).domain
    fused = read_inputs(path, table, Reading(names="parts"), fuses=True).domain
    assert not plain.is_joint
    assert fused.is_joint
    (names,) = fused.sources[1].variants
    assert names.entities == ("Fort Worth",)
    assert names.vectors[0].round(0).tolist() == [6.0, 7.0, 5.0, 6.0, 7.0, 8.0]
    # Few words besides the entities teach nothing, so by default names are left alone.
    assert not read_inputs(path, table, Reading(), fuses=True).domain.is_joint
