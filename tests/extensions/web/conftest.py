"""A client of the server that all tests share."""

from __future__ import annotations

import pytest


@pytest.fixture
def client(address: str):
    import httpx

    with httpx.Client(base_url=address, timeout=180) as result:
        yield result
