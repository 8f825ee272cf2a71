"""A real browser for the tests of pages: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

AXE = Path(__file__).parents[1] / "web_ui" / "node_modules" / "axe-core" / "axe.min.js"
"""The accessibility checker, which ``npm ci`` in ``web_ui`` installs."""

TIMEOUT = 180_000
"""Milliseconds that a page may take: a machine with other work on it is slow, and only what never comes is wrong."""

RUN_AXE = """async within => {
  const { violations } = await axe.run(within ?? document, { preload: false, resultTypes: ["violations"] });
  const bad = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return bad.flatMap(({ id, impact, help, nodes }) =>
    nodes.map(({ html }) => `${impact} ${id}: ${help}: ${html.slice(0, 200)}`));
}"""


@contextmanager
def chromium() -> Iterator[Any]:
    """A running Chromium as Playwright's ``Browser``; skips the test where there is none.

    Tests take the fixture ``browser``: while this runs, the thread has a running event loop.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="tests in a browser need the package 'playwright'")
    result = next((path for path in map(shutil.which, NAMES) if path), None)
    if result is None:
        pytest.skip("tests in a browser need Chromium, which is not installed: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=result, args=list(ARGUMENTS))
        yield browser
        browser.close()


def new_page(
    browser: Any, viewport: dict[str, int] | None = None, color_scheme: str | None = None, **options: Any
) -> Any:
    """A page in a context with these options, which pages share: one to itself takes twice as long.

    :func:`close_page` leaves nothing in it.
    """
    page = _context(browser, json.dumps(options, sort_keys=True)).new_page()
    if viewport is not None:
        page.set_viewport_size(viewport)
    page.emulate_media(color_scheme=color_scheme)
    return page


def close_page(page: Any) -> None:
    """Close a page, and forget what it stored."""
    page.evaluate("() => { if (location.protocol !== 'about:') localStorage.clear(); }")
    page.close()


@cache
def _context(browser: Any, options: str) -> Any:
    context = browser.new_context(**json.loads(options))
    context.new_page()  # the next pages begin in half the time while one is open
    return context


def serious_faults(page: Any, within: str | None = None) -> list[str]:
    """What axe-core finds serious or critical on a ``page`` of Playwright, a line a place; skips where it is not installed.

    Parameters
    ----------
    page
        A page that is shown as the user sees it: what is closed or hidden is not looked at.
    within
        A selector of the part to look at; without it, all of the page.
    """
    if not AXE.is_file():
        pytest.skip(
            "accessibility is checked by axe-core, which npm installs and is not here: make web_ui/node_modules"
        )
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    result: list[str] = page.evaluate(RUN_AXE, within)
    return result
