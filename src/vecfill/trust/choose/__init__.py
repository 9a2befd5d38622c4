"""Which predictor, which sources and which offset: chosen on known rows that are hidden.

- `folds`: Known rows hidden fold by fold: what a method may see, and what it is asked for.
- `twins`: Known rows that are one thing under two names, and must be hidden together.
- `dependence`: Do known vectors depend on their rows at all? A test that no choice can flatter.
- `scores`: How near imputed vectors come to the truth, row by row.
- `recommending`: What imputed vectors are worth to a recommender: hidden entities, recommended by
  their vectors.
- `candidates`: The predictors that `auto` compares: who enters the folds, and in which rounds.
- `columns`: What each column of a table adds, by leaving it out: known rows predicted without
  themselves.
- `trials`: Hidden rows predicted by many predictors and by stacks of them, and how those stand.
- `stacking`: Stacks of predictors: weights that hidden rows teach, and what is done to the sums.
- `choice`: The best predictor for the user's own data, chosen on known rows that are hidden and
  imputed.
- `unseen`: Hidden known rows as every source predicts them, and what weights of sources they teach.
- `fusion`: Which sources help, and how much: learnt on known rows that each source predicts unseen.
- `rareness`: Whether the unknown rows are rarer than the known ones.
- `translating`: Which map leads best from one embedding to another, judged by what a search would
  find.
- `decision`: How to impute, decided on hidden known rows that are like the unknown ones.
"""
