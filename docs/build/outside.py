"""What a page would fetch from elsewhere when it is read: nothing, or the site is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

FETCHING = {"audio", "embed", "iframe", "img", "input", "link", "object", "script", "source", "track", "video"}
"""Tags that load what they name; an ``a`` only leads there."""

NAMING = {"data", "href", "poster", "src", "srcset"}
NOT_LOADED = {"alternate", "author", "canonical", "license", "next", "prev"}
STYLED = re.compile(r"(?:@import\s*|url\()\s*['\"]?((?:https?:)?//[^'\")\s]+)")


class _Fetched(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.found += STYLED.findall(named.get("style", ""))
        if tag not in FETCHING or named.get("rel") in NOT_LOADED:
            return
        self.found += [value for name, value in named.items() if name in NAMING and _elsewhere(value)]


def _elsewhere(address: str) -> bool:
    return address.startswith(("http:", "https:", "//"))


def fetched(site: Path) -> Iterator[str]:
    """A sentence for each thing that a page or style sheet of a built site loads from another host."""
    for path in sorted(site.rglob("*.html")):
        parser = _Fetched()
        parser.feed(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(site)} fetches {address}: bring it along" for address in parser.found)
    for path in sorted(site.rglob("*.css")):
        found = STYLED.findall(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(site)} fetches {address}: bring it along" for address in found)
