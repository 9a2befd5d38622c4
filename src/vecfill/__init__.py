"""Trustworthy vectors for the entities that a pre-trained embedding lacks.

The method, latent semantic imputation, in ten lines::

    graph = spanning_neighbor_graph(domain, min_degree=8)      # who may explain whom
    weights = convex_weights(domain, graph)                    # each row a convex mix
    found = propagate(weights, embedding, is_known)            # unknown rows from known ones
    imputed = embedding.copy()                                 # known rows stay as they are
    imputed[~is_known] = found.vectors

`LatentSemanticImputer` is these stages behind ``fit(X, Y)``; `impute` chooses among ways to run
them and says how far to trust the result; `enrich` is the whole job on files.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from vecfill.file_job import enrich

if TYPE_CHECKING:
    from vecfill.embedding import Embedding
    from vecfill.errors import (
        ConvergenceWarning,
        FormatError,
        InputError,
        MissingExtraError,
        NoSignalError,
        OptionError,
        VecfillError,
    )
    from vecfill.imputer import LatentSemanticImputer
    from vecfill.io import read_embedding, write_embedding
    from vecfill.model.predictors import LatentSemantic
    from vecfill.result import Result
    from vecfill.run import evaluate, impute
    from vecfill.views.report import write_report

__version__ = "0.1.0"

__all__ = [
    "ConvergenceWarning",
    "Embedding",
    "FormatError",
    "InputError",
    "LatentSemantic",
    "LatentSemanticImputer",
    "MissingExtraError",
    "NoSignalError",
    "OptionError",
    "Result",
    "VecfillError",
    "enrich",
    "evaluate",
    "impute",
    "read_embedding",
    "write_embedding",
    "write_report",
]

# Loaded when first asked for: scikit-learn, Numba and Arrow together take over a second, and
# `vecfill --help` needs none of them.
_HOMES = {
    "ConvergenceWarning": "vecfill.errors",
    "Embedding": "vecfill.embedding",
    "FormatError": "vecfill.errors",
    "InputError": "vecfill.errors",
    "LatentSemanticImputer": "vecfill.imputer",
    "MissingExtraError": "vecfill.errors",
    "NoSignalError": "vecfill.errors",
    "VecfillError": "vecfill.errors",
    "LatentSemantic": "vecfill.model.predictors",
    "OptionError": "vecfill.errors",
    "Result": "vecfill.result",
    "evaluate": "vecfill.run",
    "impute": "vecfill.run",
    "read_embedding": "vecfill.io",
    "write_embedding": "vecfill.io",
    "write_report": "vecfill.views.report",
}
_MODULES = (
    "embedding", "errors", "imputer", "inputs", "io", "method", "model", "requests", "run", "trust",
    "views",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found
    if name in _MODULES:
        return import_module(f"vecfill.{name}")
    raise AttributeError(f"module 'vecfill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
