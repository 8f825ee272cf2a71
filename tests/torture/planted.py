"""Suites with faults in them, for the tests of the harness itself."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.torture.suite import Found, Suite


def _wrong(seed: int, folder: Path) -> str:
    if seed % 4 == 2:
        raise Found(f"{seed} is wrong, says 'seed {seed}'")
    if seed == 5:
        raise KeyError("five")
    return "even" if seed % 2 == 0 else "odd"


def _hangs(seed: int, folder: Path) -> str:
    while True:
        with suppress(Exception):
            time.sleep(60)


def _deaf(seed: int, folder: Path) -> str:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    if seed == 0:
        time.sleep(600)
    return "slept"


def _dies(seed: int, folder: Path) -> str:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "lives"


def _strays(seed: int, folder: Path) -> str:
    Path(os.environ["PIPEPLAN_TORTURE"]).parent.parent.joinpath("outside", f"stray-{seed}").write_text("x")
    return "wrote"


def _locks(seed: int, folder: Path) -> str:
    (folder / "closed" / "file").mkdir(parents=True)
    (folder / "closed").chmod(0)
    return "locked"


SUITES = (
    Suite("wrong", "two kinds of faults", _wrong),
    Suite("hangs", "does not end", _hangs, limit=0.2),
    Suite("deaf", "does not hear its alarm", _deaf, limit=0.2),
    Suite("dies", "takes its process with it", _dies),
    Suite("strays", "writes outside its box", _strays),
    Suite("locks", "leaves a folder that nobody may read", _locks),
    Suite("absent", "needs what is not there", _wrong, needs=lambda: "there is no such machine"),
)
