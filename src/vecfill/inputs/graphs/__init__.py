"""Graphs become vectors of their nodes.

- `edges`: Edge list -> a graph, and a domain whose rows are the vectors of its nodes.
- `walks`: A graph -> vectors of its nodes, from short random walks and without sampling them.
"""
