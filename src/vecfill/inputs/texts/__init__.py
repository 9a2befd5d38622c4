"""Texts about entities become vectors.

- `text`: Texts about entities -> domains: by TF-IDF, by the embedding's own words, or by an
  encoder.
- `text_rows`: Texts -> rows: leading components of TF-IDF, or weighted means of the vectors of
  their words.
- `encoders`: Encoders of texts: objects and functions of users, and models in a local folder.
"""
