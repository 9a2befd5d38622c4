"""The bundled sample: cities and GloVe vectors of those that have one; made towns for examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
CITIES = FOLDER / "cities.csv"
"""Name, latitude, longitude, country, population; GeoNames, CC BY 4.0."""
VECTORS = FOLDER / "glove-cities.bin"
"""GloVe 6B, 100 dimensions, of the cities that it knows; word2vec binary."""


def towns() -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the places of 60 made towns, and the vectors of 50 that follow from their places.

    Examples
    --------
    >>> places, known = towns()
    >>> len(places), len(known), known["town0"][2:].tolist()
    (60, 50, [0.0, 0.0, 0.0])
    """
    rng = np.random.default_rng(0)
    places = {f"town{number}": rng.normal(size=2) for number in range(60)}
    return places, {name: place @ np.eye(2, 5) for name, place in list(places.items())[:50]}
