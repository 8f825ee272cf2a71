"""The page of plans in a real browser: question, answer, front, flags, files, keys, themes, and errors by field."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")

from tests.extensions.web.test_page import Watched, watching

QUICK = "?model=llama3-8b&cluster=h100-sxm:8x1&global_batch=16&sequence=4096&seconds=1&fix=tp=2,4"
LONG = "?model=llama3-70b&cluster=h100-sxm:8x64&global_batch=1024&sequence=8192&seconds=60"
PIPELINED = QUICK.replace("fix=tp=2,4", "fix=tp=2+pp=2")
SCROLLS = """within => [within, ...within.querySelectorAll("*")]
  .filter(element => getComputedStyle(element).overflowY !== "visible" && element.scrollHeight > element.clientHeight)
  .map(element => element.className)"""
ANSWERED = "() => document.querySelector('.flags pre')"


@pytest.fixture
def watched(browser, address) -> Iterator[Watched]:
    yield from watching(browser, address, permissions=["clipboard-read", "clipboard-write"])


def visit(watched: Watched, query: str = "") -> None:
    watched.page.goto(f"{watched.address}/plan{query}")
    watched.page.wait_for_selector("button.primary")


def planned(watched: Watched, query: str = QUICK) -> None:
    visit(watched, query)
    watched.page.click("button.primary")
    watched.page.wait_for_function(ANSWERED, timeout=60_000)


def rows(watched: Watched) -> list[list[str]]:
    result: list[list[str]] = watched.page.eval_on_selector_all(
        ".candidates tbody tr", "rows => rows.map(row => [...row.children].map(cell => cell.textContent))"
    )
    return result


def test_a_plan_from_question_to_flags(watched):
    planned(watched)
    page = watched.page
    answer = page.locator(".answer > *")
    headline = page.evaluate("JSON.parse(sessionStorage.getItem('pipeplan-plan')).plan.headline")
    assert answer.nth(0).inner_text() == headline, "the sentence comes first"
    assert answer.nth(1).inner_text() == "llama3-8b on 8 h100-sxm (1 node of 8), 16 sequences of 4,096 tokens"
    assert answer.nth(2).locator(".front").count() == 1, "then the picture, with the reason of the choice"
    assert (page.text_content(".why-chosen") or "").startswith("The chosen configuration is ")
    assert "valid configurations" in (answer.last.text_content() or "")
    assert len(rows(watched)) <= 10
    assert len(rows(watched)[0]) == 5
    assert rows(watched)[0][0].endswith(("chosen", "chosen; on the Pareto front"))
    assert page.locator(".bars").count() == 2
    # The open tab is that of the trainer whose plan is the best, with its own figures.
    opened = page.text_content(".tabs [aria-pressed=true]") or "?"
    assert re.match(rf"{opened} [0-9.]+: tp\d.*; step [0-9.]+ s, peak memory", page.text_content(".flags-for") or "")
    assert page.is_hidden(".progress")
    assert parse_qs(urlsplit(page.url).query)["model"] == ["llama3-8b"]


def test_a_page_without_a_question_plans_the_example_until_another_is_typed(watched):
    visit(watched)
    page = watched.page
    page.wait_for_selector(".progress:not([hidden])")
    assert page.input_value("#field-model") == "llama3-70b"
    page.fill("#field-model", "llama3-8b")
    page.wait_for_selector(".progress", state="hidden")
    assert page.is_hidden(".banner"), "the user cancelled nothing"
    assert page.is_hidden(".answer")
    watched.page.goto(f"{watched.address}/plan")
    page.wait_for_function(ANSWERED, timeout=60_000)
    assert (page.text_content("h2") or "").startswith("Train with ")
    assert page.evaluate("document.activeElement.tagName") != "H2", "the focus stays where it was"
    page.reload()
    page.wait_for_function(ANSWERED)
    assert page.is_hidden(".progress"), "the plan of the address is kept"


def test_the_table_has_ten_rows_and_a_button_for_the_others(watched):
    planned(watched, QUICK.replace("&fix=tp=2,4", ""))
    page = watched.page
    points = page.locator(".front circle").count()
    assert points > 10, "the plan has more configurations than the table shows at first"
    assert len(rows(watched)) == 10
    page.click(f"text=All {points} configurations")
    assert len(rows(watched)) == points
    assert page.evaluate("document.activeElement.dataset.key") == "row 10"
    assert page.eval_on_selector(".candidates", SCROLLS) == [], "the page scrolls, not the table"


def test_only_a_pipeline_has_a_timeline(watched):
    planned(watched, QUICK.replace("tp=2,4", "pp=1"))
    page = watched.page
    assert page.is_hidden(".pp-chart")
    assert page.is_hidden("text=Compare schedules on these costs")
    planned(watched, PIPELINED)
    page.wait_for_selector(".pp-chart")
    assert page.is_visible("text=Compare schedules on these costs")


def test_a_click_on_the_front_or_a_row_chooses(watched):
    planned(watched)
    page = watched.page
    count = len(rows(watched))
    assert count > 1
    page.click(f'.front circle[data-point="{count - 1}"]', force=True)
    chosen = page.get_attribute("tr.shows button", "data-key")
    assert chosen == f"row {count - 1}"
    assert rows(watched)[count - 1][0].startswith(page.text_content(".facts dd") or "?")
    assert page.locator(".bars").first.locator("tbody tr").count() == 2
    # The plan has the error bar of the best alone; that of another comes with its flags.
    page.wait_for_function("() => document.querySelector('.facts').textContent.includes('interval')")
    page.click('[data-key="row 0"]')
    assert page.get_attribute('[data-point="0"]', "aria-pressed") == "true"


def test_the_keyboard_does_all_of_it(watched):
    visit(watched, QUICK)
    page = watched.page
    page.focus("#field-model")
    page.keyboard.press("Enter")
    page.wait_for_function(ANSWERED, timeout=60_000)
    assert page.evaluate("document.activeElement.tagName") == "H2"
    page.focus('[data-point="1"]')
    page.keyboard.press("Enter")
    assert page.get_attribute('[data-point="1"]', "aria-pressed") == "true"
    assert page.evaluate("document.activeElement.getAttribute('data-point')") == "1"
    page.focus('[data-key="row 0"]')
    page.keyboard.press("Enter")
    assert page.get_attribute('[data-key="row 0"]', "aria-pressed") == "true"
    page.focus(".tabs button:has-text('torchtitan')")
    # The flags of the configuration that was just chosen replace the tabs, which keep the focus.
    page.wait_for_selector(".flags:not(.stale)")
    page.keyboard.press("Space")
    assert "torchtitan.train" in (page.text_content(".flags pre") or "")


def test_a_long_plan_shows_how_far_it_is_and_is_cancelled(watched):
    visit(watched, LONG)
    page = watched.page
    page.click("button.primary")
    page.wait_for_function(
        "() => document.querySelector('.progress span').textContent.includes('estimated')", timeout=60_000
    )
    page.keyboard.press("Escape")
    page.wait_for_function("() => document.querySelector('.banner').textContent === 'Cancelled.'")
    assert page.is_hidden(".progress")
    page.fill("#field-model", "llama3-8b")
    for name, value in {"cluster": "h100-sxm:8x1", "global_batch": "16", "seconds": "1"}.items():
        page.fill(f"#field-{name}", value)
    page.click("button.primary")
    page.wait_for_function(ANSWERED, timeout=60_000)
    assert page.is_hidden(".banner")


def test_what_is_wrong_stands_at_its_field(watched):
    visit(watched, QUICK)
    page = watched.page
    for field, typed, words in (
        ("model", "llama3-8x", "did you mean 'llama3-8b'"),
        ("cluster", "h100-sxm:0x2", "expected at least 1"),
        ("global_batch", "0", "must be at least 1, not 0"),
        ("global_batch", "", "is missing"),
        ("sequence", "many", "must be a whole number"),
        ("memory_limit", "much", "invalid size"),
        ("fix", "tp", "NAME=VALUE"),
    ):
        before = page.input_value(f"#field-{field}")
        page.fill(f"#field-{field}", typed)
        page.click("button.primary")
        page.wait_for_selector(f"[data-field={field}] .error:not([hidden])")
        assert words in watched.error_of(field)
        assert page.get_attribute(f"#field-{field}", "aria-invalid") == "true"
        assert page.is_hidden(".answer")
        page.fill(f"#field-{field}", before)
