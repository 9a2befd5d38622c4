"""Entity names -> vocabulary words, and a report of how each was found."""

from __future__ import annotations

import difflib
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import Literal, NamedTuple

from vecfill.errors import InputError
from vecfill.inputs.entities import listed, unique_entities
from vecfill.inputs.folding import affixed, core, folded, glued, without_case
from vecfill.inputs.match_report import How, Match, MatchReport
from vecfill.io.tables import read_pairs

Level = Literal["exact", "case", "loose"]

_LEVELS: tuple[Level, ...] = ("exact", "case", "loose")
_HOW_OF_RANK: tuple[How, ...] = ("exact", "case", "loose", "loose")
_BATCH = 1 << 14
_N_ALTERNATIVES = 5
_N_NEAR = 5
_NEAR_PREFIX = 4
_WORDS_A_PREFIX = 16

__all__ = ["Level", "Match", "MatchReport", "match_names"]


def match_names(
    entities: Iterable[str],
    vocabulary: Iterable[str] | Iterable[Sequence[str]],
    *,
    level: str = "loose",
    aliases: Mapping[str, str] | str | PathLike[str] | None = None,
    exclude: Iterable[str] = (),
) -> MatchReport:
    """Find the word of each entity in one pass over the vocabulary.

    A better way of matching wins, and among equals the word that comes first, which in most
    vocabularies is the most frequent one; the others are listed as alternatives. Memory grows
    with the entities, not with the vocabulary.

    Parameters
    ----------
    entities
        Names, each once.
    vocabulary
        Words, or lists of words.
    level
        `"exact"`; `"case"`: also ignoring case; `"loose"`: also ignoring separators, diacritics,
        HTML entities, legal suffixes, a leading The, possessives and how "and" is written.
    aliases
        The word an entity stands for, by entity, or a file of two columns. An alias goes before
        any other way; if its word is not in the vocabulary the entity stays without a word.
    exclude
        Entities that get no word although one may match: *visa* the noun for Visa the company.

    Examples
    --------
    >>> report = match_names(["Visa Inc.", "IBM", "Thulium"], ["the", "ibm", "visa", "IBM"])
    >>> report.words
    {'Visa Inc.': 'visa', 'IBM': 'IBM'}
    >>> report.counts
    {'exact': 1, 'loose': 1, 'none': 1}
    >>> report.unmatched
    ('Thulium',)
    """
    if level not in _LEVELS:
        raise InputError(f"level={level!r} is not known. Use 'exact', 'case' or 'loose'.")
    names = unique_entities(entities, where="the entities")
    present = set(names)
    alias_of = _aliases(aliases)
    excluded = {name.strip() for name in ([exclude] if isinstance(exclude, str) else exclude)}
    for name in (name for name in names if name in excluded and name in alias_of):
        raise InputError(
            f"{name!r} is both excluded and given the alias {alias_of[name]!r}. "
            "Keep one of the two."
        )
    searched = [name for name in names if name not in excluded and name not in alias_of]
    wanted_words = {word for name, word in alias_of.items() if name in present}
    found = _search(searched, wanted_words, vocabulary, level)

    matches: list[Match] = []
    missing: list[tuple[str, str]] = []
    for name in names:
        if name in excluded:
            matches.append(Match(name, None, "excluded"))
        elif name in alias_of:
            word = alias_of[name]
            if word in found.present:
                matches.append(Match(name, word, "alias"))
            else:
                missing.append((name, word))
                matches.append(Match(name, None, "none"))
        elif hits := found.hits.get(name):
            best, *others = hits
            alternatives = tuple(hit.word for hit in others[:_N_ALTERNATIVES])
            matches.append(Match(name, best.word, _HOW_OF_RANK[best.rank], alternatives))
        else:
            matches.append(Match(name, None, "none"))
    _refuse_entities_twice_by_alias(matches)
    nothing_found = all(match.word is None for match in matches)
    return MatchReport(
        matches=tuple(matches),
        level=level,
        n_words=found.n_words,
        missing_aliases=tuple(missing),
        unused_names=tuple(sorted((set(alias_of) | excluded) - present)),
        near_misses=_nearest(searched, found.near) if nothing_found else (),
    )


class _Hit(NamedTuple):
    """A word that matches; hits sort by how good they are."""

    rank: int
    position: int
    word: str


class _Found(NamedTuple):
    hits: dict[str, list[_Hit]]
    present: set[str]
    near: dict[str, list[str]]
    n_words: int


