"""Editing a schedule in a real browser: by typing, by dragging, by keys and by touch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

import pipeplan
from pipeplan.trainers import runners
from tests.browser import serious_faults
from tests.extensions.web.test_page import Watched, watching

QUERY = "?ranks=4&microbatches=8&schedules=1f1b,zb-h1&show=1f1b&open=edit"

KEEP = """() => {
  let held;
  Object.defineProperty(window, "pipeplan", {
    get: () => held,
    set: (made) => {
      const mountTimeline = (element, ...rest) => (element.timeline = made.mountTimeline(element, ...rest));
      held = Object.create(made, { mountTimeline: { value: mountTimeline } });
    },
  });
}"""
"""Keep every timeline at its element, for the tests to ask where ops stand."""


class Editor(Watched):
    """The editor of a page."""

    def begin(self, query: str = QUERY) -> None:
        self.page.add_init_script(f"({KEEP})()")
        self.page.goto(f"{self.address}/{query}")
        self.page.wait_for_selector(".edit[data-judged]")

    @property
    def lines(self) -> list[str]:
        return str(self.page.input_value(".rows-text")).split("\n")

    @property
    def verdict(self) -> str:
        return str(self.page.text_content(".verdict .headline"))

    @property
    def makespans(self) -> list[str]:
        """Now, before, and the change."""
        result: list[str] = self.page.eval_on_selector_all(
            ".edit .figures tbody tr:first-child td", "cells => cells.map(cell => cell.textContent)"
        )
        return result

    def words(self, mark: str) -> list[str]:
        """The words of the text with a mark: wrong, lit."""
        result: list[str] = self.page.eval_on_selector_all(
            f".rows-sheet .word.{mark}", "words => words.map(word => word.textContent)"
        )
        return result

    def after(self, act: Callable[[], Any]) -> None:
        """Do something, and wait for the verdict on it."""
        before = int(self.page.get_attribute(".edit", "data-judged"))
        act()
        self.settled(f"() => Number(document.querySelector('.edit').dataset.judged) > {before}")

    def replace(self, old: str, new: str) -> None:
        text = "\n".join(self.lines)
        assert old in text
        self.after(lambda: self.page.fill(".rows-text", text.replace(old, new, 1)))

    def caret_in(self, word: str) -> None:
        self.page.evaluate(
            """word => { const area = document.querySelector(".rows-text"); const at = area.value.indexOf(word);
            area.focus(); area.setSelectionRange(at + 1, at + 1); area.dispatchEvent(new Event("select")); }""",
            word,
        )

    def middle(self, name: str) -> tuple[float, float]:
        """Where an op stands in the picture."""
        box = self.page.evaluate(
            "name => document.querySelector('.edit .timeline').timeline.placeOf(0, name)?.toJSON()", name
        )
        assert box is not None, f"{name} does not show"
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(self, name: str, before: str) -> None:
        """Drag an op to where another one begins."""
        mouse = self.page.mouse
        mouse.move(*self.middle(name))
        mouse.down()
        x, y = self.middle(before)
        mouse.move(x - 3, y, steps=4)
        mouse.up()


CONTEXT: dict[str, Any] = {
    "viewport": {"width": 1440, "height": 1200},
    "permissions": ["clipboard-read", "clipboard-write"],
}


@pytest.fixture
def editor(browser, address) -> Iterator[Editor]:
    yield from watching(browser, address, Editor, **CONTEXT)


def test_it_begins_with_the_schedule_that_is_drawn(editor):
    editor.begin()
    schedule = pipeplan.simulate("1f1b", ranks=4, microbatches=8).schedule
    assert "\n".join(editor.lines) == str(pipeplan.export(schedule, "rows")).strip()
    assert editor.verdict.startswith("It runs.")
    assert editor.makespans == ["33", "33", "0"]
    assert editor.page.locator(".verdict .takes").count() == len(runners())
    editor.page.select_option(".edit-head select", "zb-h1")
    editor.settled("() => document.querySelector('.rows-text').value.includes('0W0')")


def test_what_does_not_run_is_shown_as_far_as_it_does(editor):
    editor.begin()
    text = "\n".join(editor.lines).replace("0F3 0B0", "0F3").replace("0F1 0F2", "0F1 0B0 0F2")
    editor.after(lambda: editor.page.fill(".rows-text", text))
    assert editor.verdict == "Invalid: does not run. 11 of 64 ops run, until time 9."
    assert "0B0 on rank 0 waits for 1B0, which cannot run before 1F2" in editor.page.text_content(".flaws")
    assert editor.words("wrong") == ["0B0", "1F2"]
    stops = editor.page.text_content(".verdict details ul")
    assert "rank 3 stops before 3F2: it waits for 2F2, which rank 2 never reaches" in stops
    editor.page.click(".flaws button")
    assert editor.words("lit") == ["0B0"]
    assert editor.page.evaluate("document.activeElement.className") == "rows-text"
    editor.page.mouse.move(*editor.middle("2F2"))
    editor.page.wait_for_selector(".edit .pp-tooltip:has-text('never runs')")
    assert editor.page.is_disabled("text=Add to comparison")


def test_text_and_picture_follow_each_other(editor):
    editor.begin()
    editor.page.mouse.click(*editor.middle("2B3"))
    assert editor.words("lit") == ["2B3"]
    assert editor.page.text_content(".edit .chosen") == "2B3"
    editor.caret_in("3F5")
    assert editor.words("lit") == ["3F5"]
    lit = "() => document.querySelector('.edit .timeline').timeline.data.views[0].judged.lit"
    assert editor.page.evaluate(lit) >= 0


def test_an_op_is_dragged(editor):
    editor.begin()
    editor.after(lambda: editor.drag("1B1", before="1F3"))
    assert editor.lines[1].startswith("1F0 1F1 1F2 1B0 1B1 1F3 1F4")
    assert editor.makespans[0] == "36"
    editor.after(lambda: editor.drag("3B0", before="3F0"))
    assert editor.verdict.startswith("Invalid: does not run.")
    assert editor.words("wrong") == ["3B0"]
    editor.page.focus(".edit .pp-chart")
    editor.after(lambda: editor.page.keyboard.press("Control+z"))
    assert editor.verdict == "It runs."
    assert editor.makespans[0] == "36"


def test_an_op_is_moved_by_keys_from_the_picture_and_from_the_text(editor):
    editor.begin()
    editor.page.mouse.click(*editor.middle("1B1"))
    editor.page.focus(".edit .pp-chart")
    editor.after(lambda: editor.page.keyboard.press("Alt+ArrowLeft"))
    assert editor.lines[1].startswith("1F0 1F1 1F2 1B0 1B1 1F3")
    assert editor.words("lit") == ["1B1"]
    for _ in range(3):
        editor.page.keyboard.press("Alt+ArrowRight")
    editor.settled("() => document.querySelector('.rows-text').value.includes('1F4 1B2 1B1 1F5')")
    editor.caret_in("1B2")
    editor.after(lambda: editor.page.keyboard.press("Alt+ArrowRight"))
    assert "1F4 1B1 1B2 1F5" in editor.lines[1]
    editor.after(lambda: editor.page.click("text=Later"))
    assert "1F4 1B1 1F5 1B2" in editor.lines[1]


def test_it_joins_the_comparison_and_is_saved(editor, tmp_path):
    editor.begin()
    editor.replace("1F3 1B1", "1B1 1F3")
    for form, ending in (("rows", ".rows.txt"), ("torch-csv", ".csv"), ("trace", ".trace.json"), ("png", ".png")):
        with editor.page.expect_download() as saved:
            editor.page.select_option(".edit-bar select", form)
        path = tmp_path / saved.value.suggested_filename
        assert path.name.endswith(ending)
        saved.value.save_as(path)
    assert pipeplan.simulate(tmp_path / "1f1b-edited.rows.txt").makespan == 36
    editor.page.click("text=Add to comparison")
    editor.settled("() => document.querySelector('.fastest').textContent.includes('1f1b-edited.txt')")
    assert editor.lines[1].startswith("1F0 1F1 1F2 1B0 1B1 1F3")


def test_a_search_starts_from_it(editor):
    editor.begin()
    editor.replace("1F3 1B1", "1B1 1F3")
    editor.page.click("text=Search from it")
    chosen = (
        "() => [...document.querySelectorAll('#panel-search select')].some(field => field.value === '1f1b-edited.txt')"
    )
    editor.settled(chosen)
    assert editor.page.is_visible("#panel-search")


def test_a_link_opens_a_page_that_computes_the_order_by_itself(editor):
    editor.begin()
    editor.replace("1F3 1B1", "1B1 1F3")
    editor.page.click(".edit-bar >> text=Copy link")
    editor.page.wait_for_selector(".edit .message:has-text('copied')")
    link = editor.page.evaluate("navigator.clipboard.readText()")
    assert "/order#order=1." in link
    requests: list[str] = []
    editor.page.goto("about:blank")
    editor.page.on("request", lambda request: requests.append(request.url))
    editor.page.goto(link)
    editor.page.wait_for_function("() => pipeplan.embedded !== null")
    assert editor.page.evaluate("pipeplan.embedded.plots[0].view.makespan") == 36
    assert [url.split("#")[0] for url in requests if not url.startswith("data:")] == [link.split("#")[0]]


def test_the_address_holds_the_text(editor):
    editor.begin()
    editor.replace("1F3 1B1", "1B1 1F3")
    rows = editor.lines
    assert editor.makespans == ["36", "33", "+3 (+9.1%)"]
    editor.settled("() => new URLSearchParams(location.search).has('rows')")
    editor.page.reload()
    editor.page.wait_for_selector(".edit[data-judged]")
    assert editor.lines == rows
    editor.after(lambda: editor.page.click(".edit-bar >> text=Reset"))
    editor.settled("() => !new URLSearchParams(location.search).has('rows')")


@pytest.fixture(params=["light", "dark"])
def coloured(request, browser, address) -> Iterator[Editor]:
    yield from watching(browser, address, Editor, **CONTEXT, color_scheme=request.param)


def test_no_serious_fault_at_any_width(coloured):
    coloured.begin()
    for width, typed in ((1440, "0F0"), (900, "0X0 0F0"), (390, "0F1 0F0")):
        coloured.page.set_viewport_size({"width": width, "height": 900})
        if typed != "0F0":
            coloured.replace("0F0", typed)
        assert serious_faults(coloured.page, ".edit") == []
        inside = "() => document.querySelector('.edit').scrollWidth <= document.querySelector('.edit').clientWidth + 1"
        assert coloured.page.evaluate(inside)


@pytest.fixture
def touched(browser, address) -> Iterator[Editor]:
    yield from watching(
        browser, address, Editor, **CONTEXT | {"viewport": {"width": 390, "height": 844}, "has_touch": True}
    )


def test_by_touch(touched):
    touched.begin()
    touched.page.locator(".edit .pp-chart").scroll_into_view_if_needed()
    touched.page.touchscreen.tap(*touched.middle("1B1"))
    touched.settled("() => document.querySelector('.edit .chosen').textContent === '1B1'")
    touched.after(lambda: touched.page.tap("text=Earlier"))
    assert touched.lines[1].startswith("1F0 1F1 1F2 1B0 1B1 1F3")
    touched.page.locator(".edit .pp-chart").scroll_into_view_if_needed()
    (x, y), (to, _) = touched.middle("2B3"), touched.middle("2F4")
    fingers = touched.page.context.new_cdp_session(touched.page)

    def finger(what: str, *points: float) -> None:
        touches = [{"x": at, "y": y} for at in points]
        fingers.send("Input.dispatchTouchEvent", {"type": what, "touchPoints": touches})

    def drag() -> None:
        finger("touchStart", x)
        for step in range(1, 6):
            finger("touchMove", x + (to - 5 - x) * step / 5)
        finger("touchEnd")

    touched.page.touchscreen.tap(x, y)
    touched.settled("() => document.querySelector('.edit .chosen').textContent === '2B3'")
    touched.after(drag)
    assert "2B3 2F4" in touched.lines[2]
    size = "() => Number.parseFloat(getComputedStyle(document.querySelector('.rows-text')).fontSize)"
    assert touched.page.evaluate(size) >= 16
