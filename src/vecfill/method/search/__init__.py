"""Who is near whom: exact and approximate neighbours, and the minimum spanning tree.

Read in this order; each module uses only those above it.

- `distances`: the exact distance of two rows, fast products with a bound on their error, equal rows
- `scans`: compiled loops that keep the best few of a block of products
- `cells`: rows grouped in cells, and bounds on how near a row of another cell can be
- `cell_search`: the compiled search that meets only the cells it must
- `approximate`: neighbours of neighbours, when looking at all pairs would take too long
- `neighbors`: the nearest rows of each row, by the cheapest of these ways
- `among`: the nearest of some rows to others: to fitted ones, or in parts of a large set
- `tree_search`: the nearest row of another component, where lists of neighbours give out
- `tree`: the minimum spanning tree, from the lists and that search, or from edges in parts
"""
