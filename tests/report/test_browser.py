"""The page in a real browser: every chart draws, nothing overflows, nothing is fetched."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_store import VARIATIONS, Store

from slackline.report.page import write_page
from slackline.report.results import load_results

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTHS = {"desktop": 1280, "phone": 390}

CHARTS = """
return [...document.querySelectorAll(".chart")].filter(e => e.offsetParent !== null).map(e => ({
  name: e.id,
  label: e.getAttribute("aria-label"),
  width: e.getBoundingClientRect().width,
  height: e.getBoundingClientRect().height,
  marks: [...e.querySelectorAll(".trace path")]
    .map(path => path.getBBox()).filter(box => box.width + box.height > 0).length,
}))
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four methods, two K's, a seed that ended no episode for a while."""
    store = Store(tmp_path_factory.mktemp("browser"))
    for method, level in (("single", 90.0), ("ensemble", 95.0), ("lop", 110.0), ("cop", 100.0)):
        store.add(method, shots=(5, 10), level=level)
    return write_page(load_results(store.path), store.path / "report.html")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A headless Chromium with a profile of its own."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    chromedriver = shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        pytest.skip("no chromium and chromedriver on the PATH: the page was not tried in a browser")
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(chromedriver))
    yield driver
    driver.quit()


def opened(browser: Any, page: Path, width: int, scheme: str = "light") -> None:
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    browser.get(page.as_uri())
    wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
    drawn = "return document.querySelector('.chart .main-svg') !== null"
    wait(browser, 60).until(lambda _: browser.execute_script(drawn))  # plotly.js is unpacked first


def assert_drawn(browser: Any) -> list[str]:
    """Every visible chart has a size and marks in it; the page does not scroll sideways."""
    charts = browser.execute_script(CHARTS)
    for chart in charts:
        assert chart["label"], chart
        assert chart["width"] > 200, chart
        assert chart["height"] > 100, chart
        assert chart["marks"] > 0, chart
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert browser.execute_script(overflow) <= 0
    return [chart["name"] for chart in charts]


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_every_chart_draws_at_every_tab(browser: Any, page: Path, width: int) -> None:
    opened(browser, page, width)
    seen = set(assert_drawn(browser))
    for shots in browser.find_elements("css selector", "[id$='label'] + .tabs > [id*='-shots-']"):
        browser.execute_script("arguments[0].click()", shots)
        seen |= set(assert_drawn(browser))
        for tab in browser.find_elements(
            "css selector", "[role=tabpanel]:not([hidden]) [role=tab]"
        ):
            browser.execute_script("arguments[0].click()", tab)
            seen |= set(assert_drawn(browser))
    per_shots = 1 + 3 * (len(VARIATIONS) + 1)  # scores; for three methods: z panels, counts
    assert len(seen) == 2 * per_shots + 1
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_arrow_keys_move_between_tabs(browser: Any, page: Path) -> None:
    opened(browser, page, 1280)
    tab = browser.find_element("css selector", "[role=tab][aria-selected=true]")
    assert tab.text == "K = 10"
    tab.send_keys("\ue012")  # left arrow
    assert browser.switch_to.active_element.text == "K = 5"
    assert_drawn(browser)


def test_nothing_is_fetched(browser: Any, page: Path) -> None:
    opened(browser, page, 1280)
    fetched = browser.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert fetched == []


def test_dark_page_has_dark_charts(browser: Any, page: Path) -> None:
    def ink() -> str:
        return browser.execute_script(
            "return getComputedStyle(document.querySelector('.chart .xtick text')).fill"
        )

    opened(browser, page, 1280, "light")
    light = ink()
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)  # while the page is open
    wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait
    wait(browser, 30).until(lambda _: ink() != light)  # it is told at its next frame
    assert_drawn(browser)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two suites, and two β's of one method."""
    store = Store(tmp_path_factory.mktemp("several"))
    for suite in ("cartpole", "acrobot"):
        store.add("single", suite=suite, level=90.0)
        store.add("lop", suite=suite, level=110.0)
        store.add("cop", suite=suite, level=100.0)
    store.add("lop", folder="low", options={"beta": 0.1}, level=105.0)
    return write_page(load_results(store.path), store.path / "report.html")


