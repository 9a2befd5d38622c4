"""Whatever users have -> entity names that match words, and one prepared domain matrix.

Each kind of source has a folder: `table`, `names`, `texts` and `graphs`. What users pass is read:

- `files`: Files of a user -> the domain, how its names matched, and the rows of the matching words.
- `domain`: Tables, graphs, matrices, other embeddings -> one prepared domain matrix.
- `entities`: Entity names: text, none missing, each once.
- `prepared`: `Domain`: what every kind of input becomes, and the sources of which it consists.
- `sources`: Several descriptions of the same entities -> one domain that holds them side by side.
- `matrices`: Arrays with names, and square matrices of similarities or distances -> a domain.
- `embeddings`: What a user has for an embedding, such as objects of gensim, spaCy and torch -> an
  `Embedding`.
- `counts`: How often entities were counted: a mapping, a column of their table, or a file of pairs.
- `interactions`: What users took, read or rated: a table of user and item, or a matrix, and its
  entities' part.
- `groups`: Groups of entities that a user names, such as countries or genres, that get their own
  bounds.

All of it meets the embedding:

- `rarity`: How rare each entity is: its place in the embedding file, or a count.
- `alignment`: Table and embedding brought together: a domain row for each entity, a vector for
  those known.

What comes later is read alike:

- `later_rows`: How a source was read, so that entities which come later are read in the same way.
"""
