"""What vecfill does not know (a column type, a kind of source, a way to fold names) is one entry.

Each works in impute, add, save, load and the report.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from vecfill.inputs.later_rows import Facts, LaterRows, Reader
from vecfill.inputs.names.folding import Folding, folded
from vecfill.inputs.names.matching import match_names
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.column_types import COLUMN_TYPES, Block, ColumnType
from vecfill.inputs.table.columns import Categories
from vecfill.inputs.table.frames import keyed
from vecfill.requests import KINDS, LEVELS

N_KNOWN, N_FITTED, N_ROWS = 50, 60, 66


@dataclass(frozen=True, eq=False)
class ColourColumn(ColumnType):
    """A column of colours as HTML writes them."""

    name: str
    length: float

    @classmethod
    def fitted(cls, column, scales):
        """Take columns of nothing but colours."""
        is_text = isinstance(column, Categories)
        if not is_text or not all(re.fullmatch("#[0-9a-f]{6}", label) for label in column.labels):
            return None
        encoder = cls(column.name, scales.categorical_weight)
        rows = encoder.rows(column.texts())

        def write(part):
            part[:] = rows

        names = [f"{column.name} {primary}" for primary in ("red", "green", "blue")]
        return Block(column, names, encoder, write, f"Column {column.name!r} holds colours.")

    def rows(self, labels):
        """Return the share of each primary colour; zeros for what is no colour."""
        colours = [bytes.fromhex((label or "#000000")[1:]) for label in labels]
        return self.length * np.array([list(colour) for colour in colours]) / 255

    def encoded(self, cells):
        """Return the same of new cells."""
        return self.rows(cells.labels()), ["new colour"] * len(cells.entities)


@dataclass(frozen=True, eq=False)
class PlacesReader(Reader):
    """Places on a globe."""

    radius: float

    def rows(self, latitudes, longitudes):
        """Return points in space."""
        lat, lon = np.radians(latitudes), np.radians(longitudes)
        points = (np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat))
        return self.radius * np.column_stack(points)

    def read(self, facts, *, encoder=None):
        """Return points of new places."""
        return LaterRows.usual(facts, self.rows(facts.numbers("lat"), facts.numbers("lon")))


def read_places(frame, reading, **_switches):
    """Return the domain of a table of places."""
    entities, columns = keyed(frame, reading.key)
    facts = Facts(entities, dict(zip(columns.names, columns.cells, strict=True)))
    reader = PlacesReader(2.0)
    points = reader.read(facts).rows
    return Domain(entities, points, ("x", "y", "z"), notes=("On a globe.",), reader=reader)


def goes_on(result, later, tmp_path):
    """Check that a result has a report, and that its model adds the same after it was loaded."""
    vf.write_report(result, tmp_path / "report.html")
    model = result.to_model()
    model.save(tmp_path / "model.vecfill")
    added = model.add(later)
    again = vf.load(tmp_path / "model.vecfill").add(later)
    assert added.embedding.words == tuple(later["name"])
    np.testing.assert_array_equal(added.embedding.vectors, again.embedding.vectors)
    return added, (tmp_path / "report.html").read_text("utf-8")


def centred_cosine(vectors, truth):
    vectors, truth = vectors - truth.mean(axis=0), truth - truth.mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(truth, axis=1)
    return ((vectors * truth).sum(axis=1) / lengths).mean()


@pytest.fixture
def colours():
    """Return a table of colours, the vectors that they tell, and add the type meanwhile."""
    rng = np.random.default_rng(0)
    shares = rng.integers(0, 256, (N_ROWS, 3))
    table = pd.DataFrame(
        {
            "name": [f"paint {row}" for row in range(N_ROWS)],
            "colour": ["#" + bytes(row).hex() for row in shares.astype(np.uint8)],
        }
    )
    COLUMN_TYPES.insert(0, ColourColumn)
    yield table, np.tanh(shares / 255 @ rng.normal(size=(3, 4)))
    COLUMN_TYPES.remove(ColourColumn)


def test_a_type_of_column_is_one_entry(colours, tmp_path):
    table, vectors = colours
    known = dict(zip(table["name"], vectors[:N_KNOWN], strict=False))
    result = vf.impute(table[:N_FITTED], known, categorical_weight=2.0, names="off")
    assert result.domain.columns == ("colour red", "colour green", "colour blue")
    assert result.domain.vectors.max() > 1.5
    added, page = goes_on(result, table[N_FITTED:], tmp_path)
    assert centred_cosine(added.embedding.vectors, vectors[N_FITTED:]) > 0.9
    assert all("new colour" in added.unusual[name] for name in table["name"][N_FITTED:])
    assert "holds colours" in page


def test_without_its_entry_a_column_of_colours_is_an_identifier(colours):
    table, _ = colours
    COLUMN_TYPES.remove(ColourColumn)
    try:
        with pytest.raises(vf.InputError, match="another value in every row"):
            vf.as_domain(table)
    finally:
        COLUMN_TYPES.insert(0, ColourColumn)


def test_a_kind_of_source_is_one_entry(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "name": [f"place {row}" for row in range(N_ROWS)],
            "lat": rng.uniform(-60, 60, N_ROWS),
            "lon": rng.uniform(-180, 180, N_ROWS),
        }
    )
    monkeypatch.setitem(KINDS, "places", read_places)
    vectors = PlacesReader(1.0).rows(table["lat"], table["lon"]) @ rng.normal(size=(3, 4))
    known = dict(zip(table["name"], vectors[:N_KNOWN], strict=False))
    result = vf.impute(table[:N_FITTED], known, kind="places", names="off")
    assert result.domain.columns == ("x", "y", "z")
    added, page = goes_on(result, table[N_FITTED:], tmp_path)
    assert centred_cosine(added.embedding.vectors, vectors[N_FITTED:]) > 0.9
    assert "On a globe" in page
    # One of several sources, named as the shell does it.
    path, facts = tmp_path / "places.csv", table[["name"]].assign(noise=rng.normal(size=N_ROWS))
    table[:N_FITTED].to_csv(path, index=False)
    several = vf.impute(facts[:N_FITTED], known, source=[f"globe={path}:places"], names="off")
    assert [source.name for source in several.sources if source.is_kept] == ["globe"]


def test_a_way_to_fold_names_is_one_entry(monkeypatch, tmp_path):
    def in_any_order(words):
        return ["_".join(sorted(word.split("_"))) for word in folded(words)]

    monkeypatch.setitem(LEVELS, "any order", Folding(in_any_order))
    report = match_names(["Worth, Fort", "York New"], ["fort_worth", "york"], level="any order")
    assert report.words == {"Worth, Fort": "fort_worth"}
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=(N_ROWS, 2))
    names = [f"Town {row}" for row in range(N_ROWS)]
    table = pd.DataFrame({"name": names, "x": numbers[:, 0], "y": numbers[:, 1]})
    vectors = numbers @ rng.normal(size=(2, 4))
    known = {f"{row} town": vectors[row] for row in range(N_KNOWN)}
    with pytest.raises(vf.InputError, match="no entity"):
        vf.impute(table[:N_FITTED], known, names="off")
    result = vf.impute(table[:N_FITTED], known, match="any order", names="off")
    assert len(result.matches.words) == N_KNOWN
    assert result.matches.words["Town 7"] == "7 town"
    added, _ = goes_on(result, table[N_FITTED:], tmp_path)
    assert centred_cosine(added.embedding.vectors, vectors[N_FITTED:]) > 0.9


def test_a_domain_has_one_to_n_sources():
    one = Domain(("a", "b"), np.eye(2), ("x", "y"))
    assert [source.name for source in one.sources] == ["table"]
    assert one.sources[0].variants == (one,)
    assert not one.is_joint
    several = vf.as_domain(replace(one, members=one.sources))
    assert several.is_joint
    assert several.sources == several.members
