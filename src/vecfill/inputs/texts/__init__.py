"""Texts about entities become vectors.

- `text`: Texts about entities -> domains: by TF-IDF, by the embedding's own words, or by an
  encoder.
- `tfidf`: Texts -> TF-IDF, and its leading components: the same bits for any number of threads.
- `word_means`: Texts -> weighted means of the vectors of their words, without what all texts share.
- `encoders`: Encoders of texts: objects and functions of users, and models in a local folder.
"""