def _search(
    names: list[str],
    wanted_words: set[str],
    vocabulary: Iterable[str] | Iterable[Sequence[str]],
    level: Level,
) -> _Found:
    """One pass over the vocabulary, a batch at a time."""
    keys = _keys(names, level)
    by_key: dict[str, list[str]] = {}
    by_core: dict[str, list[str]] = {}
    for name, key in zip(names, keys, strict=True):
        by_key.setdefault(key, []).append(name)
    if level == "loose":
        for name, tokens in zip(names, folded(names), strict=True):
            if kept := core(tokens):
                by_core.setdefault(kept, []).append(name)
    wanted = by_key.keys() | by_core.keys()
    near_keys = without_case(names) if level == "exact" else keys
    prefixes = {key[:_NEAR_PREFIX] for key in near_keys}
    found = _Found(hits={}, present=set(), near={}, n_words=0)
    n_words = 0
    for batch in _batches(vocabulary):
        if wanted_words:
            found.present.update(wanted_words.intersection(batch))
        if level == "loose":
            tokens_of = folded(batch)
            batch_keys = glued(tokens_of)
            places = [place for place, key in enumerate(batch_keys) if key in wanted]
            places = sorted({*places, *affixed(tokens_of)})
        else:
            tokens_of = batch
            batch_keys = without_case(batch) if level == "case" else batch
            places = [place for place, key in enumerate(batch_keys) if key in wanted]
        for place in places:
            word, key = batch[place], batch_keys[place]
            kept = core(tokens_of[place]) if level == "loose" else key
            for name in dict.fromkeys((*by_key.get(key, ()), *by_core.get(kept, ()))):
                rank = _rank(name, word, is_same_key=name in by_key.get(key, ()))
                # A key of nothing but separators proves nothing: "---" and "..." differ.
                if rank < 2 or (level == "loose" and key):
                    _add(found.hits.setdefault(name, []), _Hit(rank, n_words + place, word))
        if not found.hits:
            near_keys = without_case(batch) if level == "exact" else batch_keys
            _keep_near(batch, near_keys, prefixes, found.near)
        n_words += len(batch)
    return found._replace(n_words=n_words)


def _keys(words: Sequence[str], level: Level) -> list[str]:
    if level == "loose":
        return glued(folded(words))
    return without_case(words) if level == "case" else list(words)


def _rank(name: str, word: str, *, is_same_key: bool) -> int:
    """How well a word matches: 0 exactly, 1 but for case, 2 but for spelling, 3 for affixes."""
    if word == name:
        return 0
    if word.casefold() == name.casefold():
        return 1
    return 2 if is_same_key else 3


def _add(hits: list[_Hit], hit: _Hit) -> None:
    if any(other.word == hit.word for other in hits):
        return  # a word that the file holds twice: the first one counts
    insort(hits, hit)
    del hits[_N_ALTERNATIVES + 1 :]


def _batches(vocabulary: Iterable[str] | Iterable[Sequence[str]]) -> Iterator[list[str]]:
    """Yield lists of words, whether words came alone or in lists; no more than one is held."""
    if isinstance(vocabulary, str):
        raise InputError("vocabulary is one string. Pass a list of words, or lists of words.")
    stream: Iterator[str | Sequence[str]] = iter(vocabulary)
    for first in stream:
        if isinstance(first, str):
            yield [first, *map(str, islice(stream, _BATCH - 1))]
        else:
            yield list(first)


def _aliases(aliases: Mapping[str, str] | str | PathLike[str] | None) -> dict[str, str]:
    """Aliases by entity, each entity and each word once."""
    if aliases is None:
        return {}
    if isinstance(aliases, Mapping):
        where = "the aliases"
        pairs = [(str(name).strip(), str(word)) for name, word in aliases.items()]
    else:
        where = str(aliases)
        pairs = read_pairs(aliases)
    for number, role in enumerate(("entity", "word")):
        times = Counter(pair[number] for pair in pairs)
        doubled = [name for name, count in times.items() if count > 1]
        if doubled:
            raise InputError(
                f"{where}: {role} {listed(doubled)} present more than once. An alias ties one "
                "entity to one word; keep one line of each."
            )
    return dict(pairs)


def _refuse_entities_twice_by_alias(matches: list[Match]) -> None:
    """Refuse an alias that points at the word that is another entity's own name."""
    by_alias = {match.word: match.entity for match in matches if match.how == "alias"}
    for match in matches:
        if match.how in ("exact", "case") and match.word in by_alias:
            raise InputError(
                f"{by_alias[match.word]!r} has the alias {match.word!r}, which is the name of the "
                f"entity {match.entity!r}: it would be present twice. Remove the alias, or one "
                "of the two entities."
            )


def _keep_near(
    batch: Sequence[str], keys: Sequence[str], prefixes: set[str], near: dict[str, list[str]]
) -> None:
    """Remember a few words that begin like an entity, in case nothing ever matches."""
    for place in [i for i, key in enumerate(keys) if key[:_NEAR_PREFIX] in prefixes]:
        kept = near.setdefault(keys[place][:_NEAR_PREFIX], [])
        if len(kept) < _WORDS_A_PREFIX:
            kept.append(batch[place])


def _nearest(names: list[str], near: dict[str, list[str]]) -> tuple[tuple[str, str], ...]:
    """Return the nearest misses, (entity, word), best first; of the first 2,000 entities."""
    scored: list[tuple[float, str, str]] = []
    keys = _keys(names[:2000], "loose")
    words = list(dict.fromkeys(word for kept in near.values() for word in kept))
    by_start: dict[str, list[tuple[str, str]]] = {}
    for word, key in zip(words, _keys(words, "loose"), strict=True):
        by_start.setdefault(key[:_NEAR_PREFIX], []).append((word, key))
    for name, key in zip(names, keys, strict=False):
        for word, word_key in by_start.get(key[:_NEAR_PREFIX], ()):
            likeness = difflib.SequenceMatcher(None, key, word_key, autojunk=False).ratio()
            scored.append((-likeness, name, word))
    return tuple((name, word) for _, name, word in sorted(scored)[:_N_NEAR])
