"""The documentation as a list for language models: each page with its first sentence (https://llmstxt.org).

``python -m docs.build.llms --write`` writes ``llms.txt`` with links to the files of the repository; a test checks that it is
current. The site has one with links to its own pages.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from docs.build import navigation

ROOT = Path(__file__).parents[2]

HEAD = """# pipeplan

> The workbench for pipeline-parallel training: it generates the published schedules, predicts step time, bubble and memory
> per rank, explains why ranks idle, searches for a better schedule under a memory limit, chooses the configuration to train
> with, and exports it to PyTorch, torchtitan and Megatron.

The command line, Python and the tools of `pipeplan mcp` take the same names. With `--json` a command prints one object.
Times are in any unit, the same for all; memory is in bytes or in activations.
"""

LONGEST = 200
"""Maximum length of a description."""


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose names of Python functions are of no interest here."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/name:", lambda *_: None)


def text(root: Path, *, site: bool) -> str:
    """Return the list, with links to the pages of the site or to the files of the repository.

    Pages that are made with the site have no file, and are only in its own list.
    """
    entries = yaml.load((root / "mkdocs.yml").read_text(encoding="utf-8"), Loader=_Loader)["nav"]
    navigation.fill(entries, root)
    parts = [HEAD]
    for entry in entries:
        ((section, content),) = entry.items()
        lines = [
            f"- [{title or heading}]({target}){f': {description}' if description else ''}"
            for title, page in _pages(content)
            if (target := _target(root, page, site=site)) is not None
            for heading, description in [_about(root / "docs" / page)]
        ]
        parts += [f"## {section}\n", "\n".join(lines), ""] if lines else []
    return "\n".join(parts)


def _pages(content: Any) -> Iterator[tuple[str, str]]:
    """Yield title, empty if it is the page's own, and path of each page of a part of the navigation."""
    if isinstance(content, str):
        yield "", content
        return
    for entry in content:
        if isinstance(entry, str):
            yield "", entry
        else:
            ((title, inner),) = entry.items()
            yield from ((title, page) for _, page in _pages(inner)) if isinstance(inner, str) else _pages(inner)


def _target(root: Path, page: str, *, site: bool) -> str | None:
    if site:
        return re.sub(r"\.(md|ipynb)$", ".html", page)
    return f"docs/{page}" if (root / "docs" / page).is_file() else None


def _about(path: Path) -> tuple[str, str]:
    """Return the heading of a page, and the first sentence of its first paragraph; the name of a page that has no file."""
    if path.suffix != ".md" or not path.is_file():
        return path.stem.replace("-", " ").capitalize() if path.stem != "index" else path.parent.name.capitalize(), ""
    content = re.sub(
        r"\A---\n.*?^---\n|<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    heading = re.search(r"^# (.+)$", content, re.MULTILINE)
    paragraphs = re.split(r"\n\s*\n", content[heading.end() :] if heading else content)
    prose = (" ".join(part.split()) for part in paragraphs if re.match(r"(?!```)[\w`*\[]", part.strip()))
    sentence = re.sub(r":$", ".", re.split(r"(?<=[.?:])\s", _plain(next(prose, "")))[0])
    return heading.group(1) if heading else path.stem, sentence if len(sentence) <= LONGEST else ""


def _plain(markdown: str) -> str:
    """Return text without links."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)


if __name__ == "__main__":
    path, current = ROOT / "llms.txt", text(ROOT, site=False)
    if "--write" in sys.argv:
        path.write_text(current, encoding="utf-8")
    elif not path.is_file() or path.read_text(encoding="utf-8") != current:
        sys.exit(f"{path} is out of date: python -m docs.build.llms --write")
