"""Edge lists become node vectors."""

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vecfill.errors import InputError, VecfillError
from vecfill.inputs.domain import as_domain
from vecfill.inputs.graphs import walks

MEDICINE = Path(__file__).parents[3].parent / "shared" / "data" / "medicine"

edge_lists = st.lists(
    st.tuples(st.sampled_from("abcdefg"), st.sampled_from("abcdefg"), st.integers(1, 5)),
    min_size=2,
    max_size=14,
).filter(lambda edges: any(one != other for one, other, _ in edges))


def two_rings(n_nodes=8):
    """Two rings, joined by one edge."""
    ring = [(i, (i + 1) % n_nodes) for i in range(n_nodes)]
    edges = [(f"{name}{a}", f"{name}{b}") for name in "xy" for a, b in ring]
    return [*edges, ("x0", "y0")]


@given(edge_lists, st.randoms(use_true_random=False))
def test_the_order_and_direction_of_edges_do_not_matter(edges, random):
    turned = [(b, a, w) if random.random() < 0.5 else (a, b, w) for a, b, w in edges]
    random.shuffle(turned)
    one, other = as_domain(edges, kind="edges"), as_domain(turned, kind="edges")
    assert one.entities == other.entities
    assert one.notes == other.notes
    np.testing.assert_array_equal(one.vectors, other.vectors)
    np.testing.assert_array_equal(one.components, other.components)


@given(edge_lists)
def test_vectors_are_finite_and_components_agree_with_the_edges(edges):
    domain = as_domain(edges, kind="edges", n_dims=3)
    assert np.isfinite(domain.vectors).all()
    assert domain.vectors.shape == (len(domain), min(3, len(domain)))
    part = dict(zip(domain.entities, domain.components, strict=True))
    assert all(part[one] == part[other] for one, other, _ in edges)
    sizes = np.bincount(domain.components)
    assert (np.diff(sizes) <= 0).all()


def test_a_table_a_file_and_a_list_give_the_same_vectors(tmp_path):
    edges = two_rings()
    path = tmp_path / "edges.csv"
    path.write_text("a,b\n" + "".join(f"{a},{b}\n" for a, b in edges))
    bare = tmp_path / "bare.tsv"
    bare.write_text("".join(f"{a}\t{b}\n" for a, b in edges))
    columns = {"a": [a for a, _ in edges], "b": [b for _, b in edges]}
    expected = as_domain(edges, kind="edges").vectors
    for source in (path, pl.DataFrame(columns), pa.table(columns)):
        np.testing.assert_array_equal(as_domain(source, kind="edges").vectors, expected)
    headless = as_domain(bare, kind="edges", header=False)
    np.testing.assert_array_equal(headless.vectors, expected)


def test_nodes_of_one_ring_are_nearer_than_those_of_another():
    domain = as_domain(two_rings(), kind="edges", n_dims=4)
    is_x = np.array([name.startswith("x") for name in domain.entities])
    rows = domain.vectors / np.linalg.norm(domain.vectors, axis=1, keepdims=True)
    cosines = rows @ rows.T
    assert cosines[np.ix_(is_x, is_x)].mean() > cosines[np.ix_(is_x, ~is_x)].mean() + 0.3


def test_the_iterative_and_the_full_decomposition_agree(monkeypatch):
    rng = np.random.default_rng(0)
    edges = [(f"n{a}", f"n{b}") for a, b in rng.integers(0, 150, (400, 2))]
    full = as_domain(edges, kind="edges", n_dims=8).vectors
    monkeypatch.setattr(walks, "_DENSE", 10)
    iterative = as_domain(edges, kind="edges", n_dims=8).vectors
    np.testing.assert_allclose(iterative @ iterative.T, full @ full.T, atol=0.02)


def test_weights_matter_and_their_unit_does_not():
    edges = [("a", "b", 9.0), ("b", "c", 1.0), ("c", "d", 9.0), ("d", "a", 1.0)]
    plain = as_domain([edge[:2] for edge in edges], kind="edges").vectors
    weighted = as_domain(edges, kind="edges").vectors
    scaled = as_domain([(a, b, w * 1024) for a, b, w in edges], kind="edges").vectors
    assert not np.allclose(plain, weighted)
    np.testing.assert_array_equal(weighted, scaled)


