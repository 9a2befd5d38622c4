"""A `self` embedding: word2vec trained on the headlines themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from gensim.models import Word2Vec

from headlines import UNKNOWN, Lines


def self_vectors(lines: Lines, recipe: dict[str, Any], *, seed: int) -> pd.DataFrame:
    """Return vectors of the words seen at least ``recipe["min_count"]`` times in `lines`.

    One worker, because with several the order of updates, and so the result, is left to chance.
    """
    model = Word2Vec(lines, seed=seed, workers=1, sg=1, **recipe)
    words = [word for word in model.wv.index_to_key if word != UNKNOWN]
    return pd.DataFrame(np.asarray(model.wv[words], dtype=np.float64), index=words)
