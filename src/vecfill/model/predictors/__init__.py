"""Every way to impute: a predictor gives unknown rows from known ones.

`base` says what a predictor is. `latent_semantic` is the paper's method, alone or on top of a
linear trend. `kernel_ridge` and `leaf_kernel` are the other ways that `auto` tries. `mean` also has
`Guessed`, for rows that are guesses already. `rivals` has what others do: nearest neighbors, ridge
regression, matching pursuit (mergekit's tokensurgeon) and sparsemax (FOCUS), which ``goal="rank"``
tries too. `affine` has maps from another embedding: a rotation, and what departs from it as far
as known rows bear it out.

And for several members:

- `fused`: Several sources at once: each predicts what it describes, and the predictions are added
  up.

Behind them:

- `fused_mix`: What fused vectors are made of.
- `propagating`: How what is known reaches the unknown rows: values by a solver, or shares of known
  rows.
- `forest`: Extremely randomised trees: which known rows end in one leaf with a row.
- `kernel_mix`: What kernel ridge regression makes of known rows, for rows of the fit and for later
  ones.
- `kernel_systems`: Systems of kernel ridge regression, each solved in the way that its size and
  kernel admit.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from vecfill.model.predictors.affine import Adjoint, Affine, AffineKernel, Procrustes
from vecfill.model.predictors.base import Predictor
from vecfill.model.predictors.kernel_ridge import KernelRidge
from vecfill.model.predictors.latent_semantic import PAPER, LatentSemantic
from vecfill.model.predictors.leaf_kernel import LeafKernel
from vecfill.model.predictors.mean import Guessed, Mean
from vecfill.model.predictors.rivals import LinearRidge, MatchingPursuit, Nearest, Sparsemax

RIVALS: Mapping[str, Predictor] = MappingProxyType(
    {
        "mean": Mean(),
        "knn": Nearest(),
        "knn_distance": Nearest(by_distance=True),
        "ridge": LinearRidge(),
        "omp": MatchingPursuit(),
        "sparsemax": Sparsemax(),
    }
)
"""What a user could pick instead, by the name it has in reports."""

__all__ = [
    "PAPER",
    "RIVALS",
    "Adjoint",
    "Affine",
    "AffineKernel",
    "Guessed",
    "KernelRidge",
    "LatentSemantic",
    "LeafKernel",
    "LinearRidge",
    "MatchingPursuit",
    "Mean",
    "Nearest",
    "Predictor",
    "Procrustes",
    "Sparsemax",
]
