"""Keep the best few of a tile of products: the compiled inner loops of every search.

A product of lifted rows is minus half a squared distance, so the largest are the nearest. Lists
are sorted by falling product; what they hold are candidates, ranked exactly later.
"""

from __future__ import annotations

import numpy as np

from vecfill.machine.compiled import compiled, compiled_part
from vecfill.method.search.distances import squared_distance

# A guess: 64 numbers in 32 bits are four cache lines, and 4 to 16 vector registers.
CHUNK = 64
"""Products compared at once with the worst kept: long enough for vector instructions."""


@compiled_part
def push(values, indices, value, index):
    """Insert into a list sorted by falling value, dropping its last."""
    # From the end: most newcomers are only a little better than the worst, and move few others.
    place = values.size - 1
    while place > 0 and values[place - 1] < value:
        values[place] = values[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    values[place] = value
    indices[place] = index


@compiled_part
def _has_larger(chunk, worst):
    """Tell whether a whole chunk has a product above `worst`; its length is fixed, so fast."""
    hits = np.int32(0)
    for t in range(CHUNK):
        hits |= np.int32(chunk[t] > worst)
    return hits != 0


@compiled_part
def _has_larger_than_each(chunk, worst):
    hits = np.int32(0)
    for t in range(CHUNK):
        hits |= np.int32(chunk[t] > worst[t])
    return hits != 0


@compiled
def scan_rows(products, rows, first_column, mine, theirs, values, indices):
    """Keep the best columns of each row of a tile that belong to another component.

    Lists and `mine` are indexed by `rows`; what is kept, and `theirs`, is counted on from
    `first_column`. Where every row is its own component, none keeps itself.
    """
    n_rows, n_columns = products.shape
    for place in range(n_rows):
        row = rows[place]
        best, best_indices = values[row], indices[row]
        # Read once: a list in memory would be read again for every product.
        worst = best[-1]
        for start in range(0, n_columns, CHUNK):
            stop = min(start + CHUNK, n_columns)
            if stop - start < CHUNK or _has_larger(products[place, start : start + CHUNK], worst):
                for t in range(start, stop):
                    value = products[place, t]
                    if value > worst and theirs[first_column + t] != mine[row]:
                        push(best, best_indices, value, first_column + t)
                        worst = best[-1]


@compiled
def scan_columns(products, first_row, columns, mine, theirs, values, indices):
    """Keep the best rows of each column, the same way: lists and `mine` are of the columns."""
    n_rows, n_columns = products.shape
    worst = np.empty(CHUNK, products.dtype)
    for start in range(0, n_columns, CHUNK):
        width = min(CHUNK, n_columns - start)
        # Columns have thresholds of their own, gathered so that a chunk is compared at once.
        for t in range(width):
            worst[t] = values[columns[start + t], -1]
        for place in range(n_rows):
            chunk = products[place, start : start + width]
            if width < CHUNK or _has_larger_than_each(chunk, worst):
                row = first_row + place
                for t in range(width):
                    column = columns[start + t]
                    if chunk[t] > worst[t] and theirs[row] != mine[column]:
                        push(values[column], indices[column], chunk[t], row)
                        worst[t] = values[column, -1]


@compiled
def merge_lists(values, indices, other_values, other_indices):
    """Merge other lists into these; what is in both stays once."""
    n_rows, n_listed = values.shape
    for row in range(n_rows):
        for rank in range(n_listed):
            value, index = other_values[row, rank], other_indices[row, rank]
            # Both lists fall, so nothing after this can enter.
            if value <= values[row, -1]:
                break
            is_there = False
            for place in range(n_listed):
                is_there |= indices[row, place] == index
            if not is_there:
                push(values[row], indices[row], value, np.int64(index))


@compiled
def rank_exactly(rows, first, indices, squared):
    """Compute exact distances of listed candidates and sort each list by (distance, index).

    The lists are those of the rows from `first` on.
    """
    n_rows, n_listed = indices.shape
    for row in range(n_rows):
        mine = rows[first + row]
        for rank in range(n_listed):
            index = indices[row, rank]
            value = np.inf if index < 0 else squared_distance(mine, rows[index])
            place = rank
            # Insertion: lists are nearly sorted, since products are nearly distances.
            while place > 0 and (
                squared[row, place - 1] > value
                or (squared[row, place - 1] == value and indices[row, place - 1] > index)
            ):
                squared[row, place] = squared[row, place - 1]
                indices[row, place] = indices[row, place - 1]
                place -= 1
            squared[row, place] = value
            indices[row, place] = index
