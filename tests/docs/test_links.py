"""Links of pages, between the repository and the site."""

import pytest

from docs.build import links
from tests.docs import checkout


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[`model/op.py`](../../src/pipeplan/model/op.py)", "`model/op.py`"),
        ("[settings](options.md#time)", "[settings](options.md#time)"),
        ("[a](https://a.example/b)", "[a](https://a.example/b)"),
        ("```python\nrows[0](../../x)\n```\n[x](../../x)\n", "```python\nrows[0](../../x)\n```\nx\n"),
        ("[traces.md](../how-to/traces.md#ops)", "[From the traces of a run](../how-to/traces.md#ops)"),
        ("[docs/how-to/traces.md](../how-to/traces.md)", "[From the traces of a run](../how-to/traces.md)"),
        ("[costs](../how-to/traces.md)", "[costs](../how-to/traces.md)"),
        ("[gone.md](gone.md)", "[gone.md](gone.md)"),
        ("[a](b.ipynb), [c](d.ipynb#e)", "[a](b.md), [c](d.md#e)"),
        ("[Download](b.ipynb){ .md-button download }", "[Download](b.ipynb){ .md-button download }"),
        ("[`zbv`](../../src/pipeplan/strategies/zero_bubble.py)", "[`zbv`](strategies/zbv.md)"),
        ("[all](../../src/pipeplan/strategies/)", "[all](strategies/index.md)"),
        ("[c](../../CONTRIBUTING.md)", "[c](../contributing.md)"),
    ],
)
def test_a_link_of_a_page_leads_to_what_the_site_has(link, shown, tmp_path):
    (tmp_path / "how-to").mkdir()
    (tmp_path / "how-to" / "traces.md").write_text("# From the traces of a run\n\nText.\n")
    assert links.in_the_site(link, "reference/formats.md", tmp_path) == shown


def test_a_file_of_the_repository_keeps_its_links_as_a_page(tmp_path):
    text = "[formats](docs/reference/formats.md#png), [tests](tests/browser.py)"
    page = links.moved(text, "CHANGELOG.md", "changelog.md")
    assert page == "[formats](reference/formats.md#png), [tests](../tests/browser.py)"
    assert links.in_the_site(page, "changelog.md", tmp_path) == "[formats](reference/formats.md#png), tests"


def test_names_in_docstrings_become_references():
    html = (
        "<p>see :func:<code>pipeplan.simulate</code> and :class:<code>~pipeplan.foundation.errors.RunError</code></p>"
    )
    assert links.references(html) == (
        '<p>see <autoref optional identifier="pipeplan.simulate"><code>simulate</code></autoref> and '
        '<autoref optional identifier="pipeplan.foundation.errors.RunError"><code>RunError</code></autoref></p>'
    )


def test_every_link_of_a_checkout_leads_somewhere():
    """As GitHub follows them: files that are committed, headings by its rules."""
    pages = checkout.pages()
    assert {"README.md", "docs/index.md", "skills/pipeplan/SKILL.md", "src/pipeplan/extensions/search/README.md"} <= {
        *pages
    }
    assert sum(len([*checkout.links((checkout.ROOT / page).read_text())]) for page in pages) > 200
    assert [fault for page in pages for fault in checkout.faults(page)] == []


def test_a_dead_link_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    monkeypatch.setattr(checkout, "committed", lambda: {"a.md", "b.md", "docs"})
    (tmp_path / "b.md").write_text("# A `memory_limit`, and (more)\n\n## Twice\n\n## Twice\n")
    live = "[a](b.md#a-memory_limit-and-more) [b](b.md#twice-1) ![c](docs/) [d](https://a.example/x) `[x](y)`\n"
    (tmp_path / "a.md").write_text(f"{live}\n```\n[code](gone.md)\n```\n<!-- site: [page](made/x.html) -->\n")
    assert list(checkout.faults("a.md")) == []
    (tmp_path / "a.md").write_text(f'{live}[![p](gone.png)](b.md#twice-2)\n\n<img src="gone.svg">\n')
    assert [fault.split(":")[1].strip() for fault in checkout.faults("a.md")] == [
        "gone.png",
        "b.md#twice-2",
        "gone.svg",
    ]


def test_every_source_with_a_page_is_there():
    assert [source for source in links.SOURCES if not (checkout.ROOT / source).exists()] == []


def test_a_picture_is_shown_in_both_themes_where_the_site_has_them():
    has = {"glossary/op-light.svg", "glossary/op-dark.svg"}.__contains__
    shown = "![An op](glossary/op-light.svg#only-light)\n![An op](glossary/op-dark.svg#only-dark)"
    assert links.in_themes("![An op](glossary/op.webp)", has) == shown
    assert links.in_themes("![An op](glossary/op-light.svg)", has) == shown
    assert links.in_themes("![Other](made/a.webp)", has) == "![Other](made/a.webp)"


def test_what_only_the_site_has_is_shown_there():
    assert (
        links.with_site_only("a\n\n<!-- site: [open](made/a/b.html){ .md-button } -->\n")
        == "a\n\n[open](made/a/b.html){ .md-button }\n"
    )
