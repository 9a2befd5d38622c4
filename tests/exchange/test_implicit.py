"""Item factors of a recommender, with those of cold items."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import vecfill as vf


class Model:
    def __init__(self, factors):
        self.item_factors = factors
        self._item_norms = np.ones(len(factors))


def test_factors_that_a_model_has_keep_their_bits_and_blank_rows_are_filled():
    factors = np.array([[0.1, 0.2], [0.0, 0.0]], np.float32)
    model = Model(factors)
    new = vf.Embedding(["tea", "gin", "rum"], [[9.0, 9.0], [3.0, 4.0], [5.0, 6.0]])
    changed = vf.to_implicit(new, model, ["tea", "gin"])
    assert changed.items == ("tea", "gin", "rum")
    np.testing.assert_array_equal(changed.factors[0], factors[0])
    np.testing.assert_array_equal(changed.factors[1:], [[3.0, 4.0], [5.0, 6.0]])
    assert changed.model.item_factors.dtype == np.float32
    assert changed.model._item_norms is None
    assert model.item_factors is factors
    again = vf.to_implicit(new, changed.model, changed.items)
    np.testing.assert_array_equal(again.factors, changed.factors)


def test_a_model_that_does_not_fit_is_refused():
    new = vf.Embedding(["rum"], [[3.0, 4.0]])
    with pytest.raises(vf.InputError, match="without item_factors"):
        vf.to_implicit(new, object(), [])
    with pytest.raises(vf.InputError, match="have 3 dimensions, and the imputed vectors 2"):
        vf.to_implicit(new, Model(np.ones((1, 3))), ["tea"])
    with pytest.raises(vf.InputError, match="items= has 0 names"):
        vf.to_implicit(new, Model(np.ones((1, 2))))


@pytest.mark.extra
@pytest.mark.filterwarnings("ignore")  # implicit advises on threads of BLAS
def test_implicit_recommends_cold_items():
    als = pytest.importorskip("implicit.als", reason="implicit is not installed")
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(60, 2))
    liked = rng.normal(size=(80, 2)) @ latent.T > 1
    names = [f"item {number}" for number in range(60)]
    model = als.AlternatingLeastSquares(factors=4, random_state=0, num_threads=1)
    model.fit(csr_matrix(liked[:, :40].astype(np.float32)), show_progress=False)
    table = dict(zip(names, latent, strict=True))
    result = vf.impute(table, (names[:40], model.item_factors), names="off", force=True)
    changed = vf.to_implicit(result, model, names[:40])
    nobody = csr_matrix((1, 60), dtype=np.float32)
    places, scores = changed.model.recommend(0, nobody, N=60, filter_already_liked_items=False)
    of_user = model.user_factors[0] @ changed.factors.T
    np.testing.assert_allclose(scores, of_user[places], rtol=1e-4, atol=1e-5)
    assert (places >= 40).any()
    assert changed.model.similar_items(59, N=3)[0][0] == 59
