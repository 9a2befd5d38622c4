"""What is fitted, from prepared rows to a model.

In the order of the data: `preparation` turns domain rows into rows that can be compared; `space`
keeps such rows with their neighbours, graphs and weights; `prediction` is what a predictor gives;
`predictors` holds every way to impute, one file each; `fitted` is the `Model`.

Rows:

- `rank_normal`: Columns whose values are replaced by normal scores of their ranks.
- `smooth`: Numeric columns as smooth bins.
- `kernels`: Kernels: how alike two rows of a space are; and what was computed for them lately.
- `known`: The known rows among all rows, and what predictors of the same known rows can share.
- `wanted`: Which rows are asked for: unknown rows of the fit, or rows that came later.
- `sources`: Several spaces over the same entities, each of which knows only some of them; and what
  a model stores of one or several.

Predictions:

- `whitening`: Directions in which known vectors vary little, strengthened.
- `stack`: Several predictors as one: their weighted sum, drawn a little towards known vectors
  near it.
- `offset`: The offset of rare entities: where vectors lie as a whole, as a function of rarity.
- `stretch`: Lengths of what is imputed, away from the mean of the known vectors.
"""
