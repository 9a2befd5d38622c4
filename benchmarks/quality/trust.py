"""Does confidence hold when facts are missing, when entities are unlike any known one, on noise?

    python benchmarks/quality/trust.py [SECTION ...] [--seeds N] [--nulls N] [--json FILE]

Each case says what vecfill promises (mean confidence, 90 % bounds) and what the truth is, on made
data whose truth is known, with intervals of 95 % over seeds:

- `add`: entities that come later with a fact missing, unseen, in another unit, or misnamed;
- `impute`: unknown entities of which half lack a fact;
- `leaks`: sources that know the answer, twins, ids, texts that give the word away;
- `noise`: data without signal, and the same with a weak one: how often is it accepted?
- `kinds`: clusters that no known entity is in, shifted facts, few known entities;
- `deciles`: coverage by tenths of confidence.

`rarity.py` does the same for rare entities on real sets. A case that is refused, or listed without
a bound, makes no promise that could break; the table says so.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import vecfill as vf

LEVEL = 0.9
N_DIMS = 16
CITIES = ("oslo", "rome", "lima", "cairo", "quito", "delhi", "perth", "kyoto")
WORDS = (
    "river", "mountain", "harbour", "market", "temple", "garden", "bridge", "castle", "forest",
    "island", "desert", "valley", "station", "museum", "palace", "square", "church", "tower",
    "library", "theatre",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """One case under one seed."""

    n: int
    """Entities that were asked for."""
    confidence: float = np.nan
    truth: float = np.nan
    n_bounds: int = 0
    """Entities that have a bound: one above -1."""
    n_held: int = 0
    n_listed: int = 0
    """Entities that are listed as unusual."""
    refused: str = ""
    said: str = ""


@dataclass(frozen=True)
class Made:
    """A table about entities, and their true vectors."""

    table: pd.DataFrame
    vectors: np.ndarray

    def part(self, rows: np.ndarray) -> pd.DataFrame:
        return self.table.iloc[rows].copy()

    def embedding(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(self.table.index[rows], self.vectors[rows], strict=True))


def made(n: int, seed: int, *, noise: float = 0.35) -> Made:
    """Return entities with five numbers, two categories and a description, and their vectors.

    A vector depends on all of them, so each fact that is missing costs something.
    """
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n, 5))
    city, kind = rng.integers(len(CITIES), size=n), rng.integers(3, size=n)
    topics = rng.integers(len(WORDS) // 4, size=n)
    vectors = (
        numbers @ rng.normal(size=(5, N_DIMS))
        + 0.5 * np.tanh(2 * numbers[:, [0]]) * rng.normal(size=N_DIMS)
        + 1.5 * rng.normal(size=(len(CITIES), N_DIMS))[city]
        + 0.8 * rng.normal(size=(3, N_DIMS))[kind]
        + 1.2 * rng.normal(size=(len(WORDS) // 4, N_DIMS))[topics]
        + noise * np.sqrt(12.0) * rng.normal(size=(n, N_DIMS))
    )
    texts = [
        " ".join(rng.choice(WORDS[4 * topic : 4 * topic + 4], size=3)) + " " + rng.choice(WORDS)
        for topic in topics
    ]
    names = ("price", "size", "age", "weight", "height")
    table = pd.DataFrame(
        {
            **dict(zip(names, (100 + 15 * numbers).T.round(2), strict=True)),
            "city": [CITIES[place] for place in city],
            "kind": [("small", "middle", "large")[place] for place in kind],
            "description": texts,
        },
        index=pd.Index([f"item{row:05d}" for row in range(n)], name="name"),
    )
    return Made(table, vectors)


def compared(
    words: tuple[str, ...], found: np.ndarray, sure: Any, truth: Mapping[str, np.ndarray],
    centre: np.ndarray, *, among: set[str] | None = None, n_listed: int = 0, said: str = "",
) -> Outcome:  # fmt: skip
    """Compare what is promised about some entities with the truth."""
    rows = [row for row, word in enumerate(words) if among is None or word in among]
    if not rows or sure is None:
        return Outcome(len(rows), said=said, n_listed=n_listed)
    left = found[rows] - centre
    right = np.array([truth[words[row]] for row in rows]) - centre
    lengths = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosines = (left * right).sum(axis=1) / np.maximum(lengths, 1e-12)
    bounds = sure.lower_bound[rows]
    has_bound = bounds > -1.0
    return Outcome(
        len(rows),
        float(sure.values[rows].mean()),
        float(cosines.mean()),
        int(has_bound.sum()),
        int((cosines >= bounds)[has_bound].sum()),
        n_listed,
        said=said,
    )


# --- Entities that come later -------------------------------------------------------------------


def later_cases() -> Iterator[tuple[str, Callable[[pd.DataFrame], pd.DataFrame]]]:
    yield "facts as at the fit", lambda new: new
    yield "category null", lambda new: new.assign(city=None)
    yield "category column absent", lambda new: new.drop(columns="city")
    yield "category unseen", lambda new: new.assign(city="atlantis")
    yield "number null", lambda new: new.assign(price=np.nan)
    yield "number column absent", lambda new: new.drop(columns="price")
    yield "description null", lambda new: new.assign(description=None)
    yield "two facts null", lambda new: new.assign(price=np.nan, city=None)
    yield "half of them lack the category", _half_without_city
    yield "number in another unit (x 8)", lambda new: new.assign(price=8 * new.price)
    yield "number shifted by two spreads", lambda new: new.assign(price=new.price + 30)
    yield (
        "five columns capitalised",
        lambda new: new.rename(columns=str.upper).rename(
            columns={"HEIGHT": "height", "WEIGHT": "weight", "AGE": "age"}
        ),
    )


def _half_without_city(new: pd.DataFrame) -> pd.DataFrame:
    city = new.city.astype(object)
    city[::2] = None
    return new.assign(city=city)


def add(seed: int) -> Iterator[tuple[str, Outcome]]:
    data = made(900, seed)
    known, unknown, later = np.arange(500), np.arange(500, 600), np.arange(600, 900)
    table = data.part(np.r_[known, unknown])
    model = vf.impute(table, data.embedding(known)).to_model()
    centre, truth = data.vectors[known].mean(axis=0), data.embedding(later)
    for case, changed in later_cases():
        new = changed(data.part(later))
        yield case, _added(model, new, truth, centre)
        if "absent" in case or "capitalised" in case:
            with suppress(TypeError):
                yield f"{case}, allowed", _added(model, new, truth, centre, missing="allow")


def _added(
    model: Any, new: pd.DataFrame, truth: Any, centre: np.ndarray, **options: Any
) -> Outcome:
    try:
        added = model.add(new, **options)
    except vf.InputError as error:
        return Outcome(len(new), refused=str(error))
    words = added.embedding.words
    said = " ".join(added.notes)
    vectors = np.asarray(added.embedding.vectors)
    return compared(
        words, vectors, added.confidence, truth, centre, n_listed=len(added.unusual), said=said
    )


# --- Unknown entities of the fit ----------------------------------------------------------------


def impute(seed: int) -> Iterator[tuple[str, Outcome]]:
    data = made(1100, seed)
    known, unknown = np.arange(500), np.arange(500, 1100)
    blank = data.table.index[unknown[::2]]
    for case, column in (
        ("half lack the category", "city"),
        ("half lack the description", "description"),
        ("half lack a number", "price"),
    ):
        table = data.table.copy()
        table.loc[blank, column] = None
        result = vf.impute(table, data.embedding(known))
        for who, among in (("", set(blank)), (", the others", set(data.table.index) - set(blank))):
            yield (
                f"{case}{who}",
                judged(result, data.embedding(unknown), data.vectors[known], among),
            )


def judged(
    result: Any, truth: Mapping[str, np.ndarray], known: np.ndarray, among: set[str] | None = None
) -> Outcome:
    words = result.embedding.words
    vectors = np.asarray(result.embedding.vectors)
    said = " ".join(result.notes)
    centre = known.mean(axis=0)
    listed = set(result.unusual) if among is None else among & set(result.unusual)
    return compared(
        words, vectors, result.confidence, truth, centre, among=among, said=said,
        n_listed=len(listed),
    )  # fmt: skip


def imputed(
    table: Any, known: Mapping[str, np.ndarray], truth: Mapping[str, np.ndarray], **options: Any
) -> Outcome:
    try:
        result = vf.impute(table, dict(known), **options)
    except vf.VecfillError as error:
        return Outcome(len(truth), refused=f"{type(error).__name__}: {error}")
    return judged(result, truth, np.array(list(known.values())))


# --- Leaks --------------------------------------------------------------------------------------


def leaks(seed: int) -> Iterator[tuple[str, Outcome]]:
    rng = np.random.default_rng(seed)
    data = made(600, seed)
    known, unknown = np.arange(400), np.arange(400, 600)
    truth, own = data.embedding(unknown), data.embedding(known)
    answer = data.vectors + 0.01 * rng.normal(size=data.vectors.shape)
    answer[unknown] = rng.normal(size=(200, N_DIMS)) * data.vectors.std(axis=0)
    leaking = pd.DataFrame(answer, index=data.table.index).add_prefix("f")
    yield "a table with the truth of the known", imputed(leaking, own, truth)
    yield "beside an honest table", imputed({"facts": data.table, "leak": leaking}, own, truth)

    noise, names = rng.normal(size=600), data.table.index
    order = np.argsort(data.vectors[:, 0])  # the file is sorted by something that matters
    places = np.empty(600)
    places[order] = np.arange(600)
    places[unknown] = 600
    ids = pd.DataFrame({"id": np.arange(600), "a": noise}, index=names)
    yield "an id column", imputed(ids, own, truth)
    times = pd.DataFrame({"time": places, "a": noise}, index=names)
    yield (
        "a timestamp in the order of the vectors",
        imputed(times, data.embedding(order[order < 400]), truth),
    )
    yield "twins under two names", twins(seed)
    yield "a text with the entity's plural", own_word(seed)


def twins(seed: int) -> Outcome:
    """Noise, but one entity in ten stands there twice, with the same facts and vector."""
    rng = np.random.default_rng(seed)
    rows, vectors = rng.normal(size=(400, 4)), rng.normal(size=(400, N_DIMS))
    twin = np.arange(40)
    names = [f"firm{row:03d}" for row in range(400)] + [f"firm{row:03d} Inc." for row in twin]
    rows, vectors = np.vstack([rows, rows[twin]]), np.vstack([vectors, vectors[twin]])
    unknown = np.arange(300, 400)
    table = pd.DataFrame(rows, index=pd.Index(names, name="name"), columns=list("abcd"))
    known = {names[row]: vectors[row] for row in range(len(names)) if row not in set(unknown)}
    return imputed(table, known, {names[row]: vectors[row] for row in unknown})


def own_word(seed: int) -> Outcome:
    """Noise, but each text names its entity in the plural, which has nearly the same vector."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("bcdfghklmnprst"))
    drawn = ["".join(letters) for letters in rng.choice(letters, size=(500, 6))]
    words = list(dict.fromkeys(f"{word[:3]}a{word[3:]}" for word in drawn))[:460]
    vectors = rng.normal(size=(len(words), N_DIMS))
    near = vectors + 0.1 * rng.normal(size=vectors.shape)
    known = {word: rng.normal(size=N_DIMS) for word in ("these", "are", "others")}
    for row, word in enumerate(words[:360]):
        known |= {word: vectors[row], f"{word}s": near[row]}
    texts = [f"these are {word}s and others" for word in words]
    table = pd.DataFrame({"text": texts}, index=pd.Index(words, name="name"))
    truth = dict(zip(words[360:], vectors[360:], strict=True))
    return imputed({"texts": vf.text(table)}, known, truth, names="off")


