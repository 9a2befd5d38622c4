"""Where the job on files writes, checked before the work."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vecfill.errors import InputError
from vecfill.io.atomic import checked_target

PathOrName = str | os.PathLike[str]


@dataclass(frozen=True)
class Outputs:
    """Where the job writes: the enriched file and, if they are asked for, what stands beside it."""

    enriched: PathOrName
    manifest: PathOrName | None
    report: PathOrName | None
    overwrite: bool

    def check(self, sources: Iterable[Any]) -> None:
        """Refuse before the work what the writers would refuse after it."""
        for place in (self.enriched, self.manifest, self.report):
            if place is not None:
                _check_place(place, sources, overwrite=self.overwrite)


def _check_place(place: PathOrName, sources: Iterable[Any], *, overwrite: bool) -> None:
    target = checked_target(place, overwrite=True)
    for source in sources:
        if isinstance(source, str | os.PathLike) and _are_same(target, Path(source)):
            raise InputError(
                f"{place} is the input {source} itself, which is never written to. "
                "Choose another name for the result."
            )
    checked_target(place, overwrite=overwrite)
    if not target.parent.is_dir():
        raise InputError(
            f"{place}: cannot be written: there is no folder {target.parent}. Create it first."
        )


def _are_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
