"""The page as people meet it: on a desk, a tablet and a phone, light and dark, by eye, keys and screen reader."""

import pytest

from pipeplan.drawing import view_of
from tests.browser import serious_faults
from tests.web_ui.plans import plan, simulated

LONG = "a schedule of a name that nobody would give it, but that a file may have"
EVERYTHING = "gaps=1&critical=1&op=0:2F3&band=2~12~0:0~0:2&find=F3"
TEXTS = """() => {
  const picture = new DOMParser().parseFromString(pipeplan.embedded.svg(), "image/svg+xml");
  const parts = text => [text.textContent, Number(text.getAttribute("x")), text.getAttribute("text-anchor")];
  return [...picture.querySelectorAll("text")].map(parts);
}"""
WIDTHS = """(texts) => {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  return texts.map(([text, font]) => ((context.font = font), context.measureText(text).width));
}"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("width", "height"), [(1440, 900), (900, 1000), (390, 844)])
def test_no_page_has_a_serious_fault_or_overflows(opened, width, height, scheme):
    views = [plan(title=LONG), plan("zbv")]
    page = opened(*views, fragment=EVERYTHING, color_scheme=scheme, viewport={"width": width, "height": height})
    if page.page.get_attribute("details", "open") is None:
        page.page.locator("summary").click()
    more = page.page.get_by_role("button", name="more")
    if more.is_visible():
        more.click()
    assert serious_faults(page.page) == []
    assert page.page.evaluate(OVERFLOW) == 0
    page.press("?")
    assert serious_faults(page.page, ".pp-help") == []
    assert page.page.evaluate("document.querySelector('.pp-help').scrollWidth") <= width


def test_titles_leave_room_for_their_figures(opened):
    page = opened(plan(title=LONG), viewport={"width": 390, "height": 844})
    texts = page.page.evaluate(TEXTS)
    name = next(text for text in texts if text[0].startswith("a sch"))
    assert name[0].endswith("\u2026")
    figures = next(text for text in texts if text[2] == "end" and "41" in text[0])
    own, other = page.page.evaluate(WIDTHS, [[name[0], "600 13px system-ui"], [figures[0], "12px system-ui"]])
    assert name[1] + own < figures[1] - other


def test_the_legend_names_only_what_is_drawn(opened):
    page = opened(plan(), plan("zb-h1"), view_of(simulated("dualpipe", 4, 8).timeline))
    legend = page.page.locator(".pp-legend")
    assert "direction 0 to 1" in legend.inner_text()
    page.ask("timeline.show([1])")
    page.painted()
    assert legend.locator("li:visible").all_inner_texts() == ["forward", "backward for inputs", "backward for weights"]
    assert page.fragment() == {"show": "1"}
    page.ask("timeline.show([0])")
    page.painted()
    assert legend.locator("li:visible").all_inner_texts() == ["forward", "backward"]


def test_ops_are_coloured_by_a_ratio_where_the_data_has_one(opened):
    page = opened(plan())
    script = """(() => {
      const data = JSON.parse(document.getElementById("pipeplan-data").textContent);
      const count = timeline.plots[0].bars;
      const values = Array.from({ length: count }, (_, bar) => bar === 0 ? 1.2 : bar === 1 ? 1 / 1.2 : 1);
      const scale = { title: "measured / planned", ends: ["faster", "slower"], reach: 1.2, values: [values] };
      timeline.update({ ...data, scale });
    })()"""
    page.ask(script)
    page.painted()
    colors = []
    for name in ("0F0", "0F1", "0F2"):
        x, y, *_ = page.place(name)
        colors.append(page.pixel(x + 2, y + 3))
    assert colors == ["#b8400e", "#0b5394", "#d0d5dc"]
    assert "measured / planned: 0.83 (faster)" in page.page.locator(".pp-legend").inner_text()
    assert "1.20 (+20.0%)" in page.hover("0F0")
    page.press("v")
    x, y, *_ = page.place("0F0")
    assert page.pixel(x + 2, y + 3) != "#b8400e"
    assert page.fragment() == {"scale": "0"}
