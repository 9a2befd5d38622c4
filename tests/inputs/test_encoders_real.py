"""Encoders of real packages, from a local folder."""

import numpy as np
import pytest

from vecfill.inputs.texts.encoders import encoded, load_encoder


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_model2vec_folder_encodes_texts(tmp_path):
    model2vec = pytest.importorskip("model2vec")
    tokenizers = pytest.importorskip("tokenizers")
    words = {"[UNK]": 0, "[PAD]": 1, "soft": 2, "hard": 3, "metal": 4, "gas": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    rows = np.random.default_rng(0).normal(size=(len(words), 4)).astype(np.float32)
    model = model2vec.StaticModel(rows, tokenizer, config={"model_type": "model2vec"})
    model.save_pretrained(str(tmp_path / "model"))
    loaded = load_encoder(tmp_path / "model")
    texts = ["soft metal", "hard metal", "gas"]
    found = encoded(texts, loaded, cache=tmp_path / "cache")
    np.testing.assert_allclose(found, model.encode(texts), rtol=1e-5)
    again = encoded(texts, load_encoder(tmp_path / "model"), cache=tmp_path / "cache")
    np.testing.assert_array_equal(again, found)
