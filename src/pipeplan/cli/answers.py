"""From an answer to what the user sees: files, JSON or a table, messages, and the exit code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeplan.workbench import Comparison, Result, save


def write_outputs(answer: Result | Comparison, paths: Iterable[Path]) -> None:
    """Write every output, and say so on stderr."""
    for path in paths:
        save(answer, path)
        tell(f"wrote {path}")


def tell(message: str) -> None:
    """A message beside the answer."""
    print(message, file=sys.stderr)


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on stdout."""
    print(json.dumps(document))