# --- Noise --------------------------------------------------------------------------------------


def noise(seed: int, n_nulls: int) -> Iterator[tuple[str, Outcome]]:
    """Accepted shares, as the number of bounds that were given; few rows are the hard case."""
    for n_known, n_features, n_dims, share in (
        (50, 5, 8, 0.0), (100, 5, 8, 0.0), (200, 20, 16, 0.0), (50, 30, 8, 0.0),
        (50, 5, 8, 0.1), (100, 5, 8, 0.05), (200, 20, 16, 0.05),
    ):  # fmt: skip
        accepted = 0
        for number in range(n_nulls):
            rng = np.random.default_rng([seed, number])
            n = n_known + 20
            rows, vectors = rng.normal(size=(n, n_features)), rng.normal(size=(n, n_dims))
            if share:
                signal = rows @ rng.normal(size=(n_features, n_dims)) / np.sqrt(n_features)
                vectors = np.sqrt(share) * signal + np.sqrt(1 - share) * vectors
            is_known = np.arange(n) < n_known
            accepted += _accepts(rows, vectors, is_known)
        kind = f"signal of {share:.0%}" if share else "noise"
        case = f"{kind}: {n_known} known, {n_features} features: accepted"
        yield case, Outcome(n_nulls, n_bounds=n_nulls, n_held=accepted)


