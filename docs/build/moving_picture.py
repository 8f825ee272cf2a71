"""The moving picture of the timeline: the real page in a real browser, led through what it can do.

``python -m docs.build.moving_picture docs/timeline.webp`` makes it anew. It needs Chromium, Playwright and Pillow, which the
development environment has.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image

import pipeplan

SIZE = (1000, 590)
"""Of the page, in pixels: what a README shows is a little smaller."""

COSTS = "gpt-6.2b-24"
SCHEDULE = "interleaved-1f1b"
RANKS, MICROBATCHES = 4, 12

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_STEP = 60
"""Milliseconds between frames of a movement."""

_STAGE = """() => {
  const make = (id, css) => {
    const element = document.createElement("div");
    element.id = id;
    element.style.cssText = "position:fixed;z-index:99999;pointer-events:none;" + css;
    document.body.append(element);
    return element;
  };
  make("said", "left:0;right:0;bottom:0;padding:9px 18px;background:#1b1f24;color:#fff;" +
    "font:600 17px 'DejaVu Sans',sans-serif;");
  make("hand", "left:0;top:0;width:22px;height:30px;").innerHTML =
    "<svg width='22' height='30' viewBox='0 0 22 30'><path d='M2 2 L2 23 L7.5 18.5 L11 27 L14.5 25.5 L11 17 L18 16.5 Z' " +
    "fill='#111' stroke='#fff' stroke-width='1.6'/></svg>";
}"""


@dataclass
class Film:
    """Frames of a page and how long each is shown, in milliseconds."""

    page: Any
    frames: list[Image.Image] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    at: tuple[float, float] = (SIZE[0] * 0.8, SIZE[1] * 0.75)

    def shoot(self, milliseconds: int) -> None:
        """Take a frame once the page has drawn itself."""
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        picture = Image.open(BytesIO(self.page.screenshot())).convert("RGB")
        self.frames.append(picture)
        self.times.append(milliseconds)

    def say(self, text: str) -> None:
        """What stands below the page from now on."""
        self.page.evaluate("text => { document.getElementById('said').textContent = text; }", text)

    def go(self, x: float, y: float, steps: int = 6) -> None:
        """Move the hand there."""
        from_x, from_y = self.at
        for step in range(1, steps + 1):
            share = step / steps
            self.put(from_x + share * (x - from_x), from_y + share * (y - from_y))
            self.shoot(_STEP)

    def put(self, x: float, y: float) -> None:
        """Have the hand there."""
        self.at = x, y
        self.page.mouse.move(x, y)
        move = "([x, y]) => { document.getElementById('hand').style.transform = `translate(${x}px, ${y}px)`; }"
        self.page.evaluate(move, [x, y])

    def save(self, path: Path) -> None:
        """Write the frames as an endless WebP."""
        first, *rest = self.frames
        first.save(path, save_all=True, append_images=rest, duration=self.times, loop=0, quality=72, method=6)


def play(film: Film) -> None:
    """Look, point, click, ask why, zoom, measure."""
    page = film.page
    wide = page.locator("canvas").last.bounding_box()
    lanes = page.locator("canvas").first.bounding_box()

    def at(time: float, height: float) -> tuple[float, float]:
        """A place by its shares of the time and of the lanes."""
        return wide["x"] + time * wide["width"], lanes["y"] + height * lanes["height"]

    film.put(*film.at)
    film.say(f"pipeplan simulate {SCHEDULE} -c {COSTS} -p {RANKS} -m {MICROBATCHES} -o timeline.html")
    film.shoot(1400)
    film.say("Point at an op: what it is, when it runs, what it waited for")
    film.go(*at(0.62, 0.42))
    film.shoot(1350)
    film.say("Click it: the chain that held it up, and what it holds up")
    page.mouse.click(*film.at)
    film.shoot(500)
    film.go(*at(0.8, 1.35), steps=4)
    film.shoot(1550)
    page.keyboard.press("Escape")
    film.say("G: why each rank idles")
    page.keyboard.press("g")
    film.go(*at(0.17, 0.24))
    film.shoot(1550)
    film.say("Ctrl + wheel, or W: zoom; below, where you are")
    page.keyboard.down("Control")
    for _ in range(5):
        page.mouse.wheel(0, -90)
        film.shoot(90)
    page.keyboard.up("Control")
    film.shoot(900)
    film.say("Shift + drag: what an interval is spent on")
    film.go(*at(0.25, 0.2), steps=4)
    page.keyboard.down("Shift")
    page.mouse.down()
    film.go(*at(0.8, 0.5))
    film.shoot(800)
    page.mouse.up()
    page.keyboard.up("Shift")
    film.shoot(1900)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """A page in a browser, with a hand and a line of text on it."""
    from playwright.sync_api import sync_playwright

    found = next((one for one in map(shutil.which, _BROWSERS) if one), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": SIZE[0], "height": SIZE[1]}, color_scheme="light")
        page.goto(path.as_uri())
        page.locator("canvas").first.wait_for()
        page.evaluate(_STAGE)
        yield page
        browser.close()


def made(played: Callable[[Film], None] = play) -> Film:
    """The film."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.html"
        pipeplan.simulate(SCHEDULE, config=COSTS, ranks=RANKS, microbatches=MICROBATCHES).save(path)
        with opened(path) as page:
            film = Film(page)
            played(film)
            return film


def main() -> None:
    """Make the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    path: Path = parser.parse_args().path
    film = made()
    film.save(path)
    print(f"{path}: {len(film.frames)} frames, {sum(film.times) / 1000:.1f} s, {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
