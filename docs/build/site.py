"""MkDocs' hooks: the pages and pictures that come from code, and a site that fetches nothing.

Named in ``mkdocs.yml``. Pages that stand in no file are made here, each by a module of its own; what leaves the
folder of the documentation is no link in the site, which holds only that folder.
"""

from __future__ import annotations

import logging
import posixpath
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.build import architecture, links, made, navigation, outside

ROOT = Path(__file__).parents[2]

STEP = 20
"""Number of pages between two lines that show progress."""

logger = logging.getLogger("mkdocs.hooks.pipeplan")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Entries of the navigation that end in a slash become the pages of that folder."""
    navigation.fill(config.nav or [], ROOT)
    return config


def on_files(files: Files, /, *, config: MkDocsConfig) -> Files:
    """Adds what code makes: pages, pictures, the demo."""
    for path, content in made.everything(ROOT, logger.info):
        if files.get_file_from_path(path) is None:
            files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files of the repository that the site does not hold become their text, marks what code makes."""
    order = [file.src_uri for file in files.documentation_pages()]
    number = order.index(page.file.src_uri) + 1
    if number % STEP == 0:
        logger.info(f"page {number} of {len(order)}: {page.file.src_uri}")
    markdown = markdown.replace("<!-- made: folders -->", architecture.table(ROOT))
    here = posixpath.dirname(page.file.src_uri)
    markdown = links.in_themes(
        links.with_site_only(markdown), lambda path: files.get_file_from_path(posixpath.join(here, path)) is not None
    )
    return links.in_the_site(markdown, page.file.src_uri, ROOT / "docs")


def on_page_content(html: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Names that docstrings refer to become links."""
    return links.references(html)


def on_post_page(html: str, /, *, page: Page, config: MkDocsConfig) -> str:
    """The theme's dialog of the search gets a name, which readers of screens need."""
    return html.replace(
        'data-md-component="search" role="dialog"', 'data-md-component="search" role="dialog" aria-label="Search"'
    )


def on_post_build(*, config: MkDocsConfig, **_: Any) -> None:
    """Refuses a site that would fetch something from elsewhere when it is read."""
    for fault in outside.fetched(Path(config.site_dir)):
        logger.warning(fault)
