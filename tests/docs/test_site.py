"""The site as it was built by ``make docs``: complete, searchable and accessible, opened as files without any server."""

import os
import re
from pathlib import Path

import pytest

from docs.build import commands, strategies
from tests.browser import TIMEOUT, close_page, new_page, serious_faults

if "PIPEPLAN_SITE" not in os.environ:
    pytest.skip("the site is looked at where it was built: make docs-test", allow_module_level=True)

SITE = Path(os.environ["PIPEPLAN_SITE"]).resolve()
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "/made/" not in path.as_posix())

SAMPLE = sorted(
    {
        "index.html",
        "explanation/glossary.html",
        "notebooks/choose-a-schedule.html",
        "reference/commands/simulate.html",
        "reference/options.html",
        "reference/strategies/zbv.html",
        # Of each folder one page of eight, others whenever a page is added.
        *(page for number, page in enumerate(PAGES) if number % 8 == 0 and not page.startswith(("404", "demo"))),
    }
)
"""Pages of every kind: of all folders, of those that code makes and those that people write."""


@pytest.fixture
def opened(browser):
    """Opens a page of the site as a file, in a window of that width and scheme; nothing may fail or leave the machine."""
    pages, faults = [], []

    def page_at(path, *, width=1440, scheme="light"):
        page = new_page(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
        page.set_default_timeout(TIMEOUT)
        pages.append(page)
        page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{SITE.as_uri()}/{path}", wait_until="load")
        return page

    yield page_at
    for page in pages:
        close_page(page)
    assert faults == []


def test_every_command_and_strategy_has_its_page():
    names = [*(f"reference/commands/{name}" for name in commands.names()), "reference/commands/index"]
    names += [*(f"reference/strategies/{name}" for name in strategies.names()), "reference/strategies/index"]
    assert [name for name in names if not (SITE / f"{name}.html").is_file()] == []


def test_the_list_for_language_models_leads_to_pages():
    listed = re.findall(r"\]\((.+?)\)", (SITE / "llms.txt").read_text())
    assert "how-to/agents.html" in listed
    assert [path for path in listed if not (SITE / path).is_file()] == []


def test_the_search_finds_without_a_server(opened):
    page = opened("explanation/modelling.html")
    page.keyboard.press("f")
    page.keyboard.type("hanayo")
    found = page.locator(".md-search-result__link").first
    found.wait_for()
    found.click()
    page.wait_for_url("**/hanayo.html**")


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ("what is a gap", {"explanation/glossary.html"}),
        ("how accurate", {"explanation/accuracy.html"}),
        ("plugins", {"extending.html"}),
        ("export Megatron", {"how-to/megatron.html"}),
        ("torch version", {"explanation/compatibility.html"}),
        ("OOM", {"tutorials/memory-is-short.html", "explanation/glossary.html"}),
        ("bubble", {"how-to/explain.html", "explanation/glossary.html"}),
        ("deadlock", {"how-to/check.html", "explanation/glossary.html"}),
        ("VPP", {"explanation/glossary.html"}),
        ("which schedule", {"how-to/compare.html"}),
        ("memory limit", {"explanation/glossary.html", "notebooks/search-under-a-memory-limit.html"}),
        ("install", {"index.html"}),
        ("zbv", {"reference/strategies/zbv.html"}),
        ("costs file", {"how-to/traces.html", "tutorials/my-costs.html"}),
        ("traces", {"how-to/traces.html", "tutorials/read-a-trace.html"}),
        ("out of memory", {"tutorials/memory-is-short.html"}),
        ("deepspeed", {"how-to/review.html", "explanation/peers.html"}),
        ("fsdp", {"how-to/sharding.html"}),
        ("json", {"reference/schemas.html", "how-to/scripts.html"}),
        ("notebook", {"notebooks/index.html"}),
        ("cuda", {"tutorials/train-and-compare.html", "how-to/training.html"}),
        ("speed up", {"how-to/explain.html", "how-to/search.html"}),
        ("compare two schedules", {"how-to/compare.html"}),
        ("recompute", {"tutorials/memory-is-short.html", "explanation/glossary.html"}),
        ("config file", {"tutorials/my-costs.html"}),
        ("gpu list", {"reference/hardware.html"}),
        ("mfu", {"how-to/planning.html"}),
        ("export csv", {"reference/commands/export.html"}),
        ("why idle", {"how-to/explain.html"}),
        ("mcp", {"how-to/agents.html"}),
        ("docker", {"how-to/serve.html"}),
    ],
)
def test_the_first_result_of_a_search_answers_it(query, pages, opened):
    page = opened("explanation/modelling.html")
    page.keyboard.press("f")
    page.keyboard.type(query)
    first = page.locator(".md-search-result__link").first
    first.wait_for()
    path = first.get_attribute("href").partition("?")[0]
    assert any(path.endswith(answer) for answer in pages), path


def test_a_phone_shows_pages_without_scrolling_sideways(opened):
    for path in SAMPLE:
        page = opened(path, width=390)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 1440), ("light", 390)])
def test_pages_have_no_serious_accessibility_fault(opened, scheme, width):
    faults = {path: serious_faults(opened(path, scheme=scheme, width=width)) for path in SAMPLE}
    assert {path: found for path, found in faults.items() if found} == {}


def test_the_button_of_a_block_copies_its_commands(opened):
    page = opened("how-to/check.html")
    block = page.locator(".language-console").first
    block.hover()
    button = block.locator("[data-clipboard-target]")
    button.click()
    assert button.get_attribute("data-clipboard-text") == "pipeplan check mine.csv"
