"""Draw the figures of `docs/gallery.md` with the code of that page, and those of the README.

python scripts/build_figures.py [gallery] [quality] [report]

The pictures of the report need playwright and Chromium. They show the page of the demo.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from vecfill.jobs.demo import run_demo
from vecfill.views.plots import ACCENT, GREY, Figure

DOCS = Path(__file__).resolve().parents[1] / "docs"
FIGURES = DOCS / "figures"
PICTURE_OR_CODE = re.compile(r"^!\[[^\]]*\]\(figures/(\S+)\)$|^```python\n(.*?)^```$", re.M | re.S)


def save(figure: Figure, name: str) -> None:
    """Write a figure without the version of Matplotlib in it."""
    figure.savefig(FIGURES / name, dpi=110, metadata={"Software": None})
    print(FIGURES / name)


def draw_gallery() -> None:
    """Run the page from the top; a picture shows the `figure` of the next block of code."""
    values: dict[str, Any] = {}
    name = None
    for found in PICTURE_OR_CODE.finditer((DOCS / "gallery.md").read_text(encoding="utf-8")):
        if found[1]:
            name = found[1]
            continue
        lines = [line[4:] for line in found[2].splitlines() if line.startswith((">>> ", "... "))]
        exec("\n".join(lines), values)
        if name is not None:
            save(values["figure"], name)
            name = None


def draw_quality() -> None:
    """Draw hits@10 from the table of several sources in `docs/quality.md`."""
    head, *lines = _table_after("## Several sources").splitlines()
    titles = _cells(head)
    methods = {
        "encode and regress": ("text or name encoded, ridge regression", GREY),
        "best single source": ("vecfill, best single source", "#7fb5ab"),
        "all sources": ("vecfill, all sources", ACCENT),
    }
    sets = [_cells(line) for line in lines[1:]]
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    axes = figure.subplots()
    for place, (column, (label, colour)) in enumerate(methods.items()):
        # A cell is centred cosine/MRR/hits@10, perhaps bold, perhaps with a name in brackets.
        texts = [cells[titles.index(column)] for cells in sets]
        hits = [float(re.findall(r"\.\d+", text)[2]) for text in texts]
        at = [number + (place - 1) * 0.27 for number in range(len(sets))]
        bars = axes.bar(at, hits, width=0.25, color=colour, label=label)
        axes.bar_label(bars, [f"{100 * value:.0f} %" for value in hits], fontsize=8, padding=2)
    hidden = titles.index("hidden")
    labels = [f"{cells[0].partition(' (')[0]}\n{cells[hidden]} hidden" for cells in sets]
    axes.set_xticks(range(len(sets)), labels)
    axes.set_ylim(0, 0.95)  # room for the legend
    axes.set_yticks([])
    axes.set_title("Hidden entities whose true vector is among the ten nearest", loc="left")
    axes.legend(frameon=False, loc="upper right")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    save(figure, "quality.png")


def _table_after(heading: str) -> str:
    page = (DOCS / "quality.md").read_text(encoding="utf-8")
    section = page[page.index(heading) :]
    return section[section.index("\n| ") + 1 :].partition("\n\n")[0]


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def picture_report() -> None:
    """Take pictures of the demo's page: its top, and its map with the table."""
    from PIL import Image  # noqa: PLC0415
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        page_file = run_demo(folder).page
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for name, height, section in (("report", 900, ""), ("report-entities", 1100, "#entities")):
            page = browser.new_page(viewport={"width": 1180, "height": height})
            page.goto(page_file.as_uri() + section)
            page.wait_for_selector("#table tbody tr:nth-child(25)")
            page.wait_for_timeout(1000)  # until the map is drawn and scrolling has ended
            target = FIGURES / f"{name}.png"
            page.screenshot(path=target)
            Image.open(target).convert("RGB").quantize(128).save(target, optimize=True)
            print(target)
        browser.close()


def main(names: list[str]) -> None:
    """Draw the figures that are named, or all."""
    known = {"gallery": draw_gallery, "quality": draw_quality, "report": picture_report}
    for name, draw in known.items():
        if not names or name in names:
            draw()


if __name__ == "__main__":
    main(sys.argv[1:])
