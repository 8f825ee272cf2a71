"""Moving and measuring by keys, wheel, pointer and finger."""

import pytest

from tests.extensions.web.pages.plans import plan

TOTALS = """(() => {
  const cells = row => [...row.cells].map(cell => cell.innerText.trim());
  const rows = [...document.querySelectorAll(".pp-measure tr")].map(cells);
  return document.querySelector(".pp-measure").hidden ? [] : rows;
})()"""


def shift_drag(page, start: tuple[float, float], end: tuple[float, float]) -> None:
    page.page.keyboard.down("Shift")
    page.page.mouse.move(*start)
    page.page.mouse.down()
    page.page.mouse.move(*end, steps=4)
    page.page.mouse.up()
    page.page.keyboard.up("Shift")
    page.painted()


def hold(page, key: str, until: str) -> None:
    """Keep a key down until the start and the end of what shows, ``from`` and ``to``, are so."""
    page.page.keyboard.down(key)
    page.page.wait_for_function(
        "() => { const state = new URLSearchParams(pipeplan.embedded.fragment);"
        f" const [from, to] = ['from', 'to'].map(name => Number(state.get(name))); return {until}; }}"
    )
    page.page.keyboard.up(key)
    page.painted()


def touches(page, *points: tuple[float, float], rests: bool = False) -> None:
    """One finger down at the first point, over the others, and up; one that rests first waits for what is said."""
    touch = page.page.context.new_cdp_session(page.page)
    for at, (x, y) in enumerate(points):
        kind = "touchStart" if at == 0 else "touchMove"
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        if at == 0 and rests:
            page.page.locator(".pp-tooltip").wait_for()
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.painted()


def test_keys_fly_as_long_as_they_are_held(opened):
    page = opened(plan(), fragment="from=10&to=20")
    x, y = page.middle("2F3")
    page.page.mouse.move(x, y)
    page.press("d")
    tapped = page.span()
    assert tapped == pytest.approx((10.8, 20.8))
    hold(page, "d", "from > 12")
    held = page.span()
    page.page.wait_for_timeout(100)
    assert page.span() == held, "a key that is up moves nothing"
    hold(page, "A", f"from < {held[0]} - 1")
    before = page.span()
    middle = page.page.evaluate("() => document.querySelector('.pp-chart').getBoundingClientRect().x")
    page.press("w")
    start, end = page.span()
    assert end - start == pytest.approx((before[1] - before[0]) / 1.2)
    assert (x - middle) > 0
    hold(page, "s", "to === 0 || to - from > 12")


def test_the_wheel_scrolls_or_zooms_as_the_switch_says(opened):
    page = opened(*[plan(name, 8, 16) for name in ("1f1b", "gpipe", "zb-h1", "interleaved-1f1b")])
    page.page.mouse.move(*page.middle("3F0"))
    _, before = page.middle("3F0")
    page.page.mouse.wheel(0, 60)
    page.painted()
    assert page.middle("3F0")[1] == pytest.approx(before - 60, abs=1)
    assert page.span() is None
    page.page.keyboard.down("Shift")
    page.page.mouse.wheel(0, 60)
    page.page.keyboard.up("Shift")
    page.page.get_by_role("button", name="wheel scrolls or zooms").click()
    page.page.mouse.move(*page.middle("3F0"))
    page.page.mouse.wheel(0, -200)
    page.painted()
    assert page.span() is not None
    page.page.reload()
    page.painted()
    assert page.page.get_by_role("button", name="wheel scrolls or zooms").inner_text() == "Wheel: zoom"


def test_shift_and_drag_measures_what_adds_up(opened):
    view = plan()
    page = opened(view)
    x, y = page.middle("0F2")
    end, low, *_ = page.place("2B1")
    shift_drag(page, (x - 13, y), (end + 2, low + 9))
    head, whole, share, *ranks = page.ask(TOTALS)
    assert page.page.locator(".pp-measure h2").inner_text() == "9 (22.0% of the step), from 2 to 11, 3 ranks"
    assert head[:3] == ["rank", "forward", "backward"]
    assert [row[0] for row in ranks] == ["rank 0", "rank 1", "rank 2"]
    for row in ranks:
        assert sum(float(cell) for cell in row[1:-1]) == pytest.approx(9)
        assert float(row[-1]) == 9
    for at in range(1, len(head)):
        assert float(whole[at]) == pytest.approx(sum(float(row[at]) for row in ranks))
    assert share[-1] == "100.0%"
    assert page.ask("timeline.lit.chain") == [], "a drag is not a click"
    assert page.fragment()["band"] == "2~11~0:0~0:2"
    page.press("f")
    start, end = page.span()
    assert (start, end) == pytest.approx((1.1, 11.9))
    page.press("Escape")
    assert page.ask(TOTALS) == []


