"""From one embedding to another: what has no new vector is translated from its old one.

Vectors of the new model that are there stay as they are, bit for bit. Files of vectors are gone
through in blocks, so that millions of documents need little memory.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vecfill import checks
from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.embeddings import as_embedding
from vecfill.inputs.files import Progress, quiet
from vecfill.io import Scan, read_embedding, write_embedding
from vecfill.io.targets import checked_target, refuse_clashes
from vecfill.model.predictors import Predictor
from vecfill.trust.choose.translating import SIDES, Pairs, Queries, choose_translation
from vecfill.trust.compare.migration import MigrationEvaluation, evaluate_pairs
from vecfill.trust.prove.translated import FEWEST_PAIRS, Translator
from vecfill.wording import count, percent

ROWS_AT_ONCE = 8192
"""Rows that are translated at once: products are as fast as with more, and the bits of a file do
not depend on how its format cuts it."""

Blocks = Iterator[tuple[list[str], np.ndarray]]


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

    def __str__(self) -> str:
        trust = self.translator.trust
        what = "documents" if self.translator.side == "documents" else "queries"
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
                f"Translated {len(self.words):,} {what}; confidence {middle:.2f}, eight in ten "
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
    if side == "documents" and queries is not None:
        raise InputError(
            "queries= is for side='queries', which translates them. With side='documents' the new "
            "model's queries are used as they are. Leave it out."
        )
    _check_targets(output, table, (old, new_sample, queries), side, queries, overwrite=overwrite)
    tell("Reading", 0, 0)
    sample = _read(new_sample)
    pairs, n_old = _paired(old, sample)
    n_wanted = n_old - len(pairs) if side == "documents" else ROWS_AT_ONCE
    tell("Choosing the map", 0, 1)
    options: dict[str, Any] = {"seed": seed, "n_jobs": n_jobs}
    if method is None:
        method, _ = choose_translation(pairs, side, n_wanted=n_wanted, **options)
    translator = Translator(method, pairs, side, level=level, **options)
    tell("Choosing the map", 1, 1)
    if side == "documents":
        job = _Job(translator, sample, _blocks(old), n_old, partial(tell, "Translating"))
    else:
        rows = None if queries is None else _read(queries)
        if rows is not None:
            _checked(rows.vectors, translator.n_features)
        n_queries = 0 if rows is None else len(rows)
        blocks = iter(()) if rows is None else _blocks(rows)
        job = _Job(translator, None, blocks, n_queries, partial(tell, "Translating"))
    migration = job.run(output, len(pairs), overwrite=overwrite)
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
    sample = _read(new_sample)
    names, pairs, n_old = _paired_names(old, sample)
    asked = _queries(queries, relevant, names, pairs)
    tell = partial(progress or quiet, "Searching")
    options: dict[str, Any] = {"k": k, "budget": budget, "seed": seed, "n_jobs": n_jobs}
    return evaluate_pairs(pairs, asked, n_wanted=n_old - len(pairs), **options, progress=tell)


class _Job:
    """One pass over the rows to translate."""

    def __init__(
        self,
        translator: Translator,
        sample: Embedding | None,
        blocks: Blocks,
        n_rows: int,
        tell: Callable[[int, int], None],
    ) -> None:
        self.translator, self.sample, self.tell = translator, sample, tell
        self.blocks, self.n_rows = blocks, n_rows
        self.is_pending: list[str] = []

    def run(
        self, output: str | os.PathLike[str] | None, n_pairs: int, *, overwrite: bool
    ) -> Migration:
        """Translate every row; keep the vectors, or write them."""
        known = () if self.sample is None else self.sample.words
        n_dims = self.translator.known_rows.n_dims
        extra = [] if self.sample is None else self._unpaired()
        shape = (self.n_rows + len(extra), n_dims)
        if output is None:
            return self._filled(np.empty(shape, self.translator.dtype), extra, n_pairs, known)
        folder = Path(output).resolve().parent
        # On disk, so that memory does not grow with the documents; gone when this process is.
        with tempfile.TemporaryFile(dir=folder) as file:
            space = np.memmap(file, self.translator.dtype, "w+", shape=shape)
            migration = self._filled(space, extra, n_pairs, known)
            assert migration.embedding is not None
            write_embedding(migration.embedding, output, overwrite=overwrite)
        return Migration(
            migration.translator,
            migration.words,
            migration.confidence,
            migration.lower_bound,
            n_pairs,
        )

    def _unpaired(self) -> list[str]:
        """Return re-embedded documents that the old embedding lacks: they come last."""
        assert self.sample is not None
        return []

    def _filled(
        self, vectors: np.ndarray, extra: list[str], n_pairs: int, known: Sequence[str]
    ) -> Migration:
        words: list[str] = []
        translated: list[str] = []
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        sample = self.sample
        for names, rows in self.blocks:
            first = len(words)
            words += names
            block = slice(first, first + len(names))
            mapped, expected, bound = self.translator.translated(rows)
            vectors[block] = mapped
            is_translated = np.ones(len(names), np.bool_)
            if sample is not None:
                is_translated = np.array([name not in sample for name in names], np.bool_)
                for place in np.flatnonzero(~is_translated).tolist():
                    vectors[first + place] = sample[names[place]]
            translated += [names[place] for place in np.flatnonzero(is_translated).tolist()]
            parts.append((expected[is_translated], bound[is_translated]))
            self.tell(len(words), self.n_rows)
        confidence, lower_bound = (
            np.concatenate([np.empty(0), *column]) for column in zip(*parts, strict=True)
        ) if parts else (np.empty(0), np.empty(0))
        embedding = Embedding(words, vectors) if words else None
        return Migration(
            self.translator, tuple(translated), confidence, lower_bound, n_pairs, embedding
        )
