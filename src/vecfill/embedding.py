"""Embedding: words and vectors, one row a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vecfill.errors import InputError
from vecfill.machine.lengths import with_safe_squares
from vecfill.wording import count

FloatArray = NDArray[np.floating[Any]]

_SHOWN_ROWS = 5
_SHOWN_DIMS = 6


def printable(word: str) -> str:
    r"""Return `word` as it can be shown: bytes that are not UTF-8 become ``\xNN``.

    Examples
    --------
    >>> print(printable("caf\udce9"))
    caf\xe9
    """
    try:
        raw = word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair of surrogates, which stands for no byte
        raw = word.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")


class Embedding:
    r"""Words and their vectors; row `i` of `vectors` belongs to `words[i]`.

    Neither can be changed afterwards: `vectors` is a read-only view. A word whose bytes were not
    UTF-8 holds them as lone surrogates (Python's ``surrogateescape``), so that it is written back
    byte for byte.

    Parameters
    ----------
    words
        One string a row, each once.
    vectors
        Numbers of shape (n_words, n_dims); whole numbers become float64.
    notes
        What a reader of files has to tell, in sentences: duplicates, words not found.
    provenance
        Where the vectors come from, as names and texts; kept by formats that have a place for it.

    Examples
    --------
    >>> animals = Embedding(["cat", "dog", "car"], [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
    >>> animals["dog"]
    array([0.8, 0.6])
    >>> "cow" in animals, len(animals), animals.n_dims
    (False, 3, 2)
    >>> [(word, round(float(cosine), 2)) for word, cosine in animals.most_similar("cat", n=1)]
    [('dog', 0.8)]
    """

    __slots__ = ("_notes", "_provenance", "_rows", "_vectors", "_words")

    def __init__(
        self,
        words: Iterable[str],
        vectors: ArrayLike,
        *,
        notes: Iterable[str] = (),
        provenance: Mapping[str, str] | None = None,
    ) -> None:
        if isinstance(words, str):
            raise InputError(f"words is the one string {words!r}. Pass a list of strings.")
        self._words = tuple(words)
        self._vectors = _read_only(vectors)
        n_words, n_rows = len(self._words), self._vectors.shape[0]
        if n_words != n_rows:
            raise InputError(
                f"There are {n_words} words but {n_rows} rows of vectors. Pass one row a word."
            )
        self._rows = dict(zip(self._words, range(n_words), strict=True))
        if len(self._rows) != n_words:
            raise InputError(_about_duplicates(self._words))
        for word in self._words:
            if not isinstance(word, str):
                raise InputError(f"{word!r} is a {type(word).__name__}; a word is a string.")
        self._notes = tuple(notes)
        self._provenance = MappingProxyType(dict(provenance or {}))

    @property
    def words(self) -> tuple[str, ...]:
        """The words, in the order of the rows."""
        return self._words

    @property
    def vectors(self) -> FloatArray:
        """The vectors, (n_words, n_dims), not to be written to."""
        return self._vectors

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader of a file had to tell about it."""
        return self._notes

    @property
    def provenance(self) -> Mapping[str, str]:
        """Where the vectors come from, as names and texts."""
        return self._provenance

    @property
    def n_dims(self) -> int:
        """The number of dimensions of each vector."""
        return self._vectors.shape[1]

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[str]:
        return iter(self._words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    @overload
    def __getitem__(self, word: str) -> FloatArray: ...
    @overload
    def __getitem__(self, word: Sequence[str]) -> FloatArray: ...
    def __getitem__(self, word: str | Sequence[str]) -> FloatArray:
        if isinstance(word, str):
            return self._vectors[self._row(word)]
        return self._vectors[[self._row(each) for each in word]]

    def row(self, word: str) -> int:
        """Return the row number of `word`.

        Examples
        --------
        >>> Embedding(["a", "b"], [[1.0], [2.0]]).row("b")
        1
        """
        return self._row(word)

    def _row(self, word: str) -> int:
        try:
            return self._rows[word]
        except (KeyError, TypeError):
            raise InputError(
                f"{word!r} is not among the {len(self)} words of this embedding. "
                "Test with `in` first."
            ) from None

    def most_similar(self, query: str | ArrayLike, n: int = 10) -> list[tuple[str, float]]:
        """Return the `n` words nearest to a word or vector by cosine, nearest first.

        A word is not its own neighbor. Vectors of length zero have cosine 0 with everything.

        Examples
        --------
        >>> pair = Embedding(["a", "b"], [[1.0, 0.0], [0.0, 2.0]])
        >>> pair.most_similar([0.0, 1.0], n=1)
        [('b', 1.0)]
        """
        if n < 1:
            raise InputError(f"n={n}, but at least one neighbor must be asked for.")
        direction = self[query] if isinstance(query, str) else np.asarray(query, dtype=np.float64)
        if direction.shape != (self.n_dims,):
            raise InputError(
                f"The query has shape {direction.shape}; vectors here have shape ({self.n_dims},)."
            )
        cosines = _cosines(self._vectors, direction.astype(np.float64))
        if isinstance(query, str):
            cosines[self._row(query)] = -np.inf
            n = min(n, len(self) - 1)
        nearest = np.argsort(-cosines, kind="stable")[:n]
        return [(self._words[row], float(cosines[row])) for row in nearest]

    def __getstate__(self) -> dict[str, Any]:
        return {
            "words": self._words,
            "vectors": np.asarray(self._vectors),
            "notes": self._notes,
            "provenance": dict(self._provenance),
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(
            state["words"],
            state["vectors"],
            notes=state["notes"],
            provenance=state["provenance"],
        )

    def equals(self, other: Embedding) -> bool:
        """Tell whether both hold the same words in the same order with the same bits.

        Examples
        --------
        >>> one = Embedding(["a"], [[0.0]])
        >>> one.equals(Embedding(["a"], [[0.0]])), one.equals(Embedding(["a"], [[-0.0]]))
        (True, False)
        """
        return (
            self._words == other._words
            and self._vectors.dtype == other._vectors.dtype
            and self._vectors.shape == other._vectors.shape
            and self._vectors.tobytes() == other._vectors.tobytes()
        )

    def __repr__(self) -> str:
        first_words = ", ".join(f"'{printable(word)}'" for word in self._words[:_SHOWN_ROWS])
        more = ", ..." if len(self) > _SHOWN_ROWS else ""
        size = f"{count(len(self), 'word')}, {count(self.n_dims, 'dim')}, {self._vectors.dtype}"
        return f"Embedding({size}: {first_words}{more})" if len(self) else f"Embedding({size})"

    def _repr_html_(self) -> str:
        rows: list[str] = []
        for word, vector in zip(self._words[:_SHOWN_ROWS], self._vectors, strict=False):
            cells = "".join(f"<td>{value:.4g}</td>" for value in vector[:_SHOWN_DIMS])
            more = "<td>…</td>" if self.n_dims > _SHOWN_DIMS else ""
            rows.append(f"<tr><th>{escape(printable(word))}</th>{cells}{more}</tr>")
        size = f"{count(len(self), 'word')}, {count(self.n_dims, 'dim')}, {self._vectors.dtype}"
        more = "; the first are shown" if len(self) > _SHOWN_ROWS else ""
        return f"<table><caption>Embedding: {size}{more}</caption>{''.join(rows)}</table>"


def _read_only(vectors: ArrayLike) -> FloatArray:
    if np.ma.is_masked(vectors):
        raise InputError(
            "vectors are a masked array, and some values are masked. A word has a whole vector: "
            "leave out the words that have none."
        )
    try:
        array = np.asarray(vectors)
    except ValueError:
        raise InputError("vectors have rows of different lengths. Pass a 2-D array.") from None
    if array.ndim != 2:
        raise InputError(
            f"vectors have shape {array.shape}. Pass a 2-D array of shape (n_words, n_dims)."
        )
    if array.dtype.kind in "iub":
        array = array.astype(np.float64)
    if array.dtype.kind != "f":
        raise InputError(f"vectors are of type {array.dtype}. Pass floating-point numbers.")
    if array.shape[1] == 0:
        raise InputError(f"vectors have shape {array.shape}: no dimensions. Pass at least one.")
    view = array.view()
    view.flags.writeable = False
    return view


def _about_duplicates(words: Sequence[str]) -> str:
    words_so_far: set[str] = set()
    twice: dict[str, None] = {}
    for word in words:
        if word in words_so_far:
            twice[word] = None
        words_so_far.add(word)
    examples = ", ".join(f"'{printable(word)}'" for word in list(twice)[:3])
    words_twice = count(len(twice), "word occurs", "words occur")
    return f"{words_twice} more than once, such as {examples}. Keep one row for each."


def _cosines(vectors: FloatArray, direction: FloatArray) -> FloatArray:
    cosines = np.zeros(len(vectors))
    direction = with_safe_squares(direction[None].astype(np.float64))[0]
    length = float(np.linalg.norm(direction))
    # In blocks, so that float64 copies of a large embedding never exist as a whole.
    for first in range(0, len(vectors), 65536):
        block = with_safe_squares(vectors[first : first + 65536].astype(np.float64))
        lengths = np.linalg.norm(block, axis=1) * length
        products = block @ direction
        np.divide(products, lengths, out=cosines[first : first + 65536], where=lengths > 0)
    return cosines
