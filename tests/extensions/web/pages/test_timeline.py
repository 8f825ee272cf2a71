"""The interactive timeline: what it shows, and moving about in it."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from pipeplan.drawing import Windows, view_of
from pipeplan.drawing.theme import DARK, LIGHT
from pipeplan.model import Kind
from pipeplan.simulation.critical import critical_ops
from tests.extensions.web.pages.plans import measured, plan, simulated

FORWARD = LIGHT.shades(Kind.F, 1)[0]
BACKWARD = LIGHT.shades(Kind.B, 1)[0]


def close_to(color: str, other: str) -> bool:
    """Whether two colours differ by rounding only."""
    return all(abs(int(color[at : at + 2], 16) - int(other[at : at + 2], 16)) <= 2 for at in (1, 3, 5))


def test_bars_stand_at_their_times_in_their_colours(opened):
    page = opened(plan())
    x, y, width, height = page.place("0F1")
    first, _, one, _ = page.place("0F0")
    assert x == pytest.approx(first + one)
    assert width == pytest.approx(one)
    assert page.place("0B0")[2] == pytest.approx(2 * one)
    assert close_to(page.pixel(x + 2, y + 3), FORWARD)
    bx, by, _, _ = page.place("0B0")
    assert close_to(page.pixel(bx + 3, by + 3), BACKWARD)
    assert close_to(page.pixel(bx - 5, by + height / 2), LIGHT.lane)


def test_the_wheel_with_ctrl_zooms_around_the_pointer(opened):
    page = opened(plan())
    page.page.keyboard.down("Control")
    assert page.span() is None
    before = page.middle("2F3")
    page.page.mouse.move(*before)
    for _ in range(4):
        page.page.mouse.wheel(0, -150)
        page.painted()
    assert page.middle("2F3") == pytest.approx(before, abs=3), "the wheel tells whole pixels"
    start, end = page.span()
    assert end - start < 0.5 * plan().makespan
    for _ in range(10):
        page.page.mouse.wheel(0, 300)
        page.painted()
    assert page.span() is None


def test_pointing_at_an_op_tells_its_times_and_waits(opened):
    page = opened(plan())
    message = page.hover("2F1")
    assert message.split()[:2] == ["2F1", "forward"]
    for words in (
        "rank 2, stage 2, microbatch 1",
        "4 to 5 (1)",
        "2F0 until 4.0 (held it), 1F1 on rank 1 until 3.5",
        "3F1, 2B1",
    ):
        assert words in message
    assert "2F0 on rank 2 until 4 (held it)" in page.hover("3F0")
    page.page.mouse.move(5, 5)
    assert page.tooltip() == ""


def test_idle_time_in_a_window_of_the_bound_says_so(opened):
    bound = "no schedule within the memory limit takes less than 30"
    at = [np.array([value]) for value in (3, 0.0, 6.0, 2.5, 1.5)]
    windows = Windows(lane=at[0], start=at[1], end=at[2], idle=at[3], least=at[4], kind=("first",))
    page = opened(replace(plan(), windows=windows, bound=bound))
    x, y, *_ = page.place("3F0")
    page.page.mouse.move(x - 60, y + 10)
    assert "to the first backward, 0 to 6: idle 2.5, under the memory limit 1.5 or more" in page.tooltip()
    svg = page.ask("timeline.svg()")
    assert bound in svg
    page.press("g")
    assert page.ask("timeline.svg()").count(LIGHT.limit) > svg.count(LIGHT.limit)


def test_a_click_lights_the_chain(opened):
    page = opened(plan())
    page.page.mouse.click(*page.middle("3F0"))
    page.painted()
    chain = page.ask("timeline.lit.chain")
    assert chain[:4] == ["0F0", "1F0", "2F0", "3F0"]
    assert chain[4] == "3B0"
    assert chain[-1] == "0B7"
    assert page.fragment()["op"] == "0:3F0"
    page.page.mouse.click(*page.middle("3F0"))
    assert page.ask("timeline.lit.chain") == []


@pytest.mark.parametrize("name", ["interleaved-1f1b", "zbv"])
def test_the_critical_path_is_the_simulators(opened, name):
    timeline = simulated(name, 4, 8, p2p_time=0.5).timeline
    page = opened(view_of(timeline), fragment="critical=1")
    expected = [str(timeline.schedule.op(op)) for op in critical_ops(timeline)]
    assert page.ask("timeline.lit.critical") == [expected]


def test_search_finds_ops_and_steps_through_them(opened):
    page = opened(plan())
    assert page.find("3F7") == "1 of 1"
    page.page.keyboard.press("Enter")
    page.painted()
    assert page.place("3F7")[2] >= 50
    assert "3F7, forward" in page.page.get_by_role("status").inner_text()
    assert page.find("f7") == "1 of 4"
    assert page.ask("timeline.lit.found") == ["0F7", "1F7", "2F7", "3F7"]
    page.page.keyboard.press("Enter")
    page.page.keyboard.press("Enter")
    page.painted()
    assert page.page.locator(".pp-matches").inner_text() == "2 of 4"
    assert page.find("9F9") == "not in the schedule"
    assert page.find("3?7") == "type an op, such as 3F7"
    page.page.keyboard.press("Escape")
    page.painted()
    assert page.ask("timeline.lit.found") == []


def test_everything_can_be_reached_by_keys(opened):
    page = opened(plan(), plan("gpipe"))
    status = page.page.get_by_role("status")
    page.press("ArrowRight")
    assert status.inner_text().startswith("0F0, forward")
    page.press("ArrowRight", "ArrowRight")
    assert status.inner_text().startswith("0F2, forward")
    page.press("End", "ArrowDown")
    assert status.inner_text().startswith("1B7, backward")
    page.press("Home", "Enter")
    assert page.ask("timeline.lit.chain")[:2] == ["0F0", "1F0"]
    page.press("Escape")
    assert page.ask("timeline.lit.chain") == []
    page.press("+", "+")
    start, _ = page.span()
    page.press("Shift+ArrowRight")
    assert page.span()[0] > start
    page.press("0", "c", "g", "o")
    assert page.span() is None
    assert page.fragment() == {"critical": "1", "gaps": "1", "layout": "overlaid"}
    page.press("/")
    page.page.keyboard.type("2b3")
    page.painted()
    assert page.ask("timeline.lit.found") == ["2B3", "2B3"]
    page.press("?")
    assert page.page.get_by_role("dialog").is_visible()


def test_the_table_says_what_the_picture_shows(opened):
    view = plan()
    page = opened(view)
    table = page.page.get_by_role("table")
    heads = table.locator("thead th").all_inner_texts()
    rows = [row.locator("th, td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert [row[0] for row in rows] == list(view.lanes.label)
    idle = [float(row[heads.index("idle")]) for row in rows]
    assert idle == pytest.approx((view.makespan - view.lanes.work).tolist())
    reasons = [at for at, head in enumerate(heads) if head.startswith("idle: ")]
    assert [sum(float(row[at]) for at in reasons) for row in rows] == pytest.approx(idle)
    assert [float(row[heads.index("peak memory (activations)")]) for row in rows] == [4, 3, 2, 1]


def test_a_measured_run_lies_over_its_plan(opened):
    page = opened(plan(), measured(), fragment="layout=overlaid")
    assert page.place("0F0", 0)[1] < page.place("0F0", 1)[1] < page.place("1F0", 0)[1]
    message = page.hover("1F1", 1)
    assert "measured" in message
    assert "starts -0.25, lasts -0.10" in message


def test_a_link_holds_the_state(opened):
    page = opened(plan(), plan("gpipe"))
    page.page.mouse.click(*page.middle("2F3", 1))
    page.press("c", "b", "t")
    page.find("1F1")
    page.press("+")
    state = page.fragment()
    assert state.keys() == {"from", "to", "op", "critical", "memory", "theme", "find"}
    assert state["op"] == "1:2F3"
    before = page.ask("[timeline.fragment, timeline.lit]")
    page.page.reload()
    page.painted()
    assert page.ask("[timeline.fragment, timeline.lit]") == before


def test_svg_is_what_shows(opened, tmp_path: Path):
    page = opened(plan(title="a <b> & 'c'"), fragment="critical=1&gaps=1")
    with page.page.expect_download() as saving:
        page.page.get_by_role("button", name="save the view as SVG").click()
    saving.value.save_as(tmp_path / "x.svg")
    assert saving.value.suggested_filename == "a_b_c.svg"
    root = ElementTree.parse(tmp_path / "x.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    fills = {element.get("fill") for element in root.iter()}
    assert "a <b> & 'c'" in texts
    assert {"rank 3", "3F7", "0B0", "limit 3", "forward", "idle: before the first microbatch arrives 9 (5.5%)"} <= set(
        texts
    )
    assert {FORWARD, BACKWARD, LIGHT.reasons["start-up"]} <= fills


@pytest.mark.parametrize(("scheme", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_the_page_is_as_light_or_dark_as_the_system(opened, scheme, theme):
    page = opened(plan(), color_scheme=scheme)
    x, y, _, _ = page.place("0F0")
    assert close_to(page.pixel(x + 2, y + 3), theme.shades(Kind.F, 1)[0])
    page.press("t", "t")
    assert page.fragment() == {"theme": "dark"}
    assert close_to(page.pixel(x + 2, y + 3), DARK.shades(Kind.F, 1)[0])


def test_titles_and_units_are_never_html(opened):
    hostile = "</script><script>document.title='broken'</script><img src=x onerror=alert(1)>"
    page = opened(plan(title=hostile, time_unit="<i>ms"))
    assert page.page.title() == hostile
    assert hostile in page.page.locator("caption").inner_text()
    assert page.page.locator("img, i").count() == 0
    assert "<i>ms" in page.hover("0F1")


def test_other_data_keeps_what_was_chosen(opened):
    page = opened(plan(microbatches=16), plan(), fragment="from=3&to=9&op=0:2F3")
    fragment = page.ask("timeline.fragment")
    script = """(() => {
      const data = JSON.parse(document.getElementById("pipeplan-data").textContent);
      timeline.update({ ...data, views: [data.views[1]] });
      return [timeline.fragment, timeline.lit.chain.includes("2F3")];
    })()"""
    assert page.ask(script) == [fragment, True]
    page.painted()
    assert page.span() == (3, 9)
