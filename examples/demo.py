"""The main job on a small made-up set: hide vectors, impute them, see how near they come."""

from __future__ import annotations

import numpy as np

from vecfill import LatentSemanticImputer


def main() -> None:
    """Impute the vectors of 600 hidden entities and compare with the truth and with the mean."""
    rng = np.random.default_rng(0)
    latent = rng.normal(size=(2000, 5))
    domain = np.tanh(latent @ rng.normal(size=(5, 40))) + 0.05 * rng.normal(size=(2000, 40))
    truth = np.sin(latent @ rng.normal(size=(5, 50)))
    embedding = truth.copy()
    is_hidden = rng.random(2000) < 0.3
    embedding[is_hidden] = np.nan

    imputer = LatentSemanticImputer().fit(domain, embedding)

    centre = truth[~is_hidden].mean(axis=0)
    found, wanted = imputer.embedding_[is_hidden] - centre, truth[is_hidden] - centre
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
    cosine = (found * wanted).sum(axis=1) / lengths
    print(f"{(~is_hidden).sum()} entities known, {is_hidden.sum()} imputed.")
    print(f"Cosine with the hidden truth, mean subtracted: {cosine.mean():.2f} (the mean has 0).")
    unchanged = imputer.embedding_[~is_hidden].tobytes() == truth[~is_hidden].tobytes()
    print(f"Known vectors unchanged, bit for bit: {unchanged}.")


if __name__ == "__main__":
    main()
