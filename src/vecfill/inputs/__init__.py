"""Whatever users have -> entity names that match words, and one prepared domain matrix.

What users pass is read:

- `files`: Files of a user -> the domain, how its names matched, and the rows of the matching
  words.
- `frames`: Tables of any make -> one list of columns, and which of them holds the entity names.
- `domain`: Tables, graphs, matrices, other embeddings -> one prepared domain matrix.
- `entities`: Entity names: text, none missing, each once.
- `prepared`: `Domain`: what every kind of input becomes.
- `sources`: Several descriptions of the same entities -> one domain that holds them side by side.
- `one_table`: One table with features and a column of vectors: split into what `impute` needs,
  and filled.
- `objects`: Vectors that live in objects of other libraries: gensim, spaCy, torch -> words and an
  array.
- `embeddings`: What a user has for an embedding -> an `Embedding`.

Tables become numbers:

- `columns`: One column of a table -> numbers or categories, or a refusal that names the cell.
- `compact`: Columns of too many values for one indicator each -> a few dense columns.
- `features`: Columns of a table -> one numeric matrix, and notes on what became of each.
- `scaling`: Columns of a domain brought to one scale.
- `matrices`: Arrays with names, and square matrices of similarities or distances -> a domain.
- `counts`: How often entities were counted: a mapping, a column of their table, or a file of
  pairs.
- `vector_cells`: A column of vectors -> an array and a mask; a cell without a vector is null.
- `table_filling`: A table and vectors for some of its rows -> the same kind of table, those cells
  filled.

Graphs:

- `graphs`: Edge list -> a graph, and a domain whose rows are the vectors of its nodes.
- `walks`: A graph -> vectors of its nodes, from short random walks and without sampling them.

Texts:

- `text`: Texts about entities -> domains: by TF-IDF, by the embedding's own words, or by an
  encoder.
- `tfidf`: Texts -> TF-IDF, and its leading components: the same bits for any number of threads.
- `word_means`: Texts -> weighted means of the vectors of their words, without what all texts
  share.
- `encoders`: Encoders of texts: objects and functions of users, and models in a local folder.

Names are matched with words:

- `names`: Entity names -> vocabulary words, and a report of how each was found.
- `folding`: Names -> what is left of them when spelling does not matter.
- `match_report`: How each entity's word was found: the result of `match_names`.
- `unreliable`: Known vectors that are not to be relied on: entities that have a word but count as
  unknown.
- `kept_names`: Very many names in two arrays, with an index: found without holding them as texts.

and describe entities:

- `describing`: What an embedding adds to a description: sources read by its word vectors, and
  names.
- `spelling`: Names of entities -> a domain, by what their spelling says about their vectors.
- `spelling_model`: A model from the spelling of a word to its vector, learnt on a whole
  vocabulary.
- `names_cache`: Spelling models kept in files: found again by the words and vectors they were
  learnt from.
- `ngrams`: Names -> hashed character n-grams, many thousand names at once.
- `parts`: Names of several words -> a domain, by the vectors of these words.
- `siblings`: Inflected siblings: words of the vocabulary that are another form of an entity's
  name.
- `vocabulary`: The words of a whole embedding file and their vectors, or an even sample of a
  larger one.

All of it meets the embedding:

- `alignment`: Table and embedding brought together: a domain row for each entity, a vector for
  those known.
- `rarity`: How rare each entity is: its place in the embedding file, or a count.

What comes later is read alike:

- `later_columns`: How one column of a table became numbers, so that cells which come later become
  the same.
- `later_rows`: How a source was read, so that entities which come later are read in the same way.
- `later_texts`: How texts and names were read, so that those which come later are read in the
  same way.
"""
