"""Links of Markdown files as GitHub follows them: to files that are committed, and to headings by its rules."""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

BLOCKS = re.compile(r"^(```|~~~).*?^\1\s*$|<!--.*?-->", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"`[^`\n]*`")
TARGET = re.compile(
    r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)|^\[[^\]]+\]: (\S+)|<(?:a|img|iframe)\b[^>]*?(?:href|src)=\"([^\"]+)\"",
    re.MULTILINE,
)
ELSEWHERE = re.compile(r"[a-z]+:|//")


def pages() -> list[str]:
    """Return the Markdown files that a reader of the repository follows links in."""
    tops = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/", "skills/", "src/", "examples/")
    return sorted(path for path in committed() if path.endswith(".md") and path.startswith(tops))


@cache
def committed() -> frozenset[str]:
    """Return the files of the checkout that git knows, and the folders that hold them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    files = {path for path in listed.stdout.decode().split("\0") if path and (ROOT / path).exists()}
    return frozenset(files | {folder.as_posix() for path in files for folder in Path(path).parents})


def links(text: str) -> Iterator[str]:
    """Yield the targets of all links and pictures of a page that do not lead to another host."""
    shown = BLOCKS.sub("", text)
    for match in TARGET.finditer(CODE.sub("", shown)):
        target = next(filter(None, match.groups()))
        if not ELSEWHERE.match(target):
            yield target


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, and those that it sets itself."""
    shown, seen, found = BLOCKS.sub("", text), Counter[str](), set[str]()
    for heading in re.findall(r"^#{1,6} +(.+?)(?: +#+)?$", shown, re.MULTILINE):
        slug = slug_of(heading)
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return found | set(re.findall(r"\b(?:id|name)=\"([^\"]+)\"", shown))


def slug_of(heading: str) -> str:
    """Return GitHub's anchor of a heading: its text in small letters, without punctuation, with hyphens for blanks."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "").replace("*", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def faults(page: str) -> Iterator[str]:
    """Yield a line for each link of a page that leads nowhere on GitHub."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in links(text):
        path, _, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
        if file not in committed():
            yield f"{page}: {target}: no such file is committed"
        elif anchor and file.endswith(".md") and anchor not in anchors((ROOT / file).read_text(encoding="utf-8")):
            yield f"{page}: {target}: the file has no such heading"
