"""New tokens in folders made by hand: bytes, ids and refusals, without any other library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vecfill as vf
from tests.exchange.model_folders import (
    HEAD,
    INPUT,
    N_DIMS,
    TOKENIZERS,
    added,
    n_tokens,
    stored,
    unigram,
    word_piece,
    write_folder,
    write_safetensors,
)
from vecfill.errors import InputError
from vecfill.exchange.huggingface.folder import ModelFolder
from vecfill.exchange.huggingface.tensors import from_stored, to_stored

TERMS = ("radium", "white gold", "tin-foil")


def rows(*terms: str, n_dims: int = N_DIMS) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {term: rng.normal(size=n_dims) for term in terms or TERMS}


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def bytes_of(folder: Path, name: str) -> bytes:
    return b"".join(ModelFolder(folder).weights.tensors[name].blocks())


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_whole_words_are_read_in_the_order_of_ids(tmp_path: Path, kind: str):
    folder = write_folder(tmp_path / "model", TOKENIZERS[kind]())
    found = vf.read_model(folder)
    words = [word for word in found.words if len(word) > 3]
    expected = ["iron", "gold", "zinc", "lead", "neon"]
    assert [word for word in words if word in expected] == expected
    assert not {"[PAD]", "[UNK]", "[unused0]", "<s>", "<0x41>", "##ium", "ium"} & set(found.words)
    ids = [ModelFolder(folder).tokenizer.whole_words[word] for word in found.words]
    assert ids == sorted(ids)


def test_rows_belong_to_their_words(tmp_path: Path):
    spec = word_piece()
    folder = write_folder(tmp_path / "model", spec)
    table = np.frombuffer(bytes_of(folder, INPUT), "<f4").reshape(-1, N_DIMS)
    found = vf.read_model(folder)
    for word in ("iron", "neon"):
        np.testing.assert_array_equal(found[word], table[spec["model"]["vocab"][word]])


def test_bytes_of_a_vocabulary_become_text(tmp_path: Path):
    spec = TOKENIZERS["byte_level"]()
    spec["model"]["vocab"]["\u0120caf\u00c3\u00a9"] = len(spec["model"]["vocab"])
    spec["added_tokens"][0]["id"] += 1
    assert "café" in vf.read_model(write_folder(tmp_path / "model", spec)).words


@pytest.mark.parametrize("kind", TOKENIZERS)
@pytest.mark.parametrize(
    ("dtype", "head", "shards", "n_padding"),
    [
        ("F32", "tied", 1, 0),
        ("F16", "stored", 2, 2),
        ("BF16", "untied", 3, 50),
        ("BF16", "biased", 2, 0),
        ("F64", "biased", 1, 2),
        ("F32", "untied", 1, 50),
    ],
)
def test_every_other_byte_is_kept(
    tmp_path: Path, kind: str, dtype: str, head: str, shards: int, n_padding: int
):
    spec = TOKENIZERS[kind]()
    options = {"dtype": dtype, "head": head, "shards": shards, "n_padding": n_padding}
    folder = write_folder(tmp_path / "model", spec, **options)
    new = tmp_path / "new"
    given = {"head": rows()} if head in ("untied", "biased") else {}
    done = vf.add_tokens(folder, rows(), new, **given)
    first = n_tokens(spec)
    assert list(done.ids.values()) == [first, first + 1, first + 2]
    proof = vf.verify_model(folder, new)
    n_grown = {"tied": 1, "stored": 2, "untied": 2, "biased": 3}[head]
    assert (proof.ok, proof.n_grown, proof.n_identical) == (True, n_grown, 2)
    assert proof.added == done.ids
    n_rows = max(first + 3, first + n_padding)
    assert read_json(new / "config.json")["vocab_size"] == n_rows
    assert read_json(new / "config.json")["text_config"] == {"vocab_size": n_rows}
    row_bytes = len(to_stored(np.zeros(N_DIMS), dtype, ""))
    before, after = bytes_of(folder, INPUT), bytes_of(new, INPUT)
    assert len(after) == n_rows * row_bytes
    assert after[: first * row_bytes] == before[: first * row_bytes]
    wanted = to_stored(np.stack(list(rows().values())), dtype, "")
    assert after[first * row_bytes : (first + 3) * row_bytes] == wanted
    assert after[(first + 3) * row_bytes :] == before[(first + 3) * row_bytes :]


def test_the_index_tells_the_right_size(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece(), shards=2, head="untied", dtype="BF16")
    vf.add_tokens(folder, rows(), tmp_path / "new", head="mean")
    name = "model.safetensors.index.json"
    old, new = read_json(folder / name), read_json(tmp_path / "new" / name)
    assert new["weight_map"] == old["weight_map"]
    more = 2 * 3 * N_DIMS * 2
    assert new["metadata"]["total_size"] == old["metadata"]["total_size"] + more


def test_an_untied_head_gets_rows_of_its_own(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece(), head="biased")
    head = rows(*reversed(TERMS))
    vf.add_tokens(folder, rows(), tmp_path / "new", head=head)
    first = n_tokens(word_piece())
    new = ModelFolder(tmp_path / "new")
    found = new.weights.tensors[HEAD].rows([first, first + 1, first + 2])
    np.testing.assert_allclose(found, [head[term] for term in TERMS], rtol=1e-6)
    old = ModelFolder(folder)
    words = list(old.tokenizer.whole_words.values())
    mean = old.weights.tensors["lm_head.bias"].rows(words).mean()
    biases = new.weights.tensors["lm_head.bias"].rows([first, first + 2])
    np.testing.assert_allclose(biases.ravel(), [mean, mean], rtol=1e-6)


def test_a_head_with_the_bytes_of_the_input_gets_the_rows_of_the_input(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece(), head="stored")
    vf.add_tokens(folder, rows(), tmp_path / "new")
    assert bytes_of(tmp_path / "new", HEAD) == bytes_of(tmp_path / "new", INPUT)


def test_an_untied_head_is_imputed_in_its_own_space(tmp_path: Path):
    spec = word_piece()
    words = [f"word{i}" for i in range(80)]
    tokens = ["[PAD]", "[UNK]", *words]
    spec["model"]["vocab"] = {token: row for row, token in enumerate(tokens)}
    folder = write_folder(tmp_path / "model", spec, head="untied")
    places = np.random.default_rng(3).normal(size=(90, 3))
    maps = np.random.default_rng(4).normal(size=(2, 3, N_DIMS))
    tensors = {
        name: stored(np.vstack([np.zeros((2, N_DIMS)), places[:80] @ turn]), "F32")
        for name, turn in zip((INPUT, HEAD), maps, strict=True)
    }
    write_safetensors(folder / "model.safetensors", tensors)
    table = {f"word{i}": place for i, place in enumerate(places)}
    result = vf.impute(table, vf.read_model(folder), match="exact")
    done = vf.add_tokens(folder, result, tmp_path / "new")
    assert done.tables[HEAD] == "imputed in its own space"
    new = ModelFolder(tmp_path / "new").weights.tensors
    for name, turn in zip((INPUT, HEAD), maps, strict=True):
        np.testing.assert_allclose(new[name].rows(range(82, 92)), places[80:] @ turn, atol=0.2)
    both = vf.impute_tokens(folder, [f"word{i}" for i in range(90)], table, match="exact")
    assert len(both.skipped) == 80
    vf.add_tokens(folder, both, tmp_path / "other")
    other = ModelFolder(tmp_path / "other").weights.tensors
    np.testing.assert_array_equal(other[HEAD].rows([85]), new[HEAD].rows([85]))


def test_added_tokens_are_listed_where_other_readers_look(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece())
    (folder / "added_tokens.json").write_text('{"[PAD]": 0}')
    vf.add_tokens(folder, rows(), tmp_path / "new")
    first = n_tokens(word_piece())
    listed = read_json(tmp_path / "new" / "added_tokens.json")
    assert listed == {"[PAD]": 0, **{term: first + i for i, term in enumerate(TERMS)}}
    decoder = read_json(tmp_path / "new" / "tokenizer_config.json")["added_tokens_decoder"]
    assert [decoder[row]["content"] for row in ("0", "1", str(first))] == [
        "[PAD]",
        "[UNK]",
        "radium",
    ]
    assert "id" not in decoder[str(first)]
    assert vf.verify_model(folder, tmp_path / "new").ok


def test_tokens_can_be_added_twice(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece())
    vf.add_tokens(folder, rows("radium"), tmp_path / "one")
    vf.add_tokens(tmp_path / "one", rows("white gold"), tmp_path / "two")
    assert "radium" in vf.read_model(tmp_path / "two").words
    assert vf.verify_model(folder, tmp_path / "two").added == {"radium": 15, "white gold": 16}


def test_stale_copies_are_told_of_and_not_copied(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece())
    stale = ["pytorch_model.bin", "model.gguf", "onnx/model.onnx", "onnx/config.json", "tf.h5"]
    kept = ["training_args.bin", "1_Dense/pytorch_model.bin", "vocab.txt", "notes/plan.txt"]
    for name in [*stale, *kept]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("{}")
    modules = [{"path": ""}, {"path": "1_Dense"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    n_rows = n_tokens(word_piece())
    write_safetensors(
        folder / "consolidated.safetensors", {"t": stored(np.zeros((n_rows, 2)), "F32")}
    )
    write_safetensors(folder / "adapter.safetensors", {"t": stored(np.zeros((2, 2)), "F32")})
    done = vf.add_tokens(folder, rows(), tmp_path / "new")
    assert set(done.stale) == {*stale, "consolidated.safetensors"}
    assert any("6 copies" in note for note in done.notes)
    for name in [*kept, "adapter.safetensors", "README.md"]:
        assert (tmp_path / "new" / name).read_bytes() == (folder / name).read_bytes()
    assert not any((tmp_path / "new" / name).exists() for name in done.stale)
    assert set(vf.verify_model(folder, tmp_path / "new").not_copied) == set(done.stale)


def test_static_models_keep_their_layouts(tmp_path: Path):
    """model2vec has one table in the folder, sentence-transformers has it in a module's folder."""
    spec = word_piece()
    n_rows = n_tokens(spec)
    for layout, name, home in (
        ("model2vec", "embeddings", "."),
        ("sentence", "embedding.weight", "0_StaticEmbedding"),
    ):
        folder = tmp_path / layout
        (folder / home).mkdir(parents=True)
        (folder / "modules.json").write_text(json.dumps([{"path": home if home != "." else ""}]))
        (folder / home / "tokenizer.json").write_text(json.dumps(spec))
        tensors = {name: stored(np.random.default_rng(0).normal(size=(n_rows, N_DIMS)), "F16")}
        write_safetensors(folder / home / "model.safetensors", tensors)
        assert vf.read_model(folder).vectors.dtype == np.float16
        vf.add_tokens(folder, rows(), tmp_path / f"{layout}-new")
        proof = vf.verify_model(folder, tmp_path / f"{layout}-new")
        assert proof.ok, proof.difference
        assert len(proof.added) == 3


