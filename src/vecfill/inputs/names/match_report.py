"""How each entity's word was found: the result of `match_names`."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from vecfill.errors import InputError, OptionError
from vecfill.inputs.entities import listed
from vecfill.requests import Reading
from vecfill.wording import count

How = Literal["exact", "case", "loose", "alias", "excluded", "none"]

_ORDER: tuple[How, ...] = ("exact", "case", "loose", "alias", "excluded", "none")
_N_SHOWN = 20
_WIDTH = 40
MOST_COLLISIONS = 3
"""Words with several entities that get a note each; if there are more, one note lists some."""


@dataclass(frozen=True)
class Match:
    """An entity, its word or None, and how the word was found.

    Examples
    --------
    >>> Match("Visa Inc.", "visa", "loose").word
    'visa'
    """

    entity: str
    word: str | None
    how: How
    alternatives: tuple[str, ...] = ()


@dataclass(frozen=True)
class MatchReport:
    """Every entity with its word, and what a careful reader would want to check.

    `missing_aliases` are aliases whose word is not in the vocabulary, `unused_names` are aliases
    and exclusions that name no entity. `near_misses` is filled if no entity has a word.

    Examples
    --------
    >>> report = MatchReport((Match("IBM", "ibm", "case"), Match("Xyz", None, "none")), "case", 9)
    >>> print(report)
    1 of 2 entities has a word (of 9 words): case 1, none 1
    entity  word  how
    IBM     ibm   case
    Xyz     -     none
    """

    matches: tuple[Match, ...]
    level: str
    n_words: int
    missing_aliases: tuple[tuple[str, str], ...] = ()
    unused_names: tuple[str, ...] = ()
    near_misses: tuple[tuple[str, str], ...] = ()
    set_aside: tuple[tuple[str, str], ...] = ()
    """Entities that are treated as unknown although they have a word, with that word."""
    remarks: tuple[str, ...] = ()
    """Why entities were set aside, in sentences."""

    @property
    def words(self) -> dict[str, str]:
        """Words by entity, for the entities that have one."""
        return {match.entity: match.word for match in self.matches if match.word is not None}

    @property
    def counts(self) -> dict[str, int]:
        """How many entities were found in each way."""
        times = Counter(match.how for match in self.matches)
        return {how: times[how] for how in _ORDER if times[how]}

    @property
    def unmatched(self) -> tuple[str, ...]:
        """Entities without a word, the excluded ones included."""
        return tuple(match.entity for match in self.matches if match.word is None)

    @property
    def collisions(self) -> dict[str, tuple[str, ...]]:
        """Words that more than one entity was matched to, with those entities."""
        entities: dict[str, list[str]] = {}
        for match in self.matches:
            if match.word is not None:
                entities.setdefault(match.word, []).append(match.entity)
        return {word: tuple(names) for word, names in entities.items() if len(names) > 1}

    @property
    def notes(self) -> tuple[str, ...]:
        """Plain sentences on what deserves a look."""
        shared = self.collisions
        notes = [
            f"The word {word!r} was matched by {len(names)} entities: {', '.join(names)}."
            for word, names in shared.items()
        ]
        if len(notes) > MOST_COLLISIONS:
            pairs = [f"{word!r} ({', '.join(names)})" for word, names in shared.items()]
            more = len(pairs) - MOST_COLLISIONS
            notes = [
                f"{len(pairs):,} words were matched by more than one entity: "
                f"{', '.join(pairs[:MOST_COLLISIONS])} and {more:,} more."
            ]
        notes += [
            f"The alias of {entity!r}, {word!r}, is not in the vocabulary."
            for entity, word in self.missing_aliases
        ]
        # One list of exclusions may serve many tables: most of its names are of other ones.
        if len(self.unused_names) == 1:
            name = self.unused_names[0]
            notes.append(
                f"{name!r} has an alias or is excluded, but is not an entity of the table."
            )
        elif self.unused_names:
            notes.append(
                f"{len(self.unused_names):,} names have an alias or are excluded, but are no "
                f"entities: {listed(self.unused_names)}."
            )
        return (*notes, *self.remarks)

    def without(self, entities: Collection[str], why: str) -> MatchReport:
        """Return the same matches, with those of some entities set aside.

        Examples
        --------
        >>> report = MatchReport((Match("IBM", "ibm", "case"),), "case", 9)
        >>> report.without(["IBM"], "too rare").notes
        ('Treated as unknown: 1 of 1 matched entities, too rare.',)
        """
        chosen = {name: word for name, word in self.words.items() if name in set(entities)}
        if not chosen:
            return self
        matches = tuple(
            replace(match, word=None, how="excluded") if match.entity in chosen else match
            for match in self.matches
        )
        return replace(
            self,
            matches=matches,
            set_aside=(*self.set_aside, *chosen.items()),
            remarks=(
                *self.remarks,
                f"Treated as unknown: {len(chosen):,} of {len(self.words):,} matched entities, "
                f"{why}.",
            ),
        )

    def require_matches(self) -> None:
        """Refuse if no entity has a word, with the nearest misses and what to try."""
        if any(match.word is not None for match in self.matches):
            return
        if self.set_aside:
            raise InputError(
                f"No known entity is left to learn from. {' '.join(self.remarks)} Lower "
                "min_count=, raise from_rank=, or name fewer entities."
            )
        if excluded := [match.entity for match in self.matches if match.how == "excluded"]:
            raise InputError(
                f"No known entity is left to learn from: {len(excluded):,} excluded "
                f"({listed(excluded)}), and no other matches a word. Exclude fewer (exclude=)."
            )
        near = "; ".join(
            f"{entity!r} is near the word {word!r}" for entity, word in self.near_misses
        )
        first = ", ".join(repr(match.entity) for match in self.matches[:3])
        raise InputError(
            f"no entity ({first}{', ...' if len(self.matches) > 3 else ''}) is among the "
            f"{self.n_words:,} words of the vocabulary at level {self.level!r}. "
            + (f"Nearest misses: {near}. " if near else "No word begins like an entity. ")
            + "Levels are 'exact', 'case' and 'loose' (match=); or give aliases (aliases=), or "
            "name another key column (key=)."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, ready for JSON."""
        return {
            "level": self.level,
            "n_words": self.n_words,
            "counts": self.counts,
            "matches": [
                {
                    "entity": match.entity,
                    "word": match.word,
                    "how": match.how,
                    "alternatives": list(match.alternatives),
                }
                for match in self.matches
            ],
            "collisions": {word: list(names) for word, names in self.collisions.items()},
            "missing_aliases": [list(pair) for pair in self.missing_aliases],
            "unused_names": list(self.unused_names),
            "near_misses": [list(pair) for pair in self.near_misses],
            "set_aside": dict(self.set_aside),
            "notes": list(self.notes),
        }

    def rows(self) -> list[tuple[str, ...]]:
        """Return the matches as the rows of a table, under a row of names.

        Examples
        --------
        >>> found = (Match("Iron", "iron", "case", ("IRON",)), Match("tin", None, "none"))
        >>> MatchReport(found, "case", 2).rows()[1:]
        [('Iron', 'iron', 'case', 'IRON'), ('tin', '', 'none', '')]
        """
        width = max([1, *(len(match.alternatives) for match in self.matches)])
        names = ("entity", "word", "how", *(f"alternative_{i + 1}" for i in range(width)))
        rows = [(m.entity, m.word or "", m.how, *m.alternatives) for m in self.matches]
        return [names, *(row + ("",) * (len(names) - len(row)) for row in rows)]

    def table(self, n_shown: int | None = None) -> str:
        """Return the matches as text, one line each, at most `n_shown` of them."""
        matches = self.matches if n_shown is None else self.matches[:n_shown]
        rows = [("entity", "word", "how")]
        rows += [(_short(match.entity), _short(match.word or "-"), match.how) for match in matches]
        width = max(len(row[0]) for row in rows)
        word_width = max(len(row[1]) for row in rows)
        lines = [f"{entity:<{width}}  {word:<{word_width}}  {how}" for entity, word, how in rows]
        if len(matches) < len(self.matches):
            lines.append(f"... and {len(self.matches) - len(matches)} more")
        return "\n".join(lines)

    def __str__(self) -> str:
        return "\n".join((self.summary(), self.table(_N_SHOWN), *self.notes))

    def summary(self) -> str:
        """Return in one line how many entities have a word."""
        how = ", ".join(f"{name} {n}" for name, n in self.counts.items())
        n_words, have = len(self.words), "has" if len(self.words) == 1 else "have"
        return (
            f"{n_words} of {count(len(self.matches), 'entity')} {have} a word "
            f"(of {self.n_words:,} words): {how}"
        )

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{_escaped(match.entity)}</td><td>{_escaped(match.word or '-')}</td>"
            f"<td>{match.how}</td></tr>"
            for match in self.matches[:_N_SHOWN]
        )
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p>{html.escape(self.summary())}</p><table><tr><th>entity</th><th>word</th>"
            f"<th>how</th></tr>{rows}</table>" + (f"<ul>{notes}</ul>" if notes else "")
        )


