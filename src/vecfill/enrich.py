"""The whole job on files: read, match, impute, check, write back.

What it needs is imported inside its functions: `vecfill.enrich` is a public name of the package,
so this module is loaded with it, and loading the package must stay quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vecfill.embedding import Embedding
    from vecfill.inputs.files import Inputs, PathOrName, Progress
    from vecfill.inputs.match_report import MatchReport
    from vecfill.result import Run
    from vecfill.settings import Setting

_N_LISTED = 5


@dataclass(frozen=True)
class Enrichment:
    """What `enrich` did: the run, where the result is, how many of what."""

    run: Run | None
    """None if every entity was known, so that there was nothing to impute."""
    output: Path
    added: dict[str, str]
    """The words that were added to the file, by entity."""
    left_out: tuple[str, ...]
    """Entities imputed but not written, because the file has a row of that very name."""
    counts: dict[str, int]
    matches: MatchReport
    notes: tuple[str, ...]
    manifest: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "output": str(self.output),
            "counts": self.counts,
            "matched": self.matches.counts,
            "setting": None if self.run is None else self.run.setting.to_dict(),
            "added": [self._about(entity, word) for entity, word in self.added.items()],
            "abstained": [] if self.run is None else list(self.run.abstained),
            "left_out": list(self.left_out),
            "suspicious": [] if self.run is None else self.run.to_dict()["suspicious"],
            "notes": list(self.notes),
        }

    def _about(self, entity: str, word: str) -> dict[str, Any]:
        about: dict[str, Any] = {"entity": entity, "word": word}
        if self.run is not None and self.run.confidence is not None:
            row = self.run.embedding.row(entity)
            about["confidence"] = float(self.run.confidence.values[row])
            about["lower_bound"] = float(self.run.confidence.lower_bound[row])
        return about


def enrich(
    embedding: PathOrName,
    table: Any,
    output: PathOrName,
    *,
    method: str | Setting = "auto",
    match: str = "loose",
    aliases: Mapping[str, str] | PathOrName | None = None,
    exclude: Iterable[str] = (),
    level: float = 0.9,
    min_confidence: float | None = None,
    calibrate_norms: bool = False,
    force: bool = False,
    seed: int = 0,
    n_jobs: int | None = None,
    format: str | None = None,  # noqa: A002
    member: str | None = None,
    report: PathOrName | None = None,
    manifest: bool = True,
    overwrite: bool = False,
    progress: Progress | None = None,
    **domain_options: Any,
) -> Enrichment:
    r"""Write `output`: the file `embedding` unchanged, then a row for each entity it lacks.

    The file is never loaded whole: its words are scanned, the rows of matching words are read,
    and the result is the original's bytes with the imputed rows after them. The result and its
    manifest appear whole or not at all. Memory is that of the matching rows and the imputation.

    Parameters
    ----------
    embedding
        The file to enrich, in any format of `vecfill.io.FORMAT_NAMES` but fastText's own.
    table
        What describes the entities: a path, or whatever `as_domain` takes. A file of vectors
        (word2vec, GloVe and so on) will do as well; `kind="embedding"` says so where in doubt.
    output
        Where to; the format is the original's. White space in an entity's name becomes `_` in
        formats of word2vec and GloVe, where it would end the word.
    method, level, min_confidence, calibrate_norms, force, seed, n_jobs
        As in `vecfill.impute`.
    match, aliases, exclude
        As in `vecfill.inputs.names.match_names`.
    format, member
        As in `read_embedding`.
    report
        Where to write a page about the run. It shows what the manifest holds, also if none is
        written.
    manifest
        Whether to write `OUTPUT.manifest.json`: versions, options, hashes of inputs, counts.
    overwrite
        Whether existing results may be replaced.
    progress
        Called with what is being done, how much is done, and how much there is.
    domain_options
        `kind`, `key` and others, as in `vecfill.inputs.domain.as_domain`.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "old.vec").write_text("3 1\nred 1\norange 2\nyellow 3\n")
    >>> waves = {"red": [680.0], "orange": [610.0], "yellow": [580.0], "amber": [595.0]}
    >>> done = enrich(folder / "old.vec", waves, folder / "new.vec", method="paper")
    >>> done.counts["known"], done.counts["added"]
    (3, 1)
    >>> print((folder / "new.vec").read_text().splitlines()[0])
    4 1
    """
    from vecfill import __version__
    from vecfill.inputs.files import quiet, read_inputs
    from vecfill.io import append_rows
    from vecfill.manifest import Fingerprint, as_json, made_with, manifest_path

    tell = progress or quiet
    excluded = [exclude] if isinstance(exclude, str) else list(exclude)
    beside = manifest_path(output) if manifest else None
    for place in (output, beside, report):
        if place is not None:
            _check_place(place, (embedding, table, aliases), overwrite=overwrite)
    inputs = read_inputs(
        embedding,
        table,
        match=match,
        aliases=aliases,
        exclude=excluded,
        format=format,
        member=member,
        progress=tell,
        **domain_options,
    )
    inputs.matches.require_matches()
    files = {"embedding": embedding, "table": table, "aliases": aliases}
    with ExitStack() as stack:
        hashed = {
            role: stack.enter_context(
                Fingerprint(path, inputs.sha256 if role == "embedding" else None)
            )
            for role, path in files.items()
            if (manifest or report is not None) and isinstance(path, str | os.PathLike)
        }
        run = None
        if inputs.matches.unmatched:
            from vecfill.run import impute

            run = impute(
                inputs.domain,
                inputs.embedding,
                method=method,
                matches=inputs.matches,
                level=level,
                min_confidence=min_confidence,
                calibrate_norms=calibrate_norms,
                force=force,
                seed=seed,
                n_jobs=n_jobs,
                progress=tell,
            )
        rows, added, left_out = _rows_to_add(run, inputs)
        done = Enrichment(
            run=run,
            output=Path(output),
            added=added,
            left_out=left_out,
            counts=_counts(run, inputs, added),
            matches=inputs.matches,
            notes=_notes(run, inputs, added, left_out, wants_page=report is not None),
        )
        options = {
            "method": str(method),
            "match": match,
            "exclude": excluded,
            "level": level,
            "min_confidence": min_confidence,
            "calibrate_norms": calibrate_norms,
            "force": force,
            "seed": seed,
            **domain_options,
        }
        about = {
            **made_with(__version__),
            "options": options,
            "inputs": {role: each.result() for role, each in hashed.items()},
            "format": inputs.format,
            **done.to_dict(),
            "words": inputs.matches.words,
        }
    if run is not None and report is not None:
        tell("Writing the report", 0, 0)
    # Without a manifest there need be no lasting result either: it may go to standard output.
    shown = about if manifest else {**about, "output": done.output.name}
    with _page(run, report, shown, overwrite=overwrite):
        size = Path(embedding).stat().st_size
        tell("Copying and appending", 0, size)
        append_rows(
            embedding,
            output,
            rows,
            format=format,
            member=member,
            overwrite=overwrite,
            expected_sha256=inputs.sha256,
            beside={} if beside is None else {beside: as_json(about).encode("ascii") + b"\n"},
        )
        tell("Copying and appending", size, size)
    return replace(done, manifest=about if manifest else {})


def _check_place(place: PathOrName, sources: Iterable[Any], *, overwrite: bool) -> None:
    """Refuse before the work what the writers would refuse after it."""
    from vecfill.errors import InputError
    from vecfill.io.atomic import checked_target

    target = checked_target(place, overwrite=True)
    for source in sources:
        if isinstance(source, str | os.PathLike) and _are_same(target, Path(source)):
            raise InputError(
                f"{place} is the input {source} itself, which is never written to. "
                "Choose another name for the result."
            )
    checked_target(place, overwrite=overwrite)
    if not target.parent.is_dir():
        raise InputError(
            f"{place}: cannot be written: there is no folder {target.parent}. Create it first."
        )


def _are_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _rows_to_add(
    run: Run | None, inputs: Inputs
) -> tuple[Embedding, dict[str, str], tuple[str, ...]]:
    """Return the rows to append, their words by entity, and the entities that have no place."""
    import numpy as np

    from vecfill.embedding import Embedding
    from vecfill.errors import InputError
    from vecfill.inputs.files import word_in_file

    if run is None:
        known = inputs.embedding
        return Embedding([], np.empty((0, known.n_dims), known.vectors.dtype)), {}, ()
    added: dict[str, str] = {}
    left_out: list[str] = []
    owner: dict[str, str] = {}
    for entity in run.embedding.words:
        word = word_in_file(entity, inputs.format)
        if word in inputs.taken:
            left_out.append(entity)
        elif word in owner:
            raise InputError(
                f"The entities {owner[word]!r} and {entity!r} would both be written as {word!r}. "
                "Rename one of them."
            )
        else:
            added[entity] = word
            owner[word] = entity
    return Embedding(added.values(), run.embedding[list(added)]), added, tuple(left_out)


def _counts(run: Run | None, inputs: Inputs, added: Mapping[str, str]) -> dict[str, int]:
    matches = inputs.matches
    n_known = len(matches.words)
    return {
        "entities": len(matches.matches),
        "known": n_known,
        "unknown": len(matches.matches) - n_known,
        "imputed": 0 if run is None else len(run.embedding),
        "abstained": 0 if run is None else len(run.abstained),
        "added": len(added),
        "words_before": matches.n_words,
        "words_after": matches.n_words + len(added),
    }


def _notes(
    run: Run | None,
    inputs: Inputs,
    added: Mapping[str, str],
    left_out: tuple[str, ...],
    *,
    wants_page: bool,
) -> tuple[str, ...]:
    from vecfill.inputs.entities import listed

    notes = [*inputs.notes, *(() if run is None else run.notes)]
    if run is None:
        notes.append("Every entity has a row already; the file was copied unchanged.")
    if run is None and wants_page:
        notes.append("No page was written, since there is no imputation to report on.")
    renamed = {entity: word for entity, word in added.items() if word != entity}
    if renamed:
        entity, word = next(iter(renamed.items()))
        notes.append(
            f"White space in {len(renamed)} names was written as '_', such as {word!r} for "
            f"{entity!r}: in this format it would end the word."
        )
    if left_out:
        notes.append(
            f"{len(left_out)} imputed entities were not written, because the file has a row of "
            f"that very name: {listed(left_out, _N_LISTED)}. Rename them to have them added."
        )
    return tuple(dict.fromkeys(notes))


@contextmanager
def _page(
    run: Run | None, report: PathOrName | None, manifest: Mapping[str, Any], *, overwrite: bool
) -> Iterator[None]:
    """Write the page first, and take it back if the rest fails."""
    if run is None or report is None:
        yield
        return
    existed = Path(report).exists()
    run.report(report, manifest=manifest, overwrite=overwrite)
    try:
        yield
    except BaseException:
        if not existed:
            Path(report).unlink(missing_ok=True)
        raise
