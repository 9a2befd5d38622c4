"""Stage: known rows hidden in the same job: which method is best, and how far to trust it.

Some known rows are hidden and imputed over the full graph, because on a sample of rows neighbours
are farther away and everything looks worse. One set of hidden rows serves the choice among
candidates and the confidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from vecfill.distributed.alignment import Known
from vecfill.distributed.pieces import read_array, write_array
from vecfill.distributed.preparing import sum_of_pieces
from vecfill.distributed.solving import System, n_slabs, slab_piece
from vecfill.distributed.tasks import Runner, Task
from vecfill.distributed.trend import Sample, Trend
from vecfill.model.directions import unit
from vecfill.model.predictors import LatentSemantic
from vecfill.model.stretch import stretch_of
from vecfill.trust.choose.candidates import FIRST_RIDGE, RESIDUAL_SHARES
from vecfill.trust.choose.choice import Choice, honest_scores, permutation_p_value
from vecfill.trust.choose.folds import dealt_out
from vecfill.trust.choose.scores import score_rows
from vecfill.trust.choose.trials import pool_of, standing
from vecfill.trust.prove.hidden import Hidden
from vecfill.trust.prove.learning import ENOUGH_HIDDEN, FEWEST_HIDDEN
from vecfill.trust.prove.signals import Seen, signals_of

HIDDEN_SHARE = 5
"""One known row in so many is hidden, up to enough."""


def hidden_places(n_known: int, seed: int) -> np.ndarray:
    """Return which known rows are hidden, as places among them; none if there are too few.

    Examples
    --------
    >>> hidden_places(100, 0).size, hidden_places(90, 0).size, hidden_places(10**6, 0).size
    (20, 0, 2000)
    """
    n_hidden = min(ENOUGH_HIDDEN, n_known // HIDDEN_SHARE)
    if n_hidden < FEWEST_HIDDEN:
        return np.empty(0, np.int64)
    return np.sort(np.random.default_rng(seed).permutation(n_known)[:n_hidden])


def write_masks(known: Known, hidden: np.ndarray) -> None:
    """Write which known rows are seen in each variant, and which rows need weights."""
    is_seen = np.ones(known.n_known, np.bool_)
    write_array(known.layout.piece("known", "seen_final"), is_seen)
    is_seen[hidden] = False
    write_array(known.layout.piece("known", "seen_hidden"), is_seen)
    is_wanted = ~known.is_known()
    is_wanted[known.rows()[hidden]] = True
    write_array(known.layout.piece("known", "wanted"), is_wanted)


def add_vectors(sample: Sample, block: int) -> None:
    """Write the sum of the seen vectors of a block."""
    places, _ = sample.block(block)
    vectors = sample.known.vectors(block)[places].astype(np.float64)
    write_array(sample.piece("sums", block), np.append(vectors.sum(axis=0), len(places)))


def write_lengths(sample: Sample, block: int) -> None:
    """Write how far each known vector of a block lies from the centre."""
    centre = read_array(sample.piece("centre"))
    away = sample.known.vectors(block).astype(np.float64) - centre
    write_array(sample.piece("lengths_of", block), np.linalg.norm(away, axis=1))


def centred(runner: Runner, sample: Sample) -> None:
    """Write the mean of the seen vectors, and how far each known vector lies from it."""
    blocks, stage = range(len(sample.known.blocks)), f"centre {sample.variant}"
    pieces = [sample.piece("sums", block) for block in blocks]
    runner.run(
        Task(stage, f"sums {b}", add_vectors, {"sample": sample, "block": b}, (pieces[b],))
        for b in blocks
    )
    total = sum_of_pieces(runner, pieces)
    write_array(sample.piece("centre"), total[:-1] / total[-1])
    lengths = [sample.piece("lengths_of", block) for block in blocks]
    runner.run(
        Task(stage, f"lengths {b}", write_lengths, {"sample": sample, "block": b}, (lengths[b],))
        for b in blocks
    )
    found = [runner.read(read_array, piece) for piece in lengths]
    write_array(sample.piece("lengths"), np.concatenate(found))


def candidates_of(preparation: str, min_degree: int) -> list[LatentSemantic]:
    """Return what `auto` compares under a preparation: one graph, with and without trends.

    Examples
    --------
    >>> len(candidates_of("as_given", 8))
    5
    """
    plain = LatentSemantic(preparation, min_degree, FIRST_RIDGE)
    return [plain, *(replace(plain, residual_share=share) for share in (*RESIDUAL_SHARES, 0.0))]


def put_together(
    predictor: LatentSemantic, system: System, trend: Trend | None, rows: np.ndarray, part: slice
) -> np.ndarray:
    """Return vectors of solved rows in `part`; `rows` are their prepared rows, for a trend."""
    if predictor.residual_share is None:
        return _columns(system, "values", part)
    assert trend is not None
    residuals = _columns(system, "residuals", part) if predictor.residual_share else None
    return predictor.put_on(trend.values(rows), residuals).astype(system.known.dtype)


def _columns(system: System, kind: str, part: slice) -> np.ndarray:
    slabs = range(n_slabs(system, kind))
    return np.hstack([read_array(slab_piece(system, kind, slab))[part] for slab in slabs])


def seen_of(
    system: System,
    trend: Trend | None,
    vectors: np.ndarray,
    rows: np.ndarray,
    part: slice,
    places: np.ndarray,
) -> np.ndarray:
    """Return every signal of solved rows in `part`, which are at `places` among those not seen."""
    directions, probes = (
        np.sum([read_array(slab_piece(system, kind, slab))[part]
                for slab in range(n_slabs(system, kind))], axis=0)
        for kind in ("directions", "probes")
    )  # fmt: skip
    line = None if trend is None else lambda some: trend.values(rows[some])
    centre = read_array(system.sample.piece("centre"))
    mix = SolvedMix(system.signals()[places])
    return signals_of(Seen(vectors, centre, mix, line, directions, probes))


@dataclass(frozen=True)
class SolvedMix:
    """What the equations tell about rows that were solved."""

    columns: np.ndarray
    """(n_rows, 3), as they were written."""

    def straight(self) -> np.ndarray:
        """Return how much of each row's weight rests on known rows directly."""
        return self.columns[:, 0]

    def tightness(self) -> np.ndarray:
        """Return the largest weight of each row."""
        return self.columns[:, 1]

    def misfit(self) -> np.ndarray:
        """Return how badly its neighbors explain each row in the domain."""
        return self.columns[:, 2]


