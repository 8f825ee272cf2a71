"""One server for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.browser import chromium


@pytest.fixture(scope="package")
def address() -> Iterator[str]:
    pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")
    from tests.web.running import running

    with running() as found:
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.fixture
def client(address: str):
    import httpx

    with httpx.Client(base_url=address, timeout=180) as found:
        yield found
