"""The whole job on the bundled sample: match, evaluate, impute, explain, write, verify, show."""

from __future__ import annotations

import argparse
import os
import shutil
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vecfill.embedding import Embedding
from vecfill.errors import NoSignalError, VecfillError
from vecfill.inputs.names.matching import MatchReport, match_names
from vecfill.io import Verification, append_rows, atomic_output, read_embedding, verify
from vecfill.io.provenance import Fingerprint, provenance
from vecfill.io.tables import read_table
from vecfill.io.targets import naming
from vecfill.result import Result
from vecfill.run import evaluate, impute
from vecfill.sample import ANIMAL_VECTORS, ANIMALS
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.views.report import write_report
from vecfill.wording import count, percent

FOLDS = 2
"""Each known animal is hidden once, half of them at a time."""

QUICK_STEP = 6
"""A quick demo takes one animal of so many."""

SHOWN = ("snow leopard", "blue whale", "golden eagle", "great white shark", "emperor penguin")
"""Animals without a vector whose likes every reader knows."""

EXPLAINED = "snow leopard"


@dataclass(frozen=True)
class Demo:
    """What the demo found, and where it wrote."""

    result: Result
    evaluation: Evaluation
    verification: Verification
    refusal: str | None
    """Why a column that says nothing was not used; ``None`` in a quick demo."""
    enriched: Path
    page: Path


def run_demo(
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    quick: bool = False,
    say: Callable[[str], object] = print,
) -> Demo:
    """Impute vectors of the animals that GloVe lacks, and write everything into a folder.

    The folder is made if there is none; files of an earlier demo are kept unless `overwrite`.
    A `quick` demo takes every sixth animal and tries fewer methods.
    """
    place = Path(folder)
    _copy_sample(place, overwrite=overwrite, quick=quick)
    table, vectors = place / ANIMALS.name, place / ANIMAL_VECTORS.name
    base = read_embedding(vectors)
    columns = read_table(table)
    matches = match_names(columns["name"].to_pylist(), base.words)
    say(
        f"GloVe has vectors for {len(matches.words):,} of {columns.num_rows:,} animals. What should"
        f" the other {len(matches.unmatched):,} be,\nfrom their kind, a sentence about them and"
        " their names?\n"
    )

    say(f"1. Proof. Known animals are hidden ({FOLDS} folds) and imputed by every method:\n")
    options = {"matches": matches, "text": "description"}
    compared = "classic" if quick else "all"
    evaluation = evaluate(table, base, folds=FOLDS, candidates=compared, **options)
    say(_indented(compared_in_words(evaluation)))

    result = impute(table, base, method=evaluation.decision, **options)
    say(f"\n2. Vectors. {count(len(result.embedding), 'animal')} imputed. {_trust(result)}")
    terms = result.embedding.words[:3] if quick else SHOWN
    say(_indented("\n".join(_neighbors(result, base, name) for name in terms)))

    say("\n3. Why. What one of them is made of:\n")
    explained = terms[0] if quick else EXPLAINED
    say(_indented(str(result.explain(explained, n=3))))

    refusal = None
    if not quick:
        refusal = _refusal(columns, base, matches)
        say(f"\n4. No guessing. Two columns of random numbers are refused:\n\n{_indented(refusal)}")

    enriched = place / "glove-animals-enriched.safetensors"
    append_rows(vectors, enriched, _as_words(result, base), overwrite=overwrite)
    proof = verify(vectors, enriched)
    state = "unchanged, byte for byte" if proof.ok else f"CHANGED: {proof.difference}"
    say(
        f"\n5. File. {count(proof.n_known, 'known row')} {state}; "
        f"{count(proof.n_added, 'row')} added:\n   {enriched}"
    )

    page = place / "report.html"
    write_report(
        result,
        page,
        evaluation=evaluation,
        columns=table,
        title="Animals",
        manifest=_manifest(result, proof, enriched, place, options),
        overwrite=overwrite,
    )
    say(f"6. Page. Open it in a browser:\n   {page}")
    return Demo(result, evaluation, proof, refusal, enriched, page)


