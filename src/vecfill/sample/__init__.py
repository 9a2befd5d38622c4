"""The bundled sample: cities, and GloVe vectors of those that have one."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
CITIES = FOLDER / "cities.csv"
"""Name, latitude, longitude, country, population; GeoNames, CC BY 4.0."""
VECTORS = FOLDER / "glove-cities.bin"
"""GloVe 6B, 100 dimensions, of the cities that it knows; word2vec binary."""