def test_self_loops_repeats_and_components_are_reported():
    domain = as_domain(
        [("a", "b"), ("b", "a"), ("c", "c"), ("a", "a"), ("d", "e"), ("b", "f")], kind="edges"
    )
    assert domain.notes[0] == "2 self loops were ignored: 'a', 'c'."
    assert domain.notes[1] == "1 edge joins a pair that was joined before; a pair counts once."
    assert "3 components; the largest has 3 of 6 nodes" in domain.notes[2]
    assert domain.components.tolist() == [0, 0, 2, 1, 1, 0]
    assert domain.cut_off({"a", "nowhere"}) == ("c", "d", "e")
    assert domain.cut_off({"a", "c", "e"}) == ()


def test_nodes_left_without_a_vector_are_reported():
    triangle = [("a", "b"), ("b", "c"), ("a", "c"), ("c", "d"), ("d", "e"), ("e", "f")]
    domain = as_domain([*triangle, ("y", "z")], kind="edges", n_dims=1)
    assert "Raise n_dims" in domain.notes[-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,w\nx,y,1\ny,z,-2\n", r"row 2, edge 'y - z': the weight is negative"),
        ("a,b,w\nx,y,1\ny,z,\n", r"row 2, edge 'y - z': the weight is missing"),
        ("a,b,w\nx,y,1\ny,z,3\nz,x,heavy\n", r"edge 'z - x' \(row 3\): 'heavy' is not a number"),
        ("a,b,w\nx,y,is-a\ny,z,part-of\n", "column 'w' holds text such as 'is-a'"),
        ("a,b,w\nx,y,1\ny,z,inf\n", "edge 'y - z'.*infinite"),
        ("a,b,w\nx,y,1e-300\ny,z,1e300\n", "cannot be compared"),
        ("a,b\nx,\n", "row 1, column 'b': the cell is empty"),
        ("a,b\nx,x\n", "no edge between two different nodes"),
        ("a\nx\n", "has 1 columns"),
        ("a,b,c,d\nx,y,1,2\n", "has 4 columns.*edge_columns="),
    ],
)
def test_an_edge_list_that_cannot_be_used_is_refused_by_row(tmp_path, text, message):
    path = tmp_path / "edges.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        as_domain(path, kind="edges")
    assert str(path) in str(refused.value)


def test_the_columns_of_a_wider_table_can_be_named():
    table = pa.table({"id": [1, 2], "from": ["a", "b"], "to": ["b", "c"], "w": [1.0, 0.0]})
    assert len(as_domain(table, kind="edges", edge_columns=["from", "to"])) == 3
    weighted = as_domain(table, kind="edges", edge_columns=["from", "to", "w"])
    assert "1 edge of weight 0 was ignored" in weighted.notes[0]
    for wrong in (["from"], ["from", "of"], ["to", "to"]):
        with pytest.raises(InputError, match="edge_columns="):
            as_domain(table, kind="edges", edge_columns=wrong)


def test_odd_edges_are_refused():
    for edges, message in (
        ([], "is empty"),
        ([("a", "b"), ("a",)], "edge 2"),
        ([("a", "b"), ("a", 3)], "mixes types"),
        ([(1.5, 2.5)], "of type double"),
        ({"a": 1}, "cannot be read from"),
    ):
        with pytest.raises(InputError, match=message):
            as_domain(edges, kind="edges")
    with pytest.raises(InputError, match="n_dims=0"):
        as_domain([("a", "b")], kind="edges", n_dims=0)


def test_whole_numbers_name_nodes():
    assert as_domain([(1, 2), (2, 3)], kind="edges").entities == ("1", "2", "3")


def test_walks_get_shorter_when_a_graph_is_dense(monkeypatch):
    monkeypatch.setattr(walks, "_MAX_STEPS", 200)
    domain = as_domain(two_rings(), kind="edges")
    assert "walks of" in domain.notes[-1]
    monkeypatch.setattr(walks, "_MAX_ENTRIES", 1)
    with pytest.raises(InputError, match="Leave out the weakest edges"):
        as_domain(two_rings(), kind="edges")


@settings(max_examples=300)
@given(
    st.one_of(st.binary(max_size=80), st.text('ab1,"-.\n\r\t;', max_size=60).map(str.encode)),
    st.sampled_from(["edges", "features", "distances", "similarities"]),
)
def test_any_bytes_give_a_domain_or_our_own_error(data, kind):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.csv"
        path.write_bytes(data)
        with contextlib.suppress(VecfillError):
            domain = as_domain(path, kind=kind)
            assert np.isfinite(domain.vectors).all()


