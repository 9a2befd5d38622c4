"""How often does the leakage alarm fire on honest sources, and on leaks?

    python benchmarks/quality/leak_alarms.py [--made N] [--sets SET ...]

Made data: N seeds of each kind, honest ones and leaks. Real sets: the table, when the rarest
entities, random ones, and those that really lack a vector are unknown; then with vectors of the
known entities and noise for the others in place of the table, and beside it. The largest
restoration and agreement of any source that is judged alone say how far honest ones stay away.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np

import vecfill as vf
from trust import made
from vecfill.inputs.prepared import Domain, Source, joint
from vecfill.model.sources import space_of
from vecfill.model.space import Member
from vecfill.trust.prove.leaks import leaks_of
from vecfill.trust.prove.pattern import SampledRows

Rows = dict[str, np.ndarray]
Case = tuple[str, Rows, np.ndarray, np.ndarray]
"""A name, the rows of each source, vectors, and which are known."""


def made_cases(seed: int) -> Iterator[Case]:
    rng, data = np.random.default_rng(seed), made(600, seed)
    vectors, is_known = data.vectors, np.arange(600) < 400
    spread = vectors.std(axis=0)
    facts = vf.as_domain(data.table).vectors
    blank = data.table.copy()
    blank.loc[blank.index[400::2], ["city", "description"]] = None
    yield "honest table", {"facts": facts}, vectors, is_known
    yield "half lack two facts", {"facts": vf.as_domain(blank).vectors}, vectors, is_known
    blank.loc[blank.index[400:], ["city", "description"]] = None
    yield "all lack two facts", {"facts": vf.as_domain(blank).vectors}, vectors, is_known
    yield "honest halves", {"a": facts[:, ::2], "b": facts[:, 1::2]}, vectors, is_known
    shifted = facts + 1.5 * np.outer(~is_known, rng.normal(size=facts.shape[1]) * facts.std(axis=0))
    yield "honest, unknown shifted", {"facts": shifted}, vectors, is_known
    rows = rng.normal(size=(600, 6))
    yield "exact and linear", {"facts": rows}, rows @ rng.normal(size=(6, 16)), is_known
    order = np.argsort(-rows[:, 0])
    linear = rows[order] @ rng.normal(size=(6, 16))
    yield "exact and linear, the rest beyond", {"facts": rows[order]}, linear, is_known
    low = np.tanh(rng.normal(size=(600, 3))) @ rng.normal(size=(3, 8))
    yield "exact, of low rank", {"facts": low}, low @ rng.normal(size=(8, 16)), is_known
    again = vectors @ rng.normal(size=(16, 24)) + 0.1 * rng.normal(size=(600, 24))
    yield "another embedding", {"facts": again}, vectors, is_known
    heavy = np.exp(1.5 * rows)
    yield "heavy tails", {"facts": heavy}, rows @ rng.normal(size=(6, 16)), is_known
    for name, noise in (("LEAK", 0.01), ("LEAK, half noise", 0.5)):
        answer = vectors + noise * spread * rng.normal(size=vectors.shape)
        answer[~is_known] = rng.normal(size=(200, 16)) * spread
        yield name, {"leak": answer}, vectors, is_known
        yield f"{name}, beside", {"facts": facts, "leak": answer}, vectors, is_known
    for name, values in (("zeros", 0.0), ("the mean", vectors[:400].mean(axis=0))):
        answer = np.where(is_known[:, None], vectors, values)
        yield f"LEAK, {name} for unknown", {"leak": answer}, vectors, is_known
    answer = np.where(is_known[:, None], vectors, vectors[rng.integers(400, size=600)])
    yield "LEAK, others' vectors, beside", {"facts": facts, "leak": answer}, vectors, is_known
    yield "LEAK in one table", {"table": np.hstack([facts, answer])}, vectors, is_known


def real_cases(name: str) -> Iterator[Case]:
    from sets import SETS

    data, rng = SETS[name](), np.random.default_rng(0)
    domain, is_there = np.asarray(data.domain, np.float64), data.is_known
    if not is_there.all():
        yield f"{name}, really unknown", {"facts": domain}, data.embedding, is_there
    rows, vectors = domain[is_there], data.embedding[is_there]
    assert data.rarity is not None
    rarity = data.rarity[is_there]
    for share in (0.4, 0.2):
        is_known = rarity <= np.quantile(rarity, 1.0 - share)
        yield f"{name}, rarest {share:.0%}", {"facts": rows}, vectors, is_known
        again = vectors + 0.1 * vectors.std(axis=0) * rng.normal(size=vectors.shape)
        yield f"{name}, its own vectors", {"facts": again}, vectors, is_known
        answer = np.where(is_known[:, None], vectors, 0.0)
        answer[~is_known] = vectors.std(axis=0) * rng.normal(size=vectors[~is_known].shape)
        yield f"LEAK {name}, rarest {share:.0%}", {"leak": answer}, vectors, is_known
        beside = {"facts": rows, "leak": answer}
        yield f"LEAK {name}, rarest {share:.0%}, beside", beside, vectors, is_known
    yield f"{name}, random", {"facts": rows}, vectors, rng.random(len(rows)) < 0.7


def cities() -> Iterator[Case]:
    from vecfill.inputs.alignment import align
    from vecfill.requests import Reading
    from vecfill.sample import CITIES, VECTORS

    given = align(str(CITIES), vf.read_embedding(VECTORS), Reading())
    yield "cities", {"facts": np.asarray(given.domain.vectors)}, given.embedding, given.is_known


def measured(case: Case) -> tuple[list[str], float, float]:
    """Return sources that are reported, and the restoration and agreement of the last one alone."""
    _, rows_of, vectors, is_known = case
    entities = tuple(map(str, range(len(vectors))))
    domains = {
        source: Domain(entities, rows, tuple(map(str, range(rows.shape[1]))))
        for source, rows in rows_of.items()
    }
    domain = joint([Source(source, (rows,)) for source, rows in domains.items()])
    space = space_of(domain)
    leaks = leaks_of(space, domain, vectors, is_known)
    reported = [f"{leak.kind} in {leak.source}" for leak in leaks]
    member: Member = space.members[-1]
    last = SampledRows(member, vectors, is_known)
    return reported, last.restored, last.agreement([])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--made", type=int, default=20)
    sets = ["companies", "companies-affinity", "companies-self", "words", "headings", "movies"]
    parser.add_argument("--sets", nargs="*", default=sets)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    by_case: dict[str, list[tuple[list[str], float, float]]] = {}
    for seed in range(options.made):
        for case in made_cases(seed):
            by_case.setdefault(case[0], []).append(measured(case))
    for case in (case for source in [cities(), *map(real_cases, options.sets)] for case in source):
        by_case[case[0]] = [measured(case)]
    print("| case | answer reported | restored | agreement |\n| --- | --- | --- | --- |")
    for name, outcomes in by_case.items():
        n_named = sum(any("answer" in name for name in reported) for reported, _, _ in outcomes)
        sources = sorted({source for reported, _, _ in outcomes for source in reported})
        restored = [restored for _, restored, _ in outcomes]
        agreement = [agreement for _, _, agreement in outcomes]
        print(
            f"| {name} | {n_named} of {len(outcomes)} {', '.join(sources)} | "
            f"{min(restored):.2f} to {max(restored):.2f} | "
            f"{min(agreement):.2f} to {max(agreement):.2f} |"
        )


if __name__ == "__main__":
    main()
