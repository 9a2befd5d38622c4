"""`tokenizer.json`: which tokens are whole words, which ids are free, and the file with more.

What a normalizer does to a term matters only as far as it changes letters: it tells whether a term
is a token already. The library `tokenizers` does the real work whenever text is split.
"""

from __future__ import annotations

import copy
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from vecfill.embedding import printable
from vecfill.errors import FormatError, InputError, library
from vecfill.exchange.huggingface.tensors import read_json

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
        for part in rule.get("normalizers", ()):
            text = normalized(text, part)
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
        return any(changes_spaces(part) for part in rule.get("normalizers", ()))
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


Style = Literal["prefix", "bytes", "metaspace", "words"]
_SPACE = "\u2581"
_PLACEHOLDER = re.compile(r"\[unused\d+\]|<0x[0-9A-Fa-f]{2}>|<unused\d+>|<extra_id_\d+>")
_KINDS = ("WordPiece", "BPE", "Unigram", "WordLevel")


class TokenizerFile:
    """What a `tokenizer.json` says, as far as adding tokens needs it.

    `style` says how a token shows that it begins a word: pieces within words have a prefix, such
    as ``##`` (WordPiece); words begin with a space among characters that stand for bytes
    (byte-level BPE) or with ``▁`` (SentencePiece); or every token is a word.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.exists():
            raise InputError(
                f"{path.parent} has no {path.name}. Save the tokenizer in that form first: "
                "transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(folder)."
            )
        self.spec: dict[str, Any] = read_json(path, dict)
        try:
            model = self.spec["model"]
            self.kind = str(model["type"])
            self.vocabulary = _vocabulary(model)
            self.added: list[dict[str, Any]] = list(self.spec.get("added_tokens") or [])
            self._added_ids = {str(token["content"]): _id(token["id"]) for token in self.added}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise FormatError(
                f"{path} is not what a tokenizer should be ({error!r}). Fetch it again."
            ) from error
        self.prefix = str(model.get("continuing_subword_prefix", "##"))
        self.style: Style = self._style(model)

    def _style(self, model: Mapping[str, Any]) -> Style:
        if self.kind == "WordPiece":
            return "prefix"
        if self.kind == "WordLevel":
            return "words"
        text = str([self.spec.get(part) for part in ("normalizer", "pre_tokenizer", "decoder")])
        if self.kind in _KINDS and not model.get("end_of_word_suffix"):
            if "ByteLevel" in text:
                return "bytes"
            if "Metaspace" in text or _SPACE in text:
                return "metaspace"
        raise InputError(
            f"{self.path}: its tokens do not show where a word begins (model {self.kind!r}), so "
            "whole words cannot be told from pieces. WordPiece, WordLevel, byte-level BPE and "
            "SentencePiece tokenizers can be used."
        )

    @cached_property
    def ids(self) -> dict[str, int]:
        """All tokens and their ids."""
        return self.vocabulary | self._added_ids

    @cached_property
    def next_id(self) -> int:
        """The id of the next token that is added, by the rule of the library `tokenizers`."""
        n_model = len(self.vocabulary)
        highest = max(self._added_ids.values(), default=-1)
        next_by_rule = highest + 1 if highest >= n_model else n_model
        expected = max(self.ids.values(), default=-1) + 1
        if next_by_rule != expected:
            raise InputError(
                f"{self.path}: its ids have gaps: there are {n_model} tokens in the model and ids "
                f"up to {expected - 1}, so a new token would get id {next_by_rule}. Number the ids "
                "without gaps first."
            )
        return next_by_rule

    @cached_property
    def whole_words(self) -> dict[str, int]:
        """Words that are one token within text, and their ids, in the order of ids."""
        special = {
            str(token_entry["content"]) for token_entry in self.added if token_entry.get("special")
        }
        words: dict[str, int] = {}
        for token, row in sorted(self.ids.items(), key=lambda item: item[1]):
            if token in special or _PLACEHOLDER.fullmatch(token):
                continue
            word = token if token in self._added_ids else self._word(token)
            if word:
                words.setdefault(word, row)
        return words

    def _word(self, token: str) -> str | None:
        """Return the word that a token of the model is; None for a piece of words."""
        return word_of(token, self.style, self.prefix)

    def token_of(self, word: str) -> str:
        """Return the token of the model that would be this word, whether there is one or not."""
        text = normalized(word, self.spec.get("normalizer"))
        if self.style == "bytes":
            return "".join(_CHARS[byte] for byte in f" {text}".encode("utf-8", "replace"))
        return _SPACE + text.replace(" ", _SPACE) if self.style == "metaspace" else text

    def problem_with(self, term: str) -> str | None:
        """Say why a term cannot become a token; None if it can.

        Of two strings that the tokenizer takes for one, the library would use the existing token.
        """
        text, token = self._key(term), self.token_of(term)
        if text in self._existing or (token in self.ids and self._word(token) is not None):
            return "is one token already"
        if {term, text, token} & self.ids.keys():
            return "is a piece of words in the vocabulary, whose id it would get"
        return None

    @cached_property
    def _existing(self) -> set[str]:
        return {self._key(content) for content in self._added_ids}

    def _key(self, term: str) -> str:
        return normalized(term, self.spec.get("normalizer"))

    def entries(self, terms: Iterable[str]) -> list[dict[str, Any]]:
        """Return the added tokens that make each term one id, wherever it stands as a word.

        With ``single_word`` no other text changes its ids. With ``lstrip`` the space before a term
        belongs to it, as it belongs to the words of such a vocabulary.
        """
        is_matched_after = not changes_spaces(self.spec.get("normalizer"))
        term_of: dict[str, str] = {}
        entries: list[dict[str, Any]] = []
        for number, term in enumerate(terms):
            self._check(term, term_of)
            entries.append(
                {
                    "id": self.next_id + number,
                    "content": term,
                    "single_word": True,
                    "lstrip": self.style in ("bytes", "metaspace"),
                    "rstrip": False,
                    "normalized": is_matched_after,
                    "special": False,
                }
            )
        return entries

    def _check(self, term: str, term_of: dict[str, str]) -> None:
        if not term or term != " ".join(term.split()) or not term.isprintable():
            raise InputError(
                f"{printable(term)!r} cannot be a token: it is empty, has control characters, or "
                "has white space other than single spaces within. Spell it otherwise."
            )
        problem = self.problem_with(term)
        if problem is not None:
            raise InputError(f"{term!r} {problem} ({self.path}). Leave it out.")
        key = self._key(term)
        if key in term_of:
            raise InputError(
                f"{term!r} and {term_of[key]!r} are the same to this tokenizer ({key!r}). Keep one."
            )
        term_of[key] = term

    def extended(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the content of the file with more added tokens."""
        spec = copy.copy(self.spec)
        spec["added_tokens"] = [*self.added, *entries]
        return spec