def test_a_measured_interval_can_be_copied_kept_in_a_link_and_moved_at_its_edges(opened):
    page = opened(plan(), fragment="band=2~12~0:0~0:2", permissions=["clipboard-read", "clipboard-write"])
    page.page.get_by_role("button", name="copy the table").click()
    copied = page.page.evaluate("navigator.clipboard.readText()").splitlines()
    assert copied[0].startswith("10 (24.4% of the step)")
    assert copied[1].split("\t")[:2] == ["rank", "forward"]
    assert len({len(line.split("\t")) for line in copied[1:]}) == 1
    page.page.mouse.move(page.middle("2B1")[0], page.place("2B1")[1] + 4)
    page.page.mouse.down()
    x, y, *_ = page.place("1F3")
    page.page.mouse.move(x - 3, y + 4, steps=4)
    page.page.mouse.up()
    assert page.fragment()["band"] == "2~12.5~0:0~0:2", "edges take the starts and ends of ops"


def test_while_everything_shows_a_drag_measures_and_otherwise_it_moves(opened):
    page = opened(plan())
    x, y = page.middle("1F1")
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x + 200, y, steps=4)
    page.page.mouse.up()
    assert "band" in page.fragment()
    assert page.span() is None
    page.press("Escape", "+")
    before = page.span()
    page.page.mouse.move(x, y)
    page.page.mouse.down()
    page.page.mouse.move(x - 100, y, steps=4)
    page.page.mouse.up()
    assert page.span()[0] > before[0]
    assert "band" not in page.fragment()


def test_the_brush_of_the_minimap(opened):
    page = opened(plan())
    box = page.page.locator(".pp-minimap").bounding_box()
    last = plan().makespan

    def at(share: float) -> tuple[float, float]:
        return box["x"] + share * box["width"], box["y"] + box["height"] - 4

    def drag(start: float, end: float) -> tuple[float, float] | None:
        page.page.mouse.move(*at(start))
        page.page.mouse.down()
        page.page.mouse.move(*at(end), steps=4)
        page.page.mouse.up()
        page.painted()
        span: tuple[float, float] | None = page.span()
        return span

    assert drag(0.2, 0.4) == pytest.approx((0.2 * last, 0.4 * last), rel=0.01), "a new window"
    assert drag(0.3, 0.5) == pytest.approx((0.4 * last, 0.6 * last), rel=0.01), "the window"
    assert drag(0.6, 0.8) == pytest.approx((0.4 * last, 0.8 * last), rel=0.01), "its right edge"
    assert drag(0.4, 0.5) == pytest.approx((0.5 * last, 0.8 * last), rel=0.01), "its left edge"
    assert drag(0.1, 0.2) == pytest.approx((0.1 * last, 0.2 * last), rel=0.01), "a new one beside it"
    assert drag(0.1, 1.1) == pytest.approx((0.2 * last, last), rel=0.01), "its left edge becomes the right one"
    past = drag(0.2, 1.1)
    assert past is not None
    start, end = past
    assert start < end <= last * (1 + 1e-6), "an edge that is dragged past the end stays within the step"
    page.page.mouse.dblclick(*at(0.7))
    page.painted()
    assert page.span() is None


def test_fingers_pan_select_and_ask(opened):
    page = opened(plan(), fragment="from=5&to=25", has_touch=True, viewport={"width": 390, "height": 844})
    x, y = page.middle("1B0")
    touches(page, (x, y), (x - 30, y), (x - 60, y))
    assert page.span()[0] > 5
    page.page.touchscreen.tap(*page.middle("1B0"))
    page.painted()
    assert "1B0" in page.ask("timeline.lit.chain")
    page.press("Escape")
    x, y = page.middle("1B0")
    span = page.span()
    touches(page, (x, y), (x + 2, y + 2), rests=True)
    assert page.tooltip().startswith("1B0")
    assert page.ask("timeline.lit.chain") == [], "a long press selects nothing"
    touches(page, (x, y), (x + 40, y), (x + 80, y), rests=True)
    assert page.span() == span, "nor does it pan"
    assert not page.tooltip().startswith("1B0")
    touches(page, (x, y), rests=True)
    assert page.tooltip(), "what was asked for stays"
    box = page.page.locator(".pp-minimap").bounding_box()
    touches(page, (box["x"] + box["width"] / 2, box["y"] + 9))
    assert page.tooltip() == "", "until something else is touched"
