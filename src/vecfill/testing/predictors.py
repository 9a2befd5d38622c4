"""Check that a predictor can be used wherever one of vecfill's own can."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from vecfill.errors import InputError
from vecfill.living.model import LivingModel, load
from vecfill.model.known import KnownRows
from vecfill.model.predictors import Predictor
from vecfill.model.space import Space
from vecfill.model.wanted import ALL, New, Unknown
from vecfill.run import impute
from vecfill.testing.made import N_DIMS, N_FITTED, N_KNOWN, N_ROWS, made


def check_predictor(predictor: Predictor) -> None:
    """Check that a predictor can be used wherever one of vecfill's own can.

    It is run through `impute`, `explain`, `add`, `save` and `load`. A predictor that no model file
    can hold must be refused by `save`.

    Examples
    --------
    >>> from vecfill.model.predictors import Nearest
    >>> check_predictor(Nearest(n_neighbors=3))
    """
    _check_rows(predictor)
    rows, vectors = made()
    names = [f"entity {row}" for row in range(N_ROWS)]
    facts = dict(zip(names, rows.tolist(), strict=True))
    later = {name: facts.pop(name) for name in names[N_FITTED:]}
    known = dict(zip(names[:N_KNOWN], vectors, strict=False))
    # A mean, say, gives everybody one vector, and that is what it is for.
    result = impute(facts, known, method=predictor, names="off", force=True)
    assert np.isfinite(result.embedding.vectors).all(), "some imputed vector is not finite"
    assert result.confidence is not None, "no confidence was learnt"
    json.dumps(predictor.to_dict())
    assert predictor.in_words(), "in_words gives nothing to say"
    assert result.explain(result.embedding.words[0]).contributors, "nothing explains a vector"
    model = result.to_model()
    added = model.add(later)
    assert np.isfinite(added.embedding.vectors).all(), "some added vector is not finite"
    added.explain(names[-1])
    check_file(model, later)


def check_file(model: LivingModel, later: dict[str, list[float]]) -> None:
    """Check that a model comes back from its file, or is not written."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.vecfill"
        try:
            model.save(path)
        except InputError:
            assert not path.exists(), "save refused the model, and left a file"
            return
        of_model, of_file = model.add(later), load(path).add(later)
        assert of_model.embedding.equals(of_file.embedding), "a loaded model adds other vectors"


def _check_rows(predictor: Predictor) -> None:
    """Check what a predictor gives to some rows, to all, and to rows that come later."""
    rows, vectors = made()
    space, is_known = Space(rows[:N_FITTED]), np.arange(N_FITTED) < N_KNOWN
    known_rows = KnownRows(np.where(is_known[:, None], vectors[:N_FITTED], np.nan), is_known)
    before = known_rows.embedding.copy()
    every = predictor.predict(space, known_rows)
    assert every.vectors.shape == (N_FITTED - N_KNOWN, N_DIMS), "vectors of another shape"
    np.testing.assert_array_equal(known_rows.embedding, before, "predict changed what it was given")
    of_two = predictor.predict(space, known_rows, Unknown(np.array([1, 7])))
    np.testing.assert_allclose(
        of_two.vectors,
        every.vectors[[1, 7]],
        atol=1e-6,
        err_msg="asking for some rows changes them",
    )
    for prediction, wanted in ((every, ALL), (of_two, Unknown(np.array([1, 7])))):
        n_wanted, mix = len(prediction.vectors), prediction.composition.mix
        shares = mix.shares(np.arange(n_wanted))
        spread = mix.spread(known_rows.known, tol=1e-10)
        np.testing.assert_allclose(
            shares @ known_rows.known, spread, atol=1e-6, err_msg="spread is not the sum of shares"
        )
        if prediction.composition.trend is None and not predictor.whitened:
            np.testing.assert_allclose(
                spread, prediction.vectors, atol=1e-6, err_msg="vectors are not what is mixed"
            )
        for name in ("misfit", "straight", "tightness"):
            column = getattr(mix, name)()
            assert column.shape == (n_wanted,), f"{name} has not one number for each wanted row"
        assert wanted.numbers(known_rows).size == n_wanted
    later = predictor.predict(space, known_rows, New(rows[N_FITTED:]))
    alone = predictor.predict(space, known_rows, New(rows[-1:]))
    np.testing.assert_allclose(
        alone.vectors[0],
        later.vectors[-1],
        atol=1e-6,
        err_msg="a row that comes later depends on those that come with it",
    )
