"""Pages of the notebooks: each is executed when the site is built and rendered as Markdown with its outputs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

FOLDER = "notebooks"
ORDER = ("choose-a-schedule", "search-under-a-memory-limit", "from-config-to-configuration")
SECONDS = 300
"""Longest time that a cell may take."""

COLUMNS = "88"
"""Width of printed tables in characters, which fits a page."""

STYLED = re.compile(r"\x1b\[[\d;]*m")
"""Escape sequence for bold and colored text, which a page would show as it is."""

MEDIA = ("text/html", "text/markdown", "text/plain")
"""Representations of a result that are rendered, the preferred one first."""


def notebooks(root: Path) -> list[Path]:
    """Return the notebooks of the documentation."""
    return sorted((root / "docs" / FOLDER).glob("*.ipynb"))


def pages(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and the content of the page of a notebook."""
    yield f"{FOLDER}/{path.stem}.md", rendered(_executed(path), path.name)


def _executed(path: Path) -> Mapping[str, Any]:
    """Return a notebook with the outputs of its cells; a cell that raises an error ends the build."""
    import nbformat
    from jupyter_client import KernelManager
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        # Sockets of the file system: the kernel opens no port.
        kernel = KernelManager(transport="ipc", ip=f"{folder}/kernel")
        client = NotebookClient(notebook, km=kernel, timeout=SECONDS, resources={"metadata": {"path": folder}})
        try:
            client.execute(env=os.environ | {"COLUMNS": COLUMNS})
        finally:
            kernel.shutdown_kernel(now=True)
    executed: Mapping[str, Any] = notebook
    return executed


def rendered(notebook: Mapping[str, Any], name: str) -> str:
    """Return a notebook as Markdown: its text, its code, and below each cell what it printed and returned.

    Parameters
    ----------
    notebook
        The notebook in version 4 of Jupyter's format, with outputs.
    name
        Name of the file that the page offers for download.
    """
    parts = list[str]()
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        printed = "".join("".join(one["text"]) for one in cell["outputs"] if one.get("name") == "stdout")
        parts += [_block(printed)] if printed.strip() else []
        parts += [_result(one["data"]) for one in cell["outputs"] if "data" in one]
    parts.append(f"[Download this notebook]({name}){{ .md-button download }}")
    return "\n\n".join(parts) + "\n"


def _result(data: Mapping[str, Any]) -> str:
    media = next(media for media in MEDIA if media in data)
    text = "".join(data[media])
    return _block(text) if media == "text/plain" else text


def _block(text: str) -> str:
    lines = (line.rstrip() for line in STYLED.sub("", text).rstrip().splitlines())
    return "```text\n" + "\n".join(lines) + "\n```"
