"""Pictures of the documentation that are kept in the repository, so that pages can be read there: bitmaps of drawings.

``python -m docs.build.pictures`` draws those that code makes anew, and reduces the colors of screenshots; ``python -m
docs.build.executed --write PAGE`` draws those that the commands of a page make. Both need Chromium, Playwright and Pillow,
which the development environment has. The site shows the drawings themselves where the build makes them, in both themes.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pipeplan
from docs.build import architecture, glossary, round_trips

if TYPE_CHECKING:
    from PIL.Image import Image

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

WIDTH = 1245
"""Width of a bitmap in pixels: three for two of the 830 that a page of the repository shows."""

CELL = 24
"""Width and height in pixels of the cells by whose mean colors two pictures are compared."""

CHANGED = 24
"""Difference of a cell's mean color, of 255, from which it counts as changed; other fonts stay below."""

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def drawings() -> dict[Path, bytes]:
    """Return the drawings that code makes for pages, as SVG or PNG, each by the path of its bitmap."""
    light = [*glossary.pages(themes=("light",)), *round_trips.pages(themes=("light",))]
    made = {DOCS / path.replace("-light.svg", ".webp"): _bytes(content) for path, content in light}
    return {DOCS / "pipeline_comparison.webp": comparison(), **made}


def comparison() -> bytes:
    """Return the picture that ``make demo`` draws, as PNG."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "comparison.png"
        pipeplan.compare(config=ROOT / "examples" / "profiles" / "gpt-6.2b-24.yaml").save(path)
        return path.read_bytes()


def vectors() -> dict[Path, bytes]:
    """Return the drawings that are small enough to be kept as SVG, each by its path."""
    return {DOCS / path: content for path, content in architecture.pictures(ROOT)}


def shown_by(page: Path) -> list[str]:
    """Return the names, without endings, of the bitmaps that a page shows of what its commands draw."""
    return re.findall(rf"\bmade/{re.escape(page.stem)}/([\w.+-]+)\.webp", page.read_text(encoding="utf-8"))


def made_by(page: Path, folder: Path) -> dict[Path, bytes]:
    """Return the drawings that the commands of a page left in a folder and that it shows, each by the path of its bitmap."""
    made = page.parent / "made" / page.stem
    return {made / f"{name}.webp": (folder / f"{name}.svg").read_bytes() for name in shown_by(page)}


def bitmaps(drawn: Mapping[Path, bytes]) -> Iterator[tuple[Path, Image]]:
    """Yield each drawing as a bitmap, in one browser."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": WIDTH})
        for path, svg in drawn.items():
            if not svg.lstrip().startswith(b"<"):
                yield path, _narrowed(Image.open(BytesIO(svg)).convert("RGB"))
                continue
            page.set_content(
                f"<style>* {{ margin: 0 }} svg {{ display: block; width: 100%; height: auto }}</style>{_root(svg)}"
            )
            yield path, Image.open(BytesIO(page.locator("svg").first.screenshot())).convert("RGB")
        browser.close()


def write(drawn: Mapping[Path, bytes]) -> None:
    """Write the bitmaps of drawings; one that still shows the same is left as it is."""
    from PIL import Image

    for path, picture in bitmaps(drawn):
        if path.is_file() and alike(Image.open(path), picture):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.quantize(64, dither=Image.Dither.NONE).convert("RGB").save(path, lossless=True, quality=100, method=6)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1000:.0f} kB")


def shrink(path: Path) -> None:
    """Reduce the colors of a PNG, such as a screenshot, if that was not done before."""
    from PIL import Image

    picture = Image.open(path)
    if picture.mode != "P":
        picture.convert("RGB").quantize(96, dither=Image.Dither.NONE).save(path, optimize=True)


def alike(kept: Image, drawn: Image) -> bool:
    """Return whether two pictures show the same, whatever the fonts and edges: almost every cell has its color."""
    if abs(kept.width / kept.height - drawn.width / drawn.height) > 0.02 * drawn.width / drawn.height:
        return False
    cells = (drawn.width // CELL, drawn.height // CELL)
    pairs = zip(_means(kept, cells), _means(drawn, cells), strict=True)
    changed = sum(abs(one - other) > CHANGED for one, other in pairs)
    return changed < 0.002 * 3 * cells[0] * cells[1]


def _narrowed(picture: Image) -> Image:
    from PIL import Image

    return picture.resize((WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS)


def _means(picture: Image, cells: tuple[int, int]) -> bytes:
    from PIL import Image

    return picture.convert("RGB").resize(cells, Image.Resampling.BOX).tobytes()


def _root(svg: bytes) -> str:
    """Return an SVG without what stands before its element."""
    text = svg.decode()
    return text[text.index("<svg") :]


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


if __name__ == "__main__":
    for path, content in vectors().items():
        path.write_bytes(content)
    write(drawings())
    for path in DOCS.glob("*.png"):
        shrink(path)
