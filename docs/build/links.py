"""Links of pages, as the site needs them: written for the repository, they reach further than the site does.

Every link of a page leads to a file of the repository, so that the page can be read where it is kept. In the site, a link to
a source leads to the page that is made from it (``SOURCES``), a picture is shown in both themes if the site has them, and
``<!-- site: Markdown -->`` is shown: what only the site has.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```\s*$)", re.DOTALL | re.MULTILINE)
NOTEBOOK = re.compile(r"\.ipynb(?=(?:#[^)\s]*)?\)(?!\{))")
"""The ending of a notebook's name in a link, except in the link that downloads it, which has attributes."""

PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)\s#]+?)(?:-light)?\.(?:svg|webp)\)")
ONLY_IN_SITE = re.compile(r"<!-- site: (.*?) -->", re.DOTALL)

SOURCES = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "docs/build/gallery.py": "reference/gallery.md",
    "docs/schema": "reference/schemas.md",
    "src/pipeplan/__init__.pyi": "reference/functions.md",
    "src/pipeplan/answers": "reference/types.md",
    "src/pipeplan/cli": "reference/commands/index.md",
    "src/pipeplan/extensions/review/rules": "reference/rules/index.md",
    "src/pipeplan/foundation/errors.py": "reference/errors.md",
    "src/pipeplan/runtime.py": "reference/runtime.md",
    "src/pipeplan/strategies": "reference/strategies/index.md",
    "src/pipeplan/testing.py": "reference/submodules.md",
}
"""Pages of the site that are made from a file or a folder of the repository, or are a copy of it."""

ROLE = re.compile(r":(?:class|data|exc|func|meth|mod):<code>~?\.?([\w.]+?)(?:\(\))?</code>")


def in_the_site(markdown: str, page: str, docs: Path) -> str:
    """Return the text of a page with its links as the site needs them, except in blocks of code.

    A link to a source leads to the page that is made from it; one to a file of strategies that has a strategy's name, to the
    page of that one. Other links out of the documentation become their text. A link with the name of a file gets the title
    of that page, and notebooks are pages.

    Parameters
    ----------
    page
        Path of the page in the documentation.
    docs
        Folder of the documentation.
    """
    folder = posixpath.dirname(page)

    def replaced(match: re.Match[str]) -> str:
        text, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        source = posixpath.normpath(posixpath.join("docs", folder, target))
        if (made := _made_from(source, text)) is not None:
            return f"[{text}]({posixpath.relpath(made, folder or '.')})"
        if not source.startswith("docs/"):
            return text
        path = docs / source.removeprefix("docs/")
        if not text.strip("`").endswith(".md") or not path.is_file():
            return match.group(0)
        heading = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        return f"[{heading.group(1)}]({target}{anchor})" if heading else match.group(0)

    parts = FENCED.split(markdown)
    parts[::2] = [NOTEBOOK.sub(".md", LINK.sub(replaced, part)) for part in parts[::2]]
    return "".join(parts)


def _made_from(source: str, text: str) -> str | None:
    """Return the page that is made from a file or folder of the repository, for a link with this text; None for others."""
    if posixpath.dirname(source) == "src/pipeplan/strategies" and source.endswith(".py"):
        return f"reference/strategies/{text.strip('`')}.md"
    return SOURCES.get(source)


def in_themes(markdown: str, exists: Callable[[str], bool]) -> str:
    """Return the text of a page with each picture in both themes, where the site has it in both.

    Parameters
    ----------
    exists
        True for the path of a file of the site, relative to the page.
    """

    def both(match: re.Match[str]) -> str:
        text, stem = match.groups()
        paths = {theme: f"{stem}-{theme}.svg" for theme in ("light", "dark")}
        if not all(map(exists, paths.values())):
            return match.group(0)
        return "\n".join(f"![{text}]({path}#only-{theme})" for theme, path in paths.items())

    return PICTURE.sub(both, markdown)


def with_site_only(markdown: str) -> str:
    """Return the text of a page with what only the site shows."""
    return ONLY_IN_SITE.sub(r"\1", markdown)


def moved(markdown: str, origin: str, page: str) -> str:
    """The text of a file of the repository, with its links as they are from a page of the documentation.

    Parameters
    ----------
    origin, page
        Where the file stands in the repository, and the page in the documentation.
    """
    here, there = posixpath.dirname(origin), posixpath.dirname(posixpath.join("docs", page))

    def relinked(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, match.group(2)))
        return f"[{match.group(1)}]({posixpath.relpath(target, there)}{match.group(3) or ''})"

    return LINK.sub(relinked, markdown)


def references(html: str) -> str:
    """A page in which ``:func:`pipeplan.simulate``` and its like are links where the reference has the name."""

    def link(match: re.Match[str]) -> str:
        name = match.group(1)
        short = name.rpartition(".")[2]
        return f'<autoref optional identifier="{name}"><code>{short}</code></autoref>'

    return ROLE.sub(link, html)
