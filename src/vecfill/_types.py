"""The shapes, named once.

At run time and for the type checker these are plain arrays, and nothing is imported for them. When
tests run, jaxtyping's pytest plugin is loaded before this module: then the axis names are checked,
and two arguments that share one must agree.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING or "jaxtyping" not in sys.modules:
    DomainVectors: TypeAlias = NDArray[np.floating]
    """Domain vectors, the paper's X."""

    EmbeddingVectors: TypeAlias = NDArray[np.floating]
    """Embedding vectors, the paper's Y; an unknown row is all NaN."""

    KnownMask: TypeAlias = NDArray[np.bool_]
    """Which rows are known."""

    UnknownVectors: TypeAlias = NDArray[np.floating]
    """Vectors of the unknown rows alone, the paper's Y_q."""
else:
    from jaxtyping import Bool, Float

    DomainVectors = Float[np.ndarray, "n_rows n_features"]
    EmbeddingVectors = Float[np.ndarray, "n_rows n_dims"]
    KnownMask = Bool[np.ndarray, " n_rows"]
    UnknownVectors = Float[np.ndarray, "n_unknown n_dims"]
