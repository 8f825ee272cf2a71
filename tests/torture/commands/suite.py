"""The suite ``commands``."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from tests.torture.commands.lines import command_line
from tests.torture.commands.outputs import judge_outputs, seen
from tests.torture.commands.plainly_wrong import judge_plainly_wrong
from tests.torture.forked import Ran, Running, judged, ran, started
from tests.torture.honest_files import honest_files, put
from tests.torture.suite import Found, Suite

_MEMORY = 6 << 30
_CACHES = ("torchinductor_",)
"""What PyTorch keeps there on purpose."""

_FULL = 0.08
"""How often there is no room for what a command says."""

_SLOW = ("run", "profile")
"""Commands that load PyTorch, in which case memory is not limited: it reserves much that it does not take."""


def _attempt(seed: int, folder: Path) -> str:
    luck = random.Random(seed)
    line = command_line(luck)
    put(folder)
    _traps(folder)
    before, temporary = seen(folder), set(os.listdir(os.environ["TMPDIR"]))
    stdin = luck.choice((b"", b"\xff\x00", honest_files()["order.json"], honest_files()["torch-csv.csv"]))
    writer = _writer(folder) if any("pipe.json" in word for word in line) else None
    try:
        if line[:1] == ["serve"]:
            found = started(line, folder, memory=_MEMORY)
            _interrupt(found)
            end = found.wait(15.0)
        elif line[:1] and line[0] in _SLOW:
            end = ran(line, folder, stdin=stdin, seconds=100.0)
        else:
            end = _ran(line, folder, stdin, full=luck.random() < _FULL)
    finally:
        if writer is not None:
            writer.kill()
            writer.wait()
    word = judged(end)
    judge_plainly_wrong(end)
    judge_outputs(end, folder, before)
    left = {name for name in os.listdir(os.environ["TMPDIR"]) if not name.startswith(_CACHES)} - temporary
    if left:
        raise Found(f"{len(left)} temporary files stay, such as {min(left)}: {end.line}")
    return word


def _ran(line: list[str], folder: Path, stdin: bytes, *, full: bool) -> Ran:
    """How a command ends; where nobody gets its answer, it must not end as if somebody did."""
    if not full or not Path("/dev/full").is_char_device():
        return ran(line, folder, stdin=stdin, memory=_MEMORY)
    with open("/dev/full", "wb", buffering=0) as stream:
        end = ran(line, folder, stdin=stdin, memory=_MEMORY, stdout=stream.fileno())
    if end.code in (0, 1) and ("--json" in line or not end.err.strip()):
        raise Found(f"exit code {end.code}, and there was no room for its answer: {end.line}")
    return end


def _traps(folder: Path) -> None:
    """What else a path can lead to."""
    (folder / "folder").mkdir()
    for ending in ("json", "csv", "yaml"):
        (folder / f"empty.{ending}").touch()
    (folder / "loop").symlink_to("loop")
    (folder / "loop.json").symlink_to("loop.json")
    (folder / "link.json").symlink_to("order.json")
    (folder / "dangling.json").symlink_to("nowhere.json")
    (folder / "unreadable.json").touch(mode=0)
    os.mkfifo(folder / "pipe.json")


def _writer(folder: Path) -> subprocess.Popen[bytes]:
    """Somebody at the other end of the pipe: without one, reading waits, as everywhere."""
    return subprocess.Popen(
        ["sh", "-c", "while :; do cat order.json > pipe.json; done"], cwd=folder, stderr=subprocess.DEVNULL
    )


def _interrupt(found: Running) -> None:
    for _ in range(40):
        if found.has_ended():
            return
        time.sleep(0.05)
    found.send(signal.SIGINT)


COMMANDS = Suite(
    "commands",
    "command lines made from the commands' own options; how each ends, and what it leaves",
    _attempt,
    limit=120.0,
    sample=6,
)
