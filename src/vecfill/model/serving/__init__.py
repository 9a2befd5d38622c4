"""Vectors for rows that were not there at the fit, by the predictor that was fitted.

`base` says what a server is: it takes new rows and gives their vectors, what else known rows carry
(for the confidence), and the share of every known row. One module for each way: `latent` (convex
mixes of fitted rows), `kernel`, `fixed` (every predictor that needs known rows only), `stacked`
and `fused`, which add up others. `choosing` finds the server of a predictor.
"""
