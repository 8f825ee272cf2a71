"""Metadata that depends on where the package is published: the URLs, and the links of its description.

The repository has no fixed address. The release sets ``PIPEPLAN_REPOSITORY`` to its own, such as
``https://git.example.org/team/pipeplan``; a build without it has no URLs, and its description no links into the repository.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?![a-z]+:|#)([^)]+)\)")
"""Markdown links and images with a relative address."""


class CustomMetadataHook(MetadataHookInterface):
    """Set ``readme`` and ``urls``, which ``pyproject.toml`` declares as dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add them to the metadata of the project, unless it comes from a source distribution, which has them."""
        if "readme" in metadata:
            metadata.setdefault("urls", {})
            return
        repository = os.environ.get("PIPEPLAN_REPOSITORY", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": described(text, repository)}
        metadata["urls"] = urls(repository)


def urls(repository: str) -> dict[str, str]:
    """Return the URLs of the project by their labels; none without a repository."""
    if not repository:
        return {}
    return {
        "Source": repository,
        "Documentation": f"{repository}/tree/HEAD/docs",
        "Changelog": f"{repository}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }


def described(readme: str, repository: str) -> str:
    """Return the README for a package index, which has no files beside it: links lead to the repository, or become text."""

    def link(match: re.Match[str]) -> str:
        image, text, path = match.groups()
        if repository:
            return f"{image}[{text}]({repository}/{'raw' if image else 'blob'}/HEAD/{path})"
        return "" if image else text

    return _LINK.sub(link, readme)
