"""Folders of language models: words and vectors out of them, rows for new tokens into a copy.

In the order of the data: `tensors` reads the weights, `tokenizer` reads and extends
``tokenizer.json``, and `folder` holds all of it together and tells which tensors have a row for
each token; `gguf` reads words and rows of another kind of file. `pieces` describes words by their
pieces, `describing` asks any source about terms and words, and `imputing` gives terms vectors,
which `looking` shows beside familiar words.

`fitting` makes rows ready with torch: `running` runs the model, on `sentences` or others;
`distilling` fits rows to the reading of the pieces, `level` makes them as likely as they should be,
and `judging` says whether they harm. `adding` decides on the rows of each table, `writing`
makes the new folder and `verifying` proves what is in it. Without torch, rows are as imputed.
`example` writes a model small enough to read, for examples and tests.
"""
