"""Where vectors live besides files: objects of other libraries, tables and databases.

Each module serves one library, which is an extra of its name (``pip install 'vecfill[gensim]'``).
The library is imported when a function needs it (`vecfill.errors.library`).
`vecfill.inputs.embeddings` reads what these modules write, so that such objects are accepted
wherever an `Embedding` is.

What all of them share:

- `rows`: Which rows of a result another library gets, and all of them as a pandas table.
- `stores`: What all databases share: read a table, impute, write back only what was missing.

Databases, filled in place:

- `duckdb`: DuckDB: fill the missing vectors of a table in one transaction.
- `lancedb`: LanceDB: fill the missing vectors of a table; the result is one new version of it.
- `postgres`: PostgreSQL: fill the missing vectors of a table with array columns, in one
  transaction.
- `qdrant`: Qdrant: fill the vectors that points of a collection lack; payloads describe the
  points.

Libraries that take vectors:

- `gensim`: Imputed vectors -> gensim `KeyedVectors`.
- `implicit`: Imputed vectors -> the item factors of a recommender.
- `spacy`: Imputed vectors -> the vocabulary of a spaCy pipeline.
- `torch`: Known and imputed vectors -> a torch embedding layer in the order of a vocabulary.
"""
