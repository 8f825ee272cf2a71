"""Waiting for what other processes do, on a machine that may be busy."""

import os
import time
from pathlib import Path

WAIT = 60.0
"""Seconds after which something never happens, on a machine that is busy with other things."""


def until(path: Path, lines: int) -> list[str]:
    """The lines of a file, when it has so many."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        answer = path.read_text().splitlines() if path.exists() else []
        if len(answer) >= lines:
            return answer
        time.sleep(0.02)
    raise AssertionError(f"{path} has no {lines} lines after {WAIT:g} s")


def is_gone(process: int) -> bool:
    """Whether a process has ended, in time; what nobody has asked after may stand in the table for longer."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        state = Path(f"/proc/{process}/stat")
        if state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
