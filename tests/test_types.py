from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from scipy.sparse import csr_array

import vecfill
from vecfill.method.propagation import propagate


def test_shapes_are_checked_while_tests_run():
    weights = csr_array(np.eye(3))
    with pytest.raises(jaxtyping.TypeCheckError, match="is_known"):
        propagate(weights, np.zeros((3, 2)), np.ones(4, bool))
    with pytest.raises(jaxtyping.TypeCheckError, match="embedding"):
        propagate(weights, np.zeros((3, 2), np.int64), np.ones(3, bool))


def test_no_checker_of_shapes_is_imported_at_run_time():
    source = str(Path(vecfill.__file__).parents[1])
    code = "import sys, vecfill.estimators.latent_semantic, vecfill.run; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert "vecfill._types" in done.stdout.split()
    assert not {"jaxtyping", "beartype"} & set(done.stdout.split())
