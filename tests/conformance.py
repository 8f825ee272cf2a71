"""Where the conformance data lies: beside the checkout. A checkout alone runs its own small cases instead."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "shared" / "conformance"


@cache
def _read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


def conformance(name: str) -> Any:
    """One file of the conformance data, parsed; skips the calling test where the folder is absent."""
    if not (FOLDER / name).exists():
        pytest.skip(f"conformance data {name} is not beside this checkout")
    return _read(name)
