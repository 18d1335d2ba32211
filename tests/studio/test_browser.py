"""The studio in a real browser."""

import json
import shutil

import numpy as np
import pytest
import sklearn
from sklearn.utils.fixes import parse_version

from tests.studio.screenshots import ARGS, DONE, draw, enter, run, take
from tests.studio.serving import studio

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install -e '.[dev]'")
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium: apt-get install chromium")
LAYERS_ARE_SEEN = parse_version(sklearn.__version__) >= parse_version("1.9.dev0")  # by callbacks
EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def served():
    with studio() as one:
        yield one


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield opened
        opened.close()


@pytest.fixture
def enter_page(browser, served):
    """Opens pages and, at the end, complains about anything that went wrong in one."""
    pages, wrong = [], []

    def open_one(**settings):
        page = enter(browser, served, **settings)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: (wrong.append("a dialog opened"), dialog.dismiss()))
        page.on("console", lambda told: "Content Security Policy" in told.text and wrong.append(told.text))
        page.on("request", lambda one: one.url.startswith((served.origin, "blob:")) or wrong.append(one.url))
        pages.append(page)
        return page

    yield open_one
    for page in pages:
        page.context.close()
    assert not wrong


def table_with_html():
    random = np.random.default_rng(0)
    rows = np.vstack([random.normal(center, 0.5, (40, 2)) for center in ((0, 0), (5, 5), (0, 6))])
    lines = [f"{x:.3f},{y:.3f},{EVIL}" for x, y in rows]
    return "\n".join([f"east,{EVIL},kind", *lines]).encode()


def test_upload_run_play_compare_and_download(enter_page, tmp_path):
    page = enter_page()
    assert "token" not in page.url
    page.set_input_files("#file", {"name": f"{EVIL}.csv", "mimeType": "text/csv", "buffer": table_with_html()})
    page.wait_for_selector("#preview:not([hidden]) td", timeout=60_000)
    assert page.inner_text("#title-preview") == f"{EVIL}.csv"
    assert page.locator("#columns input:not(:checked)").count() == 1
    page.select_option("#algorithm", "kmeans")
    run(page)
    assert page.inner_text("#title-result") == "3 clusters by KMeans"

    page.check("input[value=given]")
    page.fill("#clusters", "2")
    page.evaluate("document.querySelector('details').open = true")
    page.select_option("#start", "random")
    page.fill("#starts", "1")
    run(page)
    assert page.inner_text("#title-result") == "2 clusters by KMeans"

    if LAYERS_ARE_SEEN:
        last = page.get_attribute("#layer", "max")
        assert int(last) > 0
        page.focus("#layer")
        page.keyboard.press("Home")
        assert page.inner_text("#layer-told").startswith("layer 1 of")
        page.click("#play")
        assert page.inner_text("#play") == "Pause"
        page.wait_for_selector("#play:text-is('Play the layers')", timeout=40_000)
        assert page.input_value("#layer") == last

    page.select_option("#compare", label="Run 1: KMeans, 3 clusters")
    page.wait_for_selector("#comparison:not([hidden])")
    assert "adjusted Rand index" in page.inner_text("#comparison-told")
    assert page.locator("#comparison-table tbody tr").count() == 2

    page.focus(".cluster >> nth=1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#rows-table td")
    assert page.locator("#rows-table th", has_text=EVIL).count() == 1
    assert page.locator("main img:not(#numbers-picture)").count() == 0  # no markup from cells

    for button, ending in (("Labels (CSV)", ".csv"), ("Model", ".safetensors"), ("Report (HTML)", ".html")):
        with page.expect_download(timeout=60_000) as waiting:
            page.click(f"#keep button:text-is('{button}')")
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        assert file.suffix == ending
        assert file.stat().st_size > 100


