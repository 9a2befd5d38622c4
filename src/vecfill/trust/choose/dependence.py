"""Do known vectors depend on their rows at all? A test that no choice can flatter.

Hidden rows do not answer this by themselves. Their predictions are sums over the other rows'
vectors with weights that are nearly symmetric, so each pair of rows counts twice, and chance comes
near far more often than a test of independent predictions believes; a predictor that was picked on
the same rows adds to that. Here nothing is predicted or picked: if the rows say nothing about the
vectors, dealing the vectors out anew changes nothing, and the moments of that are known exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from scipy.special import ndtr
from scipy.stats import pearson3

from vecfill.machine.blas import one_blas_thread
from vecfill.machine.lengths import unit
from vecfill.method.engine import parallel_map
from vecfill.model.kernels import Kernel, is_binary
from vecfill.model.space import Space
from vecfill.trust.choose.twins import first_of, twins_of

# A guess. 12 kernels of 1,000 rows take about half a second.
MOST_TESTED = 1000
"""Known rows that are tested at most, and above which hidden rows are asked as well."""

MOST_CUBED = 200
"""Rows that tell the skewness: it changes little with more, and takes a product of matrices."""

# Of 300 sets with 50 known and a signal of 10 %, accepted with unit, capped and plain lengths: .51,
# .57, .58. The cap keeps a single far vector from being the whole test.
LONGEST = 1.5
"""Length of a centred vector, in median ones, from which on it counts as no longer."""

# Of weights 1, 2 and 3, accepted at 0.001: 150 linear signals of 10 % and 5 %: .50, .53, .53 and
# .59, .62, .61; 60 signals in clusters and waves: .87, .85, .82 and .35, .33, .33.
WIDE_WEIGHT = 2.0
"""Weight of the kernels that see all rows, beside 1 for those that see what is near by."""

# Without it, 9 of 4,000 made sets of noise had p < 0.001, and 6 % had p < 0.05: the combination is
# only nearly exact for p-values that depend on each other.
COMBINING = 1.5
"""What the combination of p-values is multiplied by, to be on the safe side."""

# A thousandth of what counts as a signal. Nine of ten kernels need not be looked at on real sets.
SETTLED = 1e-6
"""P-value below which the kernels that are left could not take the signal away."""

FEWEST_TESTED = 8
"""Rows below which the moments say nothing about the tail. A guess."""

# Accepted at 0.001 of 60 made sets with signals in clusters, and in a quick wave of two features,
# by width: .2: .87, .97; .35: .82, .95; .7: .63, .85. On linear signals .2 costs 3 points of 54.
NARROW = 0.2
"""Width of the kernel that sees what is near by only, in median distances between rows."""

# A guess; the narrow one beside it sees the rest.
WIDE = 0.7
"""Width of the kernel that stands in for products where there are only distances."""


@dataclass(frozen=True, eq=False)
class Centred:
    """A centred matrix of likenesses, and what the moments of a permutation test need of it."""

    likeness: np.ndarray
    """(n_rows, n_rows) whose rows and columns sum to zero."""

    @cached_property
    def trace(self) -> float:
        """Sum of the diagonal."""
        return float(np.trace(self.likeness))

    @cached_property
    def squares(self) -> float:
        """Sum of all squares."""
        return float(np.einsum("ij,ij->", self.likeness, self.likeness))

    @cached_property
    def squares_on_diagonal(self) -> float:
        """Sum of the squares on the diagonal."""
        return float((np.diag(self.likeness) ** 2).sum())

    @cached_property
    def skewness(self) -> float:
        """Sum of cubed eigenvalues over that of squared ones to the power of 1.5.

        Both are taken from the mean of the eigenvalues.
        """
        # Evenly, because entities often come sorted.
        step = -(-len(self.likeness) // MOST_CUBED)
        likeness = centred(self.likeness[::step, ::step])
        n_directions = len(likeness) - 1
        mean = float(np.trace(likeness)) / n_directions
        square = float(np.einsum("ij,ij->", likeness, likeness))
        cube = float(np.einsum("ij,ij->", likeness @ likeness, likeness))
        cubes = cube - 3.0 * mean * square + 2.0 * mean**3 * n_directions
        squares = square - mean**2 * n_directions
        return cubes / squares**1.5 if squares > 1e-12 * square else 0.0


@one_blas_thread()
def dependence_p_value(
    space: Space,
    vectors: np.ndarray,
    rows: np.ndarray,
    preparations: Sequence[str] | None = None,
) -> float:
    """Return how likely chance would make rows of a space and their vectors as alike as they are.

    `rows` are the known rows, and `vectors` theirs, in that order. Rows that are alike under a
    kernel should have vectors that are alike. Each kernel has a p-value of its own, and their
    Cauchy combination is one for all, however they depend on each other (Liu & Xie, 2020). Once it
    is tiny whatever the kernels that are left say, it is that upper bound.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows, noise = rng.normal(size=(60, 3)), rng.normal(size=(60, 4))
    >>> dependence_p_value(Space(rows), rows @ rng.normal(size=(3, 4)), np.arange(60)) < 1e-6
    True
    >>> dependence_p_value(Space(rows), noise, np.arange(60)) > 0.01
    True
    """
    tested = _tested(vectors)
    if tested.size < FEWEST_TESTED:
        return 1.0
    rows, steps = rows[tested], _from_middle(vectors[tested].astype(np.float64))
    # Long vectors say most where all carry the same noise. Those of frequent words are long too,
    # and there it is directions that say most.
    vectors_alike = [Centred(centred(part @ part.T)) for part in (_capped(steps), unit(steps))]

    def of_lane(kernels: Sequence[Kernel]) -> list[tuple[float, float]]:
        p_values = []
        for kernel in kernels:
            rows_alike = Centred(_scaled(kernel.between(rows, rows)))
            weight = 1.0 if kernel.kernel == "laplacian" else WIDE_WEIGHT
            p_values += [(p_value_of(rows_alike, side), weight) for side in vectors_alike]
        return p_values

    lanes = _lanes(space, space.worth_trying if preparations is None else preparations)
    n_left = sum(map(len, lanes))
    results: list[tuple[float, float]] = []
    # The plainest rows alone mostly show a signal; what is left is looked at side by side.
    for batch in (lanes[:1], lanes[1:2], lanes[2:]):
        parts = parallel_map(of_lane, batch, n_jobs=space.n_threads)
        results += chain.from_iterable(parts)
        n_left -= sum(map(len, batch))
        # The largest p-value that a kernel can have, at the largest weight.
        worst = [(1.0, WIDE_WEIGHT)] * (len(vectors_alike) * n_left)
        p_values, weights = np.array([*results, *worst]).T
        p_value = min(1.0, COMBINING * combined(p_values, weights))
        if p_value < SETTLED:
            break
    return p_value


def p_value_of(rows_alike: Centred, vectors_alike: Centred) -> float:
    """Return how often vectors dealt out anew would be as alike where the rows are.

    The tail is that of Pearson's type III with the moments of all permutations. Its skewness is
    that under all rotations, which differs little.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(40, 3))
    >>> alike = Centred(centred(rows @ rows.T))
    >>> p_value_of(alike, alike) < 1e-6
    True
    """
    mean, variance = moments(rows_alike, vectors_alike)
    # Rows, or vectors, that are all equally alike are so under any permutation.
    if not variance > 1e-20 * mean**2:
        return 1.0
    total = float(np.einsum("ij,ij->", rows_alike.likeness, vectors_alike.likeness))
    # For m directions, 8 A3 B3 / m^3 over (2 A2 B2 / m^2)^1.5 in the limit of large m.
    skewness = np.sqrt(8.0) * rows_alike.skewness * vectors_alike.skewness
    return float(pearson3.sf((total - mean) / np.sqrt(variance), max(skewness, 1e-3)))


def moments(rows_alike: Centred, vectors_alike: Centred) -> tuple[float, float]:
    """Return mean and variance of the sum of products of two matrices, one of them permuted.

    Both are exact, over all permutations (Kazi-Aoual and others, 1995).

    Examples
    --------
    >>> three = Centred(centred(np.diag([1.0, 2.0, 3.0, 6.0])))
    >>> [round(moment, 6) for moment in moments(three, three)]
    [27.0, 16.333333]
    """
    n_rows, sides = len(rows_alike.likeness), (rows_alike, vectors_alike)
    traces, squares = [side.trace for side in sides], [side.squares for side in sides]
    spreads = [
        (n_rows - 1) * square - trace**2 for trace, square in zip(traces, squares, strict=True)
    ]
    diagonals = [
        n_rows * (n_rows + 1) * side.squares_on_diagonal
        - (n_rows - 1) * (side.trace**2 + 2.0 * side.squares)
        for side in sides
    ]
    off_diagonal = (n_rows - 1) ** 2 * (n_rows + 1) * (n_rows - 2) / 2.0
    on_diagonal = (n_rows + 1) * n_rows * (n_rows - 1) * (n_rows - 2) * (n_rows - 3)
    variance = np.prod(spreads) / off_diagonal + np.prod(diagonals) / on_diagonal
    return float(np.prod(traces)) / (n_rows - 1), float(variance)


def combined(p_values: np.ndarray, weights: np.ndarray) -> float:
    """Return the Cauchy combination of p-values that may depend on each other.

    Examples
    --------
    >>> round(combined(np.array([0.01, 0.01]), np.array([1, 2])), 6)
    0.01
    >>> round(combined(np.array([0.5, 1e-9]), np.array([1, 3])), 12)
    1.333e-09
    """
    # A p-value of one would outweigh any other, and one of zero has no tangent.
    p_values = np.clip(p_values, 1e-300, 0.99)
    small = p_values < 1e-15
    # tan(pi (1/2 - p)) is 1 / (pi p) for small p, where 1/2 - p is a half in 64 bits.
    tangents = np.where(
        small, 1.0 / (np.pi * p_values), np.tan(np.pi * (0.5 - np.maximum(p_values, 1e-15)))
    )
    mean = float(tangents @ weights / weights.sum())
    return float(np.arctan2(1.0, mean) / np.pi)


def centred(likeness: np.ndarray) -> np.ndarray:
    """Return a symmetric matrix whose rows and columns sum to zero.

    Examples
    --------
    >>> centred(np.eye(2))
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    means = likeness.mean(axis=0)
    return likeness - means - means[:, None] + means.mean()


