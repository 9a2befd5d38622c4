"""Entities with nothing but names: imputed from their spelling, if that is asked for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import vecfill as vf
from vecfill.cli import main
from vecfill.inputs.files import holds_vectors

ENDINGS = ("ville", "itis", "ington", "berg", "ology", "ness")
STEMS = [first + middle + last for first in "bcdfghklm" for middle in "aeiou" for last in "ntl"]
NAMES = [
    stem + ENDINGS[which]
    for stem, which in zip(STEMS, np.random.default_rng(1).integers(6, size=135), strict=True)
]
N_KNOWN = 100


def truth() -> np.ndarray:
    rng = np.random.default_rng(0)
    means = {ending: rng.normal(size=8) for ending in ENDINGS}
    near = [next(means[each] for each in ENDINGS if name.endswith(each)) for name in NAMES]
    return np.stack(near) + 0.2 * rng.normal(size=(len(NAMES), 8))


def cosines(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(some, axis=1) * np.linalg.norm(others, axis=1)
    return (some * others).sum(axis=1) / lengths


@pytest.fixture(scope="module")
def base() -> vf.Embedding:
    return vf.Embedding(NAMES[:N_KNOWN], truth()[:N_KNOWN])


@pytest.fixture(scope="module")
def result(base):
    return vf.impute(pd.DataFrame({"drug": NAMES}), base, names="spelling")


def test_names_alone_give_vectors_near_the_true_ones(result):
    found, expected = result.embedding, truth()[N_KNOWN:]
    assert list(found.words) == NAMES[N_KNOWN:]
    assert np.median(cosines(found.vectors, expected)) > 0.6
    assert [each.name for each in result.sources] == ["names"]


def test_an_index_of_names_is_a_list_of_names(result, base):
    found = vf.impute(pd.DataFrame(index=NAMES), base, names="spelling")
    np.testing.assert_array_equal(found.embedding.vectors, result.embedding.vectors)


def test_a_table_of_names_is_refused_unless_names_are_asked_for(base):
    for names in (None, "off"):
        with pytest.raises(vf.InputError, match=r"one column only.*names='auto'"):
            vf.impute(pd.DataFrame({"drug": NAMES}), base, names=names)
    with pytest.raises(vf.InputError, match="has no columns"):
        vf.impute(pd.DataFrame(index=NAMES), base)
    with pytest.raises(vf.InputError, match="give separator="):
        vf.impute(pd.DataFrame({"drug;mass": NAMES}), base, names="auto")


def test_other_options_of_a_table_are_refused(base):
    with pytest.raises(vf.OptionError, match="nothing but names"):
        vf.impute(pd.DataFrame({"drug": NAMES}), base, names="auto", standardize=True)
    with pytest.raises(vf.InputError, match="one column only"):
        vf.impute(pd.DataFrame({"drug": NAMES}), base, names="auto", kind="distances")
    with pytest.raises(vf.InputError, match="ignore= names 'drug'"):
        vf.impute(pd.DataFrame({"drug": NAMES}), base, names="auto", ignore="drug")
    with pytest.raises(vf.OptionError, match="is for one table, and the sources here are: names"):
        vf.impute(pd.DataFrame({"drug": NAMES}), base, names="auto", method="paper")


def test_names_that_say_nothing_are_refused(base):
    with pytest.raises(vf.InputError, match="nothing but names, and names='parts' finds nothing"):
        vf.impute(pd.DataFrame({"drug": NAMES}), base, names="parts")


def test_names_that_match_no_word_are_refused_for_that(base):
    with pytest.raises(vf.InputError, match="is among the 100 words"):
        vf.impute(pd.DataFrame({"drug": ["x1", "x2"]}), base, names="auto")


def test_a_source_of_names_asks_for_entities_that_no_other_describes(base):
    facts = pd.DataFrame(truth()[:-5, :3], index=NAMES[:-5])
    asked = {"facts": facts, "asked": pd.DataFrame(index=NAMES)}
    found = vf.impute(asked, base, names="spelling")
    assert sorted(found.embedding.words) == sorted(NAMES[N_KNOWN:])
    assert "asked" not in [each.name for each in found.sources]


def test_a_source_called_as_what_names_say_is_refused(base):
    facts = pd.DataFrame(truth()[:, :3], index=NAMES)
    with pytest.raises(vf.InputError, match="a source is called 'names', as what names say is"):
        vf.impute({"names": facts}, base, names="spelling")
    assert len(vf.impute({"names": facts}, base, names="off").embedding) == len(NAMES) - N_KNOWN


def test_a_column_of_counts_is_no_feature(base):
    table = pd.DataFrame({"drug": NAMES, "n": np.arange(len(NAMES)) + 1})
    found = vf.impute(table, base, names="spelling", counts="n")
    assert len(found.embedding) == len(NAMES) - N_KNOWN


def test_names_added_to_a_model_come_out_as_in_a_whole_run(result, base, tmp_path):
    result.save(tmp_path / "names.vecfill")
    model = vf.load(tmp_path / "names.vecfill")
    new = ["zanville", "hanville", "banitis"]
    added = model.add(pd.DataFrame({"drug": [*new, NAMES[0]]})).embedding
    assert list(added.words) == new
    whole = vf.impute(
        pd.DataFrame({"drug": [*NAMES, *new]}), base, names="spelling", method=result.decision
    )
    # Steps from the mean are stretched, and with them what the larger run learns a little better.
    mean = base.vectors.mean(axis=0)
    assert cosines(added.vectors - mean, whole.embedding[new] - mean).min() > 0.99
    assert cosines(added.vectors, whole.embedding[new]).min() > 0.95


def test_the_first_line_of_a_list_is_a_title_and_that_is_said(base, tmp_path):
    path = tmp_path / "drugs.txt"
    path.write_text("drug\n" + "\n".join(NAMES) + "\n", encoding="utf-8")
    found = vf.impute(path, base, names="spelling")
    assert len(found.embedding) == len(NAMES) - N_KNOWN
    assert any("the first line, 'drug', was taken for the title" in each for each in found.notes)


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("drug\naspirin\n", False),
        ("Fort Worth\nNew York\n", False),
        ("name,x\na,1\n", False),
        ("aspirin 0.1 0.2\r\niron 0.3 0.4\r\n", True),
        ("aspirin 0.1 oops\n", True),
        ("2 2\naspirin 0.1 0.2\niron 0.3 0.4\n", True),
        ("aspirin nan nan\n", True),
    ],
)
def test_a_list_of_names_is_told_from_word_vectors(tmp_path, text, is_it):
    path = tmp_path / "some.txt"
    path.write_bytes(text.encode())
    assert holds_vectors(path) is is_it


def test_a_list_of_names_is_enough_in_a_shell(base, tmp_path, capsys):
    vf.write_embedding(base, tmp_path / "base.vec")
    (tmp_path / "list.txt").write_text("\n".join(["drug", *NAMES]) + "\n", encoding="utf-8")
    words = [str(tmp_path / name) for name in ("base.vec", "list.txt")]
    asked = ["impute", *words, "-o", str(tmp_path / "new.vec")]
    assert main(asked) == 2
    assert "--names 'auto'" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert main([*asked, "--names", "spelling", "--report", str(page)]) == 0
    assert NAMES[-1] in page.read_text(encoding="utf-8")
    told = capsys.readouterr()
    assert "100 words unchanged, 35 added" in told.out
    assert "the first line, 'drug', was taken for the title" in told.err


def test_a_list_and_a_file_of_vectors_are_sources_beside_a_table_in_a_shell(base, tmp_path, capsys):
    vf.write_embedding(base, tmp_path / "base.vec")
    vf.write_embedding(vf.Embedding(NAMES, truth()[:, :3]), tmp_path / "other.vec")
    (tmp_path / "list.txt").write_text("\n".join(["drug", *NAMES]) + "\n", encoding="utf-8")
    facts = pd.DataFrame(truth()[:-5, 3:5], index=pd.Index(NAMES[:-5], name="drug"))
    facts.to_csv(tmp_path / "facts.csv")
    asked = ["impute", str(tmp_path / "base.vec"), str(tmp_path / "facts.csv")]
    asked += ["--source", f"asked={tmp_path / 'list.txt'}", "-o", str(tmp_path / "new.vec")]
    asked += ["--source", f"other={tmp_path / 'other.vec'}"]
    assert main(asked) == 2
    assert "one column only" in capsys.readouterr().err
    assert main([*asked, "--names", "spelling"]) == 0
    told = capsys.readouterr().out
    assert "35 added" in told
    assert "other" in told


@pytest.fixture(scope="module")
def of_a_vocabulary():
    """Names of three syllables; the vector of a word of the vocabulary is the sum of those."""
    rng = np.random.default_rng(0)
    syllables = [first + middle + last for first in "bdfgkl" for middle in "aeiou" for last in "mn"]
    meaning = rng.normal(size=(len(syllables), 4))
    chosen = rng.permutation(np.unique(rng.integers(0, len(syllables), (6000, 3)), axis=0))[:2600]
    words = ["".join(syllables[syllable] for syllable in row) for row in chosen]
    vectors = meaning[chosen].sum(axis=1) + 0.2 * rng.normal(size=(len(words), 4))
    whole = vf.Embedding(words[:2500], vectors[:2500])
    names = [*words[:120], *words[2500:2560]]
    return words, vectors, vf.impute(pd.DataFrame({"name": names}), whole, names="auto")


def test_what_spelling_suggests_is_weighed_beside_what_known_names_teach(of_a_vocabulary):
    words, vectors, result = of_a_vocabulary
    assert [source.name for source in result.sources] == ["names", "letters", "spelling"]
    assert result.embedding.words == tuple(words[2500:2560])
    assert np.median(cosines(result.embedding.vectors, vectors[2500:2560])) > 0.9
    spelling = result.sources[2]
    assert str(spelling.predictor.in_words()) == "as the vocabulary says"
    shares = result.explain(words[2500]).source_shares
    assert set(shares) == {source.name for source in result.sources if source.is_kept}


def test_sources_of_names_go_on_in_a_saved_model(of_a_vocabulary, tmp_path):
    words, vectors, result = of_a_vocabulary
    result.save(tmp_path / "names.vecfill")
    model = vf.load(tmp_path / "names.vecfill")
    again = model.add(pd.DataFrame({"name": words[2560:2600]}))
    assert np.median(cosines(again.embedding.vectors, vectors[2560:2600])) > 0.9
    in_memory = result.to_model().add(pd.DataFrame({"name": words[2560:2600]}))
    np.testing.assert_array_equal(again.embedding.vectors, in_memory.embedding.vectors)
    shares = again.explain(words[2560]).source_shares
    assert set(shares) == {source.name for source in result.sources if source.is_kept}
