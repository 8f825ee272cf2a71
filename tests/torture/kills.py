"""The suite ``kills``: commands that are killed at any moment leave whole files, and nothing else."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random

from tests.torture.box import MARK, processes
from tests.torture.forked import Ran, Running, fresh_started, judged, ran, started
from tests.torture.machine.around import KEPT_BY_TORCH, Around, masked, require_whole_store
from tests.torture.machine.conditions import Conditions, Fault
from tests.torture.machine.errands import Errand, Undisturbed, answer_of, chosen, kept, quick, trained, undisturbed
from tests.torture.suite import Found, Suite

_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What a command is sent; twice what most often ends one."""

_SERVED = 0.02
"""Of the cases: the web app in place of a command."""

_GRACE = 10.0
"""Seconds in which what a command has started must have ended after it."""


def attempt(seed: int, folder: Path) -> str:
    """Kill one command, look at what is left, and run it again."""
    rng = Random(seed)
    if rng.random() < _SERVED:
        return _attempt_on_server(rng, folder)
    errand = chosen(rng, (quick, 0.79), (kept, 0.2), (trained, 0.01))
    known = undisturbed(errand)
    around = Around.laid_out(rng, errand, folder / "work")
    (folder / "temporary").mkdir()
    number = rng.choice(_SIGNALS)
    ended = _killed(rng, errand, known, number, folder)
    word = judged(ended)
    if ended.code not in {errand.code, 128 + number, -number}:
        raise Found(f"{number.name} ends it with {ended.code} ({ended.stderr.strip()!r}): {ended.line}")
    _require_no_process(folder)
    around.judge(known, ended_well=ended.code == errand.code, early=True)
    if errand.store:
        require_whole_store(around.folder / errand.store, folder / "spare")
    if number != signal.SIGKILL:
        _require_nothing_left(around, folder, f"after {number.name}")
    _do_again(errand, known, around, folder)
    return word if word != "ended" else number.name


def _killed(rng: Random, errand: Errand, known: Undisturbed, number: signal.Signals, folder: Path) -> Ran:
    """How the command ends: at one of the times that it touches a file, or after some seconds, which differ a little."""
    environment = {"TMPDIR": str(folder / "temporary"), MARK: str(folder)}
    group, work = rng.random() < 0.5, folder / "work"
    if known.moments and rng.random() < 0.6:
        fault = Fault(at=rng.randrange(known.moments), signal=number, group=group)
        conditions = Conditions(watched=str(work), fault=fault)
        ended = ran(errand.arguments, work, seconds=120, environment=environment, prepare=conditions.asked())
        return replace(ended, sent=(number,))
    anew = rng.random() < 0.05
    seconds = rng.uniform(0, known.ended.seconds + (0.6 if anew else 0.05))
    command = (fresh_started if anew else started)(errand.arguments, work, environment=environment)
    _send_after(command, seconds, number, group=group)
    return replace(command.wait(120), sent=(number,))


def _send_after(command: Running, seconds: float, number: int, *, group: bool) -> None:
    until = time.monotonic() + seconds
    while not command.has_ended() and (left := until - time.monotonic()) > 0:
        time.sleep(min(left, 0.01))
    if group and not command.has_ended():
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(command.pid, number)
    command.send(number)


def _attempt_on_server(rng: Random, folder: Path) -> str:
    """Kill the web app while it starts, or once it answers."""
    number = rng.choice(_SIGNALS)
    (folder / "temporary").mkdir()
    environment = {"TMPDIR": str(folder / "temporary"), MARK: str(folder)}
    said = folder / "said.txt"
    with said.open("wb") as stream:
        command = started(["serve", "--port", "0"], folder, environment=environment, stderr=stream.fileno())
        _send_after(command, rng.uniform(0, 6), number, group=rng.random() < 0.5)
        ended = command.wait(60)
    ended = replace(ended, err=said.read_bytes(), sent=(number,))
    judged(ended)
    if ended.code not in {0, 128 + number, -number}:
        raise Found(f"{number.name} ends it with {ended.code} ({ended.stderr.strip()!r}): serve")
    _require_no_process(folder)
    if number != signal.SIGKILL and (left := os.listdir(folder / "temporary")):
        raise Found(f"{masked(left)} left after {number.name}: serve")
    return f"served, {number.name}"


def _require_no_process(folder: Path) -> None:
    """What a command started ends with it, though it may take a moment to see that it is alone."""
    until = time.monotonic() + _GRACE
    while left := list(processes(folder)):
        if time.monotonic() > until:
            names = {Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode()[:200] for each in left}
            raise Found(f"{len(left)} processes outlive it: {'; '.join(sorted(names))}")
        time.sleep(0.02)


def _require_nothing_left(around: Around, folder: Path, when: str) -> None:
    temporary = [name for name in os.listdir(folder / "temporary") if not name.startswith(KEPT_BY_TORCH)]
    left = around.left_over(store=False) + temporary
    if left:
        raise Found(f"{masked(left)} left {when}: {around.errand.arguments[0]}")


def _do_again(errand: Errand, known: Undisturbed, around: Around, folder: Path) -> None:
    """The same command gives the answer of one that nothing has disturbed, and leaves nothing of the last one either."""
    environment = {"TMPDIR": str(folder / "temporary"), MARK: str(folder)}
    ended = ran(errand.arguments, folder / "work", seconds=120, environment=environment)
    judged(ended)
    if ended.code != errand.code:
        raise Found(f"killed and run again, it ends with {ended.code} ({ended.stderr.strip()!r}): {ended.line}")
    if not errand.measures and answer_of(errand, ended.out) != known.answer:
        raise Found(f"killed and run again, it says something else: {ended.line}")
    around.judge(known, ended_well=True)
    _require_nothing_left(around, folder, "after the next start")


KILLS = Suite(
    "kills",
    "Commands killed at any moment, alone or with all they have started: outputs are whole or as before, stores go on where "
    "they were, no process and no temporary file stays; an undisturbed run of the same command judges.",
    attempt,
    limit=300,
    sample=2,
)
