"""Encoders of users, and their vectors kept on disk."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from vecfill.errors import InputError, MissingExtraError
from vecfill.inputs.texts import encoders
from vecfill.inputs.texts.encoders import encoded, load_encoder
from vecfill.inputs.texts.text import text
from vecfill.io.vector_cache import VectorCache

TEXTS = ["soft metal", "gas", "soft metal", "hard metal"]


class Counting:
    def __init__(self, factor=1.0):
        self.factor = factor
        self.n_texts = 0

    def encode(self, texts):
        self.n_texts += len(texts)
        return [[self.factor * len(each), self.factor] for each in texts]


def n_new(encoder, cache, texts=TEXTS):
    """How many texts had to be encoded, beside the three that tell who encodes."""
    before = encoder.n_texts
    vectors = encoded(texts, encoder, cache=cache)
    assert vectors.tolist() == [[encoder.factor * len(each), encoder.factor] for each in texts]
    return encoder.n_texts - before - 3


def test_each_text_is_encoded_once(tmp_path):
    encoder = Counting()
    assert n_new(encoder, tmp_path) == 3
    assert n_new(encoder, tmp_path) == 0
    assert n_new(encoder, tmp_path, [*TEXTS, "new"]) == 1
    assert n_new(Counting(), tmp_path) == 0


def test_another_model_does_not_get_the_vectors_of_the_first(tmp_path):
    assert n_new(Counting(1.0), tmp_path) == 3
    assert n_new(Counting(2.0), tmp_path) == 3
    assert n_new(Counting(1.0), tmp_path) == 0


def test_last_digits_do_not_make_another_model(tmp_path):
    n_new(Counting(1.0), tmp_path)
    almost = Counting(1.0 + 1e-7)
    encoded(TEXTS, almost, cache=tmp_path)
    assert almost.n_texts == 3


@pytest.mark.parametrize("damage", ["cut", "flip", "empty"])
def test_a_damaged_cache_is_ignored_and_written_again(tmp_path, damage):
    encoder = Counting()
    n_new(encoder, tmp_path)
    (file,) = tmp_path.glob("*/*.safetensors")
    content = bytearray(file.read_bytes())
    if damage == "flip":
        content[-1] ^= 64
    file.write_bytes({"cut": content[:-5], "flip": content, "empty": b""}[damage])
    assert n_new(encoder, tmp_path) == 3
    assert n_new(encoder, tmp_path) == 0


def test_a_folder_that_cannot_be_written_to_is_no_reason_to_stop(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    encoder = Counting()
    assert n_new(encoder, tmp_path / "file") == 3


def test_what_was_encoded_before_an_interrupt_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(encoders, "_BATCH", 1)

    class Interrupted(Counting):
        def encode(self, texts):
            if "hard metal" in texts:
                raise KeyboardInterrupt
            return super().encode(texts)

    with pytest.raises(KeyboardInterrupt):
        encoded(TEXTS, Interrupted(), cache=tmp_path)
    assert n_new(Counting(), tmp_path) == 1


def test_progress_is_told(tmp_path):
    told = []
    encoded(TEXTS, Counting(), cache=tmp_path, progress=lambda *what: told.append(what))
    assert told == [("Encoding texts", 3, 3)]


def test_the_default_folder_is_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    encoded(TEXTS, Counting())
    assert list(tmp_path.glob("vecfill/texts/*/*.safetensors"))


def test_no_pickle_is_in_the_cache(tmp_path):
    encoded(TEXTS, Counting(), cache=tmp_path)
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert {each.suffix for each in files} == {".safetensors"}
    assert VectorCache(files[0].parent).load(2)


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        ("all-MiniLM", "has no encode\\(\\) and cannot be called"),
        (lambda texts: [1.0] * len(texts), "shape \\(3,\\) for 3 texts"),
        (lambda texts: [[1.0]], "shape \\(1, 1\\) for 3 texts"),
        (lambda texts: [["x"]] * len(texts), "no array of numbers"),
        (lambda texts: [[float("nan")]] * len(texts), "NaN or infinity for 'a soft"),
        (lambda texts: np.eye(len(texts)) if len(texts) < 4 else np.ones((4, 9)), "may not depend"),
        (lambda texts: np.ones((len(texts), len(texts))), "may not depend"),
        (lambda texts: [["1"]] * len(texts), "its values are of type <U1"),
        (lambda texts: np.ones((len(texts), 2)) * 1j, "its values are of type complex128"),
        (lambda texts: np.ma.masked_less(np.ones((len(texts), 2)), 2), "are masked"),
        (lambda texts: np.full((len(texts), 2), 1e300), "NaN or infinity for 'a soft"),
        (lambda texts: (each for each in texts), "object of type generator"),
        (lambda texts: 1 / 0, "the encoder failed on 3 texts, such as 'a soft .*Zero"),
    ],
)
def test_what_is_no_encoder_is_refused(tmp_path, encoder, message):
    with pytest.raises(InputError, match=message):
        encoded(["a", "b", "c", "d"], encoder, cache=tmp_path)


def fake_model(tmp_path, config):
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").write_bytes(b"")
    return tmp_path


def test_a_folder_is_loaded_by_the_package_it_was_saved_with(tmp_path, monkeypatch):
    import os

    seen = {}

    def load(path, **options):
        seen.update(options, path=path, offline=os.environ.get("HF_HUB_OFFLINE"))
        return "model"

    model2vec = SimpleNamespace(StaticModel=SimpleNamespace(from_pretrained=load))
    monkeypatch.setitem(sys.modules, "model2vec", model2vec)
    monkeypatch.setitem(
        sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=load)
    )
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    assert load_encoder(fake_model(tmp_path, {"model_type": "model2vec"})) == "model"
    assert seen == {"path": str(tmp_path), "offline": "1"}
    assert "HF_HUB_OFFLINE" not in os.environ
    (tmp_path / "modules.json").write_text("[]")
    fake_model(tmp_path, {"model_type": "bert"})
    assert load_encoder(tmp_path) == "model"
    assert seen["local_files_only"] is True
    assert seen["model_kwargs"] == {"use_safetensors": True}


def test_folders_that_hold_no_encoder_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="is not a folder"):
        load_encoder(tmp_path / "absent")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    with pytest.raises(InputError, match="Pickled weights"):
        load_encoder(tmp_path)
    with pytest.raises(InputError, match="neither a sentence-transformers"):
        load_encoder(fake_model(tmp_path, {}))
    monkeypatch.setitem(sys.modules, "model2vec", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'vecfill\[encoders\]'"):
        load_encoder(fake_model(tmp_path, {"model_type": "model2vec"}))


def test_what_cannot_encode_is_refused_before_any_run_could_ignore_it():
    with pytest.raises(InputError, match=r"encoder=5 has no encode\(\) and cannot be called"):
        text({"iron": "hard metal"}, encoder=5)
