"""Links of pages, between the repository and the site."""

from docs.build import links


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
