"""The picture of who may import whom, drawn from the contract that is checked, and the table of folders."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path

THEMES = {
    "light": {"ground": "#ffffff", "box": "#e4edfb", "line": "#8b95a1", "text": "#1b1f24", "faint": "#5f6873"},
    "dark": {"ground": "#14171b", "box": "#22324d", "line": "#75808c", "text": "#e8eaed", "faint": "#a0a8b3"},
}
WIDTH, ROW, GAP, LEFT = 760, 34, 8, 6


def pictures(root: Path) -> Iterator[tuple[str, bytes]]:
    """The path and the content of the picture in each theme."""
    for theme, colors in THEMES.items():
        yield f"explanation/architecture-{theme}.svg", _drawn(layers(root), colors).encode()


def layers(root: Path) -> list[list[str]]:
    """The folders and modules of the package, the topmost first; those of one layer do not import each other."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    stacked = next(each["layers"] for each in contracts if each.get("containers") == ["pipeplan"])
    return [[name.strip() for name in layer.split("|")] for layer in stacked]


def table(root: Path) -> str:
    """What each folder or module is for, as it says itself."""
    rows = ["| | |", "|---|---|"]
    for name in (name for layer in layers(root) for name in layer):
        folder = root / "src" / "pipeplan" / name
        path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        said = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        rows.append(f"| `{name}` | {said.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def _drawn(stacked: list[list[str]], colors: dict[str, str]) -> str:
    height = len(stacked) * (ROW + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
        f' font-family="system-ui, sans-serif" font-size="15" role="img">',
        f'<rect width="{WIDTH}" height="{height}" fill="{colors["ground"]}"/>',
    ]
    room = WIDTH - 2 * LEFT
    for row, names in enumerate(stacked):
        top = GAP + row * (ROW + GAP)
        wide = (room - GAP * (len(names) - 1)) / len(names)
        for place, name in enumerate(names):
            left = LEFT + place * (wide + GAP)
            parts.append(
                f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{ROW}" rx="5" fill="{colors["box"]}"'
                f' stroke="{colors["line"]}"/><text x="{left + wide / 2:.1f}" y="{top + ROW / 2 + 5}" text-anchor="middle"'
                f' fill="{colors["text"]}">{escape(name)}</text>'
            )
    return "\n".join([*parts, "</svg>"])
