"""Natural Earth's land -> the coastline that maps of reports show: ``python ... land-110m.json``.

The file comes with the npm package world-atlas (``npm pack world-atlas``), which is Natural Earth's
1:110m land as TopoJSON. Natural Earth is in the public domain.
"""

from __future__ import annotations

import json
import sys
from itertools import pairwise
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src/vecfill/views/assets/coastline.json"
PER_DEGREE = 10
"""A tenth of a degree is a pixel of a map 3,600 pixels wide."""


def main(source: str) -> None:
    """Write each ring as whole tenths of degrees: its first point, then steps."""
    topology = json.loads(Path(source).read_text(encoding="utf-8"))
    (scale_x, scale_y), (move_x, move_y) = topology["transform"].values()
    arcs = []
    for arc in topology["arcs"]:
        x = y = 0
        points = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            points.append((x * scale_x + move_x, y * scale_y + move_y))
        arcs.append(points)
    (land,) = topology["objects"]["land"]["geometries"]
    rings = []
    for polygon in land["arcs"]:
        for ring in polygon:
            points = [
                point
                for number in ring
                for point in (arcs[number] if number >= 0 else arcs[~number][::-1])
            ]
            rings += [_steps(each) for each in _unwrapped(points)]
    rings = [ring for ring in rings if len(ring) > 6]
    TARGET.write_text(json.dumps(rings, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(rings)} rings, {TARGET.stat().st_size:,} bytes")


def _unwrapped(points: list[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """Return a ring without jumps across 180 degrees, once for each side of the map it is on."""
    turn, whole = 0, [points[0]]
    for (before, _), (x, y) in pairwise(points):
        turn += (before - x > 180) - (x - before > 180)
        whole.append((x + 360 * turn, y))
    if turn or all(abs(x) <= 180 for x, _ in whole):
        return [points]  # Antarctica goes round the pole, along the edge of the map.
    shift = -360 if any(x > 180 for x, _ in whole) else 360
    return [whole, [(x + shift, y) for x, y in whole]]


def _steps(points: list[tuple[float, float]]) -> list[int]:
    found: list[int] = []
    last = (0, 0)
    for x, y in points:
        at = (round(x * PER_DEGREE), round(y * PER_DEGREE))
        if not found or at != last:
            found += [at[0] - last[0], at[1] - last[1]]
            last = at
    return found


if __name__ == "__main__":
    main(sys.argv[1])
