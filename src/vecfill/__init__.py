"""Trustworthy vectors for the entities that a pre-trained embedding lacks."""

from vecfill.embedding import Embedding
from vecfill.io import read_embedding, write_embedding

__all__ = ["Embedding", "read_embedding", "write_embedding"]

__version__ = "0.1.0"