def compared_in_words(evaluation: Evaluation) -> str:
    """Return a table that fits a terminal: every method, and how far `auto` is ahead of it."""
    means = evaluation.methods
    order = sorted(means, key=lambda name: -means[name]["hits_at_10"])
    lines = [f"{'method':44}{'cosine':>7}{'hits':>6}   auto is ahead by"]
    for name in order:
        row = f"{evaluation.label(name)[:43]:44}"
        row += f"{means[name]['centred_cosine']:7.2f}{percent(means[name]['hits_at_10']):>6}"
        if name != "auto":
            low, high = evaluation.difference("auto", name, "hits_at_10")
            row += f"   {100 * low:+.0f} to {100 * high:+.0f} points"
        lines.append(row)
    return "\n".join(lines)


def _trust(result: Result) -> str:
    """Return how far lower bounds held, as a sentence."""
    if result.confidence is None:
        return ""
    return (
        f"Lower bounds aimed at {percent(result.confidence.level)} of\n   cases held for "
        f"{percent(result.confidence.coverage, 1)} of hidden animals.\n"
    )


def _neighbors(result: Result, base: Embedding, name: str) -> str:
    """Return an entity, its confidence, and the words of the file that are nearest to it."""
    row = result.embedding.row(name)
    near = [word for word, _ in base.most_similar(result.embedding.vectors[row], n=5)]
    trust = "" if result.confidence is None else f"{result.confidence.values[row]:5.2f}"
    return f"{name:18}{trust}  near {', '.join(near)}"


def _refusal(columns: pa.Table, base: Embedding, matches: MatchReport) -> str:
    """Return how two columns of random numbers are refused; they say nothing about animals."""
    noise = np.random.default_rng(0).uniform(size=(columns.num_rows, 2))
    silent = dict(zip(columns["name"].to_pylist(), noise, strict=True))
    try:
        impute(silent, base, matches=matches, names="off")
    except NoSignalError as refusal:
        return textwrap.fill(str(refusal).partition(" Check that")[0], 77)
    raise AssertionError("columns of random numbers were taken for a description")


def _copy_sample(place: Path, *, overwrite: bool, quick: bool) -> None:
    """Copy the bundled table and vectors into a folder, which is made if there is none."""
    with naming(place):
        place.mkdir(parents=True, exist_ok=True)
    for source in (ANIMALS, ANIMAL_VECTORS):
        with source.open("rb") as old, atomic_output(place / source.name, overwrite=overwrite) as f:
            if quick and source is ANIMALS:
                f.writelines(line for number, line in enumerate(old) if number % QUICK_STEP == 0)
            else:
                shutil.copyfileobj(old, f)


def _as_words(result: Result, base: Embedding) -> Embedding:
    """Return the imputed animals under words in GloVe's style: lower case, hyphens for spaces."""
    used_words, words = set(base.words), []
    for name in result.embedding.words:
        word = name.lower().replace(" ", "-")
        words.append(word if word not in used_words else name.replace(" ", "_"))
        used_words.add(words[-1])
    return Embedding(words, result.embedding.vectors)


def _manifest(
    result: Result, proof: Verification, enriched: Path, place: Path, options: dict[str, Any]
) -> dict[str, Any]:
    """Return how the demo's result was made, as `vecfill.enrich` would."""
    inputs = {"embedding": place / ANIMAL_VECTORS.name, "table": place / ANIMALS.name}
    return {
        **provenance(version("vecfill")),
        "options": {
            "method": str(result.predictor),
            "match": result.matches.level,
            "folds": FOLDS,
            **{name: value for name, value in options.items() if name != "matches"},
        },
        "inputs": {role: Fingerprint(path).result() for role, path in inputs.items()},
        "output": str(enriched),
        "format": "safetensors",
        "counts": {
            "entities": len(result.domain),
            "known": len(result.known),
            "imputed": len(result.embedding),
            "words_before": proof.n_known,
            "added": proof.n_added,
            "words_after": proof.n_known + proof.n_added,
        },
    }


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


def main(arguments: list[str] | None = None) -> int:
    """Run the demo from a shell: ``python -m vecfill.jobs.demo [DIR]``."""
    parser = argparse.ArgumentParser(prog="vecfill demo", description=__doc__)
    parser.add_argument("folder", nargs="?", default="vecfill-demo")
    parser.add_argument("--overwrite", action="store_true", help="replace files of an earlier demo")
    parser.add_argument("--quick", action="store_true", help="fewer animals, fewer methods")
    parsed = parser.parse_args(arguments)
    try:
        run_demo(parsed.folder, overwrite=parsed.overwrite, quick=parsed.quick)
    except VecfillError as error:
        parser.exit(1, f"vecfill demo: {error}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
