"""GGUF files as sources of words and rows."""

from __future__ import annotations

import numpy as np
import pytest

import vecfill as vf
from vecfill.exchange.huggingface.example import write_small_model

gguf = pytest.importorskip("gguf", reason="gguf is not installed")
pytestmark = pytest.mark.extra

ROWS = np.random.default_rng(0).normal(size=(6, 64)).astype(np.float32)
TOKENS = ["<s>", "\u0120iron", "on", "\u0120gold", "\u0120na\u00c3\u00afve", "\u0120\u00c3"]


def write(path, kind, *, tokens=TOKENS, vocabulary="gpt2", head=False):
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model(vocabulary)
    writer.add_token_list(tokens)
    writer.add_token_types([3, 1, 1, 1, 1, 1])
    data = gguf.quants.quantize(ROWS, kind)
    for name in ["token_embd.weight", *(["output.weight"] if head else [])]:
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("name", ["F32", "F16", "Q8_0", "Q4_1"])
def test_whole_words_have_the_numbers_that_the_file_says(tmp_path, name):
    kind = gguf.GGMLQuantizationType[name]
    words = vf.read_model(write(tmp_path / "model.gguf", kind))
    assert list(words.words) == ["iron", "gold", "naïve"]
    expected = gguf.quants.dequantize(gguf.quants.quantize(ROWS, kind), kind)
    np.testing.assert_array_equal(words.vectors, expected[[1, 3, 4]])
    # A step of four bits is a sixteenth of the range of a block.
    tolerance = {"F32": 0, "F16": 1e-3, "Q8_0": 0.03, "Q4_1": 0.3}[name]
    np.testing.assert_allclose(words.vectors, ROWS[[1, 3, 4]], atol=tolerance)


def test_words_of_sentencepiece_begin_with_a_mark_and_a_head_can_be_read(tmp_path):
    tokens = ["<s>", "\u2581iron", "on", "\u2581gold", "\u2581", "x"]
    kind = gguf.GGMLQuantizationType.F32
    path = write(tmp_path / "model.gguf", kind, tokens=tokens, vocabulary="llama", head=True)
    assert list(vf.read_model(path, head=True).words) == ["iron", "gold"]


def test_what_cannot_be_read_is_refused_by_name(tmp_path):
    path = write(tmp_path / "model.gguf", gguf.GGMLQuantizationType.F32, vocabulary="rwkv")
    with pytest.raises(vf.InputError, match="of the kind 'rwkv'"):
        vf.read_model(path)
    path = write(tmp_path / "other.gguf", gguf.GGMLQuantizationType.F32)
    with pytest.raises(vf.InputError, match=r"no table 'output.weight'"):
        vf.read_model(path, head=True)
    (tmp_path / "cut.gguf").write_bytes(path.read_bytes()[:100])
    with pytest.raises(vf.FormatError, match=r"cut.gguf cannot be read as a GGUF file"):
        vf.read_model(tmp_path / "cut.gguf")
    with pytest.raises(vf.InputError, match="does not exist"):
        vf.read_model(tmp_path / "none.gguf")
    with pytest.raises(vf.InputError, match=r"is a GGUF file.*save_pretrained"):
        vf.add_tokens(path, {"radon": np.ones(64)}, tmp_path / "new")


def test_a_gguf_file_describes_words_and_terms(tmp_path):
    words = [f"\u0120{word}" for word in ("iron", "gold", "zinc", "lead", "radon")]
    path = write(tmp_path / "m.gguf", gguf.GGMLQuantizationType.F16, tokens=["<s>", *words])
    imputation = vf.impute_tokens(write_small_model(), ["radon"], path, force=True)
    assert imputation.result.embedding.words == ("radon",)
    assert set(imputation.result.known.words) == {"iron", "gold", "zinc", "lead"}
