"""The page of a run beside its plan in a real browser."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.costs import Settings
from pipeplan.simulation import simulate
from tests.browser import serious_faults
from tests.extensions.web.pages.opened import opening

SIZES = [(1440, "light"), (390, "dark")]


@pytest.fixture(scope="module")
def diff():
    settings: dict[str, Any] = {"forward_times": 10.0, "backward_times": 20.0, "p2p_time": 0.4, "time_unit": "ms"}
    planned = pipeplan.simulate("1f1b", ranks=3, microbatches=6, **settings)
    schedule = planned.schedule
    factors = np.where(schedule.columns.stage == 1, 1.2, 1.0)
    costs = Settings(ranks=3, microbatches=6, **settings).costs(schedule.placement)
    run = replace(simulate(schedule, costs, factors=factors).timeline, source="measured")
    return pipeplan.diff(planned.timeline, run)


@pytest.fixture(scope="module")
def path(diff, tmp_path_factory) -> Path:
    written: Path = tmp_path_factory.mktemp("difference") / "difference.html"
    diff.save(written)
    return written


@pytest.fixture
def opened(browser, path):
    with opening(browser, path) as open_page:
        yield open_page


def test_the_page_says_what_the_shell_says(opened, diff):
    page = opened()
    assert page.page.get_by_role("heading", level=1).inner_text() == "1f1b: planned against measured"
    text = page.page.locator(".pr-summary").inner_text()
    headline, *others = diff.sentences
    assert page.page.locator("main > *").first.inner_text() == headline
    assert all(sentence in text for sentence in others)
    assert (
        page.page.locator(".pp-chart")
        .get_attribute("aria-label")
        .startswith("Timeline of 1f1b, planned, 1f1b, measured.")
    )
    assert "measured / planned" in page.page.locator(".pp-legend").inner_text()

    # Kinds of ops, the largest effect first; headings sort.
    rows = page.page.locator(".pr-kinds tbody tr")
    assert rows.count() == len(diff.kinds)
    largest = max(diff.kinds, key=lambda kind: abs(kind.effect))
    assert rows.first.locator("td").first.inner_text() == str(largest.stage)
    assert "1.20" in rows.first.inner_text()
    page.page.get_by_role("button", name="stage").click()
    assert rows.locator("td:nth-child(2)").all_inner_texts() == ["0", "0", "1", "1", "2", "2"]
    assert page.page.locator("th[aria-sort=ascending]").inner_text().startswith("stage")

    # A row finds its ops, once more and it finds none.
    page.page.locator(".pr-kinds tbody button").nth(3).click()
    page.painted()
    assert page.page.locator(".pp-matches").inner_text() == "1 of 12"
    assert rows.nth(3).get_attribute("class") == "drawn"
    page.page.locator(".pr-kinds tbody button").nth(3).click()
    page.painted()
    assert page.page.locator(".pp-matches").inner_text() == ""


def test_an_op_is_told_in_both(opened):
    page = opened("op=0:1B3")
    text = page.page.locator(".pr-op")
    assert text.inner_text().startswith("1B3 on rank 1 took 24 ms, 1.20 times the planned 20 ms (+20.0%)")
    page.press("Escape")
    assert text.inner_text().startswith("Click an op")
    page.go("op=1:2F5")
    assert text.inner_text().startswith("2F5 on rank 2 took 10 ms, 1.00 times the planned 10 ms (0.0%)")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_it_can_be_read_everywhere(opened, width, scheme):
    page = opened("op=0:1B3", width, color_scheme=scheme, has_touch=width < 500)
    assert page.page.evaluate("document.documentElement.scrollWidth") <= width
    page.page.locator("summary", has_text="By rank").click()
    assert serious_faults(page.page) == []
