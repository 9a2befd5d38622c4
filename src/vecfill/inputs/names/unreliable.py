"""Known vectors that are not to be relied on: entities that have a word but count as unknown.

The paper does so with words below a frequency: their vectors are poor, and imputed ones are better.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from vecfill.errors import OptionError
from vecfill.inputs.names.match_report import MatchReport
from vecfill.requests import Reading


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

    Examples
    --------
    >>> from vecfill.inputs.names.matching import match_names
    >>> matches = match_names(["Oslo", "Bern", "Pau"], ["oslo", "bern", "pau"])
    >>> reading = Reading(counts={"Oslo": 9, "Pau": 2}, min_count=5)
    >>> found = without_unreliable(matches, reading, counts=reading.counts, rows={})
    >>> found.words, found.set_aside
    ({'Oslo': 'oslo', 'Bern': 'bern'}, (('Pau', 'pau'),))
    """
    found = matches.without(named, "named as unreliable") if named else matches
    least, first = reading.min_count, reading.from_rank
    if least is not None and counts is None:
        raise OptionError(
            f"min_count={least:g} needs counts: pass counts=, a file of entity and "
            "count or a column of the table."
        )
    if least is not None and counts is not None:
        rare = [name for name in found.words if counts.get(name, least) < least]
        found = found.without(rare, f"counted less than {least:g} times")
    if first is not None:
        late = [name for name, word in found.words.items() if rows[word] + 1 >= first]
        found = found.without(late, f"whose word is at row {first:,} of the embedding or later")
    return found
