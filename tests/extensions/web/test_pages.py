"""The pages: everything that they need is in the package, and the API is described without a script."""

from __future__ import annotations

import re

import pytest


@pytest.mark.parametrize(("path", "name"), [("/", "app"), ("/plan", "plan"), ("/review", "review")])
def test_a_page_loads_only_what_is_served_here(client, path, name):
    page = client.get(path).text
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert {"/assets/timeline.js", f"/assets/{name}.js", f"/assets/{name}.css", "/assets/app.css"} <= set(addresses)
    for address in addresses:
        if not address.startswith("#"):
            assert client.get(address).status_code == 200, address


def test_nothing_comes_from_the_network(client):
    for name in ("app.js", "app.css", "plan.js", "plan.css", "review.js", "review.css", "timeline.js", "timeline.css"):
        text = client.get(f"/assets/{name}").text
        result = set(re.findall(r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s\"'`)]*", text))
        assert result <= {
            "http://www.w3.org/2000/svg",
            "http://www.w3.org/1999/xhtml",
            "http://www.w3.org/1999/xlink",
        } | {address for address in result if "www.w3.org" in address}


def test_an_asset_is_sent_once(client):
    first = client.get("/assets/app.js")
    again = client.get("/assets/app.js", headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_catalogue(client):
    from pipeplan import schedules

    result = client.get("/api/schedules").json()
    assert [item["name"] for item in result] == [entry.name for entry in schedules()]
    assert {item["name"]: item["chunks"] for item in result}["interleaved-1f1b"] is None
