"""The bundled samples: cities and animals, each with a slice of GloVe; made towns for examples."""

from __future__ import annotations

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
CITIES = FOLDER / "cities.csv"
"""Name, latitude, longitude, country, population; GeoNames, CC BY 4.0."""
VECTORS = FOLDER / "glove-cities.bin"
"""GloVe 6B, 100 dimensions, of the cities that it knows; word2vec binary."""
ANIMALS = FOLDER / "animals.csv"
"""Name, kind, family, class and description of the animals of WordNet 3.1."""
ANIMAL_VECTORS = FOLDER / "glove-animals.safetensors"
"""GloVe 6B, 100 dimensions, of animals, parts of their names and 6,000 frequent words; float16."""


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
