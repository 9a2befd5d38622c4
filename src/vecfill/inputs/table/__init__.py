"""Tables become numbers, and can be read again the same way for entities that come later.

- `frames`: Tables of any make -> one list of columns, and which of them holds the entity names.
- `columns`: One column of a table -> numbers or categories, or a refusal that names the cell.
- `dates`: Dates -> years with a fraction, so that they have distances.
- `written_numbers`: How numbers are written in cells of text, and which of them nobody should guess
  at.
- `column_type`: What all types of columns share: how long their columns are, and what they can be
  asked.
- `date_column`: A column of dates: the year, and the season if dates lie in several.
- `list_column`: A column of lists in cells, such as ``Drama|Comedy``: an indicator for each item.
- `column_types`: Types of columns: how each becomes numbers at the fit, and for entities that come
  later.
- `new_cells`: Cells of one column about entities that come later.
- `column_facts`: What the columns of the fitted table were like, and how columns that come later
  differ.
- `columns_reader`: How the columns of a table were read, so that entities which come later are read
  alike.
- `features`: Columns of a table -> one numeric matrix, and notes on what became of each.
- `scaling`: Columns of a domain brought to one scale.
- `one_table`: One table with features and a column of vectors: split into what `impute` needs, and
  filled.
- `filling`: Columns of vectors: read from a table, and filled in for some of its rows.
"""
