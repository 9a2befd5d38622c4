"""How much of what rare entities gain is the offset alone, one vector for all of them?

    python benchmarks/quality/offset_alone.py [SET ...]

Hides the rarest known entities as `rarity.py` does and compares two answers with the truth: the
imputed vectors, and the offset alone. The offset knows nothing about the single entity, so where it
has a high centred cosine, only ranks tell whether the rest of the vector is any good.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from rarity import MOST_ROWS, SHARES, STUDIED, Question, cosines, question_of, sampled, true_ranks
from sets import SETS

import vecfill as vf

HEAD = "| set | hidden | vectors | centred cosine | MRR | hits@10 |\n" + "| --- " * 6 + "|"


def answers(question: Question) -> dict[str, np.ndarray]:
    """Return vectors of the hidden rows: imputed, and the offset alone if there is one."""
    result = vf.impute(
        dict(zip(question.entities, question.domain, strict=True)),
        question.file(),
        match="exact",
        names="off",
        force=True,
        counts=question.counts(of_hidden=False) if question.ranks is None else None,
    )
    place = {word: i for i, word in enumerate(result.embedding.words)}
    names = np.array(question.entities, dtype=object)[question.is_hidden]
    rows = np.array([place[name] for name in names])
    found = {"imputed": np.asarray(result.embedding.vectors, np.float64)[rows]}
    if result.model.offsets is not None:
        found["offset alone"] = result.model.offsets.unknown[rows]
    return found


def line(question: Question, vectors: np.ndarray) -> str:
    """Return the measures of some vectors as cells of a table."""
    centre = question.embedding[question.is_seen].mean(axis=0, dtype=np.float64)
    pooled = question.is_seen | question.is_hidden
    own = np.flatnonzero(question.is_hidden[pooled])
    pool = question.embedding[pooled].astype(np.float64) - centre
    rank = true_ranks(vectors - centre, own, pool)
    cosine = cosines(vectors - centre, pool[own]).mean()
    return f"{cosine:.3f} | {(1.0 / rank).mean():.3f} | {(rank <= 10).mean():.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=list(STUDIED), metavar="SET")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(HEAD)
    for name in options.sets:
        data = SETS[name]()
        rows = sampled(data, MOST_ROWS)
        for share in SHARES:
            question = question_of(data, rows, share, "rarest")
            for kind, vectors in answers(question).items():
                print(
                    f"| {name} | rarest {100 * share:.0f} % | {kind} | {line(question, vectors)} |"
                )


if __name__ == "__main__":
    main()
