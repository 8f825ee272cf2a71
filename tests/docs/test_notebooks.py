"""The notebooks carry no outputs of an earlier run, and become pages that show what they print."""

import json
from pathlib import Path

from docs.build import notebooks

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))

EXECUTED = {
    "cells": [
        {"cell_type": "markdown", "source": "# A title"},
        {
            "cell_type": "code",
            "source": ["print(1)\n", "2"],
            "outputs": [
                {"output_type": "stream", "name": "stdout", "text": "\x1b[1m1\x1b[0m  \n"},
                {"output_type": "stream", "name": "stderr", "text": "a warning"},
                {"output_type": "stream", "name": "stdout", "text": "3\n"},
                {"output_type": "execute_result", "data": {"text/plain": "2"}},
                {"output_type": "display_data", "data": {"text/plain": "Figure", "text/html": "<img src='a'>"}},
            ],
        },
    ]
}


def test_there_are_three_notebooks_in_the_navigation():
    assert {path.stem for path in NOTEBOOKS} == set(notebooks.ORDER)
    assert len(NOTEBOOKS) == 3


def test_a_notebook_has_no_outputs():
    """They run when the site is built."""
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        assert notebook["nbformat"] == 4
        assert all(cell.get("outputs", []) == [] for cell in notebook["cells"])


def test_a_page_shows_what_cells_print_and_return():
    page = notebooks.rendered(EXECUTED, "a.ipynb")
    code, printed, returned = "```python\nprint(1)\n2\n```", "```text\n1\n3\n```", "```text\n2\n```"
    download = "[Download this notebook](a.ipynb){ .md-button download }\n"
    assert page == "\n\n".join(["# A title", code, printed, returned, "<img src='a'>", download])