def test_the_lines_column_is_seen_on_a_phone(browser: Any, page: Path) -> None:
    """Without scrolling sideways, with the paper's number below the measured one."""
    opened(browser, page, WIDTHS["phone"])
    head = browser.execute_script(
        "return [...document.querySelectorAll('table')][0].querySelectorAll('thead th')[2]"
        ".getBoundingClientRect().right"
    )
    title = browser.execute_script(
        "return document.querySelector('table').querySelectorAll('thead th')[2].innerText"
    )
    assert title == "Line of policies"
    assert head <= WIDTHS["phone"]
    beside = browser.execute_script(
        "return getComputedStyle(document.querySelector('td[data-paper]'), '::after').content"
    )
    assert beside.startswith('"paper 200 ± 0')
    hidden = "return document.querySelector('td.paper').getBoundingClientRect().width"
    assert browser.execute_script(hidden) == 0


BEYOND = """
const box = [...document.querySelectorAll(".scroll")].filter(e => e.offsetParent !== null);
return box.filter(e => !e.querySelector(".facts")).flatMap(e => {
  const right = e.getBoundingClientRect().right, words = document.createRange();
  return [...e.querySelectorAll("caption, tr > :first-child, tr > :not(.paper):nth-child(-n + 3)")]
    .filter(cell => cell.tagName === "CAPTION" || cell.closest("table").rows[0].cells.length <= 4)
    .filter(cell => (words.selectNodeContents(cell), words.getBoundingClientRect().right > right))
    .map(cell => cell.innerText);
})
"""
"""Words of captions and of the first methods' columns that lie outside of their box."""


def test_long_numbers_of_two_methods_fit_on_a_phone(browser: Any, tmp_path: Path) -> None:
    """Intervals of costs are the widest; captions are not as wide as the table that scrolls."""
    store = Store(tmp_path)
    for method, level in (("single", -1100.0), ("lop", -1000.0), ("diayn_r", -1050.0)):
        store.add(method, suite="maze2d", level=level)
    opened(browser, write_page(load_results(store.path), tmp_path / "page.html"), WIDTHS["phone"])
    assert browser.execute_script(BEYOND) == []


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS.keys())
def test_the_overview_comes_first_and_fits(browser: Any, several: Path, width: int) -> None:
    opened(browser, several, width)
    first = browser.execute_script("return document.querySelector('main > section').id")
    assert first == "overview"
    assert_drawn(browser)


def test_filters_hide_what_was_not_asked_for(browser: Any, several: Path) -> None:
    select = pytest.importorskip("selenium.webdriver.support.select").Select
    opened(browser, several, 1280)

    def choose(name: str, value: str) -> None:
        select(browser.find_element("css selector", f".filters [name={name}]")).select_by_value(
            value
        )

    def seen(selector: str) -> list[str]:
        return [e.text for e in browser.find_elements("css selector", selector) if e.is_displayed()]

    choose("suite", "acrobot")
    assert seen("main > .suite[data-suite] > h2") == ["Acrobot"]
    assert [row for row in seen("#overview tbody th") if row == "cartpole"] == []
    choose("suite", "")
    choose("method", "cop")
    heads = seen(
        "#cartpole table:first-of-type thead th[scope=colgroup], #cartpole thead th[scope=col]"
    )
    assert "Single policy" in heads
    assert not any(head.startswith("Line of policies") for head in heads)
    assert_drawn(browser)
    choose("method", "")
    choose("beta", "0.1")
    heads = seen("#cartpole thead th")
    assert "Line of policies (β = 0.1)" in heads
    assert "Line of policies (β = 1)" not in heads


def test_a_number_leads_to_its_run_and_command(browser: Any, several: Path) -> None:
    opened(browser, several, 1280)
    for link in browser.find_elements("css selector", "#overview a.from")[:3]:
        target = link.get_attribute("href").split("#")[1]
        head = browser.find_element("id", target)
        assert head.text in ("cartpole-single", "cartpole-lop", "cartpole-cop", "low") or (
            head.text.startswith("acrobot-")
        )
