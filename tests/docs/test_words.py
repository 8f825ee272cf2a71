"""How much there is to read, as ``wc -w`` counts it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]

MOST = 45_000
"""Words of README.md and all pages in docs/."""

MOST_OF_README = 900
"""Words of README.md."""

MOST_OF_REFERENCE = 7_500
"""Words of the pages in docs/reference/, which code makes for the most part."""


def words(*paths: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in paths)


def test_the_documentation_is_short_enough_to_be_read():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    longest = sorted(pages, key=words, reverse=True)[:5]
    assert words(*pages) <= MOST, f"the longest: {[(str(page.relative_to(ROOT)), words(page)) for page in longest]}"


def test_the_readme_is_read_in_three_minutes():
    assert words(ROOT / "README.md") <= MOST_OF_README


def test_the_reference_is_looked_up_not_read():
    assert words(*(ROOT / "docs" / "reference").glob("*.md")) <= MOST_OF_REFERENCE
