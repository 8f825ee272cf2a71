"""A page with a timeline, and what tests ask of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from tests.browser import close_page, new_page

PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"


class Opened:
    """One page; ``page`` is Playwright's."""

    def __init__(self, page, path: Path) -> None:
        self.page = page
        self.path = path
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: self.requests.append(request.url))

    def go(self, fragment: str = "") -> None:
        """Open the page anew with this state."""
        self.page.goto("about:blank")
        self.page.goto(self.path.as_uri() + (f"#{fragment}" if fragment else ""))
        self.painted()

    def painted(self) -> None:
        self.page.evaluate(PAINTED)

    def close(self) -> None:
        """Fail if anything went wrong, or if the page asked for anything but itself."""
        close_page(self.page)
        assert self.errors == []
        own = self.path.as_uri()
        assert {url.split("#")[0] for url in self.requests if not url.startswith(("data:", "blob:"))} == {own}

    def ask(self, expression: str, argument: Any = None) -> Any:
        """The value of an expression about ``timeline``, the object that ``mountTimeline`` gives."""
        return self.page.evaluate(
            f"(argument) => {{ const timeline = pipeplan.embedded; return {expression}; }}", argument
        )

    def place(self, name: str, view: int = 0) -> tuple[float, float, float, float]:
        """Where an op stands: left, top, width, height."""
        box = self.ask("timeline.placeOf(argument[0], argument[1])?.toJSON()", [view, name])
        assert box is not None, f"{name} does not show"
        return box["x"], box["y"], box["width"], box["height"]

    def middle(self, name: str, view: int = 0) -> tuple[float, float]:
        x, y, width, height = self.place(name, view)
        return x + width / 2, y + height / 2

    def hover(self, name: str, view: int = 0) -> str:
        """Point at an op, and read what is said about it."""
        self.page.mouse.move(*self.middle(name, view))
        return self.tooltip()

    def tooltip(self) -> str:
        self.painted()
        tip = self.page.locator(".pp-tooltip")
        return str(tip.inner_text()) if tip.is_visible() else ""

    def press(self, *keys: str) -> None:
        """Press keys while the picture has the focus."""
        self.page.locator(".pp-chart").focus()
        for key in keys:
            self.page.keyboard.press(key)
        self.painted()

    def find(self, text: str) -> str:
        """Search, and read how many were found."""
        self.page.get_by_role("searchbox").fill(text)
        self.painted()
        return str(self.page.locator(".pp-matches").inner_text())

    def fragment(self) -> dict[str, str]:
        """The state in the page's address, once it is that of the timeline if there is one."""
        self.page.wait_for_function(
            "() => (pipeplan.embedded?.fragment ?? location.hash.slice(1)) === location.hash.slice(1)"
        )
        text = self.page.evaluate("location.hash.slice(1)")
        return {name: values[0] for name, values in parse_qs(text).items()}

    def span(self) -> tuple[float, float] | None:
        """The times between which the picture shows; None for all."""
        state = parse_qs(self.ask("timeline.fragment"))
        return (float(state["from"][0]), float(state["to"][0])) if "from" in state else None

    def pixel(self, x: float, y: float) -> str:
        """The colour of a pixel of the picture, as ``#rrggbb``."""
        script = """([x, y]) => {
          const canvas = document.querySelector(".pp-chart canvas");
          const box = canvas.getBoundingClientRect();
          const ratio = canvas.width / box.width;
          const at = [(x - box.left) * ratio, (y - box.top) * ratio];
          const [r, g, b] = canvas.getContext("2d").getImageData(...at, 1, 1).data;
          return "#" + [r, g, b].map(part => part.toString(16).padStart(2, "0")).join("");
        }"""
        return str(self.page.evaluate(script, [x, y]))


@contextmanager
def opening(browser: Any, path: Path) -> Iterator[Callable[..., Opened]]:
    """Opens a page at a fragment, in a window of some width; all are closed at the end."""
    pages: list[Opened] = []

    def open_page(fragment: str = "", width: int = 1440, **context: Any) -> Opened:
        context.setdefault("viewport", {"width": width, "height": 900})
        page = Opened(new_page(browser, **context), path)
        page.page.set_default_timeout(8_000)
        pages.append(page)
        page.go(fragment)
        page.page.locator(".pp-chart").wait_for()
        return page

    yield open_page
    for page in pages:
        page.close()
