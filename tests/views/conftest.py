"""A browser for the tests of pages, and runs to show in it."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from vecfill import Embedding, LatentSemantic, impute
from vecfill.inputs.names.match_report import Match, MatchReport
from vecfill.trust.choose.decision import Decision
from vecfill.trust.prove.confidence import Confidence
from vecfill.trust.prove.proof import Proof

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
STRANGE = {
    "script": "<script>alert(1)</script><img src=x onerror=alert(2)>",
    "quotes": "\"quoted\" & 'single' </script>",
    "emoji": "👩‍🚀 astronaut",
    "rtl": "שלום עולם",
    "long": "x" * 10_000,
    "formula": "=cmd()",
    "marks": "/*DATA*/ \u2028 {{x}}",
}


@pytest.fixture(scope="session")
def browser():
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'"
    )
    found = [shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")]
    path = next((each for each in found if each), None)
    if path is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Return a function that opens a file with networking off and remembers what was complained."""
    contexts = []

    def opened(path, *, width=1280, height=900, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.complaints = []
        page.on("console", lambda message: page.complaints.append(message.text))
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: page.complaints.append(dialog.message) or dialog.dismiss())
        page.on("request", lambda request: _note_request(page, request.url))
        page.goto(path.resolve().as_uri())
        return page

    yield opened
    for context in contexts:
        context.close()


def _note_request(page, url):
    if not url.startswith(("file:", "data:")):
        page.complaints.append(url)


@pytest.fixture(scope="session")
def small_run():
    """Sixty towns and a few strange names; fifty are known, one of them contradicted."""
    rng = np.random.default_rng(0)
    places = {f"town {i}": rng.normal(size=2) for i in range(60)}
    for name in STRANGE.values():
        places[name] = rng.normal(size=2)
    names = list(places)[:50]
    vectors = np.array([places[name] for name in names]) @ np.eye(2, 5)
    vectors[7] = -5 * vectors[7]
    return impute(places, Embedding(names, vectors), match="exact")


@pytest.fixture(scope="session")
def fake_run():
    """Return a function that makes up a run of any size, in which nothing is computed."""

    def made(n_imputed, n_known=2000):
        rng = np.random.default_rng(0)
        known = Embedding(
            [f"known {i}" for i in range(n_known)],
            rng.normal(size=(n_known, 16)).astype(np.float32),
        )
        imputed = Embedding(
            [f"entity number {i}" for i in range(n_imputed)],
            rng.normal(size=(n_imputed, 16)).astype(np.float32),
        )
        values = rng.beta(5, 6, size=n_imputed)
        shares = rng.dirichlet(np.full(n_known, 0.01), size=64)
        return SimpleNamespace(
            embedding=imputed,
            known=known,
            matches=MatchReport(
                tuple(Match(word, word, "exact") for word in known.words), "exact", n_known
            ),
            predictor=LatentSemantic(),
            domain=_FakeDomain((*known.words, *imputed.words)),
            confidence=Confidence(
                values,
                values - 0.2,
                values - 0.1,
                0.9,
                rng.uniform(size=500),
                rng.uniform(size=500),
                np.arange(500) < 450,
            ),
            heldout=None,
            suspicious=(),
            abstained=(),
            notes=(),
            choice=None,
            strata=(),
            sources=(),
            sanity=None,
            leaks=(),
            decision=Decision(LatentSemantic()),
            proof=Proof(),
            model=SimpleNamespace(
                is_known=np.arange(n_known + n_imputed) < n_known,
                composition=SimpleNamespace(relative_residual=1e-12, trend=None),
                predictor=LatentSemantic(),
                trend_shares=lambda: np.zeros(n_imputed),
                offset_shares=lambda: np.zeros(n_imputed),
            ),
            contributions=lambda places: shares[np.asarray(places) % 64],
        )

    return made


class _FakeDomain:
    def __init__(self, entities):
        self.entities = entities
        self.columns = ("x", "y")

    def __len__(self):
        return len(self.entities)