def word_of(token: str, style: Style, prefix: str = "##") -> str | None:
    """Return the word that a token is in a vocabulary of some style; None for a piece of words.

    Examples
    --------
    >>> word_of("iron", "prefix"), word_of("##ium", "prefix"), word_of("\u0120iron", "bytes")
    ('iron', None, 'iron')
    """
    if style == "words":
        return token
    if style == "prefix":
        return None if token.startswith(prefix) else token
    if style == "metaspace":
        return token[1:] if token.startswith(_SPACE) else None
    try:
        text = bytes(_BYTES[char] for char in token).decode("utf-8")
    except (KeyError, UnicodeDecodeError):
        return None
    return text[1:] if text.startswith(" ") and text[1:].strip() == text[1:] else None


def _vocabulary(model: Mapping[str, Any]) -> dict[str, int]:
    listed = model["vocab"]
    if isinstance(listed, Mapping):
        return {str(token): _id(row) for token, row in listed.items()}
    return {str(token): row for row, (token, _score) in enumerate(listed)}


def _id(value: Any) -> int:
    # The library loads no other: `int` would take 0.5 and "0" as well.
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not an id")
    return value


def load_tokenizer(path: Path) -> Any:
    """Return a tokenizer as the library `tokenizers` loads it."""
    tokenizers = library("tokenizers", extra="hf")
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing more special
        raise FormatError(
            f"{path}: the library tokenizers cannot load it: {error}. Fetch it again."
        ) from error


def _byte_characters() -> list[str]:
    """Return the character that stands for each byte in byte-level vocabularies.

    Printable characters of Latin-1 stand for themselves; the rest are numbered from 256 on.
    """
    printable_bytes = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in printable_bytes]
    return [
        chr(byte) if byte in printable_bytes else chr(256 + hidden.index(byte))
        for byte in range(256)
    ]


_CHARS = _byte_characters()
_BYTES = {char: byte for byte, char in enumerate(_CHARS)}