def test_clusters_are_selected_on_the_map_merged_split_named_and_brought_back(enter_page):
    page = enter_page()
    page.set_input_files("#file", {"name": "clouds.csv", "mimeType": "text/csv", "buffer": table_with_html()})
    page.wait_for_selector("#preview:not([hidden]) td", timeout=60_000)
    page.select_option("#algorithm", "kmeans")
    page.check("input[value=given]")
    page.fill("#clusters", "3")
    run(page)
    assert page.is_disabled("#merge")
    assert page.is_hidden("#undo")

    places = places_on_the_map(page, 3)
    page.mouse.click(*places[0])
    page.wait_for_selector(".cluster[aria-pressed=true]")
    assert page.is_enabled("#split")
    page.keyboard.down("Shift")
    page.mouse.click(*places[2])
    page.keyboard.up("Shift")
    assert page.locator(".cluster[aria-pressed=true]").evaluate_all("(all) => all.map((one) => one.dataset.label)") == [
        "0",
        "2",
    ]
    edited(page, "#merge")
    assert page.locator(".cluster").count() == 2
    assert page.locator(".cluster[data-label='0'] .size").inner_text().startswith("80 ")
    assert "merged" in page.inner_text("#result-told").lower()

    page.click(".cluster[data-label='0']")
    page.fill("#rows-title input", "old friends")
    page.press("#rows-title input", "Enter")
    page.wait_for_selector(".cluster strong:text-is('old friends')")
    page.fill("#parts", "2")
    edited(page, "#split")
    assert sorted(page.locator(".cluster").evaluate_all("(all) => all.map((one) => one.dataset.label)")) == [
        "0",
        "1",
        "3",
    ]
    assert page.locator(".cluster strong:text-is('old friends')").count() == 1

    page.click("#undo")
    page.wait_for_selector("#title-result:text-is('2 clusters by KMeans')")
    page.click("#undo")
    page.wait_for_selector("#title-result:text-is('3 clusters by KMeans')")
    assert page.is_hidden("#undo")
    assert page.locator("#runs .done").count() == 1


@pytest.mark.parametrize("algorithm", ["zeroshot", "kmeans"])
def test_numbers_of_clusters_are_compared_and_moving_the_number_cuts_again(enter_page, algorithm):
    page = enter_page()
    page.set_input_files("#file", {"name": "clouds.csv", "mimeType": "text/csv", "buffer": table_with_html()})
    page.wait_for_selector("#preview:not([hidden]) td", timeout=60_000)
    page.select_option("#algorithm", algorithm)
    run(page)
    assert page.inner_text("#number-told") == "3"
    page.click("#numbers summary")
    page.wait_for_selector("#numbers-picture:not([hidden])", timeout=90_000)
    assert page.evaluate("document.getElementById('numbers-picture').naturalWidth") > 800
    page.focus("#number")
    edited(page, lambda: page.keyboard.press("ArrowRight"))
    assert page.locator(".cluster[data-label]").count() == 4
    assert page.inner_text("#number-told") == "4"
    page.click("#undo")
    page.wait_for_selector("#title-result:text-matches('^3 clusters')")


def edited(page, button):
    """Press a button, or do something else, that makes a new run, and wait for its result."""
    before = page.locator("#runs .done").count()
    button() if callable(button) else page.click(button)
    page.wait_for_selector(f"#runs .done >> nth={before}", timeout=90_000)
    page.wait_for_selector(DONE)
    page.wait_for_timeout(300)


def places_on_the_map(page, count):
    """Where the pointer finds a point of every cluster."""
    page.locator("#left-map").scroll_into_view_if_needed()
    box = page.locator("#left-map .over").bounding_box()
    found = {}
    for v in range(1, 20):
        for u in range(1, 30):
            place = box["x"] + u * box["width"] / 30, box["y"] + v * box["height"] / 20
            page.mouse.move(*place)
            if page.locator("#left-map .tip").is_visible():
                told = page.inner_text("#left-map .tip strong")
                found.setdefault(int(told.split()[-1]), place)
            if len(found) == count:
                return found
    raise AssertionError(f"points of {sorted(found)} only")


def test_the_page_begins_with_the_defaults_of_the_command_line_and_says_how_sure_it_is(enter_page, tmp_path):
    page = enter_page()
    rows = np.random.default_rng(0).normal(size=(120, 3))
    lines = [json.dumps({"a": a, "b": b, "a column with a rather long name": c}) for a, b, c in rows.round(3).tolist()]
    page.set_input_files(
        "#file", {"name": "one.jsonl", "mimeType": "application/json", "buffer": "\n".join(lines).encode()}
    )
    page.wait_for_selector("#preview:not([hidden]) td", timeout=60_000)
    assert page.locator("#preview-table th").all_inner_texts() == ["a", "b", "a column with a rather long name"]
    assert page.input_value("#algorithm") == "zeroshot"
    assert page.locator("#columns input:checked").count() == 3
    for part in ("#algorithm", "#count-part", "#clusters", "#run"):
        box = page.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 900
    name = page.locator("#columns .name").last
    assert name.evaluate("(node) => node.scrollWidth <= node.clientWidth")
    run(page)
    assert page.get_attribute("#verdict", "data-verdict") == "no groups found"
    assert "give a number of clusters" in page.inner_text("#verdict")
    assert page.locator("#profile-part").is_hidden()

    page.check("input[value=given]")
    page.fill("#clusters", "2")
    run(page)
    assert page.locator("#profile-part").is_visible()
    page.click(".cluster >> nth=0")
    page.fill("#rows-title input", EVIL)
    page.press("#rows-title input", "Enter")
    page.wait_for_selector(f".cluster strong:text-is('{EVIL}')")
    page.select_option("#axis-x", "b")
    page.wait_for_function("document.getElementById('axis-y').value === 'a'")
    over = page.locator("#left-map canvas.over")
    size = over.bounding_box()
    for place in range(200, int(size["width"]) - 100, 10):  # along the middle there is some point
        over.hover(position={"x": place, "y": size["height"] / 2})
        if page.locator("#left-map .tip:not([hidden]) span").count():
            break
    assert "a column with a rather long name: " in page.inner_text("#left-map .tip")
    for button, ending in (("Picture (PNG)", ".png"), ("Labels (CSV)", ".csv")):
        with page.expect_download(timeout=60_000) as waiting:
            page.click(f"#keep button:text-is('{button}')")
        file = tmp_path / f"saved{ending}"
        waiting.value.save_as(file)
    assert (tmp_path / "saved.png").read_bytes().startswith(b"\x89PNG")
    head = (tmp_path / "saved.csv").read_text().splitlines()[0]
    assert head == "a,b,a column with a rather long name,cluster,name,certainty,outlier"
    assert EVIL in (tmp_path / "saved.csv").read_text()
    assert page.locator("main img:not(#numbers-picture)").count() == 0  # no markup from cells


