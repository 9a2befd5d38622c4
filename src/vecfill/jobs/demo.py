"""The whole job on the bundled sample: match, evaluate, impute, explain, write, verify, show."""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vecfill.embedding import Embedding
from vecfill.errors import VecfillError
from vecfill.inputs.names.matching import match_names
from vecfill.io import Verification, append_rows, atomic_output, read_embedding, verify
from vecfill.io.provenance import Fingerprint, provenance
from vecfill.io.tables import read_table
from vecfill.io.targets import naming
from vecfill.result import Result
from vecfill.run import evaluate, impute
from vecfill.sample import CITIES, VECTORS
from vecfill.trust.compare.evaluation import Evaluation
from vecfill.views.report import write_report
from vecfill.wording import count, percent

FOLDS = 2
"""Each known city is hidden once, half of them at a time: `evaluate` by itself takes five folds."""

QUICK_STEP = 6
"""A quick demo takes one city of so many."""

EXPLAINED = ("Fort Worth", "Mülheim", "Addis Ababa")


@dataclass(frozen=True)
class Demo:
    """What the demo found, and where it wrote."""

    result: Result
    evaluation: Evaluation
    verification: Verification
    enriched: Path
    page: Path


def run_demo(
    folder: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    quick: bool = False,
    say: Callable[[str], object] = print,
) -> Demo:
    """Impute vectors of the cities that GloVe lacks, and write everything into a folder.

    The folder is made if there is none; files of an earlier demo are kept unless `overwrite`.
    A `quick` demo takes every sixth city and tries fewer methods.
    """
    place = Path(folder)
    _copy_sample(place, overwrite=overwrite, quick=quick)
    table, base = place / CITIES.name, read_embedding(place / VECTORS.name)

    places = read_table(table).to_pydict()
    matches = match_names(places["name"], base.words)
    say(
        f"1. Names. {len(places['name']):,} cities; {len(matches.words):,} have a word in GloVe, "
        f"{len(matches.unmatched):,} have none."
    )

    say(
        f"2. Proof. Hiding known cities ({FOLDS} folds) and imputing them, beside other methods ..."
    )
    # Place and country only: with their size, far cities would explain each other for being large.
    options = {"matches": matches, "standardize": True, "ignore": ("population",)}
    compared = "classic" if quick else "all"
    evaluation = evaluate(table, base, folds=FOLDS, candidates=compared, **options)
    say(_indented(str(evaluation)))

    result = impute(table, base, method=evaluation.decision, **options)
    say(f"3. Vectors. {len(result.embedding):,} cities imputed: {result.predictor.in_words()}.")
    if result.confidence is not None:
        say(
            f"   Lower bounds aimed at {percent(result.confidence.level)} of cases held for "
            f"{percent(result.confidence.coverage, 1)} of the hidden cities."
        )

    say("4. Why. What three of them are made of:")
    for name in result.embedding.words[:3] if quick else EXPLAINED:
        say(_indented(str(result.explain(name, n=4))))

    doubts = ", ".join(f"{doubt.entity} ({doubt.word})" for doubt in result.suspicious[:12])
    say(f"5. Doubts. Known cities that their neighbours contradict: {doubts} ...")
    say("   Some are other words, some rare spellings. Exclude them (exclude=) or give aliases.")

    enriched = place / "glove-cities-enriched.bin"
    append_rows(place / VECTORS.name, enriched, _as_words(result, base), overwrite=overwrite)
    proof = verify(place / VECTORS.name, enriched)
    state = "unchanged, byte for byte" if proof.ok else f"CHANGED: {proof.difference}"
    say(
        f"6. File. {count(proof.n_known, 'known row')} {state}; "
        f"{count(proof.n_added, 'row')} added."
    )

    page = place / "report.html"
    write_report(
        result,
        page,
        evaluation=evaluation,
        columns=table,
        title="Cities",
        manifest=_manifest(result, proof, enriched, place, options),
        overwrite=overwrite,
    )
    say(f"7. Page. Open {page} in a browser.")
    say(f"   The enriched embedding is {enriched}.")
    return Demo(result, evaluation, proof, enriched, page)


def _copy_sample(place: Path, *, overwrite: bool, quick: bool) -> None:
    """Copy the bundled table and vectors into a folder, which is made if there is none."""
    with naming(place):
        place.mkdir(parents=True, exist_ok=True)
    for source in (CITIES, VECTORS):
        with source.open("rb") as old, atomic_output(place / source.name, overwrite=overwrite) as f:
            if quick and source is CITIES:
                f.writelines(line for number, line in enumerate(old) if number % QUICK_STEP == 0)
            else:
                shutil.copyfileobj(old, f)


def _as_words(result: Result, base: Embedding) -> Embedding:
    """Return the imputed cities under words in GloVe's style: lower case, hyphens for spaces."""
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
    inputs = {"embedding": place / VECTORS.name, "table": place / CITIES.name}
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
        "format": "word2vec-binary",
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
    parser.add_argument("--quick", action="store_true", help="fewer cities, fewer methods")
    parsed = parser.parse_args(arguments)
    try:
        run_demo(parsed.folder, overwrite=parsed.overwrite, quick=parsed.quick)
    except VecfillError as error:
        parser.exit(1, f"vecfill demo: {error}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
