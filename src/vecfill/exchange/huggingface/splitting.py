"""How a tokenizer would split a word if the word were not a token: WordPiece, BPE, Unigram."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

Split = Callable[[str, str], list[str]]
"""Takes a pre-token and the token to do without; returns the pieces, none if it cannot."""


def splitter(model: Mapping[str, Any], vocabulary: Mapping[str, int]) -> Split:
    """Return the function that splits pre-tokens by the model of a `tokenizer.json`.

    Examples
    --------
    >>> model = {"type": "WordPiece", "continuing_subword_prefix": "##"}
    >>> split = splitter(model, {"radon": 0, "ra": 1, "##don": 2, "##n": 3, "r": 4})
    >>> split("radon", ""), split("radon", "radon"), split("xenon", "")
    (['radon'], ['ra', '##don'], [])
    """
    kind = model["type"]
    if kind == "WordPiece":
        return _word_piece(vocabulary, str(model.get("continuing_subword_prefix", "##")))
    if kind == "BPE":
        return _byte_pairs(model, vocabulary)
    if kind == "Unigram":
        return _unigram(model, vocabulary)
    return lambda word, without: [word] if word in vocabulary and word != without else []


def _word_piece(vocabulary: Mapping[str, int], prefix: str) -> Split:
    def split(word: str, without: str) -> list[str]:
        pieces: list[str] = []
        start = 0
        while start < len(word):
            mark = prefix if start else ""
            ends = range(len(word), start, -1)
            found = (mark + word[start:end] for end in ends)
            piece = next((each for each in found if each in vocabulary and each != without), None)
            if piece is None:
                return []
            pieces.append(piece)
            start += len(piece) - len(mark)
        return pieces

    return split


def _byte_pairs(model: Mapping[str, Any], vocabulary: Mapping[str, int]) -> Split:
    pairs = [
        tuple(each.split(" ", 1)) if isinstance(each, str) else tuple(each)
        for each in model.get("merges", ())
    ]
    ranks = {pair: rank for rank, pair in enumerate(pairs)}
    has_bytes = bool(model.get("byte_fallback"))
    is_looked_up = bool(model.get("ignore_merges"))

    def split(word: str, without: str) -> list[str]:
        if is_looked_up and word in vocabulary and word != without:
            return [word]
        pieces = _characters(word, vocabulary, has_bytes=has_bytes)
        while len(pieces) > 1:
            best = min(
                (
                    (ranks[pair], place)
                    for place, pair in enumerate(itertools.pairwise(pieces))
                    if pair in ranks and pair[0] + pair[1] != without
                ),
                default=None,
            )
            if best is None:
                break
            place = best[1]
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return [each for each in pieces if each in vocabulary]

    return split


def _characters(word: str, vocabulary: Mapping[str, int], *, has_bytes: bool) -> list[str]:
    """Return the characters of a word; those that are no tokens as their bytes, if there are."""
    pieces: list[str] = []
    for char in word:
        if char in vocabulary or not has_bytes:
            pieces.append(char)
        else:
            pieces += [f"<0x{byte:02X}>" for byte in char.encode("utf-8", "replace")]
    return pieces


def _unigram(model: Mapping[str, Any], vocabulary: Mapping[str, int]) -> Split:
    scores = {token: float(score) for token, score in model["vocab"]}
    longest = max(map(len, scores), default=1)
    # What is no token at all must lose against anything that is, as in the library.
    unknown = min(scores.values(), default=0.0) - 10.0

    def split(word: str, without: str) -> list[str]:
        best = [0.0, *[-math.inf] * len(word)]
        begins = [0] * (len(word) + 1)
        for end in range(1, len(word) + 1):
            for begin in range(max(0, end - longest), end):
                piece = word[begin:end]
                score = scores.get(piece, unknown if len(piece) == 1 else -math.inf)
                if piece != without and best[begin] + score > best[end]:
                    best[end], begins[end] = best[begin] + score, begin
        pieces: list[str] = []
        end = len(word)
        while end > 0:
            pieces.append(word[begins[end] : end])
            end = begins[end]
        return [each for each in reversed(pieces) if each in vocabulary]

    return split
