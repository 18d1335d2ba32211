"""The report in a real browser: figures are drawn, layers play, nothing is fetched, and nothing of a table runs."""

import shutil

import numpy as np
import pandas as pd
import pytest

import coterie
from tests.explain.test_report import ATTACK, blobs

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
OPTIONS = [
    "--no-sandbox", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as tools:
        started = tools.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield started
        started.close()


@pytest.fixture
def opened(browser):
    """Opens a file on a screen; collects what goes wrong and what is fetched."""
    contexts = []

    def open_page(path, width=1280, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.troubles = []
        page.on("pageerror", lambda error: page.troubles.append(str(error)))
        page.on("dialog", lambda dialog: page.troubles.append("a dialog opened"))
        page.on("console", lambda line: page.troubles.append(line.text) if line.type == "error" else None)
        page.on(
            "request",
            lambda one: None if one.url.startswith(("file:", "data:", "blob:")) else page.troubles.append(one.url),
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]", timeout=60_000)
        return page

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.slow
def test_the_page_draws_plays_and_keeps_to_itself(opened, tmp_path, whole_pages):
    X = np.vstack([blobs(600, 3), [[40, 40, 40.0]]])
    frame = pd.DataFrame(X, columns=[ATTACK, "b", "c"], index=[ATTACK] * len(X))
    frame["kind"] = ATTACK
    fitted = coterie.TrimmedKMeans(3, outliers=0.02, init="random", n_init=5, random_state=0).fit(X)
    path = tmp_path / "report.html"
    coterie.report(fitted, X, path, table=frame, columns=[ATTACK, "b", "c"], title=ATTACK, refits=1)

    page = opened(path)
    figures = page.locator("[data-figure]").count()
    assert figures >= 7
    assert page.locator("[data-figure] .main-svg").count() >= figures
    assert page.title() == ATTACK.replace("\u2028", " ").strip() or "<img" in page.title()
    assert page.locator("img").count() == 0

    before = page.locator("#layer-name").inner_text()
    page.locator("#layer").focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(300)
    assert page.locator("#layer-name").inner_text() == "start" != before
    page.locator("#play").click()
    playwright.expect(page.locator("#layer-name")).not_to_have_text("start")
    assert page.troubles == []

    dark = opened(path, width=420, scheme="dark")
    assert dark.evaluate("document.documentElement.scrollWidth") <= 420
    assert dark.evaluate("document.querySelector('[data-figure]')._fullLayout.paper_bgcolor") == "#161a20"
    assert dark.troubles == []