@dataclass(frozen=True)
class HiddenRows:
    """The hidden rows: what they were, and among which vectors their truth is ranked."""

    sample: Sample
    places: np.ndarray
    """Among the known rows."""

    @property
    def numbers(self) -> np.ndarray:
        """Their row numbers."""
        return np.array(self.sample.known.rows()[self.places])

    def places_unseen(self) -> np.ndarray:
        """Return their places among the rows that are not seen."""
        known = self.sample.known
        is_unseen = np.ones(known.layout.n_rows, np.bool_)
        is_unseen[known.rows()[self.sample.is_seen()]] = False
        return np.searchsorted(np.flatnonzero(is_unseen), self.numbers)

    def pool(self) -> tuple[np.ndarray, np.ndarray]:
        """Return vectors among which truths are ranked, and where the truths are among them."""
        known = self.sample.known
        pool = pool_of(self.places, known.n_known)
        vectors = np.empty((pool.size, known.n_dims))
        edges = [span.start for span in known.blocks] + [known.n_known]
        cuts = np.searchsorted(pool, edges)
        for block, (first, last) in enumerate(pairwise(cuts)):
            if first < last:
                vectors[first:last] = known.vectors(block)[pool[first:last] - edges[block]]
        return vectors, np.searchsorted(pool, self.places)

    def centre(self) -> np.ndarray:
        """Return the mean of the seen vectors."""
        return read_array(self.sample.piece("centre"))

    def judged(self, vectors: np.ndarray, signals: np.ndarray) -> Hidden:
        """Return signals and scores of the hidden rows, for the confidence."""
        pool, truth = self.pool()
        scores = score_rows(vectors, truth, pool, self.centre())
        group = dealt_out(self.places.size)
        return Hidden(self.numbers, group, signals, scores, scores.centred_cosine)


def chosen(hidden: HiddenRows, found: list[tuple[LatentSemantic, np.ndarray]], goal: str) -> Choice:
    """Return the candidate that imputes the hidden rows best."""
    pool, truth = hidden.pool()
    centre = hidden.centre()
    scores = [score_rows(vectors, truth, pool, centre) for _, vectors in found]
    directions = [unit(vectors - centre) for _, vectors in found]
    group = dealt_out(hidden.places.size)
    best = int(np.argmax(standing(scores, np.arange(group.size), goal)))
    honest, steps = honest_scores(scores, directions, group, goal)
    return Choice(
        found[best][0],
        tuple(each for each, _ in found),
        tuple(score.means() for score in scores),
        honest,
        permutation_p_value(steps, unit(pool[truth] - centre)),
        stretch_of(centre, found[best][1] - centre, pool[truth]),
    )
