"""Whether an imputed vector is any good.

In the order in which they are used: `folds` hides known rows; `scores` says how near a prediction
comes to the truth; `candidates` lists the predictors worth trying, `trials` predicts hidden rows
with them, and `choice` takes the best; `evaluation` compares with rivals; `signals` are what can be
seen of an imputed row, and `confidence` learns from hidden rows what they mean; `explanation` says
what a row is made of.
"""