def _accepts(rows: np.ndarray, vectors: np.ndarray, is_known: np.ndarray) -> bool:
    names = [f"e{row}" for row in range(len(rows))]
    known = {name: vectors[row] for row, name in enumerate(names) if is_known[row]}
    try:
        vf.impute(dict(zip(names, rows, strict=True)), known)
    except vf.NoSignalError:
        return False
    return True


# --- Kinds that no known row has ----------------------------------------------------------------


def kinds(seed: int) -> Iterator[tuple[str, Outcome]]:
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(6, N_DIMS))
    names = np.array([f"e{row:04d}" for row in range(500)], dtype=object)
    for case, n_known, shift in (
        ("a cluster like no known one", 300, 8.0),
        ("facts shifted by two spreads", 300, 2.0),
        ("facts shifted by one spread", 300, 1.0),
        ("30 known", 30, 0.0),
        ("60 known", 60, 0.0),
        ("like the known ones", 300, 0.0),
    ):
        rows = rng.normal(size=(500, 6))
        unknown = np.arange(n_known, n_known + 150)
        rows[unknown] += shift * np.sign(rng.normal(size=6))
        vectors = np.sin(rows) @ mix + 0.5 * rng.normal(size=(500, N_DIMS))
        table = pd.DataFrame(rows, index=pd.Index(names, name="name"), columns=list("abcdef"))
        chosen = np.r_[np.arange(n_known), unknown]
        own = dict(zip(names[:n_known], vectors[:n_known], strict=True))
        truth = dict(zip(names[unknown], vectors[unknown], strict=True))
        yield case, imputed(table.iloc[chosen], own, truth)


