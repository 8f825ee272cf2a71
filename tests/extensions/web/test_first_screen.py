"""The first screen in a real browser: sentence, timeline and rows; links, history, large shapes, a server that restarts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pipeplan
from tests.browser import close_page, new_page
from tests.extensions.web.running import running
from tests.extensions.web.test_page import LATER_MS, Watched, watching

TOPS = """() => Object.fromEntries(
  [".headline", ".pp-chart", ".sheet-opener", "#controls", ".fastest", ".panel-bar"].map(selector => {
    const { top, left, bottom } = document.querySelector(selector).getBoundingClientRect();
    return [selector, { top, left, bottom }];
  }))"""
"""Where the parts of the page are."""

PIXELS = """canvas => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const colours = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] > 0) colours.add(data.slice(at, at + 3).join());
  return [...colours];
}"""
"""The colours of a thumbnail."""


@pytest.fixture
def watched(browser, address) -> Iterator[Watched]:
    yield from watching(browser, address, viewport={"width": 1440, "height": 900})


def shown(watched: Watched, name: str) -> None:
    watched.settled(f"() => document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of {name}.')")


def unchanged(watched: Watched) -> None:
    """Wait for longer than the page does before it writes another address."""
    watched.page.wait_for_timeout(LATER_MS)


def test_it_is_the_sentence_the_best_timeline_and_six_rows(watched):
    watched.go(table=False)
    page = watched.page
    shown(watched, "zbv")
    table = pipeplan.compare(ranks=8, microbatches=24, p2p_time=0.1)
    assert page.text_content(".headline") == table.headline
    rows = page.locator(".fastest .row")
    assert rows.locator(".name").all_text_contents() == [result.name for result in table.results[:6]]
    assert rows.first.get_attribute("aria-pressed") == "true"
    tops = page.evaluate(TOPS)
    assert tops[".headline"]["bottom"] <= tops[".pp-chart"]["top"] < 300
    assert tops[".fastest"]["left"] > tops[".pp-chart"]["left"]
    assert tops[".fastest"]["top"] < tops[".pp-chart"]["bottom"]
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_bars_begin_at_the_bound_so_that_near_times_differ(watched):
    watched.go(table=False)
    page = watched.page
    table = pipeplan.compare(ranks=8, microbatches=24, p2p_time=0.1)
    assert page.text_content(".fastest .hint") == f"Bars begin at the bound, {table.least.value:g}."
    widths = page.eval_on_selector_all(".fastest .bar", "bars => bars.map(bar => bar.getBoundingClientRect().width)")
    above = [result.makespan - table.least.value for result in table.results[:6]]
    assert widths[0] / widths[5] == pytest.approx(above[0] / above[5], abs=0.02)


def test_each_row_has_a_thumbnail_of_its_timeline_and_shows_it(watched):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b,zb-h1,gpipe", table=False)
    page = watched.page
    page.wait_for_function(f"() => ({PIXELS})(document.querySelector('.thumbnail')).length > 0")
    kinds = {name: len(pipeplan.simulate(name, ranks=4, microbatches=8).schedule.kinds) for name in ("zb-h1", "1f1b")}
    for name, count in kinds.items():
        assert len(page.locator(f"[data-key='row {name}'] .thumbnail").evaluate(PIXELS)) == count
    top = page.evaluate(TOPS)[".pp-chart"]["top"]
    with page.expect_request("**/api/draw") as request:
        page.click("[data-key='row gpipe']")
    assert request.value.post_data_json["schedules"] == ["gpipe"]
    shown(watched, "gpipe")
    assert page.evaluate(TOPS)[".pp-chart"]["top"] == top
    assert page.get_attribute("[data-key='row gpipe']", "aria-pressed") == "true"


@pytest.mark.parametrize("panel", ["search", "front", "why"])
def test_panels_open_beside_the_timeline(watched, panel):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b,zb-h1", table=False)
    page = watched.page
    before = page.evaluate(TOPS)[".headline"]["bottom"]
    page.click(f"[aria-controls=panel-{panel}]")
    tops = page.evaluate(TOPS)
    box = page.locator(f"#panel-{panel}").bounding_box()
    assert tops[".headline"]["bottom"] == before
    assert box["x"] > tops[".pp-chart"]["left"] + 200
    assert box["y"] < tops[".pp-chart"]["bottom"]
    page.click(f"[aria-controls=panel-{panel}]")
    assert page.is_visible(".fastest")


def test_on_a_phone_the_order_is_sentence_timeline_form_rows(browser, address):
    for watched in watching(browser, address, viewport={"width": 390, "height": 844}):
        watched.go(table=False)
        shown(watched, "zbv")
        tops = watched.page.evaluate(TOPS)
        order = [".headline", ".pp-chart", ".sheet-opener", ".panel-bar", ".fastest"]
        assert sorted(order, key=lambda part: tops[part]["top"]) == order
        assert not watched.page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_a_large_shape_is_answered_with_what_the_server_can_hold(watched):
    sizes: list[int] = []
    watched.page.on(
        "response", lambda answer: sizes.append(len(answer.body())) if "/api/compare" in answer.url else None
    )
    watched.go("?ranks=64&microbatches=512&p2p_time=0.1", table=False)
    page = watched.page
    shown(watched, "zbv")
    assert page.locator(".fastest .row").count() == 6
    message = page.text_content(".left-out") or ""
    assert message.startswith("Large shape: shows the fastest 10 of 14 schedules; not computed here")
    assert "slimpipe" in message
    page.click(".more button >> nth=0")
    assert list(watched.rows())[:2] == ["zbv", "interleaved-zb"]
    assert len(watched.rows()) == 10
    assert max(sizes) < 400_000
    page.click(".results button:text-is('1f1b')") if "1f1b" in watched.rows() else page.click(
        ".results button >> nth=3"
    )
    watched.settled("() => !document.querySelector('.pp-chart').ariaLabel.startsWith('Timeline of zbv.')")


def test_back_undoes_a_change_of_the_form_and_forward_makes_it_again(watched):
    watched.go("?ranks=4&microbatches=8&schedules=1f1b,zb-h1", table=False)
    page = watched.page
    page.fill("#field-ranks", "6")
    watched.addressed("ranks", "6")
    page.fill("#field-microbatches", "12")
    watched.addressed("microbatches", "12")
    page.click("[data-key='row 1f1b']")
    watched.addressed("show", "1f1b")
    shown(watched, "1f1b")
    page.go_back()
    shown(watched, "zb-h1")
    page.go_back()
    watched.settled("() => document.querySelector('#field-microbatches').value === '8'")
    assert page.input_value("#field-ranks") == "6"
    page.go_back()
    watched.settled("() => document.querySelector('#field-ranks').value === '4'")
    page.go_forward()
    page.go_forward()
    watched.settled("() => document.querySelector('#field-microbatches').value === '12'")
    makespan = pipeplan.simulate("zb-h1", ranks=6, microbatches=12).makespan
    watched.settled(f"() => document.querySelector('.fastest .number').textContent === '{makespan:g}'")


def test_back_undoes_an_edit(watched):
    watched.page.goto(f"{watched.address}/?ranks=4&microbatches=8&schedules=1f1b&show=1f1b&open=edit")
    page = watched.page
    page.wait_for_selector(".edit[data-judged]")
    original = page.input_value(".rows-text")
    edits = [original.replace("1F3 1B1", "1B1 1F3", 1), original.replace("0F2 0F3", "0F3 0F2", 1)]
    for text in edits:
        page.fill(".rows-text", text)
        page.wait_for_function("text => history.state?.rows === text", arg=text)
        page.wait_for_timeout(2 * LATER_MS)  # changes in quick succession are one entry
    text_is = "text => document.querySelector('.rows-text').value === text"
    for expected in (edits[0], original):
        page.go_back()
        page.wait_for_function(text_is, arg=expected)
    page.go_forward()
    page.wait_for_function(text_is, arg=edits[0])
    page.reload()
    page.wait_for_selector(".edit[data-judged]")
    assert page.input_value(".rows-text") == edits[0]


@pytest.mark.parametrize("how", ["forward", "typed"])
def test_a_schedule_that_arrives_late_does_not_replace_an_edit(watched, how):
    watched.page.goto(f"{watched.address}/?ranks=4&microbatches=8&schedules=1f1b&show=1f1b&open=edit")
    page = watched.page
    page.wait_for_selector(".edit[data-judged]")
    edit = page.input_value(".rows-text").replace("1F3 1B1", "1B1 1F3", 1)
    page.fill(".rows-text", edit)
    page.wait_for_function("text => history.state?.rows === text", arg=edit)
    late: list[Any] = []
    page.route("**/api/edit/begin", lambda route: late.append(route))  # noqa: PLW0108 - Playwright marks the function
    with page.expect_request("**/api/edit/begin"):
        page.go_back()
    if how == "forward":
        page.go_forward()
    else:
        page.fill(".rows-text", edit)
    page.wait_for_function("text => document.querySelector('.rows-text').value === text", arg=edit)
    with page.expect_response("**/api/edit/begin"):
        late.pop(0).continue_()
    unchanged(watched)
    assert page.input_value(".rows-text") == edit
    assert page.evaluate("history.state?.rows") == edit


def test_a_link_of_a_preset_opens_as_that_preset(watched):
    watched.go(table=False)
    page = watched.page
    page.select_option("#field-preset", "gpt-6.2b-24")
    watched.settled("() => document.querySelector('#field-forward_times').value === '29718'")
    page.fill("#field-memory_limit", "20GiB")
    page.fill("#field-p2p_time", "")
    watched.addressed("p2p_time", "")
    written_query = parse_qs(urlsplit(page.url).query, keep_blank_values=True)
    assert written_query == {"preset": ["gpt-6.2b-24"], "p2p_time": [""], "memory_limit": ["20GiB"]}
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".fastest li")
    assert page.input_value("#field-preset") == "gpt-6.2b-24"
    assert "--config gpt-6.2b-24" in (page.text_content("#preset-about") or "")
    values = {name: page.input_value(f"#field-{name}") for name in ("forward_times", "memory_limit", "p2p_time")}
    assert values == {"forward_times": "29718", "memory_limit": "20GiB", "p2p_time": ""}
    unchanged(watched)
    assert page.url == link


@pytest.mark.parametrize(
    ("link", "message", "name", "query"),
    [
        ("?ranks=4&schedules=zbw,1f1b", "Unknown schedule \u201czbw\u201d", "zbv", "ranks=4&schedules=zbv,1f1b"),
        ("?preset=gpt-6.2b", "Unknown preset \u201cgpt-6.2b\u201d", "gpt-6.2b-24", "preset=gpt-6.2b-24"),
        ("?rank=4&schedules=1f1b", "Unknown setting \u201crank\u201d", "ranks", "ranks=4&schedules=1f1b"),
        (
            "?ranks=4&schedules=1f1b&machine=megatron-a10",
            "Unknown machine \u201cmegatron-a10\u201d",
            "megatron-a100",
            "ranks=4&machine=megatron-a100&schedules=1f1b",
        ),
    ],
)
def test_an_unknown_name_of_a_link_is_said_with_the_nearest_one(watched, link, message, name, query):
    watched.go(link, table=False)
    page = watched.page
    page.wait_for_selector(".fastest li")
    assert page.text_content(".notices li") == f"{message} in this link.Did you mean {name}?"
    page.click(f".notices button:text-is('{name}')")
    watched.settled("() => document.querySelector('.notices').hidden")
    unchanged(watched)
    assert parse_qs(urlsplit(page.url).query) == parse_qs(query)


def test_an_unknown_theme_of_a_link_is_said(watched):
    watched.go("?ranks=4&schedules=1f1b#theme=drak", table=False)
    page = watched.page
    page.click(".notices button:text-is('dark')")
    page.wait_for_selector(".timeline[data-theme=dark]")


def test_it_goes_on_by_itself_after_a_restart_of_the_server(browser):
    with running() as address:
        page = new_page(browser, viewport={"width": 1440, "height": 900})
        page.goto(f"{address}/?ranks=4&microbatches=8&schedules=1f1b")
        page.wait_for_selector(".fastest li")
    page.fill("#field-ranks", "6")
    page.wait_for_selector(".away:not([hidden])")
    assert "The server is away" in page.text_content(".away")
    assert "1f1b" in page.text_content(".fastest")
    with running(port=int(urlsplit(address).port or 0)):
        makespan = pipeplan.simulate("1f1b", ranks=6, microbatches=8).makespan
        # Three seconds from here on, and what a loaded machine takes for the answer.
        page.wait_for_function(f"() => document.querySelector('.fastest .number').textContent === '{makespan:g}'")
        assert page.is_hidden(".away")
        close_page(page)
