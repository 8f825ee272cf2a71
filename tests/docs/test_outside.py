"""A site that would fetch something when it is read is refused."""

import pytest

from docs.build.outside import fetched


@pytest.mark.parametrize(
    "page",
    [
        '<script src="https://cdn.example/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example/css">',
        '<img src="http://pictures.example/a.png">',
        "<p style=\"background: url('https://pictures.example/a.png')\">",
    ],
)
def test_what_is_fetched_is_told_with_its_page(page, tmp_path):
    (tmp_path / "index.html").write_text(page)
    (fault,) = fetched(tmp_path)
    assert fault.startswith("index.html fetches ")


def test_style_sheets_are_looked_at(tmp_path):
    (tmp_path / "a.css").write_text("@import 'https://fonts.example/css'; a { background: url(b.png) }")
    assert list(fetched(tmp_path)) == ["a.css fetches https://fonts.example/css: bring it along"]


def test_links_lead_elsewhere_and_fetch_nothing(tmp_path):
    (tmp_path / "index.html").write_text(
        '<a href="https://a.example">a</a><link rel="canonical" href="https://b.example">'
    )
    assert list(fetched(tmp_path)) == []
