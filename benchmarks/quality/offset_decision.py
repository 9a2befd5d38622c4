"""Is the decision on the offset of rare entities the same when other rows happen to be hidden?

    python benchmarks/quality/offset_decision.py [SET ...]

Hides the rarest 40 % and 20 % of a set as `rarity.py` does, lets vecfill choose a predictor, and
then decides about the offset again for resamples of the rows of the block that is hidden to decide
it, by cosine and ranks as vecfill does and, in a second line, with lengths judged by ranks alone.
Says how often an offset is taken, and within which limits nine in ten lengths lie (as norms of
steps beside the offset, relative to those of true vectors).
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from rarity import LEVEL, MOST_ROWS, question_of, sampled
from sets import SETS

import vecfill as vf
from vecfill.trust.choose import decision
from vecfill.trust.choose.folds import rarest_block
from vecfill.trust.choose.scores import Judge, RowScores, total_rows

STUDIED = ("headings", "cities", "movies", "companies")
N_RESAMPLES = 40


class Resampled(decision._Trial):
    """A block whose rows count as often as a resample says."""

    shared: ClassVar[dict[str, Any]] = {}
    """What does not depend on the resample."""
    rows: ClassVar[np.ndarray | None] = None

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._steps = self.shared.setdefault("steps", self._steps)
        self.judge = Remembering(self.judge, self.rows)

    def plain(self) -> RowScores:
        if "plain" not in self.shared:
            rows, self.judge.rows = self.judge.rows, slice(None)
            self.shared["plain"] = super().plain()
            self.judge.rows = rows
        return self.shared["plain"].rows(self.judge.rows)


class Remembering:
    """A judge that scores each prediction once, and gives the rows of a resample."""

    def __init__(self, judge: Judge, rows: Any) -> None:
        self.judge, self.rows = judge, slice(None) if rows is None else rows

    def scored(self, vectors: np.ndarray, truth: np.ndarray) -> RowScores:
        key = round(float(np.abs(vectors).sum()), 6)
        if key not in Resampled.shared:
            Resampled.shared[key] = self.judge.scored(vectors, truth)
        return Resampled.shared[key].rows(self.rows)


def study(name: str, share: float) -> None:
    data = SETS[name]()
    question = question_of(data, sampled(data, MOST_ROWS), share, "rarest")
    counts = None if question.ranks is not None else question.counts(of_hidden=False)
    table = dict(zip(question.entities, question.domain, strict=True))
    options = {"match": "exact", "names": "off", "force": True, "level": LEVEL, "counts": counts}
    run = vf.impute(table, question.file(), **options)
    rarity, is_known = run.alignment.rarity, run.alignment.is_known
    among = rarity.may_be_rare(is_known)
    block = rarest_block(is_known, rarity.values, share=decision.BLOCK, among=among)
    vectors = run.alignment.embedding
    about = (run.model.space, vectors, is_known, rarity, block, "balanced", None)
    centre = vectors[block.is_seen].mean(axis=0)
    true = float(np.linalg.norm(vectors[block.hidden] - centre, axis=1).mean())
    rng = np.random.default_rng(0)
    Resampled.shared = {}
    for judged in ("balanced", "rank"):
        lengths, n_taken = [], 0
        for _ in range(N_RESAMPLES):
            Resampled.rows = rng.integers(block.hidden.size, size=block.hidden.size)
            with (
                patch.object(decision, "_Trial", Resampled),
                patch.object(decision, "total_rows", lambda s, _, j=judged: total_rows(s, j)),
            ):
                found = decision._with_offset(run.decision, *about)
            if found.rule is not None:
                n_taken += 1
                steps = Resampled.shared["steps"][found.rule.degree]
                length = np.linalg.norm(steps, axis=1).mean() * found.stretch.rare
                lengths.append(float(length) / true)
        low, middle, high = np.quantile(lengths, [0.05, 0.5, 0.95]) if lengths else [np.nan] * 3
        print(
            f"| {name} | {100 * share:.0f} % | {judged} | {n_taken / N_RESAMPLES:.2f} "
            f"| {middle:.2f} ({low:.2f} to {high:.2f}) |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(STUDIED), metavar="SET")
    warnings.simplefilter("ignore")
    print("| set | hidden | judged by | offset taken | length |\n" + "| --- " * 5 + "|")
    for name in parser.parse_args().sets:
        for share in (0.4, 0.2):
            study(name, share)


if __name__ == "__main__":
    main()
