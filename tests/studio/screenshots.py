"""Every state of the page as a picture: ``python -m tests.studio.screenshots`` writes docs/images/studio-*.png."""

import shutil
from pathlib import Path
from typing import Any

try:
    from playwright.sync_api import Page, sync_playwright
except ImportError:  # the tests say so
    Page = Any

from tests.studio.serving import Studio, studio

IMAGES = Path(__file__).parents[2] / "docs" / "images"
ARGS = ["--no-sandbox", "--disable-dev-shm-usage"]
WIDE, NARROW = {"width": 1360, "height": 900}, {"width": 390, "height": 844}
DONE = "#result:not([hidden]):not(.live)"


def enter(browser: Any, served: Studio, viewport: dict[str, int] = WIDE, scheme: str = "light") -> Page:
    page = browser.new_context(viewport=viewport, color_scheme=scheme, accept_downloads=True).new_page()
    page.set_default_timeout(60_000)
    page.goto(served.address)
    page.wait_for_selector("html[data-ready]")
    return page


def take(page: Page, sample: str) -> None:
    page.click(f"#tiles button:visible:has(strong:text-is('{sample}')), #samples button:visible:text-is('{sample}')")
    page.wait_for_selector(f"#tables .current >> text={sample}", timeout=60_000)


def run(page: Page) -> None:
    before = page.locator("#runs .done").count()
    page.click("#run")
    page.wait_for_selector(f"#runs .done >> nth={before}", timeout=90_000)
    page.wait_for_selector(DONE)
    page.wait_for_timeout(300)


def draw(page: Page) -> None:
    """Three clouds by pointer."""
    box = page.locator("#canvas").bounding_box()
    assert box is not None
    for u, v in ((0.2, 0.3), (0.55, 0.7), (0.8, 0.25)):
        x, y = box["x"] + u * box["width"], box["y"] + v * box["height"]
        page.mouse.move(x, y)
        page.mouse.down()
        for i in range(14):
            page.mouse.move(x + 9 * (i % 5), y + 8 * (i % 3))
        page.mouse.up()


def save(page: Page, name: str, *, full: bool = False, at: str | None = None) -> None:
    page.evaluate("(place) => place ? document.querySelector(place).scrollIntoView() : scrollTo(0, 0)", at)
    page.mouse.move(1, 1)
    page.wait_for_timeout(200)
    page.screenshot(path=IMAGES / f"studio-{name}.png", full_page=full)
    print(name)


def wide(browser: Any, served: Studio) -> None:
    page = enter(browser, served)
    save(page, "welcome")
    take(page, "Wines")
    page.uncheck("#columns input[value=cultivar]")
    save(page, "table")
    page.select_option("#algorithm", "kmeans")
    run(page)
    page.click(".cluster >> nth=2")
    page.wait_for_selector("#rows-table td")
    page.wait_for_timeout(300)
    save(page, "result", full=True)
    page.click("#numbers summary")
    page.wait_for_selector("#numbers-picture:not([hidden])")
    save(page, "numbers", at="#numbers-part")
    page.select_option("#algorithm", "trimmed")
    page.check("input[value=given]")
    page.fill("#clusters", "5")
    run(page)
    page.select_option("#compare", label="Run 1: KMeans, 3 clusters")
    page.wait_for_selector("#right-figure:not([hidden])")
    page.wait_for_timeout(400)
    save(page, "compare")
    page.set_input_files("#file", {"name": "holiday.png", "mimeType": "image/png", "buffer": b"\x89PNG\r\n\x1a\n" * 30})
    page.wait_for_selector("#alert:not([hidden])")
    save(page, "error")
    page.click("#alert button")
    take(page, "Crowd")
    page.evaluate("document.querySelector('details').open = true")
    page.select_option("#algorithm", "soft")
    page.fill("#clusters", "8")
    page.fill("#starts", "20")
    page.select_option("#start", "random")
    page.click("#run")
    page.wait_for_selector("#result.live:not([hidden])", timeout=60_000)
    page.wait_for_timeout(1500)
    save(page, "running")
    page.click("#stop")
    page.wait_for_selector("text=This run was stopped")
    page.close()


def dark(browser: Any, served: Studio) -> None:
    page = enter(browser, served, scheme="dark")
    page.click("#open-drawing")
    draw(page)
    save(page, "draw-dark")
    page.click("#use-drawing")
    page.wait_for_selector("#tables .current >> text=Drawn points", timeout=60_000)
    page.uncheck("#scale")
    page.select_option("#algorithm", "kmeans")
    run(page)
    take(page, "Outliers")
    page.check("input[value=given]")
    page.fill("#clusters", "6")
    page.evaluate("document.querySelector('details').open = true")
    page.select_option("#start", "random")
    page.fill("#starts", "1")
    run(page)
    page.focus("#layer")
    page.keyboard.press("Home")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    page.wait_for_timeout(600)
    save(page, "layers-dark")
    take(page, "Crowd")
    page.check("input[value=given]")
    page.fill("#clusters", "8")
    page.select_option("#start", "k-means++")
    page.fill("#starts", "4")
    page.evaluate("document.querySelector('details').open = false")
    run(page)
    save(page, "crowd-dark")
    page.close()


def narrow(browser: Any, served: Studio) -> None:
    page = enter(browser, served, NARROW)
    take(page, "Shop")
    save(page, "narrow-table")
    page.check("input[value=auto]")
    run(page)
    save(page, "narrow-result", at="#main")
    page.close()


def main() -> None:
    with studio() as served, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGS)
        for part in (wide, dark, narrow):
            part(browser, served)
        browser.close()


if __name__ == "__main__":
    main()
