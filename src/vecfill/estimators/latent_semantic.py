"""LatentSemanticImputer: a `Model` of the paper's method behind ``fit(X, Y)``."""

from __future__ import annotations

import warnings
from typing import Any, cast

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from vecfill import checks
from vecfill.errors import ConvergenceWarning, InputError
from vecfill.method.graph import SpanningGraph
from vecfill.method.propagation import Convergence, Outcome
from vecfill.method.solve.system import RESIDUAL_TOL
from vecfill.model.fitted import Model, fit
from vecfill.model.predictors import LatentSemantic
from vecfill.model.preparation import unit_rows
from vecfill.model.space import Rows, Space

METRICS = ("euclidean", "cosine", "precomputed")


class EmbeddingImputer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What imputers of embeddings are to scikit-learn: they need a `Y` of several columns."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.transformer_tags.preserves_dtype = []
        return tags


class LatentSemanticImputer(EmbeddingImputer):
    """Impute the unknown rows of an embedding from a domain matrix that describes all rows.

    The method is latent semantic imputation (Yao, Yu and Xiao, KDD 2019). Rows of `Y` that are
    all NaN are unknown; known rows are never changed.

    Parameters
    ----------
    min_degree
        Least number of neighbours that explain a row (the paper's delta).
    weight_rule
        ``"simplex"``: least squares over convex mixes, the paper's equation; ``"nnls"``:
        non-negative least squares divided by its sum, the authors' code.
    ridge
        Draws each mix towards the plain mean of its neighbours; 0 is the paper.
    weight_floor
        Share of a row's smallest positive weight that is added to all of its weights, so that
        every unknown row stays connected to a known one.
    solver
        ``"direct"``: the fixed point itself; ``"power"``: the paper's iteration.
    tol
        Relative l1 change at which ``"power"`` stops (the paper's eta). ``"direct"`` solves to a
        residual below 1e-8 and takes no notice.
    max_iter
        Most iterations of ``"power"``; a warning says so when they are used up.
    self_weight
        Share of itself that a row keeps in a step of ``"power"``; 0.5 is the authors' lazy walk.
    metric
        ``"euclidean"``; ``"cosine"``: the same on rows of unit length; ``"precomputed"``: X holds
        the distances of all rows from all rows.
    neighbors
        ``"exact"``; ``"approximate"``: quicker for very many dense rows; ``"auto"``: exact
        unless that would take minutes. `neighbor_recall_` says how it went.
    n_jobs
        Threads. ``None`` takes every core the process may use, -1 all cores. Results are the
        same bits for any number.
    random_state
        Seed of the start of ``"power"``.

    Attributes
    ----------
    embedding_
        `Y` with its unknown rows imputed; known rows bit for bit as they were.
    is_known_
        Which rows were known.
    graph_
        Who may explain whom, a boolean CSR matrix.
    weights_
        Each row as a convex mix of its neighbours, CSR; rows sum to one.
    neighbor_recall_
        Share of the true nearest rows that were found: 1.0 when exact, else by a sample.
    n_iter_
        Iterations of the solver; 1 if it needed none, which is how scikit-learn counts.
    relative_change_
        Last relative change of ``"power"``, or the relative residual of ``"direct"``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    Three known entities on a line, and one between the first two:

    >>> import numpy as np
    >>> X = [[0.0], [4.0], [8.0], [1.0]]
    >>> Y = [[0.0, 1.0], [4.0, 1.0], [8.0, 1.0], [np.nan, np.nan]]
    >>> LatentSemanticImputer(min_degree=2, weight_floor=0.0).fit(X, Y).embedding_[3]
    array([1., 1.])
    """

    def __init__(
        self,
        min_degree: int = 8,
        *,
        weight_rule: str = "simplex",
        ridge: float = 0.0,
        weight_floor: float = 0.1,
        solver: str = "direct",
        tol: float = 1e-2,
        max_iter: int = 1000,
        self_weight: float = 0.0,
        metric: str = "euclidean",
        neighbors: str = "auto",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.min_degree = min_degree
        self.weight_rule = weight_rule
        self.ridge = ridge
        self.weight_floor = weight_floor
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.self_weight = self_weight
        self.metric = metric
        self.neighbors = neighbors
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, Y: Any) -> LatentSemanticImputer:
        """Impute the unknown rows of `Y`, which are all NaN, from the domain rows `X`.

        `X` is dense or sparse, (n_rows, n_features); with ``metric="precomputed"`` the square
        matrix of distances. When nothing is unknown, `Y` comes back as it is.
        """
        predictor = self._predictor()
        space = self._space(X)
        embedding = checks.embedding_of_rows(Y, n_rows=space.n_rows)
        is_known = checks.known_rows(embedding)
        self._check_degree(space.n_rows, is_known)
        self._model = fit(predictor.fitted_to(space), space, embedding, is_known, tol=RESIDUAL_TOL)
        self._warn_if_unfinished()
        self._n_features_out = embedding.shape[1]
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    @property
    def embedding_(self) -> np.ndarray:
        """`Y` with its unknown rows imputed; known rows bit for bit as they were."""
        return self._fitted().embedding

    @property
    def is_known_(self) -> np.ndarray:
        """Which rows were known."""
        return self._fitted().is_known

    @property
    def graph_(self) -> csr_array:
        """Who may explain whom, a boolean CSR matrix."""
        return self._spanning_graph().graph

    @property
    def neighbor_recall_(self) -> float:
        """Share of the true nearest rows that were found: 1.0 when exact, else by a sample."""
        return self._spanning_graph().recall

    @property
    def weights_(self) -> csr_array:
        """Each row as a convex mix of its neighbours, CSR; rows sum to one."""
        model = self._fitted()
        return model.space.weights(cast(LatentSemantic, model.predictor).weights_key)

    @property
    def n_iter_(self) -> int:
        """Iterations of the solver; 1 if it needed none, which is how scikit-learn counts."""
        return max(1, self._convergence().n_iter)

    @property
    def relative_change_(self) -> float:
        """Last relative change of ``"power"``, or the relative residual of ``"direct"``."""
        return self._convergence().relative_change

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:  # noqa: ARG002
        """Fit, and return the embedding of all rows: known ones as they were, others imputed."""
        return self.fit(X, y).embedding_

    def transform(self, X: Any) -> np.ndarray:
        """Return vectors for entities not seen at fit: convex mixes of fitted rows' vectors.

        Nothing is fitted again. Each new row is written as a convex mix of its `min_degree`
        nearest fitted rows, by simplex weights, and gets that mix of their vectors, known or
        imputed. A row equal to a fitted one gets that one's vector. With
        ``metric="precomputed"``, `X` holds the distances from new rows (down) to fitted ones
        (across).
        """
        model = self._fitted()
        new_rows = self._rows(X)
        if not model.space.has_vectors:
            checks.refuse_negative_distances(new_rows)
        validate_data(self, X, reset=False, skip_check_array=True)
        return model.vectors_of_new(new_rows)

    def _fitted(self) -> Model:
        check_is_fitted(self)
        return self._model

    def _spanning_graph(self) -> SpanningGraph:
        model = self._fitted()
        key = cast(LatentSemantic, model.predictor).weights_key
        return model.space.graph(key.preparation, key.min_degree)

    def _convergence(self) -> Convergence:
        convergence = self._fitted().composition.convergence
        assert convergence is not None
        return convergence

    def _predictor(self) -> LatentSemantic:
        """Return the predictor that the parameters describe; it refuses what cannot be."""
        checks.one_of(self.metric, "metric", METRICS)
        checks.one_of(self.neighbors, "neighbors", ("auto", "exact", "approximate"))
        random = check_random_state(self.random_state) if self.solver == "power" else None
        return LatentSemantic(
            min_degree=self.min_degree,
            ridge=self.ridge,
            weight_rule=self.weight_rule,
            weight_floor=self.weight_floor,
            solver=self.solver,
            tol=self.tol,
            max_iter=self.max_iter,
            self_weight=self.self_weight,
            seed=0 if random is None else int(random.randint(2**31)),
        )

    def _space(self, X: Any) -> Space:
        options = {"neighbors": self.neighbors, "n_jobs": self.n_jobs}
        # The rows are checked first: scikit-learn wants the number of features counted after.
        rows, is_distances = self._rows(X), self.metric == "precomputed"
        if is_distances:
            rows = checks.square_distances(rows)
        space = Space(rows, is_distances=is_distances, min_degrees=(self.min_degree,), **options)
        validate_data(self, X, reset=True, skip_check_array=True)
        if self.weight_rule != "simplex":
            space.refuse_without_vectors(f"weight_rule={self.weight_rule!r}")
        return space

    def _rows(self, X: Any) -> Rows:
        rows = checks.domain_rows(X)
        # A row of zeros has no direction; it stays zero, as far from all others.
        return unit_rows(rows) if self.metric == "cosine" else rows

    def _warn_if_unfinished(self) -> None:
        convergence = self._convergence()
        if convergence.outcome is Outcome.MAX_ITER_REACHED:
            warnings.warn(
                f"The power iteration stopped at max_iter={self.max_iter} with a relative change "
                f"of {convergence.relative_change:.2g}, above tol={self.tol:g}. Raise max_iter or "
                f'tol, or use solver="direct".',
                ConvergenceWarning,
                stacklevel=3,
            )

    def _check_degree(self, n_rows: int, is_known: np.ndarray) -> None:
        checks.refuse_nothing_known(is_known)
        if not is_known.all() and self.min_degree >= n_rows:
            raise InputError(
                f"min_degree={self.min_degree}, but there are only {n_rows} rows. "
                f"Use at most {n_rows - 1}."
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_precomputed = self.metric == "precomputed"
        tags.input_tags.sparse = not is_precomputed
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.positive_only = is_precomputed
        return tags
