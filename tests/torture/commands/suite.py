"""The suite ``commands``."""

from __future__ import annotations

import random
from pathlib import Path

from tests.torture.forked import judged, ran
from tests.torture.suite import Suite

_VALUES = (
    "0",
    "-1",
    "1.5",
    "1e308",
    "inf",
    "nan",
    "",
    "٣",
    str(2**63),
    "-",
    "--json",
    "[bold]x",
    "\x1b[31mx",
    "\u202ex",
)


def _attempt(seed: int, folder: Path) -> str:
    luck = random.Random(seed)
    option = luck.choice(["-p", "-m", "-v", "-f", "-bw", "--p2p-time", "--memory-limit", "--communication"])
    return judged(ran(["simulate", "-p", "2", "-m", "2", option, luck.choice(_VALUES), "--json"], folder))


COMMANDS = Suite("commands", "command lines made from the commands' own options; how each ends is judged", _attempt)
