"""The shapes, named once.

Axis names are checked whenever tests run: two arguments that share an axis name must agree.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

DomainVectors = Float[np.ndarray, "n_rows n_features"]
"""Domain vectors, the paper's X."""

EmbeddingVectors = Float[np.ndarray, "n_rows n_dims"]
"""Embedding vectors, the paper's Y; an unknown row is all NaN."""

KnownMask = Bool[np.ndarray, " n_rows"]
"""Which rows are known."""

UnknownVectors = Float[np.ndarray, "n_unknown n_dims"]
"""Vectors of the unknown rows alone, the paper's Y_q."""
