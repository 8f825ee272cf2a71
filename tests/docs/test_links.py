"""Links of pages, between the repository and the site."""

from docs.build import links
from tests.docs import checkout


def test_links_that_leave_the_documentation_become_text():
    page = (
        "see [`model/op.py`](../../src/pipeplan/model/op.py), [settings](settings.md#time) and [a](https://a.example/b)"
    )
    shown = "see `model/op.py`, [settings](settings.md#time) and [a](https://a.example/b)"
    assert links.within_the_site(page, "reference/formats.md") == shown


def test_what_stands_in_a_block_is_no_link():
    page = "```python\nrows[0](../../x)\n```\n[x](../../x)\n"
    assert links.within_the_site(page, "how-to/a.md") == "```python\nrows[0](../../x)\n```\nx\n"


def test_a_file_of_the_repository_keeps_its_links_as_a_page():
    text = "[formats](docs/reference/formats.md#png), [tests](tests/browser.py)"
    page = links.moved(text, "CHANGELOG.md", "changelog.md")
    assert page == "[formats](reference/formats.md#png), [tests](../tests/browser.py)"
    assert links.within_the_site(page, "changelog.md") == "[formats](reference/formats.md#png), tests"


def test_names_in_docstrings_become_references():
    html = (
        "<p>see :func:<code>pipeplan.simulate</code> and :class:<code>~pipeplan.foundation.errors.RunError</code></p>"
    )
    assert links.references(html) == (
        '<p>see <autoref optional identifier="pipeplan.simulate"><code>simulate</code></autoref> and '
        '<autoref optional identifier="pipeplan.foundation.errors.RunError"><code>RunError</code></autoref></p>'
    )


def test_links_that_are_called_like_a_file_are_called_like_its_page(tmp_path):
    (tmp_path / "how-to").mkdir()
    (tmp_path / "how-to" / "traces.md").write_text("# From the traces of a run\n\nText.\n")
    page = "[traces.md](../how-to/traces.md#ops), [docs/how-to/traces.md](../how-to/traces.md), [costs](../how-to/traces.md)"
    shown = "[From the traces of a run](../how-to/traces.md#ops), [From the traces of a run](../how-to/traces.md), "
    assert links.titled(page, "reference/python.md", tmp_path) == f"{shown}[costs](../how-to/traces.md)"
    assert links.titled("[gone.md](gone.md)", "reference/python.md", tmp_path) == "[gone.md](gone.md)"


def test_links_to_notebooks_lead_to_their_pages():
    page = "[a](b.ipynb), [c](d.ipynb#e) and [Download](b.ipynb){ .md-button download }"
    assert links.to_pages(page) == "[a](b.md), [c](d.md#e) and [Download](b.ipynb){ .md-button download }"


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


def test_links_to_sources_lead_to_their_pages_in_the_site():
    strategies = "../../src/pipeplan/strategies/"
    page = f"[`zbv`]({strategies}zero_bubble.py), [all]({strategies}), [c](../../CONTRIBUTING.md)"
    shown = "[`zbv`](../reference/strategies/zbv.md), [all](../reference/strategies/index.md), [c](../contributing.md)"
    assert links.to_made_pages(page, "explanation/glossary.md") == shown


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
