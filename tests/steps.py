"""How many lines of pipeplan a call runs: a measure of work that is the same on every machine.

What a line does inside of numpy is not seen, so growth is judged by it only where the loops are Python's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pipeplan

_HOME = str(Path(pipeplan.__file__).parent)


def steps(call: Callable[[], object]) -> int:
    """The lines that were run."""
    count = 0

    def line(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def entered(frame: FrameType, _event: str, _argument: object) -> Any:
        return line if frame.f_code.co_filename.startswith(_HOME) else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
