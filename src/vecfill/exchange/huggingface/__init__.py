"""Folders of language models: words and vectors out of them, rows for new tokens into a copy.

In the order of the data: `tensors` reads the weights, `tokenizer` reads and extends
``tokenizer.json``, and `folder` holds all of it together and tells which tensors have a row for
each token; `gguf` reads words and rows of another kind of file. `pieces` describes words by their pieces, `imputing` gives terms vectors, `adding`
decides on the rows of each table, `writing` makes the new folder and `verifying` proves what is in
it. None of it needs torch or transformers.
`example` writes a model small enough to read, for examples and tests.
"""