def without_unreliable(
    matches: MatchReport,
    reading: Reading,
    *,
    counts: Mapping[str, float] | None = None,
    rows: Mapping[str, int],
    named: Collection[str] = (),
) -> MatchReport:
    """Return matches in which entities that are too rare, or named, have no word.

    `counts` are by entity, and `rows` are those of words in the embedding, from 0. An entity
    without a count keeps its word.

    The paper does so with words below a frequency: their vectors are poor, and imputed ones are
    better.

    Examples
    --------
    >>> names = ("Oslo", "Bern", "Pau")
    >>> matches = MatchReport(tuple(Match(name, name.lower(), "case") for name in names), "case", 3)
    >>> reading = Reading(counts={"Oslo": 9, "Pau": 2}, min_count=5)
    >>> trusted = without_unreliable(matches, reading, counts=reading.counts, rows={})
    >>> trusted.words, trusted.set_aside
    ({'Oslo': 'oslo', 'Bern': 'bern'}, (('Pau', 'pau'),))
    """
    trusted = matches.without(named, "named as unreliable") if named else matches
    least, first = reading.min_count, reading.from_rank
    if least is not None and counts is None:
        raise OptionError(
            f"min_count={least:g} needs counts: pass counts=, a file of entity and "
            "count or a column of the table."
        )
    if least is not None and counts is not None:
        rare = [name for name in trusted.words if counts.get(name, least) < least]
        trusted = trusted.without(rare, f"counted less than {least:g} times")
    if first is not None:
        late = [name for name, word in trusted.words.items() if rows[word] + 1 >= first]
        trusted = trusted.without(late, f"whose word is at row {first:,} of the embedding or later")
    return trusted


def _short(text: str) -> str:
    """One line of at most `_WIDTH` characters, control characters shown as escapes."""
    if len(text) <= _WIDTH and text.isprintable():
        return text
    plain = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text[:_WIDTH])
    return plain if len(plain) <= _WIDTH and len(text) <= _WIDTH else plain[: _WIDTH - 3] + "..."


def _escaped(text: str) -> str:
    return html.escape(_short(text))
