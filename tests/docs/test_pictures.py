"""Pictures that the repository keeps: few bytes, and what the code draws now."""

import shutil

import pytest

from docs.build import executed, pictures

MOST = 1_500_000
"""Bytes of all pictures of the documentation."""


def test_pictures_are_small():
    found = [path for path in pictures.DOCS.rglob("*") if path.suffix in {".webp", ".png", ".svg", ".jpg", ".gif"}]
    assert len(found) > 30
    assert sum(path.stat().st_size for path in found) < MOST


def test_drawings_kept_as_vectors_are_current():
    """``python -m docs.build.pictures`` writes them."""
    for path, content in pictures.vectors().items():
        assert path.read_bytes() == content, path.name


def test_every_bitmap_is_of_a_drawing():
    """Nothing is kept that no page shows."""
    shown = {
        page.parent / "made" / page.stem / f"{name}.webp"
        for page in executed.pages()
        for name in pictures.shown_by(page)
    }
    assert {*pictures.DOCS.glob("*/made/*/*")} == shown


@pytest.mark.slow
def test_bitmaps_show_what_is_drawn_now():
    """``python -m docs.build.pictures`` draws them anew. Fonts and edges may differ: almost every cell has its color."""
    image, _ = pytest.importorskip("PIL.Image"), pytest.importorskip("playwright")
    if not any(map(shutil.which, pictures.BROWSERS)):
        pytest.skip("bitmaps are drawn by Chromium, which is not installed")
    drawn = pictures.drawings()
    assert len(drawn) > 25
    changed = [path.name for path, picture in pictures.bitmaps(drawn) if not pictures.alike(image.open(path), picture)]
    assert changed == []


def test_a_moved_op_is_a_change_and_a_blurred_edge_is_none():
    image = pytest.importorskip("PIL.Image")
    filters = pytest.importorskip("PIL.ImageFilter")
    kept = image.open(pictures.DOCS / "explanation" / "glossary" / "op.webp").convert("RGB")
    assert pictures.alike(kept, kept.filter(filters.GaussianBlur(1)))
    op = kept.crop((200, 60, 260, 100))
    moved = kept.copy()
    moved.paste(op, (500, 60))
    assert not pictures.alike(kept, moved)
    assert not pictures.alike(kept, kept.resize((kept.width, kept.height * 2)))
