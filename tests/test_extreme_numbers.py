"""Extreme but finite numbers: the whole job gives the answer at scale 1, scaled."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import vecfill
from vecfill import Embedding, Result

rng = np.random.default_rng(0)
NAMES = [f"town{i}" for i in range(80)]
PLACES = rng.normal(size=(80, 5))
VECTORS = PLACES[:60] @ rng.normal(size=(5, 6)) + 0.1 * rng.normal(size=(60, 6))


def table(exponent: int) -> dict[str, np.ndarray]:
    return dict(zip(NAMES, np.ldexp(PLACES, exponent), strict=True))


def base(exponent: int) -> Embedding:
    return Embedding(NAMES[:60], np.ldexp(VECTORS, exponent))


@cache
def result(of_table: int, of_vectors: int) -> Result:
    return vecfill.impute(table(of_table), base(of_vectors))


# As decimal numbers: 1e160, 7e299, 7e-171 and 2e-300. Powers of two change no digit.
exponents = pytest.mark.parametrize("exponent", [532, 996, -567, -995])


@exponents
def test_vectors_confidence_and_explanations_keep_their_digits(exponent):
    expected, found = result(0, 0), result(0, exponent)
    assert found.predictor == expected.predictor
    np.testing.assert_array_equal(
        np.ldexp(found.embedding.vectors, -exponent), expected.embedding.vectors
    )
    assert found.confidence is not None
    assert expected.confidence is not None
    np.testing.assert_array_equal(found.confidence.values, expected.confidence.values)
    assert str(found.explain("town70")) == str(expected.explain("town70"))
    near = expected.embedding.most_similar("town70", n=3)
    assert found.embedding.most_similar("town70", n=3) == near


@exponents
def test_the_size_of_the_table_does_not_matter(exponent):
    expected, found = result(0, 0), result(exponent, 0)
    assert found.predictor == expected.predictor
    np.testing.assert_allclose(found.embedding.vectors, expected.embedding.vectors, atol=1e-10)
    assert found.confidence is not None
    assert expected.confidence is not None
    np.testing.assert_allclose(found.confidence.values, expected.confidence.values, atol=1e-4)


@pytest.mark.parametrize(("of_table", "of_vectors"), [(532, 0), (-995, 0), (0, 532), (0, -567)])
def test_rivals_are_judged_alike(of_table, of_vectors):
    expected = vecfill.evaluate(table(0), base(0)).methods
    found = vecfill.evaluate(table(of_table), base(of_vectors)).methods
    for name, scores in expected.items():
        assert found[name] == pytest.approx(scores, rel=1e-6), name


@exponents
def test_lengths_are_calibrated_and_the_page_is_written(exponent, tmp_path):
    expected = vecfill.impute(table(0), base(0), calibrate_norms=True).embedding.vectors
    found = vecfill.impute(table(0), base(exponent), calibrate_norms=True).embedding.vectors
    np.testing.assert_array_equal(np.ldexp(found, -exponent), expected)
    vecfill.write_report(result(0, exponent), tmp_path / "page.html")
    assert "town70" in (tmp_path / "page.html").read_text()


def test_vectors_near_the_largest_float32_give_finite_ones(tmp_path):
    full = np.tanh(3 * PLACES[:60] @ np.random.default_rng(1).normal(size=(5, 6)))
    large = Embedding(NAMES[:60], (full * 3.4e38).astype(np.float32))
    scaled = Embedding(NAMES[:60], np.ldexp(large.vectors, -120))
    expected = vecfill.impute(table(0), scaled).embedding.vectors
    for options in ({}, {"residual_share": 0.5}, {"calibrate_norms": True}):
        found = vecfill.impute(table(0), large, **options)
        vectors = found.embedding.vectors
        assert np.isfinite(vectors).all()
        if not options:
            most = np.ldexp(float(np.finfo(np.float32).max), -120)
            np.testing.assert_array_equal(np.ldexp(vectors, -120), expected.clip(-most, most))
        found.save(tmp_path / "model.vecfill", overwrite=True)
        added = vecfill.load(tmp_path / "model.vecfill").add({"far": 4 * PLACES[5]})
        assert np.isfinite(added.embedding.vectors).all()
