"""Orders in the fragment of an address: the page computes the times that Python does, and a link holds each edit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.answers.simulating.result import editable, view_of_result
from pipeplan.drawing import View
from pipeplan.model import parse_schedule
from tests.browser import serious_faults
from tests.extensions.web.pages.test_editing import drag

SETTLED = "() => new Promise(done => setTimeout(() => done(location.hash), 600))"
TIMES = """((plot) => ({ start: [...plot.start], end: [...plot.end], peak: [...plot.memory.peak],
  names: [...plot.start.keys()].map(bar => plot.name(bar)), lanes: [...plot.lane],
  idle: plot.view.idle_over_total }))(timeline.plots[0])"""
COSTS: dict[str, Any] = {
    "forward_times": [1.1, 0.7, 1.3, 0.9],
    "backward_times": [2.3, 1.9, 2.1, 2.7],
    "p2p_time": 0.13,
    "op_gap": 0.021,
    "message_time": 0.017,
    "activation_bytes": 3e9,
    "static_bytes": 7e9,
    "time_unit": "ms",
}


def page_view(name: str, **settings: Any) -> tuple[pipeplan.Result, View]:
    result = pipeplan.simulate(name, ranks=4, microbatches=8, **(COSTS | settings))
    return result, editable(result, view_of_result(result))


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("1f1b", {}),
        ("zbv", {"forward_times": 1.1, "backward_times": 2.3}),
        ("dualpipe", {"forward_times": 1.1, "backward_times": 2.3, "overlap_times": 2.9}),
        ("seq1f1b", {"slices": 3}),
        ("mario", {"recompute": "all"}),
        ("1f1b", {"microbatch_factors": [1, 2, 0.5, 1, 1.25, 1, 3, 1]}),
    ],
)
def test_a_page_computes_the_times_and_memory_of_python(opened, name, settings):
    result, view = page_view(name, **settings)
    link = "order=" + opened(view).ask("pipeplan.orderFragment(timeline.data)").removeprefix("order=")
    # A page of another schedule shows the order of the link, and computes it by itself.
    other = opened(page_view("gpipe")[1], fragment=link)
    other.page.wait_for_function("() => pipeplan.embedded !== null")
    drawn = other.ask(TIMES)
    assert drawn["start"] == result.timeline.start.tolist()
    assert drawn["end"] == result.timeline.end.tolist()
    assert drawn["lanes"] == result.schedule.rank.tolist()
    assert drawn["names"] == [str(op) for row in result.schedule for op in row]
    assert drawn["idle"] == pytest.approx(result.bubble.idle_over_total, rel=1e-12)
    assert result.peak_bytes is not None
    np.testing.assert_allclose(drawn["peak"], result.peak_bytes, rtol=1e-9)


def test_an_edit_is_in_the_address_and_has_the_times_of_python(opened):
    result, view = page_view("1f1b")
    page = opened(view)
    page.page.click("text=Edit order")
    x, y, width, height = page.place("2B0")
    drag(page, "2F1", (x + width - 2, y + height / 2))
    page.page.mouse.up()
    said = page.page.inner_text(".pp-order-text")
    assert re.match(r"It runs: makespan [\d.]+ ms, \+[\d.]+% against [\d.]+ ms before\.", said), said
    edited = page.ask(TIMES)
    link = page.page.evaluate(SETTLED)
    assert link.startswith("#order=1.")

    rows: list[list[str]] = [[] for _ in range(4)]
    for lane, op in zip(edited["lanes"], edited["names"], strict=True):
        rows[lane].append(op)
    again = pipeplan.simulate(parse_schedule("\n".join(" ".join(row) for row in rows)), **COSTS)
    assert edited["end"] == again.timeline.end.tolist()
    assert edited["end"] != result.timeline.end.tolist()

    other = opened(page_view("gpipe")[1], fragment=f"{link[1:]}&from=0&to=12")
    other.page.wait_for_function("() => pipeplan.embedded !== null")
    assert other.ask(TIMES) == edited
    assert other.page.evaluate(SETTLED) == f"{link}&from=0&to=12"


def test_edits_are_undone_and_reset(opened):
    page = opened(page_view("1f1b")[1])
    before = page.ask(TIMES)
    page.page.click("text=Edit order")
    assert page.page.is_disabled("text=Undo")
    page.press("ArrowRight", "ArrowRight", "Alt+ArrowRight")
    edited = page.ask(TIMES)
    assert edited["names"] != before["names"]
    page.page.click("text=Undo")
    assert page.ask(TIMES)["end"] == before["end"]
    page.page.click("text=Redo")
    assert page.ask(TIMES) == edited
    page.page.click("text=Reset")
    assert page.ask(TIMES)["names"] == before["names"]


def test_an_edit_keeps_the_lanes_of_overlapped_pairs(opened):
    halves = {"backward_input": [("compute", 1.0)], "backward_weight": [("compute", 1.0)]}
    segments = [
        {"forward": [("compute", time), ("all_to_all", 0.5), ("compute", 0.5)], **halves} for time in (1, 3, 2, 1)
    ]
    result = pipeplan.simulate("1f1b-overlap", ranks=4, microbatches=8, segments=segments)
    page = opened(editable(result, view_of_result(result)))
    before = page.ask("timeline.plots[0].pairs")
    page.page.click("text=Edit order")
    page.press("ArrowRight", "ArrowRight", "Alt+ArrowRight")
    assert page.ask("timeline.plots[0].pairs") == before is not None
    assert page.ask("timeline.plots[0].view.title").endswith("edited")


def test_a_deadlock_is_said_and_drawn(opened):
    page = opened(page_view("1f1b")[1])
    page.page.click("text=Edit order")
    x, y, _, height = page.place("0F0")
    drag(page, "0B0", (x + 1, y + height / 2))
    page.page.mouse.up()
    assert "Deadlock after 0 of 64 ops: rank 0 stops before 0B0" in page.page.inner_text(".pp-order-text")
    assert serious_faults(page.page) == []
    for width in (900, 390):
        page.page.set_viewport_size({"width": width, "height": 844})
        page.painted()
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_damaged_link_is_said_and_the_page_shows_its_own_schedule(opened):
    page = opened(page_view("1f1b")[1], fragment="order=1.AAAA")
    page.page.wait_for_function("() => pipeplan.embedded !== null")
    assert page.page.inner_text(".pp-order-text") == (
        "This link is damaged or incomplete: ask for it again, or for the page as a file. "
        "This is the page's own schedule."
    )
    assert page.ask("timeline.plots[0].view.title") == "1f1b"


def test_a_saved_page_holds_the_order_by_itself(opened, tmp_path):
    page = opened(page_view("1f1b")[1])
    page.page.click("text=Edit order")
    page.press("ArrowRight", "ArrowRight", "Alt+ArrowRight")
    edited = page.ask(TIMES)
    with page.page.expect_download() as download:
        page.page.click("text=Save page")
    page.path.write_bytes(download.value.path().read_bytes())
    page.go()
    page.page.wait_for_function("() => pipeplan.embedded !== null")
    assert page.ask(TIMES)["end"] == edited["end"]
    assert page.page.is_visible("text=Edit order")


@pytest.mark.parametrize("settings", [{"communication": "blocking"}, {"communication": "streams"}])
def test_a_page_without_the_rules_of_its_times_has_no_editor(opened, settings):
    _, view = page_view("1f1b", **settings)
    assert view.order is None
    assert opened(view).page.locator(".pp-order").count() == 0