@pytest.mark.parametrize(
    ("dtype", "numbers"),
    [("BF16", [1.0, -2.5, 3.14159, 1e-40, 65504.0]), ("F16", [0.1, 1.0, -3.0])],
)
def test_numbers_are_rounded_to_the_nearest(dtype: str, numbers: list[float]):
    code = "<u2" if dtype == "BF16" else "<f2"
    back = from_stored(np.frombuffer(to_stored(np.array(numbers), dtype, ""), code), dtype)
    relative = 2.0**-8 if dtype == "BF16" else 2.0**-11
    np.testing.assert_allclose(back, numbers, rtol=relative, atol=5e-41)


def test_ties_of_bfloat16_go_to_the_even_neighbour():
    halves = np.array([0x3F808000, 0x3F818000], np.uint32).view(np.float32)
    stored_bits = np.frombuffer(to_stored(halves, "BF16", ""), "<u2")
    assert stored_bits.tolist() == [0x3F80, 0x3F82]


REFUSED = [
    ({"vectors": rows("iron")}, "'iron' is one token already"),
    ({"vectors": rows("IRON")}, "'IRON' is one token already"),
    ({"vectors": rows("##ium")}, "a piece of words"),
    ({"vectors": rows("Café", "cafe")}, "are the same to this tokenizer"),
    ({"vectors": rows("two\nlines")}, "cannot be a token"),
    ({"vectors": rows(n_dims=3)}, "has rows of 6 numbers"),
    ({"vectors": {"radium": np.full(N_DIMS, np.inf)}}, "is not finite as F32"),
    ({"vectors": rows(), "head": "mean"}, "no output table with rows of its own"),
    ({"vectors": rows(), "tensor": "no.such"}, "has no table 'no.such'"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED)
def test_what_cannot_be_added_is_refused(tmp_path: Path, given: dict[str, Any], message: str):
    folder = write_folder(tmp_path / "model", word_piece())
    with pytest.raises(InputError, match=message):
        vf.add_tokens(folder, out=tmp_path / "new", **given)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_an_untied_head_without_rows_is_refused(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece(), head="untied")
    with pytest.raises(InputError, match=r"is not tied .* head='mean'"):
        vf.add_tokens(folder, rows(), tmp_path / "new")
    with pytest.raises(InputError, match=r"2 new terms have no row .* 'white gold'"):
        vf.add_tokens(folder, rows(), tmp_path / "new", head=rows("radium"))
    with pytest.raises(InputError, match="neither 'auto' nor 'mean'"):
        vf.add_tokens(folder, rows(), tmp_path / "new", head="zero")


@pytest.mark.parametrize(
    ("name", "tensor", "message"),
    [
        ("model.per_layer.weight", ("F32", (15, 2), bytes(120)), "its meaning is not known"),
        ("lm_head.qweight", ("I32", (2, 15), bytes(120)), "its meaning is not known"),
        ("lm_head.weight", ("U8", (45, 1), bytes(45)), "its meaning is not known"),
        ("lm_head.weight", ("I8", (15, 6), bytes(90)), "is of type I8, so it is quantised"),
        (INPUT, ("I8", (15, 6), bytes(90)), "is of type I8, so it is quantised"),
        (INPUT, ("F32", (9, 6), bytes(216)), "15 ids, but the table .* has 9 rows"),
        ("other.embed_tokens.weight", ("F32", (15, 6), bytes(360)), "input table is not certain"),
        ("mapping", ("I64", (15,), bytes(120)), None),
    ],
)
def test_tensors_that_would_lack_rows_are_refused(
    tmp_path: Path, name: str, tensor: Any, message: str | None
):
    spec = word_piece()
    folder = write_folder(tmp_path / "model", spec, others={name: tensor})
    if message is None:
        tensors = {"embeddings": stored(np.ones((4, 2)), "F32"), name: tensor}
        write_safetensors(folder / "model.safetensors", tensors)
        message = "share rows of 'embeddings'"
    with pytest.raises(InputError, match=message):
        vf.add_tokens(folder, rows(), tmp_path / "new", head="auto")
    assert not (tmp_path / "new").exists()


def test_gaps_in_the_ids_are_refused(tmp_path: Path):
    spec = word_piece()
    spec["model"]["vocab"]["gap"] = 40
    folder = write_folder(tmp_path / "model", spec, n_padding=60)
    with pytest.raises(InputError, match="its ids have gaps"):
        vf.add_tokens(folder, rows(), tmp_path / "new")


def test_a_piece_in_the_vocabulary_of_bytes_cannot_be_a_term(tmp_path: Path):
    """The library would give the term the id of the piece, and with it the piece's row."""
    spec = TOKENIZERS["byte_level"]()
    spec["model"]["vocab"]["ium"] = len(spec["model"]["vocab"])
    spec["added_tokens"][0]["id"] += 1
    folder = write_folder(tmp_path / "model", spec)
    with pytest.raises(InputError, match="'ium' is a piece of words"):
        vf.add_tokens(folder, rows("ium"), tmp_path / "new")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "tokenizer.json").unlink(), "has no tokenizer.json"),
        (lambda folder: (folder / "model.safetensors").unlink(), "has neither model.safetensors"),
        (lambda folder: (folder / "tokenizer.json").write_text("[]"), "holds no JSON dict"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "not what a tokenizer"),
        (lambda folder: (folder / "config.json").write_text('{"vocab_size": 7}'), "none of 15"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot be read as JSON"),
    ],
)
def test_damaged_folders_are_refused(tmp_path: Path, damage: Any, message: str):
    folder = write_folder(tmp_path / "model", word_piece())
    damage(folder)
    with pytest.raises(InputError, match=message):
        vf.add_tokens(folder, rows(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_folders_that_are_none_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="does not exist"):
        vf.read_model(tmp_path / "nothing")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        vf.read_model(tmp_path / "file")
    with pytest.raises(InputError, match="0 output tables"):
        vf.read_model(write_folder(tmp_path / "model", unigram()), head=True)


def test_an_existing_target_is_kept(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece())
    (tmp_path / "new").mkdir()
    with pytest.raises(InputError, match="exists already"):
        vf.add_tokens(folder, rows(), tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


def test_a_failure_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from vecfill.exchange.huggingface import writing

    folder = write_folder(tmp_path / "model", word_piece())

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing.shutil, "copyfile", fail)
    with pytest.raises(InputError, match="new: cannot be written: the disk is full"):
        vf.add_tokens(folder, rows(), tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


DAMAGES = {
    "a known row": lambda new: _flip(new / "model.safetensors", INPUT, 3),
    "another tensor": lambda new: _flip(new / "model.safetensors", "model.norm.weight", 0),
    "a file": lambda new: (new / "README.md").write_text("Another text.\n"),
    "a missing file": lambda new: (new / "README.md").unlink(),
    "a file too many": lambda new: (new / "extra.txt").write_text(""),
    "an id": lambda new: _edit(new, "tokenizer.json", "added_tokens", 2, "id", 99),
    "an old token": lambda new: _edit(new, "tokenizer.json", "added_tokens", 0, "content", "x"),
    "a loose token": lambda new: _edit(
        new, "tokenizer.json", "added_tokens", 2, "single_word", False
    ),
    "the normalizer": lambda new: _edit(new, "tokenizer.json", "normalizer", "lowercase", False),
    "the configuration": lambda new: _edit(new, "config.json", "hidden_size", 7),
    "the tokenizer's settings": lambda new: _edit(
        new, "tokenizer_config.json", "model_max_length", 9
    ),
}


def _flip(path: Path, name: str, place: int) -> None:
    tensor = ModelFolder(path.parent).weights.tensors[name]
    data = bytearray(path.read_bytes())
    data[tensor.first + place] ^= 1
    path.write_bytes(bytes(data))


def _edit(folder: Path, file: str, *steps: Any) -> None:
    *way, last, value = steps
    content = part = read_json(folder / file)
    for step in way:
        part = part[step]
    part[last] = value
    (folder / file).write_text(json.dumps(content))


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_any_other_difference_is_found(tmp_path: Path, damage: Any):
    folder = write_folder(tmp_path / "model", word_piece())
    new = tmp_path / "new"
    vf.add_tokens(folder, rows(), new)
    assert vf.verify_model(folder, new).ok
    damage(new)
    proof = vf.verify_model(folder, new)
    assert not proof.ok
    assert proof.difference


def test_a_wrong_total_size_is_found(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece(), shards=2)
    vf.add_tokens(folder, rows(), tmp_path / "new")
    _edit(tmp_path / "new", "model.safetensors.index.json", "metadata", "total_size", 1)
    assert "index.json differs" in str(vf.verify_model(folder, tmp_path / "new").difference)


def test_an_added_token_before_keeps_its_flags(tmp_path: Path):
    spec = word_piece()
    spec["added_tokens"].append(added(15, "osmium", special=False))
    folder = write_folder(tmp_path / "model", spec)
    done = vf.add_tokens(folder, rows("radium"), tmp_path / "new")
    assert done.ids == {"radium": 16}
    listed = read_json(tmp_path / "new" / "tokenizer.json")["added_tokens"]
    assert listed[:3] == spec["added_tokens"]


# Folders as they really are: links, ids that are none, rows that are not finite


def test_a_folder_that_is_a_link_is_copied(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece())
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "config.json").write_text("{}")
    (folder / "1_Pooling").symlink_to(tmp_path / "shared", target_is_directory=True)
    vf.add_tokens(folder, rows(), tmp_path / "new")
    copied = tmp_path / "new" / "1_Pooling"
    assert (copied / "config.json").read_text() == "{}"
    assert not copied.is_symlink()
    assert vf.verify_model(folder, tmp_path / "new").ok
    (copied / "config.json").unlink()
    assert "1_Pooling" in str(vf.verify_model(folder, tmp_path / "new").difference)


def test_links_that_lead_nowhere_or_back_are_named(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece())
    link = folder / "vocab.txt"
    link.symlink_to("blobs/1f3a")
    with pytest.raises(InputError, match=r"vocab.txt is a link to blobs/1f3a, which does not"):
        vf.add_tokens(folder, rows(), tmp_path / "new")
    link.unlink()
    (folder / "again").symlink_to(folder, target_is_directory=True)
    with pytest.raises(InputError, match="again is a link to a folder that it lies in"):
        vf.add_tokens(folder, rows(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("row", [0.5, "0", True, -1, None])
def test_ids_that_are_no_whole_numbers_are_refused(tmp_path: Path, row: Any):
    for name, place in (("added", "added_tokens"), ("model", "vocab")):
        spec = word_piece()
        if place == "vocab":
            spec["model"]["vocab"]["iron"] = row
        else:
            spec["added_tokens"][0]["id"] = row
        folder = write_folder(tmp_path / name, spec)
        with pytest.raises(InputError, match=r"tokenizer.json .* is not an id"):
            vf.add_tokens(folder, rows(), tmp_path / "new")


@pytest.mark.extra
def test_a_tokenizer_that_would_not_load_is_not_handed_over(tmp_path: Path):
    pytest.importorskip("tokenizers")
    spec = word_piece()
    del spec["added_tokens"][0]["lstrip"]
    folder = write_folder(tmp_path / "model", spec)
    with pytest.raises(InputError, match=r"tokenizer.json: with the new tokens .*`lstrip`"):
        vf.add_tokens(folder, rows(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.extra
def test_pieces_of_a_tokenizer_that_the_library_refuses(tmp_path: Path):
    pytest.importorskip("tokenizers")
    spec = word_piece()
    spec["pre_tokenizer"] = {"type": "Unheard"}
    folder = write_folder(tmp_path / "model", spec)
    with pytest.raises(InputError, match="the library tokenizers cannot load it"):
        vf.word_pieces(folder, ["radium"])


def _with_nan(folder: Path, token: str) -> None:
    model = ModelFolder(folder)
    table = model.tables.inputs[0]
    row = model.tokenizer.ids[token]
    with table.file.open("r+b") as file:
        file.seek(table.first + row * table.row_bytes)
        file.write(np.full(N_DIMS, np.nan, "<f4").tobytes())


@pytest.mark.extra
def test_a_row_that_is_not_finite_concerns_nobody_else(tmp_path: Path):
    pytest.importorskip("tokenizers")
    folder = write_folder(tmp_path / "model", word_piece())
    _with_nan(folder, "##ium")
    domain = vf.word_pieces(folder, ["ron", "rium"])
    assert "ron" in domain.entities
    assert "rium" not in domain.entities
    assert np.isfinite(domain.vectors).all()


def test_the_mean_of_whole_words_leaves_out_rows_that_are_not_finite(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece(), head="untied")
    model = ModelFolder(folder)
    head = model.tables.heads[0]
    row = model.tokenizer.ids["iron"]
    with head.file.open("r+b") as file:
        file.seek(head.first + row * head.row_bytes)
        file.write(np.full(N_DIMS, np.nan, "<f4").tobytes())
    vf.add_tokens(folder, rows(), tmp_path / "new", head="mean")
    assert vf.verify_model(folder, tmp_path / "new").ok


def test_terms_that_are_no_text_are_refused(tmp_path: Path):
    folder = write_folder(tmp_path / "model", word_piece())
    facts = {word: [float(i)] for i, word in enumerate(["iron", "gold", "radium"])}
    with pytest.raises(InputError, match="term 2 is None, which is not text"):
        vf.impute_tokens(folder, ["radium", None], facts)
    with pytest.raises(InputError, match="term 1 is None, which is not text"):
        vf.word_pieces(folder, [None])
