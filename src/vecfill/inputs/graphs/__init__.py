"""Graphs become vectors of their nodes.

- `edges`: Edge list -> a graph, and a domain whose rows are the vectors of its nodes.
- `triples`: A table of triples -> who is related to whom and how, and what literals say of them.
- `typed_features`: Triples -> a row for each entity: which relation, in which direction, to whom.
- `triples_source`: Triples as a source: whom they are to describe is settled when the other sources
  are read.
- `walks`: A graph -> vectors of its nodes, from short random walks and without sampling them.
"""
