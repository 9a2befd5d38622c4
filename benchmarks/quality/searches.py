"""Ways of looking for the best setting, compared on real sets: in what order, and with what race.

    python benchmarks/quality/searches.py [SET ...] [--rows N] [--hide N] [--known N] [--out FOLDER]

`auto` tries settings of latent semantic imputation one way after another, and drops those that are
behind on the first fold. Here the same hidden rows are imputed with what other searches choose:
other degrees first, other weights first, and the whole grid on all folds. Printed are the means of
each, 95 % bootstrap intervals of the differences, CPU seconds, and what each chose in every fold.
``--known N`` shows only N known rows, drawn at random three times, and asks for all others.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from comparing import above, add_sizes, compared, fewer, folds_of, keep, show, weighted
from sets import SETS, Set

from vecfill.machine.blas import one_blas_thread
from vecfill.model.predictors import KernelRidge, LatentSemantic, Predictor
from vecfill.model.space import Space
from vecfill.trust.choose import choice
from vecfill.trust.choose.candidates import first_round, other_degrees, other_ridges, second_round
from vecfill.trust.choose.folds import Fold, rarest_block
from vecfill.trust.choose.trials import Trials

Rounds = Iterator[Sequence[Sequence[Predictor]]]


def one_after_another(
    ways: Sequence[Callable[..., Sequence[Sequence[Predictor]]]],
    space: Space,
    trials: Trials,
    preparations: list[str],
    kernels: list[KernelRidge],
    *,
    is_full: bool,  # noqa: ARG001
) -> Rounds:
    """One way on what is best so far, then the other on what is best by then."""
    yield [*([each] for each in kernels), *first_round(space, preparations)]
    if trials.is_beaten(LatentSemantic):
        return
    for others in ways:
        yield others(space, trials.best(LatentSemantic))


def whole_grid(
    space: Space,
    trials: Trials,
    preparations: list[str],
    kernels: list[KernelRidge],
    *,
    is_full: bool,  # noqa: ARG001
) -> Rounds:
    """Every degree with all weights."""
    yield [*([each] for each in kernels), *first_round(space, preparations)]
    yield second_round(space, trials.best(LatentSemantic))


@contextmanager
def searching(rounds: Callable[..., Rounds], *, races: bool) -> Iterator[None]:
    """Let `choose` look for settings in another way."""
    with (
        patch.object(choice, "_rounds", rounds),
        patch.object(Trials, "_can_race", Trials._can_race if races else lambda _self: False),
    ):
        yield


SEARCHES: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "auto": nullcontext,
    "degrees first": partial(
        searching, partial(one_after_another, (other_degrees, other_ridges)), races=True
    ),
    "weights first": partial(
        searching, partial(one_after_another, (other_ridges, other_degrees)), races=True
    ),
    "whole grid, no race": partial(searching, whole_grid, races=False),
}
N_DRAWS = 3


def few_seen(data: Set, n_known: int) -> list[Fold]:
    """Folds that show so many known rows, drawn at random, and hide all others."""
    share = 1 - n_known / data.is_known.sum()
    draws = [np.random.default_rng(seed).random(data.is_known.size) for seed in range(N_DRAWS)]
    return [rarest_block(data.is_known, draw, share=share) for draw in draws]


def measure(data: Set, folds: list[Fold]) -> dict[str, Any]:
    scores, settings, seconds = {}, {}, {}
    for name, search in SEARCHES.items():
        start = time.process_time()
        with search():
            # A space of its own, so that no search finds the graphs of another.
            found = compared(Space(data.domain), data, folds, "balanced", rivals={})
        seconds[name] = time.process_time() - start
        scores[name] = found.scores["auto"]
        settings[name] = [str(decision.predictor) for decision in found.decisions]
    return {
        "set": data.name,
        "n_known": int(data.is_known.sum()),
        "n_hidden": sum(fold.hidden.size for fold in folds),
        "methods": weighted(scores),
        "differences": above(scores),
        "settings": settings,
        "cpu_seconds": seconds,
    }


def report(result: dict[str, Any]) -> None:
    about = f"{result['set']}: {result['n_known']} known, {result['n_hidden']} hidden"
    show(about, result["methods"], result["differences"])
    for name, chosen in result["settings"].items():
        print(f"\n{name}, {result['cpu_seconds'][name]:.1f} CPU s")
        print(*(f"  {each}" for each in chosen), sep="\n", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(SETS), metavar="SET")
    add_sizes(parser, n_rows=2000)
    parser.add_argument("--known", type=int, help="show only so many known rows")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.sets:
        data = fewer(SETS[name](), options.rows or None)
        with one_blas_thread():
            few = options.known
            folds = few_seen(data, few) if few else folds_of(data, options.hide)
            result = measure(data, folds)
        report(result)
        keep(options.out, f"searches-{name}", result)


if __name__ == "__main__":
    main()
