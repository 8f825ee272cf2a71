"""How fast the interactive timeline is with 100,000 ops, in headless Chromium.

Run with ``make bench-timeline``. Prints how long the page takes to its first picture, the main thread's time for each
step of the wheel, as the browser itself counts it, and how many pictures a second it draws while a key moves it.
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Any

from pipeplan.costs import Settings
from pipeplan.drawing import View, view_of
from pipeplan.drawing.html import html_page
from pipeplan.simulation import simulate
from pipeplan.strategies import strategy
from tests.browser import chromium

STEPS = 24
PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
COUNT = """() => {
  const times = [];
  const note = (now) => { times.push(now); if (!window.stopped) requestAnimationFrame(note); };
  requestAnimationFrame(note);
  window.pictures = () => { window.stopped = true; return 1000 * (times.length - 1) / (times.at(-1) - times[0]); };
}"""
FIRST_PICTURE = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime"


def large_view() -> View:
    """64 ranks, 512 microbatches, forward and both halves of the backward."""
    rule = strategy("zb-h1")
    schedule = rule(rule.shape(64, 512))
    simulation = simulate(schedule, Settings(p2p_time=0.1).costs(schedule.placement))
    return view_of(simulation.timeline, simulation.memory)


def main_thread(session: Any) -> float:
    """Milliseconds that the page's main thread has been busy."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(1e3 * metric["value"] for metric in metrics if metric["name"] == "TaskDuration"))


def zoom_steps(page: Any) -> list[float]:
    """The main thread's milliseconds for each step of the wheel: in, then out."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.mouse.move(900, 400)
    page.wait_for_timeout(300)
    page.keyboard.down("Control")
    times = []
    for step in range(STEPS):
        before = main_thread(session)
        page.mouse.wheel(0, -120 if step < 2 * STEPS / 3 else 120)
        page.evaluate(PAINTED)
        times.append(main_thread(session) - before)
    page.keyboard.up("Control")
    return times


def pictures_a_second(page: Any) -> float:
    """How many pictures come in each second while a key is held: all the ops, then half of them, move by."""
    page.locator(".pp-chart").focus()
    page.keyboard.press("0")
    page.keyboard.press("+")
    page.evaluate(COUNT)
    page.keyboard.down("d")
    page.wait_for_timeout(400)
    page.keyboard.up("d")
    page.keyboard.down("s")
    page.wait_for_timeout(400)
    page.keyboard.up("s")
    return float(page.evaluate("() => window.pictures()"))


def main() -> None:
    """Measure five fresh pages."""
    view = large_view()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        path = Path(folder) / "timeline.html"
        path.write_text(html_page(view), encoding="utf-8")
        print(f"{len(view.bars):,} ops, {path.stat().st_size / 1e6:.1f} MB")
        for _ in range(5):
            page = browser.new_page(viewport={"width": 1600, "height": 1000})
            page.goto(path.as_uri())
            page.wait_for_timeout(800)
            first = page.evaluate(FIRST_PICTURE)
            steps = zoom_steps(page)
            pictures = pictures_a_second(page)
            middle, most = statistics.median(steps), max(steps)
            print(
                f"first picture {first:5.0f} ms; zoom step: median {middle:4.1f} ms, longest {most:4.1f} ms; "
                f"flying: {pictures:3.0f} pictures a second"
            )
            page.close()


if __name__ == "__main__":
    main()
