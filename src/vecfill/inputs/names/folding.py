"""Names -> what is left of them when spelling does not matter.

Whole batches are folded at once, as one long string: a vocabulary has millions of words, and
one call of `str.replace` on all of them costs less than a call for each.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

# fmt: off
SUFFIXES = frozenset((
    "ab", "ag", "asa", "bhd", "bv", "co", "companies", "company", "corp", "corporation", "cos",
    "gmbh", "group", "grp", "holding", "holdings", "inc", "incorporated", "kg", "kgaa", "limited",
    "llc", "llp", "lp", "ltd", "nv", "oy", "oyj", "plc", "pte", "pty", "sa", "sab", "sas", "se",
    "spa", "srl",
))
# fmt: on
"""Legal forms and the like, which a text that mentions a company leaves out."""

_SEPARATORS = (" ", "-", ".", ",", "/", "(", ")", "\t", "\r", "\u2010", "\u2013", "\u2014")
_LETTERS = (("ø", "o"), ("ł", "l"), ("đ", "d"), ("æ", "ae"), ("œ", "oe"), ("\u0131", "i"))
_LAST_TOKENS = SUFFIXES | {"a", "and"}  # "a" as in "S.A."
_MARKS = re.compile("[\u0300-\u036f]+")


def without_case(words: Sequence[str]) -> list[str]:
    """Return the words with case ignored.

    Examples
    --------
    >>> without_case(["Visa", "STRASSE"])
    ['visa', 'strasse']
    """
    return _split(_join(words).casefold(), len(words))


def folded(words: Sequence[str]) -> list[str]:
    """Return the words as lower-case tokens joined by `_`, without diacritics or HTML entities.

    What is equal ignoring case is equal here too.

    Examples
    --------
    >>> folded(["Nestlé S.A.", "AT&amp;T", "Coca-Cola", "McDonald's"])
    ['nestle_s_a', 'at_and_t', 'coca_cola', "mcdonald's"]
    """
    text = _join(words).casefold()
    if "&" in text:
        unescaped = [html.unescape(word) if "&" in word else word for word in text.split("\n")]
        text = _join(unescaped).replace("&", "_and_")
    if not text.isascii():
        text = _MARKS.sub("", unicodedata.normalize("NFKD", text))
        # Without marks a letter may fold once more, and show marks of its own.
        if (again := text.casefold()) != text:
            text = _MARKS.sub("", unicodedata.normalize("NFKD", again))
        text = text.replace("\u2019", "'")
        for letter, plain in _LETTERS:
            text = text.replace(letter, plain)
    for separator in _SEPARATORS:
        text = text.replace(separator, "_")
    while "__" in text:
        text = text.replace("__", "_")
    text = f"\n{text}\n".replace("\n_", "\n").replace("_\n", "\n")[1:-1]
    return _split(text, len(words))


def glued(folded_words: Sequence[str]) -> list[str]:
    """Return folded words without separators and apostrophes.

    Examples
    --------
    >>> glued(["coca_cola", "mcdonald's"])
    ['cocacola', 'mcdonalds']
    """
    text = "\n".join(folded_words).replace("_", "").replace("'", "")
    return _split(text, len(folded_words))


def affixed(folded_words: Sequence[str]) -> list[int]:
    """Return the places of words whose `core` may differ from what `glued` makes of them.

    Examples
    --------
    >>> affixed(["visa", "visa_inc", "the_gap", "kohl's", "coinc"])
    [1, 2, 3]
    """
    places = [
        place
        for place, word in enumerate(folded_words)
        if "_" in word and (word.rpartition("_")[2] in _LAST_TOKENS or word[:4] == "the_")
    ]
    if "'" in "".join(folded_words):
        places += [place for place, word in enumerate(folded_words) if "'" in word]
        places = sorted(set(places))
    return places


def core(folded_word: str) -> str:
    """Return a folded word, glued, without leading The, possessive endings and legal suffixes.

    Something always stays: a name of nothing but suffixes is left as it is.

    Examples
    --------
    >>> core("the_coca_cola_co"), core("mcdonald's"), core("group_holdings")
    ('cocacola', 'mcdonald', 'group')
    """
    if "_" not in folded_word and "'" not in folded_word:
        return folded_word  # most words, and nothing to take away
    word = folded_word
    if word.endswith("_s_a"):
        word = word[:-4] + "_sa"
    tokens = word.split("_")
    if "'" in word:
        tokens = [
            token.removesuffix("'s").removesuffix("s'") + ("s" if token.endswith("s'") else "")
            for token in tokens
        ]
    if len(tokens) > 1 and tokens[0] == "the":
        tokens = tokens[1:]
    while len(tokens) > 1 and tokens[-1] in SUFFIXES:
        tokens = tokens[:-1]
    if len(tokens) > 1 and tokens[-1] == "and":  # "Tiffany & Co"
        tokens = tokens[:-1]
    stem = "".join(tokens).replace("'", "")
    # One letter is no name: "A. Co" would otherwise be the article "a".
    return stem if len(stem) > 1 else folded_word.replace("_", "").replace("'", "")


@dataclass(frozen=True)
class Folding:
    """A way to look at names: a word is that of an entity if their keys are equal.

    A new way is one entry in `LEVELS` (`requests.py`).

    Examples
    --------
    >>> LOOSE.keys(LOOSE.tokens(["Coca-Cola"])), CASE.keys(CASE.tokens(["IBM"]))
    (['cocacola'], ['ibm'])
    """

    tokens: Callable[[Sequence[str]], list[str]] = list
    """Folds whole batches of words."""
    keys: Callable[[Sequence[str]], list[str]] = list
    """Returns the keys of folded words."""
    near: Callable[[Sequence[str]], list[str]] | None = None
    """Keys by which the nearest misses are found, if not these."""
    affixed: Callable[[Sequence[str]], list[int]] | None = None
    """Places of folded words with affixes, that may be found by their `core` as well."""
    core: Callable[[str], str] | None = None
    """The key of a folded word without affixes."""

    def near_keys(self, words: Sequence[str], keys: list[str]) -> list[str]:
        """Return the keys by which the nearest misses are found."""
        return keys if self.near is None else self.near(words)


EXACT = Folding(near=without_case)
CASE = Folding(tokens=without_case)
LOOSE = Folding(folded, glued, affixed=affixed, core=core)


def _join(words: Sequence[str]) -> str:
    text = "\n".join(words)
    if text.count("\n") != max(len(words) - 1, 0):
        text = "\n".join(word.replace("\n", " ") for word in words)
    return text


def _split(text: str, n_words: int) -> list[str]:
    words = text.split("\n") if n_words else []
    assert len(words) == n_words
    return words
