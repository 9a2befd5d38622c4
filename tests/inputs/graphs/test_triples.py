"""Typed triples as a source: reading, features, restriction, adding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import vecfill as vf
from vecfill.errors import FormatError, InputError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.files import read_domain
from vecfill.inputs.graphs.triples import Triples, triples_of
from vecfill.inputs.graphs.typed_features import typed_domains
from vecfill.requests import Reading

Triple = tuple[str, str, str]


def films(n: int = 120, seed: int = 0) -> tuple[list[Triple], np.ndarray]:
    """Return triples of films, of which who directs and who acts say different things."""
    rng = np.random.default_rng(seed)
    people = rng.normal(size=(2, 12, 6))
    directs, acts = rng.integers(12, size=(2, n))
    triples = []
    for film in range(n):
        triples.append((f"film{film}", "directed by", f"person{directs[film]}"))
        triples.append((f"film{film}", "starring", f"person{acts[film]}"))
        triples.append((f"person{acts[film]}", "acted in", f"film{film}"))
    vectors = people[0][directs] + people[1][acts] + 0.1 * rng.normal(size=(n, 6))
    return triples, vectors


def embedding_of(vectors: np.ndarray, n_known: int) -> vf.Embedding:
    return vf.Embedding([f"film{film}" for film in range(n_known)], vectors[:n_known])


def names_of(n: int = 120) -> list[str]:
    return [f"film{film}" for film in range(n)]


def test_all_ways_to_pass_triples_are_read_alike(tmp_path: Path) -> None:
    triples, _ = films(10)
    table = pa.table(dict(zip("hrt", map(list, zip(*triples, strict=True)), strict=True)))
    lines = ["\t".join(triple) for triple in triples]
    (tmp_path / "headless.tsv").write_text("\n".join(lines))
    (tmp_path / "titled.csv").write_text("\n".join(["h,r,t", *(",".join(t) for t in triples)]))
    (tmp_path / "kg.nt").write_text(
        "".join(f"<{h}> <{r.replace(' ', '_')}> <{t}> .\n" for h, r, t in triples)
    )
    ways: list[Triples] = [
        triples_of(triples),
        triples_of(table),
        triples_of(table, head=0, relation="r", tail=2),
        triples_of(tmp_path / "headless.tsv"),
        triples_of(tmp_path / "titled.csv"),
        triples_of(tmp_path / "kg.nt"),
    ]
    for way in ways:
        assert way.nodes == ways[0].nodes
        assert np.array_equal(way.tail, ways[0].tail)
        assert np.array_equal(way.relation, ways[0].relation)


def test_the_order_of_triples_does_not_matter() -> None:
    triples, _ = films(30)
    forwards, backwards = (
        typed_domains(triples_of(order), names_of(30)) for order in (triples, triples[::-1])
    )
    for one, other in zip(forwards, backwards, strict=True):
        assert np.array_equal(one.vectors, other.vectors)


def test_who_directs_is_another_thing_than_who_acts() -> None:
    triples = [("a", "directed by", "x"), ("b", "directed by", "x"), ("c", "starring", "x"),
               ("d", "starring", "x")]  # fmt: skip
    rows = typed_domains(triples_of(triples), list("abcd"))[0].vectors
    assert rows[0] @ rows[1] > 0.1 > rows[0] @ rows[2]


def test_a_relation_and_its_inverse_count_once() -> None:
    triples, _ = films(40)
    domain = typed_domains(triples_of(triples), names_of(40))[0]
    counts = [name for name in domain.columns if name.startswith("how many")]
    assert counts == ["how many > directed by", "how many > starring"]


def test_numbers_dates_and_texts_of_entities_are_columns(tmp_path: Path) -> None:
    lines = []
    for film in range(30):
        lines += [
            f'<film{film}> <year> "{1960 + film}"^^<http://www.w3.org/2001/XMLSchema#gYear> .',
            f'<film{film}> <about> "a story \\"{film}\\" of the sea"@en .',
            f'<film{film}> <rating> "PG" .',
            f"<film{film}> <by> _:b{film % 5} .",
        ]
    path = tmp_path / "kg.nt"
    path.write_text("# films\n\n" + "\n".join(lines), encoding="utf-8")
    triples = triples_of(path)
    assert sorted(triples.literals) == ["about", "year"]
    assert triples.literals["about"]["film7"] == ['a story "7" of the sea']
    assert {"_:b0", "PG"} <= set(triples.nodes)
    domain = typed_domains(triples, [f"film{film}" for film in range(30)])[0]
    assert any(name.startswith("literal") for name in domain.columns)


def test_numbers_for_names_are_no_literals() -> None:
    triples = triples_of([(str(head), "r", str(head % 3 + 100)) for head in range(9)])
    assert not triples.literals
    assert len(triples.nodes) == 12


def test_triples_restore_what_relations_explain_and_edges_do_not() -> None:
    triples, vectors = films()
    result = vf.impute(
        {"table": {name: [float(n % 7)] for n, name in enumerate(names_of())},
         "kg": vf.triples(triples)},
        embedding_of(vectors, 90),
        names="off",
    )  # fmt: skip
    assert [report.is_kept for report in result.sources] == [False, True]
    assert set(result.embedding.words) == set(names_of()[90:])
    imputed = np.array([result.embedding[name] for name in names_of()[90:]])
    centre = vectors[:90].mean(axis=0)
    steps, truth = imputed - centre, vectors[90:] - centre
    lengths = np.linalg.norm(steps, axis=1) * np.linalg.norm(truth, axis=1)
    assert np.mean((steps * truth).sum(axis=1) / lengths) > 0.9


def test_a_new_entity_with_the_same_triples_gets_the_same_vector(tmp_path: Path) -> None:
    triples, vectors = films()
    source = vf.triples(triples, entities=names_of())
    result = vf.impute(source, embedding_of(vectors, 90), names="off")
    result.save(tmp_path / "model.vecfill")
    model = vf.load(tmp_path / "model.vecfill")
    old = "film100"
    new_triples = [
        tuple("brand new" if cell == old else cell for cell in triple)
        for triple in triples
        if old in triple
    ]
    added = model.add(vf.triples(new_triples, entities=["brand new"]))
    assert np.allclose(added.embedding["brand new"], result.embedding[old], atol=1e-5)
    assert added.explain("brand new", 3).contributors == result.explain(old, 3).contributors
    table = [triple for triple in new_triples if triple[0] == "brand new"]
    assert list(model.add(table).embedding.words) == ["brand new"]
    stranger = model.add([("stranger", "speaks", "Latin")])
    assert stranger.undescribed == ("stranger",) or not len(stranger.embedding)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<a> <r> <b> .\n<a> <r> b .\n", r"line 2: '<a> <r> b \.' is no triple"),
        ('<a> <r> "open .\n', "line 1"),
        ("# nothing\n", "no triples"),
    ],
)
def test_what_is_no_triple_is_refused_by_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "kg.nt").write_text(text)
    with pytest.raises(FormatError, match=message):
        vf.triples(tmp_path / "kg.nt")


def test_a_table_that_holds_no_triples_is_refused() -> None:
    with pytest.raises(InputError, match="row 2, column 'r': the cell is empty"):
        vf.triples(pa.table({"h": ["a", "b"], "r": ["x", None], "t": ["c", "d"]}))
    with pytest.raises(InputError, match="4 columns, 'h', 'r', 't', 'w', and triples have three"):
        vf.triples(pa.table({"h": ["a"], "r": ["x"], "t": ["c"], "w": [1]}))
    with pytest.raises(InputError, match=r"tail='T'.*Did you mean 't'"):
        vf.triples(pa.table({"h": ["a"], "r": ["x"], "t": ["c"]}), head="h", relation="r", tail="T")
    with pytest.raises(InputError, match="triple 2 is"):
        vf.triples([("a", "r", "b"), ("a", "b")])
    with pytest.raises(InputError, match="no two of the 2 entities share"):
        vf.triples([("a", "r", "b")]).variants()


def test_names_that_no_triple_has_are_refused() -> None:
    triples, vectors = films(40)
    table = {f"movie {n}": [float(n)] for n in range(40)}
    base = vf.Embedding(list(table), vectors[:40])
    with pytest.raises(InputError, match="the triples name none of the entities"):
        vf.impute({"table": table, "kg": vf.triples(triples)}, base, names="off")


def test_a_file_of_triples_is_a_source_in_the_shell(tmp_path: Path) -> None:
    (tmp_path / "films.csv").write_text("film,year\nfilm1,1990\nfilm2,1991\n")
    lines = ["film1,by,x", "film2,by,x", "film3,by,x"]
    (tmp_path / "kg.csv").write_text("\n".join(["h,r,t", *lines]))
    reading = Reading(source=(f"kg={tmp_path / 'kg.csv'}:triples",))
    table, kg = read_domain(tmp_path / "films.csv", reading).sources
    assert (table.name, kg.name, kg.entities) == ("table", "kg", ("film1", "film2"))


def test_a_table_of_triples_is_a_kind_of_source() -> None:
    triples, _ = films(10)
    domain = as_domain(triples, kind="triples")
    assert len(domain) == len(triples_of(triples).nodes)
    with pytest.raises(InputError, match="standardize"):
        as_domain(triples, kind="triples", standardize=True)
