"""Where the job on files writes, checked before the work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from vecfill.io.targets import check_targets

PathOrName = str | os.PathLike[str]


@dataclass(frozen=True)
class Outputs:
    """Where the job writes: the enriched file and, if they are asked for, what stands beside it."""

    enriched: PathOrName
    manifest: PathOrName | None
    report: PathOrName | None
    overwrite: bool
    model: PathOrName | None = None
    """Where the caller saves the model; it is only checked here."""

    def check(self, sources: Iterable[Any]) -> None:
        """Refuse before the work what the writers would refuse after it."""
        places = (self.enriched, self.manifest, self.report, self.model)
        check_targets(places, sources, overwrite=self.overwrite)
