"""The panels that search, in a real browser: live, stopped, refused, and what becomes of what they find."""

from __future__ import annotations

import time

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from pipeplan.extensions.search.answers.problems import DEFAULT_CHUNKS
from tests.browser import serious_faults
from tests.extensions.web.test_page import watching

SHAPE = "?ranks=4&microbatches=8&memory_limit=3act&schedules=1f1b,v-half"


@pytest.fixture
def watched(browser, address):
    yield from watching(browser, address)


def test_a_search_is_live_and_joins_the_table(watched):
    watched.go(SHAPE)
    page = watched.page
    page.click(".panel-bar >> text=Search")
    assert page.input_value("#search-memory_limit") == "3act"
    assert page.input_value("#search-placement") == "auto"
    placements = page.eval_on_selector_all("#search-placement option", "options => options.map(({ value }) => value)")
    assert placements == ["auto", *DEFAULT_CHUNKS]
    page.select_option("#search-placement", "v")
    page.fill("#search-seconds", "1")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel-search .progress:not([hidden])")
    page.wait_for_selector("#panel-search .outcome strong", timeout=60_000)
    text = page.text_content("#panel-search .outcome") or ""
    assert text.startswith("The search found ")
    assert "optimal" in text
    page.wait_for_function(
        "() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of search v 3act.')"
    )
    # The row first holds the best so far; what was found in the end follows.
    deadline = time.monotonic() + 30
    while watched.makespan("search v 3act") > watched.makespan("v-half") and time.monotonic() < deadline:
        page.wait_for_timeout(100)
    assert watched.makespan("search v 3act") <= watched.makespan("v-half")
    assert page.is_hidden("#panel-search .progress")
    page.click("summary:text('Download')")
    with page.expect_download() as result:
        page.click(".menu-items button:text-is('PyTorch CSV')")
    assert result.value.suggested_filename.endswith(".csv")
    # What else it may decide is chosen beside; what that needs is asked for where it is typed.
    page.select_option("#search-decide", "offload")
    page.click("#panel-search .primary")
    page.wait_for_selector("text=needs the time of a copy")
    page.select_option("#search-decide", "")
    # The row is as good as any other: other costs change it, and the panel says that it was found for others.
    watched.type("p2p_time", "0.5")
    page.wait_for_selector("#panel-search .note:not([hidden])")
    page.click("button[aria-label='remove search v 3act']")
    watched.settled("() => document.querySelectorAll('.results tbody tr').length === 2")
    assert serious_faults(page, "#panel-search") == []


def test_a_search_is_stopped_and_what_it_found_stays(watched):
    watched.go("?ranks=8&microbatches=32&p2p_time=0.1&schedules=1f1b&open=search")
    page = watched.page
    page.select_option("#search-placement", "v")
    page.fill("#search-seconds", "60")
    page.click("#panel-search .primary")
    page.wait_for_function("() => document.querySelectorAll('.fastest .row').length === 2", timeout=60_000)
    page.focus("#panel-search .progress button")
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelector('#panel-search .outcome').textContent.startsWith('Stopped: ')")
    assert page.is_hidden("#panel-search .progress")
    assert "search v" in page.text_content(".fastest")
    # The server is free again at once: the page's next search is not refused.
    page.fill("#search-seconds", "1")
    page.click("#panel-search .primary")
    page.wait_for_selector("#panel-search .outcome strong", timeout=60_000)


def test_the_front_and_its_points(watched):
    watched.go(f"{SHAPE}&open=front")
    page = watched.page
    page.select_option("#front-placement", "v")
    page.fill("#front-seconds", "2")
    page.fill("#front-points", "3")
    page.click("#panel-front .primary")
    page.wait_for_selector("#panel-front circle", timeout=60_000)
    page.wait_for_selector("#panel-front .outcome:not(:empty)", timeout=60_000)
    points = page.locator("#panel-front circle")
    assert points.count() == page.locator("#panel-front tbody tr").count() > 1
    assert "v-half" in page.locator("#panel-front .of-mark").all_text_contents()
    assert page.locator("#panel-front .of-point").count() == points.count()
    points.last.focus()
    page.keyboard.press("Enter")
    watched.settled("() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of front v')")
    assert points.last.get_attribute("aria-pressed") == "true"
    page.click("#panel-front tbody tr:first-child button")
    watched.settled("() => document.querySelector('#panel-front circle').getAttribute('aria-pressed') === 'true'")
    # Each point that was looked at stays in the comparison.
    watched.settled("() => document.querySelectorAll('.fastest .row').length === 4")
    assert serious_faults(page, "#panel-front") == []
