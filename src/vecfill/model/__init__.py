"""What is fitted, from prepared rows to a model.

In the order of the data: `preparation` turns domain rows into rows that can be compared; `space`
keeps such rows with their neighbours, graphs and weights; `prediction` is what a predictor gives;
`predictors` holds every way to impute, one file each; `fitted` is the `Model`.
"""
