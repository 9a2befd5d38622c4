"""Whether an imputed vector is any good.

`choose` takes the predictor, the sources and the offset that do best on hidden known rows; `prove`
learns from hidden rows how far to trust each imputed one; `compare` shows what else one could have
done. For readers:

- `explain`: An imputed row -> the known rows it is made of, in words.
- `notes`: What a user should know about an imputation, in sentences; and why there is none.
- `tables`: Known and imputed entities with their confidence -> tables: Arrow, pandas, a notebook.
- `retrieval`: What a search finds: the documents nearest to each query by cosine, and how good that
  is.
- `lengths`: Lengths of imputed vectors: as far from the mean of the known ones as real vectors are.
"""
