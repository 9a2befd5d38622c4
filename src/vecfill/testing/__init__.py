"""Checks for what you add to vecfill, as scikit-learn has `check_estimator` for estimators.

Each check runs its subject through everything that vecfill does with one of its own, and raises
`AssertionError` with what does not hold.

- `made`: The rows and vectors on which checks run.
- `predictors`: Check that a predictor can be used wherever one of vecfill's own can.
- `signals`: Check that a confidence signal is one number for each row, whenever the row came.
- `codecs`: Check that a file format reads, writes, appends, replaces and verifies.
- `stores`: Check that a database loses nothing while another client writes to it.
"""

from vecfill.testing.codecs import check_codec
from vecfill.testing.predictors import check_predictor
from vecfill.testing.signals import check_signal
from vecfill.testing.stores import Change, Interrupted, check_store

__all__ = [
    "Change",
    "Interrupted",
    "check_codec",
    "check_predictor",
    "check_signal",
    "check_store",
]
