"""Trustworthy vectors for the entities that a pre-trained embedding lacks.

The method, latent semantic imputation, in ten lines::

    graph = spanning_neighbor_graph(domain, min_degree=8)      # who may explain whom
    weights = convex_weights(domain, graph)                    # each row a convex mix
    found = propagate(weights, embedding, is_known)            # unknown rows from known ones
    imputed = embedding.copy()                                 # known rows stay as they are
    imputed[~is_known] = found.vectors

`LatentSemanticImputer` is these stages behind ``fit(X, Y)``.
"""

from vecfill.embedding import Embedding
from vecfill.errors import (
    ConvergenceWarning,
    FormatError,
    InputError,
    MissingExtraError,
    NoSignalError,
    VecfillError,
)
from vecfill.imputer import LatentSemanticImputer
from vecfill.io import read_embedding, write_embedding
from vecfill.run import Run, evaluate, impute
from vecfill.settings import Setting

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "Embedding",
    "FormatError",
    "InputError",
    "LatentSemanticImputer",
    "MissingExtraError",
    "NoSignalError",
    "Run",
    "Setting",
    "VecfillError",
    "evaluate",
    "impute",
    "read_embedding",
    "write_embedding",
]
