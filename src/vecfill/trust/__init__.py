"""Whether an imputed vector is any good.

In the order in which they are used: `folds` hides known rows; `scores` says how near a prediction
comes to the truth; `candidates` lists the predictors worth trying, `trials` predicts hidden rows
with them, and `choice` takes the best; `evaluation` compares with rivals; `signals` are what can be
seen of an imputed row, and `confidence` learns from hidden rows what they mean; `explanation` says
what a row is made of.

Also for the choice:

- `decision`: How to impute, decided on hidden known rows that are like the unknown ones.
- `race`: Which predictors are worth hiding rows for: a cheap race before the folds.
- `stacking`: A stack of the predictors tried, its weights learnt on hidden rows.
- `fusion`: Which sources help, and how much: learnt on known rows that each source predicts
  unseen.
- `unseen`: Hidden known rows as every source predicts them, and what weights of sources they
  teach.

For the comparison:

- `competitors`: Everything that `auto` is compared with in one fold: the paper, tuned rivals,
  single sources.
- `rivals`: What a user could do instead, each tuned on the rows that it may see.

For the proof:

- `proof`: What hidden known rows prove about the imputed ones.
- `hidden`: Known rows hidden and imputed again: what could be seen of them, and what was true.
- `strata`: Kinds of entities that are judged apart: a proof on one kind need not hold for
  another.
- `source_strata`: Kinds of entities that several sources tell apart: by which describe them, and
  by their names.

For readers:

- `notes`: What a user should know about an imputation, in sentences; and why there is none.
- `tables`: Known and imputed entities with their confidence -> tables: Arrow, pandas, a notebook.
- `drivers`: Which columns of the table the linear trend of an imputed row comes from.
- `lengths`: Lengths of imputed vectors, brought to the distribution of the known ones.
- `sanity`: What a person sees who looks at imputed vectors: are they told apart, and what is near
  them.
"""
