"""Entity names -> vocabulary words, and a report of how each was found."""

from __future__ import annotations

import difflib
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from typing import NamedTuple

from vecfill.errors import InputError
from vecfill.inputs.entities import listed, unique_entities
from vecfill.inputs.names.folding import Folding, folded, glued
from vecfill.inputs.names.match_report import How, Match, MatchReport
from vecfill.io.names import read_pairs
from vecfill.requests import LEVELS, loaded

_HOW_OF_RANK: tuple[How, ...] = ("exact", "case", "loose", "loose")
_BATCH = 1 << 14
_N_ALTERNATIVES = 5
_N_NEAR = 5
_NEAR_PREFIX = 4
"""Letters that a near miss shares with a name. Fewer would hold many words that are not near."""

_WORDS_A_PREFIX = 16

__all__ = ["Match", "MatchReport", "NameSearch", "match_names"]


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
    search = NameSearch(entities, level=level, aliases=aliases, exclude=exclude)
    for batch in _batches(vocabulary):
        search.offer(batch)
    return search.report()


class _Hit(NamedTuple):
    """A word that matches; hits sort by how good they are."""

    rank: int
    position: int
    word: str


class NameSearch:
    """A search for the words of entities that is shown a vocabulary batch by batch.

    `match_names` says what the parameters mean. The word that an entity is matched with in the
    end was told by `offer` when it came by, so a caller can keep what belongs to it (its row,
    its vector) in the same pass.

    Examples
    --------
    >>> search = NameSearch(["Visa Inc.", "IBM"])
    >>> search.offer(["the", "ibm", "visa"]), search.offer(["of", "IBM"])
    ([1, 2], [1])
    >>> search.report().words
    {'Visa Inc.': 'visa', 'IBM': 'IBM'}
    """

    def __init__(
        self,
        entities: Iterable[str],
        *,
        level: str = "loose",
        aliases: Mapping[str, str] | str | PathLike[str] | None = None,
        exclude: Iterable[str] = (),
    ) -> None:
        if level not in LEVELS:
            raise InputError(f"level={level!r} is not known. Use 'exact', 'case' or 'loose'.")
        self._level = level
        self._folding: Folding = loaded(LEVELS[level])
        self._names = unique_entities(entities, where="the entities")
        self._alias_of = _aliases(aliases)
        self._excluded = {
            name.strip() for name in ([exclude] if isinstance(exclude, str) else exclude)
        }
        for name in (
            name_of_entity for name_of_entity in self._names if name_of_entity in self._excluded
        ):
            if name in self._alias_of:
                raise InputError(
                    f"{name!r} is both excluded and given the alias {self._alias_of[name]!r}. "
                    "Keep one of the two."
                )
        self._searched = [
            name
            for name in self._names
            if name not in self._excluded and name not in self._alias_of
        ]
        present = set(self._names)
        self._alias_words = {word for name, word in self._alias_of.items() if name in present}
        self._index()
        self._hits: dict[str, list[_Hit]] = {}
        self._present: set[str] = set()
        self._near: dict[str, list[str]] = {}
        self._n_words = 0

    def _index(self) -> None:
        """Find the keys by which words will be looked up."""
        tokens = self._folding.tokens(self._searched)
        keys = self._folding.keys(tokens)
        self._by_key: dict[str, list[str]] = {}
        self._by_core: dict[str, list[str]] = {}
        for name, key in zip(self._searched, keys, strict=True):
            self._by_key.setdefault(key, []).append(name)
        if self._folding.core is not None:
            for name, stem in zip(self._searched, map(self._folding.core, tokens), strict=True):
                if stem:
                    self._by_core.setdefault(stem, []).append(name)
        self._wanted = self._by_key.keys() | self._by_core.keys()
        near_keys = self._folding.near_keys(self._searched, keys)
        self._prefixes = {key[:_NEAR_PREFIX] for key in near_keys}

    def offer(self, words: Sequence[str]) -> list[int]:
        """Look at the next words; return the places of those that are the best match so far.

        A word that was told before and comes again is told again.
        """
        best_places: set[int] = set()
        if self._alias_words and (alias_words := self._alias_words.intersection(words)):
            self._present.update(alias_words)
            best_places.update(place for place, word in enumerate(words) if word in alias_words)
        folding = self._folding
        tokens = folding.tokens(words)
        keys = folding.keys(tokens)
        places = [place for place, key in enumerate(keys) if key in self._wanted]
        if folding.affixed is not None:
            places = sorted({*places, *folding.affixed(tokens)})
        for place in places:
            stem = keys[place] if folding.core is None else folding.core(tokens[place])
            if self._add_hits(words[place], keys[place], stem, self._n_words + place):
                best_places.add(place)
        if not self._hits:
            _keep_near(words, folding.near_keys(words, keys), self._prefixes, self._near)
        self._n_words += len(words)
        return sorted(best_places)

    def _add_hits(self, word: str, key: str, core_key: str, position: int) -> bool:
        """Add a word to the hits of the names it fits; tell whether it is any name's best."""
        same_key = self._by_key.get(key, ())
        is_best = False
        for name in dict.fromkeys((*same_key, *self._by_core.get(core_key, ()))):
            rank = _rank(name, word, is_same_key=name in same_key)
            # A key of nothing but separators proves nothing: "---" and "..." differ.
            if rank < 2 or key:
                hits = self._hits.setdefault(name, [])
                _add(hits, _Hit(rank, position, word))
                is_best = is_best or hits[0].word == word
        return is_best

    def report(self) -> MatchReport:
        """Return how each entity was matched with the words seen so far."""
        missing = tuple(
            (name, self._alias_of[name])
            for name in self._names
            if name in self._alias_of
            and name not in self._excluded
            and self._alias_of[name] not in self._present
        )
        matches = [self._match(name) for name in self._names]
        _refuse_entities_twice_by_alias(matches)
        nothing_found = all(match.word is None for match in matches)
        unused = (set(self._alias_of) | self._excluded) - set(self._names)
        return MatchReport(
            matches=tuple(matches),
            level=self._level,
            n_words=self._n_words,
            missing_aliases=missing,
            unused_names=tuple(sorted(unused)),
            near_misses=_nearest(self._searched, self._near) if nothing_found else (),
        )

    def _match(self, name: str) -> Match:
        if name in self._excluded:
            return Match(name, None, "excluded")
        if name in self._alias_of:
            word = self._alias_of[name]
            is_there = word in self._present
            return Match(name, word, "alias") if is_there else Match(name, None, "none")
        if hits := self._hits.get(name):
            best, *lesser = hits
            alternatives = tuple(hit.word for hit in lesser[:_N_ALTERNATIVES])
            return Match(name, best.word, _HOW_OF_RANK[best.rank], alternatives)
        return Match(name, None, "none")


