"""Trustworthy vectors for the entities that a pre-trained embedding lacks."""

__version__ = "0.1.0"
