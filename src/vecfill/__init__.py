"""Trustworthy vectors for the entities that a pre-trained embedding lacks.

The method, latent semantic imputation, in ten lines::

    graph = spanning_neighbor_graph(domain, min_degree=8)      # who may explain whom
    weights = convex_weights(domain, graph)                    # each row a convex mix
    found = propagate(weights, embedding, is_known)            # unknown rows from known ones
    imputed = embedding.copy()                                 # known rows stay as they are
    imputed[~is_known] = found.vectors

`LatentSemanticImputer` is these stages behind ``fit(X, Y)``; `impute` chooses among ways to run
them and says how far to trust the result (`AutoImputer` is the same behind ``fit(X, Y)``); `enrich`
is the whole job on files.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vecfill.distributed.job import impute_dataset
    from vecfill.embedding import Embedding
    from vecfill.errors import (
        CollapseError,
        ConvergenceWarning,
        FormatError,
        HarmError,
        InputError,
        MissingExtraError,
        NoSignalError,
        OptionError,
        VecfillError,
    )
    from vecfill.estimators.auto import AutoImputer
    from vecfill.estimators.latent_semantic import LatentSemanticImputer
    from vecfill.exchange.duckdb import fill_duckdb
    from vecfill.exchange.gensim import to_gensim
    from vecfill.exchange.huggingface.adding import add_tokens
    from vecfill.exchange.huggingface.folder import read_model
    from vecfill.exchange.huggingface.imputing import impute_tokens
    from vecfill.exchange.huggingface.pieces import word_pieces
    from vecfill.exchange.huggingface.verifying import verify_model
    from vecfill.exchange.implicit import to_implicit
    from vecfill.exchange.lancedb import fill_lancedb
    from vecfill.exchange.postgres import fill_postgres
    from vecfill.exchange.qdrant import fill_qdrant
    from vecfill.exchange.rows import to_pandas
    from vecfill.exchange.spacy import to_spacy
    from vecfill.exchange.stores import fill
    from vecfill.exchange.torch import to_torch
    from vecfill.inputs.domain import as_domain
    from vecfill.inputs.graphs.triples_source import triples
    from vecfill.inputs.interactions import interactions
    from vecfill.inputs.sources import edges
    from vecfill.inputs.texts.text import text
    from vecfill.io import read_embedding, write_embedding
    from vecfill.jobs.enrich import enrich
    from vecfill.jobs.migrate import evaluate_migration, migrate
    from vecfill.jobs.migrate_columns import migrate_columns
    from vecfill.jobs.table import fill_table
    from vecfill.living.model import LivingModel, load
    from vecfill.machine.progress import ProgressBar
    from vecfill.model.predictors import LatentSemantic
    from vecfill.result import Result
    from vecfill.run import evaluate, impute
    from vecfill.views.report import write_report

__version__ = "0.1.0"

__all__ = [
    "AutoImputer",
    "CollapseError",
    "ConvergenceWarning",
    "Embedding",
    "FormatError",
    "HarmError",
    "InputError",
    "LatentSemantic",
    "LatentSemanticImputer",
    "LivingModel",
    "MissingExtraError",
    "NoSignalError",
    "OptionError",
    "ProgressBar",
    "Result",
    "VecfillError",
    "add_tokens",
    "as_domain",
    "edges",
    "enrich",
    "evaluate",
    "evaluate_migration",
    "fill",
    "fill_duckdb",
    "fill_lancedb",
    "fill_postgres",
    "fill_qdrant",
    "fill_table",
    "impute",
    "impute_dataset",
    "impute_tokens",
    "interactions",
    "load",
    "migrate",
    "migrate_columns",
    "read_embedding",
    "read_model",
    "text",
    "to_gensim",
    "to_implicit",
    "to_pandas",
    "to_spacy",
    "to_torch",
    "triples",
    "verify_model",
    "word_pieces",
    "write_embedding",
    "write_report",
]

# Loaded when first asked for: scikit-learn, Numba and Arrow together take over a second, and
# `vecfill --help` needs none of them.
_HOMES = {
    "AutoImputer": "vecfill.estimators.auto",
    "CollapseError": "vecfill.errors",
    "ConvergenceWarning": "vecfill.errors",
    "Embedding": "vecfill.embedding",
    "FormatError": "vecfill.errors",
    "HarmError": "vecfill.errors",
    "InputError": "vecfill.errors",
    "LatentSemanticImputer": "vecfill.estimators.latent_semantic",
    "LivingModel": "vecfill.living.model",
    "MissingExtraError": "vecfill.errors",
    "NoSignalError": "vecfill.errors",
    "VecfillError": "vecfill.errors",
    "LatentSemantic": "vecfill.model.predictors",
    "OptionError": "vecfill.errors",
    "ProgressBar": "vecfill.machine.progress",
    "Result": "vecfill.result",
    "as_domain": "vecfill.inputs.domain",
    "edges": "vecfill.inputs.sources",
    "add_tokens": "vecfill.exchange.huggingface.adding",
    "enrich": "vecfill.jobs.enrich",
    "evaluate": "vecfill.run",
    "evaluate_migration": "vecfill.jobs.migrate",
    "fill": "vecfill.exchange.stores",
    "fill_duckdb": "vecfill.exchange.duckdb",
    "fill_lancedb": "vecfill.exchange.lancedb",
    "fill_postgres": "vecfill.exchange.postgres",
    "fill_qdrant": "vecfill.exchange.qdrant",
    "fill_table": "vecfill.jobs.table",
    "impute": "vecfill.run",
    "impute_dataset": "vecfill.distributed.job",
    "impute_tokens": "vecfill.exchange.huggingface.imputing",
    "interactions": "vecfill.inputs.interactions",
    "load": "vecfill.living.model",
    "migrate": "vecfill.jobs.migrate",
    "migrate_columns": "vecfill.jobs.migrate_columns",
    "read_embedding": "vecfill.io",
    "text": "vecfill.inputs.texts.text",
    "to_gensim": "vecfill.exchange.gensim",
    "to_implicit": "vecfill.exchange.implicit",
    "to_pandas": "vecfill.exchange.rows",
    "to_spacy": "vecfill.exchange.spacy",
    "to_torch": "vecfill.exchange.torch",
    "triples": "vecfill.inputs.graphs.triples_source",
    "read_model": "vecfill.exchange.huggingface.folder",
    "verify_model": "vecfill.exchange.huggingface.verifying",
    "word_pieces": "vecfill.exchange.huggingface.pieces",
    "write_embedding": "vecfill.io",
    "write_report": "vecfill.views.report",
}
_MODULES = (
    "distributed", "embedding", "errors", "estimators", "exchange",
    "inputs", "io", "jobs", "method", "model", "requests",
    "run", "trust", "views",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return value
    if name in _MODULES:
        return import_module(f"vecfill.{name}")
    raise AttributeError(f"module 'vecfill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
