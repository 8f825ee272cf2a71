"""Pages of timelines in a real browser; every one is watched for errors and for requests to anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeplan.drawing.html import html_page
from tests.browser import new_page
from tests.extensions.web.pages.opened import Opened


@pytest.fixture
def opened(browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens views: ``opened(view, view, fragment="gaps=1", color_scheme="dark")``."""
    pages: list[Opened] = []

    def open_views(*views, fragment: str = "", theme=None, **context) -> Opened:
        path = tmp_path / f"timeline{len(pages)}.html"
        path.write_text(html_page(views, theme=theme), encoding="utf-8")
        context.setdefault("viewport", {"width": 1280, "height": 800})
        page = Opened(new_page(browser, **context), path)
        pages.append(page)
        page.go(fragment)
        return page

    yield open_views
    for page in pages:
        page.close()
