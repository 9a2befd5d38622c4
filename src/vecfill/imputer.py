"""LatentSemanticImputer: the stages, behind ``fit(X, Y)``."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.preprocessing import normalize
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from vecfill import checks
from vecfill.errors import ConvergenceWarning, InputError
from vecfill.method.graph import (
    measured_neighbor_graphs,
    spanning_neighbor_graph_of_distances,
)
from vecfill.method.propagation import (
    Convergence,
    Outcome,
    cut_off_rows,
    fill_unknown,
    propagate_by_iteration,
)
from vecfill.method.scaling import well_scaled
from vecfill.method.search.neighbors import nearest_fitted, nearest_of_distances
from vecfill.method.weights import convex_weights, convex_weights_of_distances


class LatentSemanticImputer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Impute the unknown rows of an embedding from a domain matrix that describes all rows.

    The method is latent semantic imputation (Yao, Yu and Xiao, KDD 2019). Rows of `Y` that are
    all NaN are unknown; known rows are never changed.

    Parameters
    ----------
    min_degree
        Least number of neighbours that explain a row (the paper's delta).
    weights
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
        weights: str = "simplex",
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
        self.weights = weights
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
        self._check_parameters()
        domain = self._checked_domain(X, is_fit=True)
        embedding = self._checked_embedding(Y, n_rows=domain.shape[0])
        is_known = checks.known_rows(embedding)
        if not is_known.any():
            raise InputError(
                f"No row of Y is known: all {len(embedding)} rows are NaN. "
                f"At least one known vector is needed to impute the others."
            )
        self._check_degree(domain.shape[0], needed=not is_known.all())

        graph, recall = self._graph(domain)
        weights = self._weights(domain, graph)
        filled = embedding.copy()
        course = self._fill(weights, filled, is_known)

        self.embedding_ = filled
        self.is_known_ = is_known
        self.graph_ = graph
        self.neighbor_recall_ = recall
        self.weights_ = weights
        self.n_iter_ = max(1, course.n_iter)
        self.relative_change_ = course.relative_change
        self._fitted_domain = domain
        self._n_features_out = embedding.shape[1]
        return self

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
        check_is_fitted(self)
        rows = self._checked_domain(X, is_fit=False)
        fitted = self._fitted_domain
        n_neighbors = min(self.min_degree, fitted.shape[0])
        options = {"ridge": self.ridge, "weight_floor": 0.0, "n_jobs": self.n_jobs}
        if self.metric == "precomputed":
            nearest = nearest_of_distances(rows, n_neighbors=n_neighbors)
            weights = convex_weights_of_distances(rows, nearest.graph, between=fitted, **options)
        else:
            nearest = nearest_fitted(rows, fitted, n_neighbors=n_neighbors, n_jobs=self.n_jobs)
            weights = convex_weights(rows, nearest.graph, fitted=fitted, **options)
        vectors = (weights @ self.embedding_).astype(self.embedding_.dtype)
        vectors[nearest.is_equal] = self.embedding_[nearest.equal_to]
        return vectors

    def _graph(self, domain: np.ndarray | csr_array) -> tuple[csr_array, float]:
        """Return who may explain whom, and the share of the true nearest rows in it."""
        n_rows = domain.shape[0]
        min_degree = min(self.min_degree, max(n_rows - 1, 1))
        if self.metric == "precomputed":
            return spanning_neighbor_graph_of_distances(domain, min_degree=min_degree), 1.0
        (found,) = measured_neighbor_graphs(
            domain, min_degrees=(min_degree,), neighbors=self.neighbors, n_jobs=self.n_jobs
        )
        return found.graph, found.recall

    def _weights(self, domain: np.ndarray | csr_array, graph: csr_array) -> csr_array:
        options = {
            "ridge": float(self.ridge),
            "weight_floor": float(self.weight_floor),
            "n_jobs": self.n_jobs,
        }
        if self.metric == "precomputed":
            return convex_weights_of_distances(domain, graph, **options)
        return convex_weights(domain, graph, form=self.weights, **options)

    def _fill(self, weights: csr_array, embedding: np.ndarray, is_known: np.ndarray) -> Convergence:
        """Write the unknown rows; tell how it went."""
        cut_off = cut_off_rows(weights, is_known)
        if cut_off.size:
            raise InputError(
                f"{cut_off.size} unknown rows (the first is row {cut_off[0]}) reach no known row "
                f"through positive weights, so nothing determines their vectors. "
                f"Use weight_floor > 0 (the default is 0.1)."
            )
        if self.solver == "direct":
            return fill_unknown(weights, embedding, is_known, n_jobs=self.n_jobs)
        random = check_random_state(self.random_state)
        found = propagate_by_iteration(
            weights,
            embedding,
            is_known,
            tol=self.tol,
            max_iter=self.max_iter,
            self_weight=self.self_weight,
            rng=np.random.default_rng(random.randint(2**31)),
            n_jobs=self.n_jobs,
        )
        if found.outcome is Outcome.MAX_ITER_REACHED:
            warnings.warn(
                f"The power iteration stopped at max_iter={self.max_iter} with a relative change "
                f"of {found.relative_change:.2g}, above tol={self.tol:g}. Raise max_iter or tol, "
                f'or use solver="direct".',
                ConvergenceWarning,
                stacklevel=3,
            )
        embedding[~is_known] = found.vectors
        return found

    def _check_parameters(self) -> None:
        checks.one_of(self.weights, "weights", ("simplex", "nnls"))
        checks.one_of(self.solver, "solver", ("direct", "power"))
        checks.one_of(self.metric, "metric", ("euclidean", "cosine", "precomputed"))
        checks.one_of(self.neighbors, "neighbors", ("auto", "exact", "approximate"))
        checks.whole_number(self.min_degree, "min_degree", low=1)
        checks.whole_number(self.max_iter, "max_iter", low=1)
        checks.number(self.ridge, "ridge", low=0)
        checks.number(self.weight_floor, "weight_floor", low=0)
        checks.number(self.tol, "tol", low=0, open_low=True)
        checks.number(self.self_weight, "self_weight", low=0, high=0.999)
        if self.metric == "precomputed" and self.weights == "nnls":
            raise InputError(
                'weights="nnls" needs the domain vectors themselves, and metric="precomputed" '
                'has only their distances. Use weights="simplex".'
            )

    def _check_degree(self, n_rows: int, *, needed: bool) -> None:
        if needed and self.min_degree >= n_rows:
            raise InputError(
                f"min_degree={self.min_degree}, but there are only {n_rows} rows. "
                f"Use at most {n_rows - 1}."
            )

    def _checked_domain(self, X: Any, *, is_fit: bool) -> np.ndarray | csr_array:
        rows = checks.domain_rows(X)
        validate_data(self, X, reset=is_fit, skip_check_array=True)
        if self.metric == "cosine":
            # A row of zeros has no direction; it stays zero, as far from all others.
            return normalize(well_scaled(rows))
        if self.metric == "precomputed":
            if is_fit:
                return checks.square_distances(rows)
            checks.refuse_negative_distances(rows)
        return rows

    def _checked_embedding(self, Y: Any, *, n_rows: int) -> np.ndarray:
        if Y is None:
            raise InputError(
                "requires y to be passed, but the target y is None: "
                "pass the embedding as Y, unknown rows all NaN."
            )
        embedding = checks.embedding_rows(Y)
        if len(embedding) != n_rows:
            raise InputError(
                f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows "
                f"and Y has {len(embedding)}. They must describe the same entities in one order."
            )
        return embedding

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        is_precomputed = self.metric == "precomputed"
        tags.input_tags.sparse = not is_precomputed
        tags.input_tags.pairwise = is_precomputed
        tags.input_tags.positive_only = is_precomputed
        tags.target_tags.required = True
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.transformer_tags.preserves_dtype = []
        return tags
