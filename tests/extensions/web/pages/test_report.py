"""The page of a comparison in a real browser: what it says, and what a reader does with it by pointer, keys and touch."""

import re
from pathlib import Path

import pytest

import pipeplan
from pipeplan.foundation.readable import time_text
from tests.browser import new_page, serious_faults
from tests.extensions.web.pages.opened import Opened, opening

GIB = 2**30
SIZES = [(1440, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def compared():
    return pipeplan.compare(
        ranks=4, microbatches=7, forward_times=29.7, p2p_time=0.5, time_unit="ms", activation_bytes=3 * GIB
    )


@pytest.fixture(scope="module")
def path(compared, tmp_path_factory) -> Path:
    result: Path = tmp_path_factory.mktemp("report") / "comparison.html"
    compared.save(result)
    return result


@pytest.fixture
def opened(browser, path):
    with opening(browser, path) as open_page:
        yield open_page


def names(page: Opened) -> list[str]:
    result: list[str] = page.page.locator(".pr-table tbody th button").all_inner_texts()
    return result


def drawn(page: Opened) -> list[str]:
    """The schedules whose timelines show, as a screen reader hears it."""
    page.painted()
    label = page.page.locator(".pp-chart").get_attribute("aria-label") or ""
    match = re.match(r"Timeline of (.*?)\. ", label)
    assert match is not None
    return match[1].split(", ")


def row(page: Opened, name: str):
    return page.page.locator(".pr-table tbody tr").filter(has=page.page.get_by_role("button", name=name, exact=True))


def test_the_page_of_a_comparison(opened, compared):
    page = opened()
    best = compared.best
    assert (
        page.page.get_by_role("heading", level=1).inner_text()
        == f"{len(compared)} schedules on 4 ranks, 7 microbatches"
    )
    assert page.page.locator(".pr-comparison > *").first.inner_text() == compared.headline
    assert "29.7 ms forward and 59.4 ms backward" in page.page.locator(".pr-costs").inner_text()

    # The table: the shortest first, bars on one track, the bound of its placement and the least of all.
    assert names(page) == [result.name for result in compared]
    widths = page.page.locator(".pr-table .track").evaluate_all("tracks => tracks.map(track => track.clientWidth)")
    assert len(set(widths)) == 1
    shares = page.page.locator(".pr-table .fill").evaluate_all(
        "fills => fills.map(fill => parseFloat(fill.style.width))"
    )
    longest = max(result.makespan for result in compared)
    assert shares == pytest.approx([100 * result.makespan / longest for result in compared], abs=0.1)
    least = compared.least.value
    assert f"can be shorter than {time_text(least, 'ms')} (placement" in page.page.locator(".pr-notes").inner_text()
    cells = row(page, best.name).locator("td").all_inner_texts()
    assert cells[-1] == f"{best.makespan / least - 1:.1%}"

    # What is refused is told with its reason, what is drawn are the best and the best known.
    page.page.locator(".pr-notes summary").click()
    assert all(name in page.page.locator(".pr-notes details").inner_text() for name in compared.refused)
    assert drawn(page) == [best.name, "1f1b"]

    # Headings sort by pointer and by key, and say so.
    peak = page.page.get_by_role("button", name=re.compile("peak"))
    heading = page.page.locator("th", has=peak)
    peak.click()
    assert heading.get_attribute("aria-sort") == "ascending"
    peaks = {result.name: float(result.memory.peak_bytes.max()) for result in compared}
    assert names(page)[0] == min(peaks, key=peaks.__getitem__)
    page.page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert peaks[names(page)[0]] == max(peaks.values())

    # Ticks draw and take away, four at most; a name draws its schedule alone; timelines stand in the order of makespans.
    third = compared.results[2].name
    page.page.get_by_role("checkbox", name=f"draw {third}", exact=True).press("Space")
    assert drawn(page) == [best.name, third, "1f1b"]
    assert page.page.evaluate("document.activeElement.getAttribute('aria-label')") == f"draw {third}"
    page.page.get_by_role("checkbox", name=f"draw {compared.results[1].name}", exact=True).check()
    assert page.page.get_by_role("checkbox", disabled=True).count() == len(compared) - 4
    row(page, third).get_by_role("button").click()
    assert drawn(page) == [third]
    page.page.get_by_role("checkbox", name=f"draw {third}", exact=True).uncheck()
    assert page.page.locator(".pr-empty").first.is_visible()
    row(page, "gpipe").get_by_role("button").click()
    assert drawn(page) == ["gpipe"]

    # The state is in the address, with that of the timeline.
    page.press("g")
    page.page.wait_for_function("() => location.hash.includes('gaps=1')")
    assert page.fragment() == {"draw": "gpipe", "sort": "-peak", "gaps": "1"}


def test_a_limit_that_was_given_is_the_pages(browser, tmp_path):
    path = tmp_path / "limited.html"
    pipeplan.compare("1f1b", "gpipe", "zbv", ranks=4, microbatches=8, memory_limit="4act").save(path)
    page = Opened(new_page(browser), path)
    page.go()
    assert page.page.get_by_role("spinbutton").input_value() == "4"
    assert "4 act. over" in row(page, "gpipe").inner_text()
    page.close()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_it_can_be_read_everywhere(opened, width, scheme):
    page = opened("limit=9000000000", width, color_scheme=scheme, has_touch=width < 500)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    assert serious_faults(page.page) == []
    if width < 500:
        box = page.page.get_by_role("checkbox", name="draw gpipe", exact=True)
        box.scroll_into_view_if_needed()
        box.tap()
        assert "gpipe" in drawn(page)
