"""The method behind scikit-learn's interface.

`latent_semantic` is the method of the paper, `LatentSemanticImputer`.
`auto` chooses how to impute, and tells how far to trust the result, `AutoImputer`.
"""
