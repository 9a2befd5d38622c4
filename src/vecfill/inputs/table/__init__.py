"""Tables become numbers, and can be read again the same way for entities that come later.

- `frames`: Tables of any make -> one list of columns, and which of them holds the entity names.
- `columns`: One column of a table -> numbers or categories, or a refusal that names the cell.
- `column_types`: Types of columns: how each becomes numbers at the fit, and for entities that come
  later.
- `features`: Columns of a table -> one numeric matrix, and notes on what became of each.
- `scaling`: Columns of a domain brought to one scale.
- `one_table`: One table with features and a column of vectors: split into what `impute` needs, and
  filled.
- `filling`: Columns of vectors: read from a table, and filled in for some of its rows.
"""
