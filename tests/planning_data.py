"""Where the planning data lies: beside the checkout."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "planning"


@cache
def _read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


def planning(name: str) -> Any:
    """One file of the planning data, parsed; skips the calling test where the folder is absent."""
    if not (FOLDER / name).exists():
        pytest.skip(f"planning data {name} is not beside this checkout")
    return _read(name)