def deciles(seed: int) -> Iterator[tuple[str, Outcome]]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(1600, 6))
    vectors = np.sin(rows) @ rng.normal(size=(6, N_DIMS)) + rng.normal(size=(1600, N_DIMS))
    names = [f"e{row:04d}" for row in range(1600)]
    table = pd.DataFrame(rows, index=pd.Index(names, name="name"), columns=list("abcdef"))
    known = {name: vectors[row] for row, name in enumerate(names[:600])}
    result = vf.impute(table, known)
    truth = {name: vectors[row] for row, name in enumerate(names) if row >= 600}
    words = np.array(result.embedding.words, dtype=object)
    order = np.argsort(result.confidence.values, kind="stable")
    for number, places in enumerate(np.array_split(order, 10)):
        among = set(words[places])
        yield f"tenth {number + 1} by confidence", judged(result, truth, vectors[:600], among)


# --- Tables -------------------------------------------------------------------------------------

SECTIONS: Mapping[str, Callable[..., Iterator[tuple[str, Outcome]]]] = {
    "add": add,
    "impute": impute,
    "leaks": leaks,
    "noise": noise,
    "kinds": kinds,
    "deciles": deciles,
}


def interval(values: np.ndarray) -> str:
    """A mean and its interval of 95 % over seeds."""
    values = values[np.isfinite(values)]
    if not values.size:
        return "-"
    half = 1.96 * values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return f"{values.mean():.2f} ± {half:.2f}" if np.isfinite(half) else f"{values.mean():.2f}"


def shown(case: str, outcomes: list[Outcome]) -> str:
    """One line of the table."""
    n_refused = sum(bool(each.refused) for each in outcomes)
    total = sum(each.n for each in outcomes if not each.refused)
    n_bounds = sum(each.n_bounds for each in outcomes)
    n_held = sum(each.n_held for each in outcomes)
    held = f"{100 * n_held / n_bounds:.1f} %" if n_bounds else "-"
    cells = [
        case,
        interval(np.array([each.confidence for each in outcomes])),
        interval(np.array([each.truth for each in outcomes])),
        held,
        f"{100 * n_bounds / total:.0f} %" if total else "-",
        f"{100 * sum(each.n_listed for each in outcomes) / total:.0f} %" if total else "-",
        f"{n_refused} of {len(outcomes)}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--nulls", type=int, default=150, help="data sets of noise, of each kind")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--say", action="store_true", help="print refusals and notes too")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, Any]] = {}
    for section in options.sections or SECTIONS:
        by_case: dict[str, list[Outcome]] = {}
        n_seeds = 1 if section == "noise" else options.seeds
        for seed in range(n_seeds):
            more = (options.nulls,) if section == "noise" else ()
            for case, outcome in SECTIONS[section](seed, *more):
                by_case.setdefault(case, []).append(outcome)
        head = ("case", "confidence", "truth", "bound holds", "have one", "listed", "refused")
        print(f"\n{section}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
        for case, outcomes in by_case.items():
            print(shown(case, outcomes), flush=True)
            if options.say and (said := outcomes[0].refused or outcomes[0].said):
                print(f"    {said}")
        found[section] = {case: [vars(each) for each in all_] for case, all_ in by_case.items()}
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