def test_what_was_done_to_a_skewed_table_and_which_limits_it_reached_is_told(enter_page):
    page = enter_page()
    random = np.random.default_rng(0)
    groups = np.repeat(np.arange(40), 30)
    income, size = np.exp(groups % 8 + random.normal(size=1200) * 0.02), groups * 9 + random.normal(size=1200)
    lines = [f"{x:.4f},{y:.3f}" for x, y in zip(income, size)]
    content = "\n".join(["income,size", *lines]).encode()
    page.set_input_files("#file", {"name": "skewed.csv", "mimeType": "text/csv", "buffer": content})
    page.wait_for_selector("#preview:not([hidden]) td", timeout=60_000)
    run(page)
    told = " ".join(page.locator("#notes li").all_inner_texts())
    assert page.get_attribute("#verdict", "data-verdict") in ("clear groups", "probable groups", "weak groups")
    assert "Column 'income' was compared on a log scale" in told
    assert "The network read 1,024 of the 1,200 rows" in told
    page.select_option("#algorithm", "kmeans")
    run(page)
    assert "is the largest number of clusters that was tried" in " ".join(page.locator("#notes li").all_inner_texts())


def test_what_is_not_a_table_is_told_and_the_page_goes_on(enter_page):
    page = enter_page()
    page.set_input_files("#file", {"name": "photo.csv", "mimeType": "text/csv", "buffer": b"\x89PNG" + bytes(99)})
    page.wait_for_selector("#alert:not([hidden])", timeout=60_000)
    assert "photo.csv is a picture" in page.inner_text("#alert")
    page.click("#alert button")
    page.evaluate(
        """() => {
          const large = new File([], "large.csv");
          Object.defineProperty(large, "size", { value: 1e12 });
          const event = new Event("drop");
          event.dataTransfer = { files: [large] };
          dispatchEvent(event);
        }"""
    )
    page.wait_for_selector("#alert:not([hidden])")
    assert "larger than" in page.inner_text("#alert")


def test_a_run_is_stopped_in_the_middle_in_one_browser_while_another_one_works(enter_page):
    one, two = enter_page(), enter_page(viewport={"width": 390, "height": 800}, scheme="dark")
    take(one, "Crowd")
    one.check("input[value=given]")
    one.fill("#clusters", "40")
    one.evaluate("document.querySelector('details').open = true")
    one.select_option("#algorithm", "soft")
    one.select_option("#start", "random")
    one.fill("#starts", "100")
    one.click("#run")

    two.click("#open-drawing:visible, #tiles button:visible:has-text('Draw points')")
    draw(two)
    for key in ("ArrowLeft", "ArrowUp", "Space"):
        two.press("#canvas", key)
    two.click("#use-drawing")
    two.wait_for_selector("#tables .current >> text=Drawn points", timeout=60_000)
    two.select_option("#algorithm", "kmeans")
    two.check("input[value=given]")
    run(two)
    assert two.inner_text("#title-result") == "3 clusters by KMeans"
    assert two.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    one.wait_for_selector("#result.live:not([hidden])", timeout=60_000)
    one.click("#stop")
    one.wait_for_selector("text=This run was stopped")
    assert one.locator(DONE).count() == 0
    assert one.locator("#runs .stopped").count() == 1


def test_without_the_token_the_page_says_where_to_find_it(browser, served):
    page = browser.new_page()
    page.set_default_timeout(60_000)
    page.goto(served.origin)
    page.wait_for_selector("#alert:not([hidden])")
    assert "open the address that the studio printed" in page.inner_text("#alert")
    page.close()
