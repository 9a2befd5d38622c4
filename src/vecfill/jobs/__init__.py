"""Whole jobs on files and tables. The shell calls these functions, and so can you.

`job` is what all jobs that impute share: check, read, impute, write, and the record beside it.
`enrich` writes a file of vectors with rows for what it lacks; `written_rows` says which rows.
`table` fills the empty vectors of one table.
`match` says which word each entity of a table is.
`add` writes vectors for entities that came after a model was saved.
`migrate` translates from one embedding to another, or says whether to; `old_and_new` reads both,
and `migrate_columns` fills the new column of a table or database.
`tokens` writes a copy of a language model with new tokens.
`demo` does the whole job on the bundled sample.
"""
