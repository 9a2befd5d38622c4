"""Which strings are one and the same to a tokenizer: its normalizer, for short terms.

Only what changes letters matters here. It tells whether a term is a token already; the library
`tokenizers` does the real work whenever text is split.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

_FORMS = ("NFC", "NFD", "NFKC", "NFKD")


def normalized(text: str, rule: Mapping[str, Any] | None) -> str:
    """Return a term as a normalizer of `tokenizer.json` leaves it.

    Examples
    --------
    >>> normalized("Café", {"type": "BertNormalizer", "lowercase": True, "strip_accents": None})
    'cafe'
    >>> normalized("Café", None)
    'Café'
    """
    if rule is None:
        return text
    kind = rule.get("type", "")
    if kind == "Sequence":
        for each in rule.get("normalizers", ()):
            text = normalized(text, each)
        return text
    if kind in _FORMS:
        return unicodedata.normalize(kind, text)
    return _RULES.get(kind, _unchanged)(text, rule)


def changes_spaces(rule: Mapping[str, Any] | None) -> bool:
    """Tell whether a normalizer puts a mark where a word begins.

    Then a term is no longer a string of its own in the normalized text.

    Examples
    --------
    >>> changes_spaces({"type": "Prepend", "prepend": "▁"}), changes_spaces({"type": "Lowercase"})
    (True, False)
    """
    if rule is None:
        return False
    if rule.get("type") == "Sequence":
        return any(changes_spaces(each) for each in rule.get("normalizers", ()))
    return rule.get("type") == "Prepend" or "\u2581" in str(rule.get("content", ""))


def _bert(text: str, rule: Mapping[str, Any]) -> str:
    if rule.get("clean_text", True):
        text = "".join(
            " " if char.isspace() else char
            for char in text
            if char.isspace() or unicodedata.category(char) not in ("Cc", "Cf", "Co", "Cs")
        )
    is_lower = bool(rule.get("lowercase", True))
    strip = rule.get("strip_accents")
    if is_lower if strip is None else strip:
        text = _without_accents(text, rule)
    return text.lower() if is_lower else text


def _without_accents(text: str, _rule: Mapping[str, Any]) -> str:
    split = unicodedata.normalize("NFD", text)
    return "".join(char for char in split if unicodedata.category(char) != "Mn")


def _replaced(text: str, rule: Mapping[str, Any]) -> str:
    pattern = rule.get("pattern", {})
    is_letters = bool(pattern.get("String")) and "\u2581" not in rule.get("content", "")
    return text.replace(pattern["String"], rule["content"]) if is_letters else text


def _unchanged(text: str, _rule: Mapping[str, Any]) -> str:
    return text


_RULES: dict[str, Callable[[str, Mapping[str, Any]], str]] = {
    "BertNormalizer": _bert,
    "Lowercase": lambda text, _rule: text.lower(),
    "StripAccents": _without_accents,
    "Strip": lambda text, _rule: text.strip(),
    # SentencePiece's table of characters; compatibility forms are what it does to words.
    "Precompiled": lambda text, _rule: unicodedata.normalize("NFKC", text),
    "Replace": _replaced,
}
