"""From one embedding to another: what has no new vector is translated from its old one.

Vectors of the new model that are there stay as they are, bit for bit. Files of vectors are gone
through in blocks, so that millions of documents need little memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as pa_csv
from pyarrow import parquet as pa_parquet

from vecfill import checks
from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.files import Progress, quiet
from vecfill.io import atomic_output, write_embedding
from vecfill.io.targets import check_targets
from vecfill.jobs.old_and_new import ROWS_AT_ONCE, blocks_of, names_and_pairs, queries_of, read
from vecfill.model.predictors import Predictor
from vecfill.trust.choose.translating import SIDES, choose_translation
from vecfill.trust.compare.migration import MigrationEvaluation
from vecfill.trust.compare.options import evaluate_pairs
from vecfill.trust.prove.translated import Translator
from vecfill.wording import count, percent


@dataclass(frozen=True, eq=False)
class Migration:
    """Documents in the new space: those that were re-embedded, and the others translated."""

    translator: Translator
    """The map, which also takes single vectors: `translator.vectors`."""
    words: tuple[str, ...] = field(repr=False)
    """The documents that were translated, in the order of the old embedding."""
    confidence: np.ndarray = field(repr=False)
    """(n_translated,) centred cosine to expect with what re-embedding would give."""
    lower_bound: np.ndarray = field(repr=False)
    """(n_translated,) what that cosine reaches in a share `level` of cases."""
    n_pairs: int
    """Documents with both vectors, from which the map was learnt."""
    embedding: Embedding | None = field(default=None, repr=False)
    """All documents of both embeddings; ``None`` if they went to a file."""

    @property
    def predictor(self) -> Predictor:
        """The map that was chosen."""
        return self.translator.predictor

    @property
    def coverage(self) -> float:
        """Share of hidden pairs whose cosine was at least their bound."""
        return self.translator.trust.coverage

    def first(self, n: int) -> list[str]:
        """Return the documents to re-embed first: those that are expected to gain most."""
        order = np.argsort(self.confidence, kind="stable")[:n]
        return [self.words[place] for place in order.tolist()]

    def query(self, vector: np.ndarray) -> np.ndarray:
        """Return one vector, or rows of vectors, on the other side."""
        rows = np.atleast_2d(_checked(vector, self.translator.n_features))
        vectors = self.translator.vectors(rows)
        return vectors[0] if np.ndim(vector) == 1 else vectors

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        trust = self.translator.trust
        return {
            "side": self.translator.side,
            "map": self.predictor.to_dict(),
            "n_pairs": self.n_pairs,
            "n_translated": len(self.words),
            "confidence": float(self.confidence.mean()) if self.words else None,
            "level": trust.level,
            "coverage": trust.coverage,
        }

    def __str__(self) -> str:
        trust = self.translator.trust
        things = "documents" if self.translator.side == "documents" else "queries"
        lines = [
            f"Learnt from {count(self.n_pairs, 'document')} with both vectors: "
            f"{self.predictor.in_words()}.",
            f"Hidden ones came back with a centred cosine of {trust.actual.mean():.2f}; bounds of "
            f"level {percent(trust.level)} held for {percent(trust.coverage, 1)}.",
        ]
        if self.words:
            low, middle, high = np.quantile(self.confidence, [0.1, 0.5, 0.9])
            lines.insert(
                1,
                f"Translated {len(self.words):,} {things}; confidence {middle:.2f}, eight in ten "
                f"from {low:.2f} to {high:.2f}.",
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"Migration({len(self.words):,} translated, {self.n_pairs:,} pairs)"


def migrate(
    old: Any,
    new_sample: Any,
    *,
    side: str = "documents",
    queries: Any = None,
    output: str | os.PathLike[str] | None = None,
    table: str | os.PathLike[str] | None = None,
    method: Predictor | None = None,
    level: float = 0.9,
    seed: int = 0,
    overwrite: bool = False,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Migration:
    """Translate vectors between an old embedding and a new one, of which only a sample is there.

    The map is learnt from documents that have both vectors, and chosen by what a search finds on
    hidden ones. If the new vectors have length 1, so do the translated ones.

    Parameters
    ----------
    old, new_sample
        The documents embedded by the old model, and some of them by the new one: files of vectors,
        or anything that `vecfill.impute` takes as an embedding.
    side
        ``"documents"``: old documents are brought to the new space. ``"queries"``: nothing stored
        is touched, and queries of the new model are brought to the old space.
    queries
        With ``side="queries"``: the vectors to translate. `Migration.query` takes others later.
    output
        A file to write, instead of `Migration.embedding`; its format is told by the suffix.
    table
        A file (CSV or Parquet) for the confidence and lower bound of each translated vector, those
        to re-embed first at the top.
    method
        A map to use instead of choosing one, such as
        ``vecfill.model.predictors.Procrustes()``.
    level
        How often lower bounds are to hold.
    seed
        Random seed of the folds that are hidden.
    overwrite
        Whether existing files may be replaced.
    n_jobs, progress
        As in `vecfill.impute`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> names = [f"doc{i}" for i in range(300)]
    >>> old = Embedding(names, rng.normal(size=(300, 8)))
    >>> new = Embedding(names[:100], old.vectors[:100] @ rng.normal(size=(8, 12)))
    >>> migration = migrate(old, new)
    >>> migration.embedding
    Embedding(300 words, 12 dims, float64: 'doc0', 'doc1', 'doc2', 'doc3', 'doc4', ...)
    >>> bool((migration.embedding["doc7"] == new["doc7"]).all()), migration.query(old["doc7"]).shape
    (True, (12,))
    """
    tell = progress or quiet
    checks.one_of(side, "side", SIDES)
    checks.number(level, "level", low=0, high=1, open_low=True)
    checks.whole_number(seed, "seed", low=0)
    _refuse_unused(side, queries, output)
    check_targets([output, table], [old, new_sample, queries], overwrite=overwrite)
    tell("Reading", 0, 0)
    sample = read(new_sample)
    _, pairs, n_old = names_and_pairs(old, sample)
    is_of_queries = side == "queries"
    rows_of_queries = None if queries is None else read(queries)
    n_wanted = ROWS_AT_ONCE if is_of_queries else n_old - len(pairs)
    tell("Choosing the map", 0, 1)
    options: dict[str, Any] = {"seed": seed, "n_jobs": n_jobs}
    if method is None:
        method, _ = choose_translation(pairs, side, n_wanted=n_wanted, **options)
    translator = Translator(method, pairs, side, level=level, **options)
    tell("Choosing the map", 1, 1)
    source, reembedded = (rows_of_queries, None) if is_of_queries else (old, sample)
    if rows_of_queries is not None:
        _checked(rows_of_queries.vectors, translator.n_features)
        n_old = len(rows_of_queries)
    if source is None:
        return Migration(translator, (), np.empty(0), np.empty(0), len(pairs))
    telling = partial(tell, "Translating")
    migration = _translated(
        translator, source, reembedded, n_old, output, telling, overwrite=overwrite
    )
    if table is not None:
        _write_table(migration, Path(table), overwrite=overwrite)
    return migration


def evaluate_migration(
    old: Any,
    new_sample: Any,
    *,
    queries: tuple[Any, Any] | None = None,
    relevant: Mapping[str, Sequence[str]] | None = None,
    k: int = 10,
    budget: float = 0.5,
    seed: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> MigrationEvaluation:
    """Tell whether to stay on the old embedding, to translate, or to re-embed some or all of it.

    Documents with both vectors are hidden and translated, and searched among.

    Parameters
    ----------
    old, new_sample
        As in `vecfill.migrate`.
    queries
        The same queries embedded by the old model and by the new one: two embeddings with the same
        words. By default hidden documents are the queries.
    relevant
        For each query the documents that answer it. Only those with both vectors count. Without it,
        right is what the new model finds, and staying cannot be judged fairly.
    k
        How many documents a search shows.
    budget
        The largest share of the documents that you would re-embed.
    seed, n_jobs, progress
        As in `vecfill.migrate`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> names = [f"doc{i}" for i in range(300)]
    >>> old = Embedding(names, rng.normal(size=(300, 8)))
    >>> new = Embedding(names[:200], old.vectors[:200] @ rng.normal(size=(8, 12)))
    >>> evaluate_migration(old, new).best
    'documents'
    """
    checks.whole_number(k, "k", low=1)
    checks.number(budget, "budget", low=0, high=1)
    checks.whole_number(seed, "seed", low=0)
    names, pairs, n_old = names_and_pairs(old, read(new_sample))
    questions = queries_of(queries, relevant, names, pairs)
    tell = partial(progress or quiet, "Searching")
    options: dict[str, Any] = {"k": k, "budget": budget, "seed": seed, "n_jobs": n_jobs}
    return evaluate_pairs(pairs, questions, n_wanted=n_old - len(pairs), **options, progress=tell)


def _refuse_unused(side: str, queries: Any, output: Any) -> None:
    """Refuse options that would be ignored."""
    if side == "documents" and queries is not None:
        raise InputError(
            "queries= is for side='queries', which translates them. With side='documents' the new "
            "model's queries are used as they are. Leave it out."
        )
    if side == "queries" and queries is None and output is not None:
        raise InputError(
            "there is nothing to write: with side='queries' documents stay as they are. Pass the "
            "queries to translate (queries=), or leave out the output."
        )


def _checked(vectors: Any, n_features: int) -> np.ndarray:
    """Return vectors that can be translated."""
    rows = np.atleast_2d(np.asarray(vectors))
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise InputError(
            f"the vectors to translate have {rows.shape[-1]} dimensions, and the map was learnt "
            f"from vectors of {n_features}. Pass vectors of the same model."
        )
    if not np.isfinite(rows).all():
        raise InputError("a vector to translate holds NaN or infinity. Leave it out, or repair it.")
    return rows


def _translated(
    translator: Translator,
    source: Any,
    sample: Embedding | None,
    n_rows: int,
    output: str | os.PathLike[str] | None,
    tell: Callable[[int, int], None],
    *,
    overwrite: bool,
) -> Migration:
    """Translate every row of a source; keep the vectors, or write them."""
    n_more = 0 if sample is None else len(sample) - len(translator.known_rows.is_known)
    shape = (n_rows + n_more, translator.known_rows.n_dims)
    if output is None:
        space = np.empty(shape, translator.dtype)
        return _filled(translator, source, sample, space, tell)
    # On disk, so that memory does not grow with the documents; gone when this process is.
    with tempfile.TemporaryFile(dir=Path(output).resolve().parent) as file:
        space = np.memmap(file, translator.dtype, "w+", shape=shape)
        migration = _filled(translator, source, sample, space, tell)
        assert migration.embedding is not None
        write_embedding(migration.embedding, output, overwrite=overwrite)
    return replace(migration, embedding=None)


def _filled(
    translator: Translator,
    source: Any,
    sample: Embedding | None,
    space: np.ndarray,
    tell: Callable[[int, int], None],
) -> Migration:
    """Write translated and re-embedded vectors into `space`, in the order of the source."""
    words: list[str] = []
    translated: list[str] = []
    trust: list[np.ndarray] = [np.empty((2, 0))]
    known = {} if sample is None else dict.fromkeys(sample.words)
    for names, rows in blocks_of(source):
        block = slice(len(words), len(words) + len(names))
        vectors, expected, bound = translator.translated(rows)
        is_known = np.array([name in known for name in names], np.bool_)
        if sample is not None and is_known.any():
            places = np.flatnonzero(is_known)
            vectors[places] = sample[[names[place] for place in places.tolist()]]
        space[block] = vectors
        words += names
        translated += [name for name, is_here in zip(names, is_known, strict=True) if not is_here]
        trust.append(np.stack([expected, bound])[:, ~is_known])
        tell(len(words), len(space))
    # Re-embedded documents that the old embedding lacks come last.
    old_words = set(words)
    more = [name for name in known if name not in old_words]
    if sample is not None and more:
        space[len(words) :] = sample[more]
    confidence, lower_bound = np.concatenate(trust, axis=1)
    n_pairs = int(translator.known_rows.n_known)
    embedding = Embedding([*words, *more], space)
    return Migration(translator, tuple(translated), confidence, lower_bound, n_pairs, embedding)


def _write_table(migration: Migration, path: Path, *, overwrite: bool) -> None:
    """Write confidence and bound of each translated vector, the least sure first."""
    order = np.argsort(migration.confidence, kind="stable")
    table = pa.table(
        {
            "document": pa.array([migration.words[place] for place in order.tolist()], pa.string()),
            "confidence": migration.confidence[order],
            "lower_bound": migration.lower_bound[order],
        }
    )
    with atomic_output(path, overwrite=overwrite) as file:
        if path.suffix == ".parquet":
            pa_parquet.write_table(table, file)
        else:
            pa_csv.write_csv(table, file)