def _tested(vectors: np.ndarray) -> np.ndarray:
    """Return which rows are tested: a sample of them, each entity once."""
    # An entity that stands there under two names has one vector twice, and would be found again
    # however little the table says. Where most rows share vectors, these are classes, not twins.
    _, first_places = np.unique(vectors, axis=0, return_index=True)
    is_class = 2 * first_places.size < len(vectors)
    places = np.arange(len(vectors)) if is_class else np.sort(first_places)
    if places.size <= MOST_TESTED:
        return places
    return np.sort(np.random.default_rng(0).permutation(places)[:MOST_TESTED])


def _from_middle(vectors: np.ndarray) -> np.ndarray:
    """Return steps from the middle of the vectors."""
    size = float(np.abs(vectors).max(initial=0.0)) or 1.0
    steps = vectors / size
    # From the mean, one vector that is very far away would make all others alike.
    return steps - np.median(steps, axis=0)


def _capped(steps: np.ndarray) -> np.ndarray:
    """Return steps of which none is much longer than the others."""
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    longest = LONGEST * float(np.median(lengths))
    return steps * np.minimum(1.0, longest / np.maximum(lengths, 1e-300))


def _lanes(space: Space, preparations: Sequence[str]) -> list[list[Kernel]]:
    """Return the kernels under which rows are compared; those of a list share prepared rows."""
    lanes: dict[str, list[Kernel]] = {}
    for preparation in preparations:
        # Side by side, two preparations that begin with the same ranks would both compute them.
        lane = lanes.setdefault(preparation.removesuffix("_unit_rows"), [])
        lane.append(Kernel(space, preparation, "laplacian", NARROW))
        wide = "linear" if space.has_vectors else "rbf"
        lane.append(Kernel(space, preparation, wide, WIDE))
    if is_binary(space):
        lanes.setdefault("as_given", []).append(Kernel(space, "as_given", "tanimoto"))
    return list(lanes.values())


