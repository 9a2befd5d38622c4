"""What an embedding adds to a description: sources read by its word vectors, and names.

A table describes entities by itself. A text can also be read by the vectors of its words, and a
name by what the vocabulary teaches about spelling. Both need the embedding, so they are read when
it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from vecfill.embedding import Embedding
from vecfill.errors import InputError
from vecfill.inputs.names.domains import (
    FEWEST_WORDS,
    names_domain,
    parts_domain,
    parts_guess,
    rows_of_others,
    spelling_domain,
)
from vecfill.inputs.names.siblings import kinds_of_names
from vecfill.inputs.prepared import Domain, Source, joint

NAMES, PARTS = "names", "parts"
"""What the spelling of names, and their parts are called beside other sources."""

Progress = Callable[[str, int, int], None]
"""Called with what is done, how much of it is done, and how much there is."""


def described(
    domain: Domain,
    vocabulary: Embedding | None,
    words: Mapping[str, str],
    *,
    names: str | None = None,
    cache: Path | None = None,
    progress: Progress | None = None,
) -> Domain:
    """Return a domain with everything that the embedding can add to it.

    `vocabulary` has the words and vectors of the whole embedding, `words` the word of each known
    entity. `names` is a mode; ``None`` is ``"auto"`` if the vocabulary has many words besides those
    of the entities, and ``"off"`` otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> table = Domain(("Fort Worth", "Oslo"), np.eye(2), ("x", "y"))
    >>> base = Embedding(["fort", "worth", "oslo"], np.eye(3))
    >>> described(table, base, {"Oslo": "oslo"}, names="parts")
    Domain(2 entities, 2 sources: table, names)
    """
    context = {"words": words, "progress": progress}
    resolved = [source.resolved(vocabulary, **context) for source in domain.sources]
    sources = [source for source in resolved if not source.is_bare]
    if progress is not None and names != "off" and vocabulary is not None:
        progress("Reading names", 0, 0)
    of_names = _names_source(domain.entities, vocabulary, words, names, cache)
    if of_names is not None and vocabulary is not None:
        sources.append(Source(NAMES, (of_names,)))
        # Unless names are read in one way, their parts are a source beside the spelling.
        if names not in ("parts", "spelling"):
            of_parts = parts_guess(domain.entities, words, vocabulary)
            sources += [] if of_parts is None else [Source(PARTS, (of_parts,))]
    if not sources and words:
        raise InputError(_nothing_but_names(names))
    if not sources or (of_names is None and not domain.is_joint):
        return domain
    together = joint(sources)
    notes = joint([source for source in resolved if source.is_bare]).notes
    together = replace(together, notes=(*notes, *together.notes))
    if of_names is None or vocabulary is None:
        return together
    return replace(together, kinds=kinds_of_names(together.entities, vocabulary.words))


def _nothing_but_names(mode: str | None) -> str:
    return (
        f"the entities have nothing but names, and names={mode!r} finds nothing in them that can "
        "be compared. Describe the entities by a table, a text or a graph."
    )


def _names_source(
    entities: tuple[str, ...],
    vocabulary: Embedding | None,
    words: Mapping[str, str],
    mode: str | None,
    cache: Path | None,
) -> Domain | None:
    """Return what the names say, or ``None`` if they are not to be asked or say nothing."""
    if mode == "off" or vocabulary is None:
        return None
    if mode is None and len(vocabulary) < FEWEST_WORDS + len(words):
        return None
    if mode is None and len(rows_of_others(entities, words, vocabulary)) < FEWEST_WORDS:
        return None
    if mode == "parts":
        of_names = parts_domain(entities, words, vocabulary)
    elif mode == "spelling":
        of_names = spelling_domain(entities, words, vocabulary, names_cache=cache)
    else:
        try:
            of_names = names_domain(entities, words, vocabulary, names_cache=cache)
        except InputError:  # Names that cannot be compared say nothing, and nobody asked for more.
            return None
    return of_names if len(of_names) else None