def _rank(name: str, word: str, *, is_same_key: bool) -> int:
    """How well a word matches: 0 exactly, 1 but for case, 2 but for spelling, 3 for affixes."""
    if word == name:
        return 0
    if word.casefold() == name.casefold():
        return 1
    return 2 if is_same_key else 3


def _add(hits: list[_Hit], hit: _Hit) -> None:
    if not hits:
        hits.append(hit)  # most names have one word
        return
    if any(earlier.word == hit.word for earlier in hits):
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
        near_words = near.setdefault(keys[place][:_NEAR_PREFIX], [])
        if len(near_words) < _WORDS_A_PREFIX:
            near_words.append(batch[place])


def _nearest(names: list[str], near: dict[str, list[str]]) -> tuple[tuple[str, str], ...]:
    """Return the nearest misses, (entity, word), best first; of the first 2,000 entities."""
    misses: list[tuple[float, str, str]] = []
    keys = glued(folded(names[:2000]))
    words = list(dict.fromkeys(word for near_words in near.values() for word in near_words))
    by_start: dict[str, list[tuple[str, str]]] = {}
    for word, key in zip(words, glued(folded(words)), strict=True):
        by_start.setdefault(key[:_NEAR_PREFIX], []).append((word, key))
    for name, key in zip(names, keys, strict=False):
        for word, word_key in by_start.get(key[:_NEAR_PREFIX], ()):
            likeness = difflib.SequenceMatcher(None, key, word_key, autojunk=False).ratio()
            misses.append((-likeness, name, word))
    return tuple((name, word) for _, name, word in sorted(misses)[:_N_NEAR])