def _scaled(likeness: np.ndarray) -> np.ndarray:
    """Return a centred matrix whose squares are numbers, whatever the units."""
    size = float(np.abs(likeness).max(initial=0.0)) or 1.0
    return centred(likeness / size)


def permutation_p_value(predicted: np.ndarray, truth: np.ndarray) -> float:
    """Return how likely vectors dealt out at random would be as near to the truth.

    It holds for hidden rows whose predictions were made without any of them, so for one fold: over
    several, each pair of hidden rows predicts one another, and chance comes near too often.

    Rows are directions from the centre. The sum of cosines of the pairs is compared with that
    under all permutations of the truth, whose mean and variance have a closed form.

    Examples
    --------
    >>> from vecfill.machine.lengths import unit
    >>> rng = np.random.default_rng(0)
    >>> truth, other = unit(rng.normal(size=(50, 5))), unit(rng.normal(size=(50, 5)))
    >>> permutation_p_value(truth, truth) < 1e-6, permutation_p_value(other, truth) > 0.01
    (True, True)
    """
    # One thing under two names is one piece of evidence, not two.
    if (twins := twins_of(truth, np.ones(len(truth), np.bool_))) is not None:
        predicted, truth = predicted[first_of(twins)], truth[first_of(twins)]
    n_rows = len(truth)
    # Two rows can be paired in two ways only: nothing would be unlikely.
    if n_rows < 3:
        return 1.0
    # A direction that all predictions share is as near to every truth, and no sign of a signal.
    predicted, truth = predicted - predicted.mean(axis=0), truth - truth.mean(axis=0)
    cosine_sum = float(np.einsum("ij,ij->", predicted, truth))
    # The squares of all pairs' cosines sum to this product of two small matrices.
    squares = float(np.einsum("ij,ij->", predicted.T @ predicted, truth.T @ truth))
    spread = np.sqrt(max(squares, 0.0) / (n_rows - 1))
    # Predictions that are all equal are as near under any pairing.
    return float(ndtr(-cosine_sum / spread)) if spread > 1e-12 else 1.0
