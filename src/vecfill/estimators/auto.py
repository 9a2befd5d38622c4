"""AutoImputer: what `impute` does, behind ``fit(X, Y)``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_is_fitted, validate_data

from vecfill import checks
from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.estimators.latent_semantic import EmbeddingImputer
from vecfill.inputs.alignment import aligned
from vecfill.inputs.later_rows import Facts
from vecfill.inputs.matrices import features_of_array
from vecfill.inputs.names.match_report import Match, MatchReport
from vecfill.inputs.prepared import Domain
from vecfill.inputs.table.features import features_of_frame
from vecfill.inputs.table.frames import Frame, frame_of, objects
from vecfill.requests import Ask, Method, Trust
from vecfill.run import impute_aligned
from vecfill.trust.notes import refuse_without_signal


class AutoImputer(EmbeddingImputer):
    """Impute the unknown rows of an embedding by the method that imputes hidden known rows best.

    What `vecfill.impute` does, as a scikit-learn estimator. `LatentSemanticImputer` is the paper's
    method and nothing else. Rows of `Y` that are all NaN are unknown; known rows are never changed.

    Rows have no names here. So a row that equals exactly one fitted row is taken to be that entity,
    and `transform` gives it that entity's vector. All other rows are new entities, see
    `LivingModel.add`; each is imputed by itself, whatever else is passed with it.

    Parameters
    ----------
    method
        ``"auto"``, ``"paper"`` or a predictor such as `vecfill.LatentSemantic`.
    goal
        What to choose the method by: ``"cosine"``, ``"rank"`` or ``"balanced"``.
    standardize
        Whether to scale numeric columns to mean 0 and variance 1.
    categorical
        Columns of a table whose numbers are codes of categories.
    ignore
        Columns of a table to leave out.
    level
        Coverage level of the lower bounds in `model_`.
    force
        Impute even if `X` carries no signal about `Y`, or too few rows are known to tell. Without
        it, `fit` raises `NoSignalError`.
    n_jobs
        Threads. Results are the same bits for any number.
    random_state
        Random seed, an integer.

    Attributes
    ----------
    embedding_
        `Y` with its unknown rows imputed; known rows bit for bit as they were.
    confidence_
        (n_rows,) centred cosine with the truth to expect; 1 for known rows, NaN if too few rows
        are known to learn it.
    is_known_
        Which rows were known.
    model_
        The `LivingModel` behind it: bounds, explanations, `save`. Its entities are named by their
        row, from ``"0"``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> Y = np.where(np.arange(60)[:, None] < 50, X @ np.eye(2, 5), np.nan)
    >>> imputer = AutoImputer().fit(X, Y)
    >>> imputer.embedding_.shape, bool(np.isnan(imputer.embedding_).any())
    ((60, 5), False)
    >>> imputer.transform([[0.1, 0.2]]).round(1), imputer.predict_confidence([[0.1, 0.2]]).round(1)
    (array([[0.1, 0.2, 0. , 0. , 0. ]]), array([1.]))
    """

    def __init__(
        self,
        method: Any = "auto",
        *,
        goal: str = "balanced",
        standardize: bool = False,
        categorical: Sequence[str] = (),
        ignore: Sequence[str] = (),
        level: float = 0.9,
        force: bool = False,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.method = method
        self.goal = goal
        self.standardize = standardize
        self.categorical = categorical
        self.ignore = ignore
        self.level = level
        self.force = force
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> AutoImputer:
        """Choose a method and impute the unknown rows of `Y`, which are all NaN.

        `X` is an array, a sparse matrix, or a pandas, polars or Arrow table, whose numbers,
        categories and texts are read as `vecfill.impute` reads them. When nothing is unknown, the
        method is chosen for the rows that `transform` will be asked for.
        """
        how = Method(method=self.method, goal=self.goal, force=self.force, seed=self.random_state)
        ask = Ask(method=how, trust=Trust(level=self.level))
        rows = _rows(X)
        validate_data(self, X, reset=True, skip_check_array=True)
        n_rows = len(_keys(rows))
        embedding = checks.embedding_of_rows(Y, n_rows=n_rows)
        is_known = checks.known_rows(embedding)
        checks.refuse_nothing_known(is_known)
        if n_rows == 1:
            raise InputError("X has 1 sample. At least two rows are needed to compare them.")
        names = [str(row) for row in range(n_rows)]
        domain = self._domain(rows, names)
        known = Embedding([names[row] for row in np.flatnonzero(is_known)], embedding[is_known])
        alignment = aligned(domain, known, _own_names(names, is_known))
        result = impute_aligned(alignment, ask, n_jobs=self.n_jobs)
        refuse_without_signal(result.choice, how, result.leaks)
        self.model_ = result.to_model()
        self.embedding_ = result.model.embedding
        self.is_known_ = is_known
        self.confidence_ = np.ones(n_rows)
        sure = result.proof.confidence
        self.confidence_[~is_known] = np.nan if sure is None else sure.values
        keys = _keys(rows)
        times = Counter(keys)
        self._row_of = {key: row for row, key in enumerate(keys) if times[key] == 1}
        self._n_features_out = embedding.shape[1]
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:  # noqa: ARG002
        """Fit, and return the embedding of all rows: known ones as they were, others imputed."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return the vectors of rows that were not there at the fit; nothing is fitted again."""
        return self._given(X)[0]

    def predict_confidence(self, X: Any) -> np.ndarray:
        """Return the centred cosine with the truth to expect of each row that `transform` gives.

        It is NaN where too few rows were known to learn it.
        """
        return self._given(X)[1]

    def _given(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return vector and confidence of every row: of fitted ones, and of new ones."""
        check_is_fitted(self)
        rows = _rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        keys = _keys(rows)
        names = [f"new {row}" for row in range(len(keys))]
        added = self.model_.add(_facts(rows, names))
        vectors, sure = added.embedding[names], np.full(len(keys), np.nan)
        if added.confidence is not None:
            sure[:] = added.confidence.values
        fitted = np.array([self._row_of.get(key, -1) for key in keys])
        is_fitted = fitted >= 0
        vectors[is_fitted] = self.embedding_[fitted[is_fitted]]
        sure[is_fitted] = self.confidence_[fitted[is_fitted]]
        return vectors, sure

    def _domain(self, rows: Any, names: list[str]) -> Domain:
        if isinstance(rows, np.ndarray) or issparse(rows):
            return features_of_array(rows, names, standardize=self.standardize)
        return features_of_frame(
            tuple(names),
            rows,
            standardize=self.standardize,
            categorical=self.categorical,
            ignore=self.ignore,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _rows(X: Any) -> Any:
    """Return `X` as an array, a sparse matrix, or the columns of a table."""
    frame = None if isinstance(X, np.ndarray) or issparse(X) else frame_of(X)
    return checks.domain_rows(X) if frame is None else frame


def _keys(rows: Any) -> list[Any]:
    """Return for every row something that is equal for equal rows."""
    if isinstance(rows, Frame):
        # As text, because a missing number does not equal itself.
        return [repr(row) for row in zip(*map(objects, rows.cells), strict=True)]
    if issparse(rows):
        starts = rows.indptr[1:-1]
        pairs = zip(np.split(rows.indices, starts), np.split(rows.data, starts), strict=True)
        return [(columns.tobytes(), values.tobytes()) for columns, values in pairs]
    return [row.tobytes() for row in rows]


def _facts(rows: Any, names: list[str]) -> Facts:
    if isinstance(rows, Frame):
        return Facts(tuple(names), dict(zip(rows.names, rows.cells, strict=True)), rows.label)
    return Facts(tuple(names), {}, "X", rows)


def _own_names(names: list[str], is_known: np.ndarray) -> MatchReport:
    """Say that every known row is its own word."""
    matches = [
        Match(name, name, "exact") if known else Match(name, None, "none")
        for name, known in zip(names, is_known.tolist(), strict=True)
    ]
    return MatchReport(tuple(matches), "exact", int(is_known.sum()))
