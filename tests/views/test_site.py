"""The documentation site, in a browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.extra
def test_the_site_opens_from_disk_and_its_search_works_there(tmp_path, open_page):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html"]
    subprocess.run([*command, str(ROOT / "docs"), str(tmp_path)], check=True, cwd=ROOT)
    page = open_page(tmp_path / "index.html")
    page.click("text=Gallery >> nth=0")
    assert page.inner_text("h1").startswith("Gallery")
    page.goto((tmp_path / "search.html").as_uri() + "?q=conformal")
    page.wait_for_selector("ul.search li a")
    phone = open_page(tmp_path / "quality.html", width=390)
    assert phone.evaluate("document.documentElement.scrollWidth") == 390
    assert page.complaints == phone.complaints == []
