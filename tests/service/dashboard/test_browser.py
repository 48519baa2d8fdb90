"""In a real browser: nothing leaves this machine, nothing is an error, all works with scripts and without."""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mill import post
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from service.store.session import Store
from tests.service.dashboard.conftest import Filled, Served, chromium

pytestmark = pytest.mark.browser

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--window-size=1280,900",
]

Open = Callable[..., webdriver.Chrome]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Open]:
    """Open a browser of its own profile; every one is closed after the test."""
    path = chromium()
    opened: list[webdriver.Chrome] = []

    def open_browser(*, scripts: bool = True, width: int = 1280, dark: bool = False) -> webdriver.Chrome:
        options = webdriver.ChromeOptions()
        options.binary_location = path
        for flag in (*FLAGS, f"--user-data-dir={tmp_path / str(len(opened))}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        opened.append(driver)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        return driver

    yield open_browser
    for driver in opened:
        driver.quit()


def requests(driver: webdriver.Chrome) -> list[str]:
    """Every address that the browser asked for since the last call."""
    found: list[dict[str, Any]] = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    return [one["params"]["request"]["url"] for one in found if one["method"] == "Network.requestWillBeSent"]


def check(driver: webdriver.Chrome, served: Served) -> None:
    """No request left this server, no error is on the console."""
    foreign = [url for url in requests(driver) if not url.startswith((served.url, "data:", "chrome:", "about:"))]
    assert foreign == []
    assert [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []


def wait(driver: webdriver.Chrome, condition: Callable[[webdriver.Chrome], object]) -> None:
    WebDriverWait(driver, 15, 0.05, [StaleElementReferenceException]).until(condition)


def text_of(driver: webdriver.Chrome, selector: str) -> str:
    return driver.find_element(By.CSS_SELECTOR, selector).text


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (420, True), (320, False)])
def test_every_page_is_whole_at_every_width(
    browser: Open, served: Served, filled: Filled, tmp_path: Path, width: int, dark: bool
) -> None:
    driver = browser(width=width, dark=dark)
    driver.get(served.link)
    task, run, job = filled.tasks[0], filled.runs[0], filled.jobs["running"]
    paths = ("/", "/tasks", f"/tasks/{task}", f"/tasks/{task}/attempts", f"/tasks/{task}/receipts")
    for number, path in enumerate((*paths, "/runs", f"/runs/{run}?step=3", "/jobs", f"/jobs/{job}")):
        driver.get(served.url + path)
        check(driver, served)
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width, path
        assert len(driver.find_elements(By.CSS_SELECTOR, "body *")) < 5_000
        shot = base64.b64decode(driver.get_screenshot_as_base64())
        (tmp_path / f"{number}-{width}.png").write_bytes(shot)
        assert len(shot) > 5_000


def test_a_curve_moves_while_it_is_watched(browser: Open, served: Served, filled: Filled, sqlite_store: Store) -> None:
    driver = browser()
    driver.get(served.link)
    driver.get(f"{served.url}/runs/{filled.runs[0]}")
    before = driver.find_element(By.CSS_SELECTOR, "path.curve").get_attribute("d")
    driver.find_element(By.CSS_SELECTOR, "details.twin summary").click()
    post(sqlite_store, filled.runs[0], {"reward/mean": [(99, 0.875)]})
    wait(driver, lambda d: "0.875" in d.find_element(By.CSS_SELECTOR, ".tiles").text)
    assert driver.find_element(By.CSS_SELECTOR, "path.curve").get_attribute("d") != before
    assert driver.find_element(By.CSS_SELECTOR, "details.twin").get_attribute("open") is not None
    assert text_of(driver, "[data-live-state]") == "live"
    check(driver, served)


def test_a_curve_ends_when_its_run_ends(browser: Open, served: Served, filled: Filled, sqlite_store: Store) -> None:
    driver = browser()
    driver.get(served.link)
    driver.get(f"{served.url}/runs/{filled.runs[0]}")
    post(sqlite_store, filled.runs[0], {"reward/mean": [(100, 0.9)]}, status="done")
    wait(driver, lambda d: text_of(d, "[data-live-state]") == "ended")
    assert "done" in text_of(driver, ".tiles")
    check(driver, served)


def test_everything_works_without_scripts(browser: Open, served: Served, filled: Filled) -> None:
    driver = browser(scripts=False)
    driver.get(served.link)
    driver.get(f"{served.url}/tasks")
    driver.find_element(By.NAME, "q").send_keys("Reverse the word")
    driver.find_element(By.CSS_SELECTOR, ".filters button").click()
    wait(driver, lambda d: "q=Reverse" in d.current_url)
    driver.find_element(By.CSS_SELECTOR, "td a").click()
    wait(driver, lambda d: d.find_elements(By.NAME, "reason"))
    driver.find_element(By.NAME, "reason").send_keys("found by hand")
    driver.find_element(By.CSS_SELECTOR, 'button[value="retired"]').click()
    wait(driver, lambda d: "retired" in text_of(d, ".head"))
    driver.find_element(By.LINK_TEXT, "Events").click()
    wait(driver, lambda d: "found by hand" in text_of(d, "main"))
    driver.get(f"{served.url}/runs/{filled.runs[0]}")
    driver.find_element(By.LINK_TEXT, "refresh").click()
    wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, "path.curve"))
    check(driver, served)


def test_a_mark_leads_to_its_rows_and_back_again(browser: Open, served: Served, filled: Filled) -> None:
    driver = browser()
    driver.get(served.link)
    driver.find_element(By.CSS_SELECTOR, "a.bar-row").click()
    wait(driver, lambda d: "domain=" in d.current_url)
    wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, "td.prompt"))
    driver.back()
    wait(driver, lambda d: d.find_elements(By.CSS_SELECTOR, ".funnel"))
    check(driver, served)


def test_a_theme_is_chosen_and_signing_out_ends_the_session(browser: Open, served: Served) -> None:
    driver = browser()
    driver.get(served.link)
    driver.find_element(By.CSS_SELECTOR, 'button[value="dark"]').click()
    wait(driver, lambda d: d.find_element(By.TAG_NAME, "html").get_attribute("data-theme") == "dark")
    colour = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert colour == "rgb(16, 18, 21)"
    driver.find_element(By.XPATH, "//button[text()='Sign out']").click()
    wait(driver, lambda d: d.find_elements(By.NAME, "key"))
    driver.get(f"{served.url}/tasks")
    wait(driver, lambda d: "/login" in d.current_url)
