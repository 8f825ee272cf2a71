"""Both pages as people have them: 1440, 900 and 390 pixels wide, light and dark, by touch, without storage; and axe."""

from __future__ import annotations

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from tests.browser import close_page, new_page, serious_faults
from tests.extensions.web.test_page import Watched

OVER = "?ranks=8&microbatches=16&memory_limit=6act&schedules=1f1b,zbv,v-half,dualpipe,interleaved-1f1b-overlap"


@pytest.fixture
def visit(browser, address):
    """Opens a page as wide as asked for; what goes wrong on it is an error."""
    pages: list[Watched] = []

    def opened(width: int = 1440, scheme: str = "light", **options) -> Watched:
        page = new_page(browser, viewport={"width": width, "height": 900}, color_scheme=scheme, **options)
        pages.append(Watched(page, address))
        return pages[-1]

    yield opened
    for watched in pages:
        close_page(watched.page)
    assert [error for page in pages for error in page.errors] == []


def sticks_out(page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (900, "dark"), (390, "dark")])
def test_the_page_of_schedules_with_every_panel(visit, width, scheme):
    watched = visit(width, scheme)
    page = watched.page
    watched.go(OVER)
    assert "over" in (page.text_content(".results .excluded") or "")
    for panel in ("search", "front", "why"):
        page.click(f"[aria-controls=panel-{panel}]")
        if panel == "why":
            page.wait_for_selector(".explain-body table")
            assert "Rank 0 idles" in (page.text_content(".explain .sentences") or "")
            assert page.text_content(".advice")
        assert not sticks_out(page), panel
        assert serious_faults(page, "body > :not(.pp-timeline)") == [], panel
    assert len(set(page.eval_on_selector_all(".track", "tracks => tracks.map(track => track.offsetWidth)"))) == 1


def test_results_come_first_on_a_phone_and_the_controls_are_a_sheet(visit):
    watched = visit(390, has_touch=True, is_mobile=True)
    page = watched.page
    watched.go("?ranks=4&microbatches=8&schedules=1f1b,zbv")
    assert page.is_hidden("#controls")
    assert page.text_content(".sheet-opener") == "4 ranks, 8 microbatches: change"
    page.tap(".sheet-opener")
    assert page.is_visible("#field-ranks")
    assert page.evaluate("document.activeElement.id") == "field-preset"
    assert page.evaluate("document.querySelector('main').inert")
    assert not sticks_out(page)
    assert serious_faults(page, "#controls") == []
    page.fill("#field-ranks", "0")
    page.wait_for_selector("#field-ranks-error:not([hidden])")
    page.tap(".sheet-closer")
    assert page.is_hidden("#controls")
    page.tap(".banner button")
    assert page.evaluate("document.activeElement.id") == "field-ranks"
    page.fill("#field-ranks", "6")
    page.keyboard.press("Escape")
    watched.settled("() => document.querySelector('.sheet-opener').textContent.startsWith('6 ranks')")
    assert page.evaluate("document.activeElement.matches('.sheet-opener')")
    page.tap(".results button:text-is('1f1b')")
    watched.settled("() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of 1f1b.')")
    page.set_viewport_size({"width": 1000, "height": 800})
    assert page.is_visible("#controls")


def test_costs_to_begin_with_fill_everything(visit):
    watched = visit()
    page = watched.page
    watched.go()
    page.select_option("#field-preset", "gpt-6.2b-24")
    watched.settled("() => document.querySelector('.results thead').textContent.includes('makespan, s')")
    assert page.input_value("#field-forward_times") == "29718"
    assert page.input_value("#field-activation_bytes") == "3.46875GiB"
    assert "Zero Bubble" in (page.text_content("#preset-about") or "")
    assert "--config gpt-6.2b-24" in (page.text_content("#preset-about") or "")
    page.fill("#field-memory_limit", "20 GiB")
    watched.settled("() => document.querySelectorAll('.results .excluded').length > 0")
    page.fill("#field-activation_bytes", "1GiB")
    page.fill("#field-memory_limit", "25 GiB")
    watched.settled("() => document.querySelectorAll('.results .excluded').length === 0")
    page.select_option("#field-preset", "llama3-70b-64")
    watched.settled("() => document.querySelector('#field-ranks').value === '4'")
    assert page.input_value("#field-time_unit") == "ms"
    assert page.input_value("#field-memory_limit") == "74GiB"
    page.select_option("#field-preset", "")
    watched.settled("() => document.querySelector('#field-ranks').value === '8'")
    assert (page.input_value("#field-memory_limit"), page.input_value("#field-forward_times")) == ("", "")


def test_the_page_of_plans(visit):
    watched = visit(390)
    page = watched.page
    page.goto(
        f"{watched.address}/plan?model=llama3-8b&cluster=h100-sxm:8x1&global_batch=16&sequence=4096&seconds=1&fix=pp=2"
    )
    page.wait_for_selector("button.primary")
    assert page.is_visible("#field-model")
    page.fill("#field-global_batch", "x")
    page.click(".ask .primary")
    page.wait_for_selector("#field-global_batch-error:not([hidden])")
    assert page.text_content("#field-global_batch-error") == "Global batch must be a whole number"
    assert page.evaluate("document.activeElement.id") == "field-global_batch"
    page.fill("#field-global_batch", "16")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "() => document.querySelector('.flags pre') && document.querySelector('.pp-chart')", timeout=60_000
    )
    for width, scheme in ((390, "light"), (1440, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert not sticks_out(page)
        assert serious_faults(page) == []
    assert "The bubble is the idle time of all ranks" in (page.text_content(".answer") or "")
    before = page.text_content("main h2")
    page.reload()
    page.wait_for_selector(".flags pre")
    assert page.text_content("main h2") == before
    page.click("text=Compare schedules on these costs")
    page.wait_for_selector(".fastest li")
    assert page.input_value("#field-ranks") == "2"
    assert page.input_value("#field-time_unit") == "ms"