@pytest.mark.slow
def test_the_mesh_graph_gives_vectors_like_the_supplied_ones():
    if not MEDICINE.exists():
        pytest.skip("the shared medicine data is not at ../shared/data")
    domain = as_domain(MEDICINE / "mesh_edges.csv", kind="edges")
    with np.load(MEDICINE / "mesh_graph_netmf128.npz") as supplied:
        place = {name: row for row, name in enumerate(domain.entities)}
        ours = domain.vectors[[place[name] for name in supplied["ids"]]]
        theirs = supplied["X"].astype(np.float64)
    assert domain.vectors.shape == (28_436, 128)
    assert (domain.components == 0).all()
    rows = np.random.default_rng(0).choice(len(ours), 500, replace=False)
    near = [set_of_nearest(vectors, rows) for vectors in (ours, theirs)]
    overlap = np.mean([len(a & b) / 10 for a, b in zip(*near, strict=True)])
    assert overlap > 0.85


def set_of_nearest(vectors, rows, n_neighbors=10):
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = unit[rows] @ unit.T
    cosines[np.arange(len(rows)), rows] = -2
    return [set(row) for row in np.argpartition(-cosines, n_neighbors)[:, :n_neighbors].tolist()]


def blocks(n_blocks: int, n_in_block: int, rng: np.random.Generator) -> list[tuple[str, str]]:
    """Return edges of which most join nodes of one block."""
    n_nodes = n_blocks * n_in_block
    source = rng.integers(0, n_nodes, 12 * n_nodes)
    inside = (source // n_in_block) * n_in_block + rng.integers(0, n_in_block, source.size)
    target = np.where(rng.random(source.size) < 0.7, inside, rng.integers(0, n_nodes, source.size))
    return [(f"n{a:04}", f"n{b:04}") for a, b in zip(source, target, strict=True) if a != b]


@pytest.mark.parametrize("most_steps", [5e8, 10.0], ids=["long walks", "edges alone"])
def test_the_quick_decomposition_of_large_graphs_finds_the_blocks(monkeypatch, most_steps):
    edges = blocks(20, 15, np.random.default_rng(0))
    monkeypatch.setattr(walks, "_DENSE", 10)
    monkeypatch.setattr(walks, "LARGE", 10)
    monkeypatch.setattr(walks, "_MAX_STEPS", most_steps)
    domain = as_domain(edges, kind="edges", n_dims=24)
    assert any("walks of 1 steps" in note for note in domain.notes) == (most_steps == 10.0)
    near = set_of_nearest(domain.vectors, np.arange(300), n_neighbors=5)
    block = np.arange(300) // 15
    share = np.mean(
        [np.mean(block[list(each)] == own) for each, own in zip(near, block, strict=True)]
    )
    assert share > 0.95


def test_the_quick_and_the_full_decomposition_agree(monkeypatch):
    edges = blocks(6, 20, np.random.default_rng(0))
    full = as_domain(edges, kind="edges", n_dims=6).vectors
    monkeypatch.setattr(walks, "_DENSE", 10)
    monkeypatch.setattr(walks, "LARGE", 10)
    quick = as_domain(edges, kind="edges", n_dims=6).vectors
    np.testing.assert_allclose(quick @ quick.T, full @ full.T, atol=0.05 * np.abs(full).max() ** 2)


def test_walks_that_cannot_be_afforded_are_not_begun(monkeypatch):
    edges = blocks(20, 15, np.random.default_rng(0))
    asked = []
    inner = walks._closeness
    monkeypatch.setattr(walks, "_closeness", lambda *args: asked.append(args[1]) or inner(*args))
    monkeypatch.setattr(walks, "_MAX_STEPS", 1e5)
    as_domain(edges, kind="edges")
    assert asked[0] < 5, "a walk from a few nodes told that five steps are too many"


def test_names_of_nodes_need_no_vectors(monkeypatch):
    monkeypatch.setattr("vecfill.inputs.graphs.edges.node_vectors", None)
    domain = as_domain(two_rings(), kind="edges", names_only=True)
    assert domain.entities == tuple(sorted({name for edge in two_rings() for name in edge}))
    assert domain.vectors.shape == (len(domain), 0)
