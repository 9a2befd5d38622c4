"""Memory that is free but still ours, given back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Return freed memory to the system, between stages of a job.

    Arrow keeps what a table was read with, and the C library what lies between small arrays that
    are still used: as much again as everything that is alive, after a large table.

    Examples
    --------
    >>> give_back()
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        # Only the GNU library has it.
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
