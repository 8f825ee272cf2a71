"""The page as people meet it: on a desk, a tablet and a phone, light and dark, by eye, keys and screen reader."""

import pytest

from pipeplan.drawing import view_of
from tests.browser import serious_faults
from tests.extensions.web.pages.plans import plan, simulated

LONG = "a schedule of a name that nobody would give it, but that a file may have"
EVERYTHING = "gaps=1&critical=1&op=0:2F3&band=2~12~0:0~0:2&find=F3"
TEXTS = """() => {
  const picture = new DOMParser().parseFromString(pipeplan.embedded.svg(), "image/svg+xml");
  const parts = text => [text.textContent, Number(text.getAttribute("x")), text.getAttribute("text-anchor")];
  return [...picture.querySelectorAll("text")].map(parts);
}"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize(
    ("width", "height", "scheme"), [(1440, 900, "light"), (900, 1000, "dark"), (390, 844, "light")]
)
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


def test_the_legend_names_only_what_is_drawn(opened):
    page = opened(plan(), plan("zb-h1"), view_of(simulated("dualpipe", 4, 8).timeline))
    legend = page.page.locator(".pp-legend")
    assert "directions 0 and 1" in legend.inner_text()
    page.ask("timeline.show([1])")
    page.painted()
    assert legend.locator("li:visible").all_inner_texts() == ["forward", "backward for inputs", "backward for weights"]
    assert page.fragment() == {"show": "1"}
    page.ask("timeline.show([0])")
    page.painted()
    assert legend.locator("li:visible").all_inner_texts() == ["forward", "backward"]
