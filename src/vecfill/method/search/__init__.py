"""Who is near whom: exact and approximate neighbours, and the minimum spanning tree.

Read in this order; each module uses only those above it.

- `distances`: the exact distance of two rows, and fast products with a bound on their error
- `duplicates`: equal rows, found once, so that no search meets a distance of zero
- `scans`: compiled loops that keep the best few of a block of products
- `cells`: rows grouped in cells, and bounds on how near a row of another cell can be
- `cell_search`: the compiled search that meets only the cells it must
- `cell_neighbors`: candidates for nearest rows by cells, and how many pairs that looks at
- `approximate`: neighbours of neighbours, when looking at all pairs would take too long
- `neighbors`: the nearest rows of each row, by the cheapest of these ways
- `tree_search`: the nearest row of another component, where lists of neighbours give out
- `tree`: the minimum spanning tree, from the lists and that search
- `linked`: a spanning tree of the lists and of the edges of a graph, where the graph is large
- `among`: the nearest rows among a part of all rows, for sets that are searched in parts
- `forest`: the minimum spanning tree of edges that come in parts
- `fitted`: which fitted rows are near rows that come later, exactly
"""
