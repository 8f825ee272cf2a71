"""Links of pages, as the site needs them: written for the repository, they reach further than the site does."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from pathlib import Path

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\((?!https?:|#|mailto:)([^)\s#]+)(#[^)\s]*)?\)")
FENCED = re.compile(r"(^```.*?^```\s*$)", re.DOTALL | re.MULTILINE)
NOTEBOOK = re.compile(r"\.ipynb(?=(?:#[^)\s]*)?\)(?!\{))")
"""The ending of a notebook's name in a link, except in the link that downloads it, which has attributes."""

ROLE = re.compile(r":(?:class|data|exc|func|meth|mod):<code>~?\.?([\w.]+?)(?:\(\))?</code>")


def within_the_site(markdown: str, page: str) -> str:
    """The text of a page, with links out of the documentation's folder replaced by what they say.

    Parameters
    ----------
    page
        Where the page stands in that folder: links are relative to it.
    """
    folder = posixpath.dirname(page)

    def kept(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match.group(2)))
        return match.group(1) if target.startswith("..") else match.group(0)

    return _outside_blocks(markdown, kept)


def titled(markdown: str, page: str, docs: Path) -> str:
    """The text of a page, in which a link that is called like the file it leads to is called like that page.

    Parameters
    ----------
    page
        Where the page stands in the documentation.
    docs
        The folder of the documentation.
    """
    folder = posixpath.dirname(page)

    def called(match: re.Match[str]) -> str:
        text, target, anchor = match.group(1), match.group(2), match.group(3) or ""
        path = docs / posixpath.normpath(posixpath.join(folder, target))
        if not text.strip("`").endswith(".md") or not path.is_file():
            return match.group(0)
        heading = re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        return f"[{heading.group(1)}]({target}{anchor})" if heading else match.group(0)

    return _outside_blocks(markdown, called)


def to_pages(markdown: str) -> str:
    """Return the text of a page in which links to notebooks lead to their pages."""
    return NOTEBOOK.sub(".md", markdown)


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


def _outside_blocks(markdown: str, replaced: Callable[[re.Match[str]], str]) -> str:
    """The text with its links replaced, except in blocks of code."""
    parts = FENCED.split(markdown)
    parts[::2] = [LINK.sub(replaced, part) for part in parts[::2]]
    return "".join(parts)


def references(html: str) -> str:
    """A page in which ``:func:`pipeplan.simulate``` and its like are links where the reference has the name."""

    def link(match: re.Match[str]) -> str:
        name = match.group(1)
        short = name.rpartition(".")[2]
        return f'<autoref optional identifier="{name}"><code>{short}</code></autoref>'

    return ROLE.sub(link, html)
