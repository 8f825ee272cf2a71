"""Moving ops by hand: a page that edits gets the moves, and the timeline changes nothing itself."""

import pytest

from tests.extensions.web.pages.plans import plan

LISTEN = """(window.moves = [], timeline.edit({
  moved: (move) => window.moves.push([move.op.name, move.op.rank, move.op.index, move.to]),
  refuses: (move) => move.op.name === "2F1" && move.to === 0 ? "not before 2F0" : null,
}))"""


def drag(page, name: str, onto: tuple[float, float]) -> None:
    page.page.mouse.move(*page.middle(name))
    page.page.mouse.down()
    page.page.mouse.move(*onto, steps=5)
    page.painted()


def test_an_op_is_dragged_along_its_rank(opened):
    page = opened(plan())
    before = page.ask("timeline.fragment")
    page.ask(LISTEN)
    x, y, width, height = page.place("2B0")
    drag(page, "2F1", (x + width - 2, y + height / 2))
    page.page.mouse.up()
    assert page.ask("window.moves") == [["2F1", 2, 1, 2]]
    assert page.ask("timeline.fragment") == before
    assert page.ask("timeline.lit.chain") == [], "a drag is not a click"


def test_keys_move_the_focused_op_and_the_focus_stays_on_it(opened):
    page = opened(plan())
    page.press("ArrowRight", "ArrowDown", "ArrowDown", "ArrowRight")
    page.ask(LISTEN)
    page.press("Alt+ArrowRight", "Alt+ArrowLeft")
    assert page.page.get_by_role("status").inner_text() == "not before 2F0"
    page.press("Alt+ArrowUp")
    assert page.ask("window.moves") == [["2F1", 2, 1, 2]]
    page.ask("timeline.edit(null)")
    page.press("Alt+ArrowRight")
    assert len(page.ask("window.moves")) == 1


def test_a_finger_moves_the_selected_op_and_pans_from_any_other(opened):
    page = opened(plan(), fragment="from=0&to=20", has_touch=True)
    page.ask(LISTEN)
    touch = page.page.context.new_cdp_session(page.page)

    def swipe(name: str, by: float) -> None:
        x, y = page.middle(name)
        for kind, at in [
            ("touchStart", 0.0),
            *[("touchMove", by * step / 4) for step in range(1, 5)],
            ("touchEnd", by),
        ]:
            points = [] if kind == "touchEnd" else [{"x": x + at, "y": y}]
            touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        page.painted()

    swipe("1F2", -60)
    assert page.ask("window.moves") == []
    assert page.span()[0] > 0
    page.page.touchscreen.tap(*page.middle("1F2"))
    swipe("1F2", -70)
    assert [move[:3] for move in page.ask("window.moves")] == [["1F2", 1, 2]]
    assert page.span()[1] - page.span()[0] == pytest.approx(20)
