"""How the search gets better with time: pictures of what the benchmark's searches found when.

    python -m benchmarks.search --part table --json docs/explanation/anytime.json
    python -m benchmarks.anytime docs/explanation/anytime.json

writes ``anytime-light.svg`` and ``anytime-dark.svg`` beside the file: for a few of its instances how far the best schedule
so far is above the lower bound, against seconds. Published schedules of the same memory are lines; the zero-bubble authors'
exhaustive search over building blocks is a point, at the seconds that it takes.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from math import log10
from pathlib import Path
from typing import Any

SHOWN = ("V 8x24 100/120/80/10 at 8", "V 8x24 14407/14380/9676/1610 at 12", "V 16x48", "V 64x512")
"""Beginnings of the instances that are drawn; of each the search with the most seconds."""

EXHAUSTIVE = ("v_auto", 21.0)
"""The scheduler that searches exhaustively, and the seconds that it takes on 8 ranks."""

THEMES = {
    "light": {"ground": "#ffffff", "ours": "#1f5fbf", "other": "#b4540a", "line": "#c5ccd4", "text": "#1b1f24"},
    "dark": {"ground": "#14171b", "ours": "#7fb2ff", "other": "#f0a35c", "line": "#3a424c", "text": "#e8eaed"},
}

WIDTH, HEIGHT = 760, 520
PANEL = (285.0, 165.0)
LEFT, TOP, ACROSS, DOWN = 62.0, 48.0, 372.0, 246.0
FIRST = 0.1
"""Where the axis of seconds begins; what was found before is drawn there."""


def main() -> None:
    """Write both pictures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path, help="what benchmarks.search wrote with --json")
    path = parser.parse_args().file
    curves = chosen(json.loads(path.read_text(encoding="utf-8")))
    for theme, colors in THEMES.items():
        path.with_name(f"anytime-{theme}.svg").write_text(drawn(curves, colors), encoding="utf-8")


def chosen(curves: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The curves that are drawn."""
    found = [[each for each in curves if each["instance"].startswith(begin)] for begin in SHOWN]
    return [max(each, key=lambda curve: curve["seconds"]) for each in found if each]


def drawn(curves: list[dict[str, Any]], colors: dict[str, str]) -> str:
    """The picture."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        f' font-family="system-ui, sans-serif" font-size="12" role="img" fill="{colors["text"]}">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="{colors["ground"]}"/>',
    ]
    for number, curve in enumerate(curves):
        left, top = LEFT + number % 2 * ACROSS, TOP + number // 2 * DOWN
        parts.append(f'<g transform="translate({left:g} {top:g})">{panel(curve, colors)}</g>')
    return "\n".join([*parts, "</svg>\n"])


def panel(curve: dict[str, Any], colors: dict[str, str]) -> str:
    """One instance: axes, the published value, the curve."""
    wide, high = PANEL
    bound, last = curve["bound"], curve["seconds"]
    steps = [(max(seconds, FIRST), value / bound - 1) for seconds, value, _ in curve["found"]]
    published = None if curve["published"] is None else curve["published"]["value"] / bound - 1
    shown = [gap for _, gap in steps if published is None or gap <= 2 * published] or [steps[-1][1]]
    most = 1.15 * max([*shown, published or 0.0, 1e-4])

    def x(seconds: float) -> float:
        return wide * log10(max(seconds, FIRST) / FIRST) / log10(last / FIRST)

    def y(gap: float) -> float:
        return high * (1 - min(gap / most, 1.0))

    parts = [f'<text x="0" y="-10" font-weight="bold">{escape(curve["instance"])}</text>']
    for part in range(4):
        gap = most * part / 3
        parts.append(f'<path d="M0 {y(gap):.1f}H{wide:g}" stroke="{colors["line"]}"/>')
        parts.append(f'<text x="-6" y="{y(gap) + 4:.1f}" text-anchor="end">{gap:.2%}</text>')
    parts.extend(
        f'<text x="{x(seconds):.1f}" y="{high + 16:g}" text-anchor="middle">{seconds:g} s</text>'
        for seconds in (0.1, 1, 10, 60)
        if seconds <= last
    )
    if published is not None:
        parts.append(_published(curve["published"]["by"], x, y(published), colors))
    path = f"M{x(steps[0][0]):.1f} {y(steps[0][1]):.1f}"
    path += "".join(f"H{x(seconds):.1f}V{y(gap):.1f}" for seconds, gap in steps[1:]) + f"H{wide:g}"
    parts.append(f'<path d="{path}" fill="none" stroke="{colors["ours"]}" stroke-width="2"/>')
    ends = y(steps[-1][1])
    parts.append(
        f'<text x="{wide - 4:g}" y="{min(ends + 15, high - 4):.1f}" text-anchor="end" fill="{colors["ours"]}">'
        f"search, {steps[-1][1]:.2%} above the bound</text>"
    )
    return "\n".join(parts)


def _published(by: str, x: Any, level: float, colors: dict[str, str]) -> str:
    """A line across, or from the seconds that an exhaustive search takes on."""
    name, seconds = EXHAUSTIVE
    begin = x(seconds) if by == name else 0.0
    parts = [
        f'<path d="M{begin:.1f} {level:.1f}H{PANEL[0]:g}" stroke="{colors["other"]}" stroke-dasharray="5 4"/>',
        f'<text x="{PANEL[0] - 4:g}" y="{level - 6:.1f}" text-anchor="end" fill="{colors["other"]}">{escape(by)}'
        + (f", after {seconds:g} s</text>" if by == name else "</text>"),
    ]
    if by == name:
        parts.append(f'<circle cx="{begin:.1f}" cy="{level:.1f}" r="4" fill="{colors["other"]}"/>')
    return "".join(parts)


if __name__ == "__main__":
    main()
