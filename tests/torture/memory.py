"""The suite ``memory``: little memory, few files, little stack, few processes, little time of the processor."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tests.torture.forked import Ran, fresh, judged, ran
from tests.torture.machine.around import Around, masked
from tests.torture.machine.conditions import Conditions
from tests.torture.machine.errands import Errand, answer_of, chosen, kept, quick, undisturbed
from tests.torture.suite import Found, Suite

_MEBIBYTE = 1 << 20
_ANEW = 0.12
"""Of the cases: a new interpreter, which is told of the limit before it loads anything."""

_LEAST_ANEW = 160 * _MEBIBYTE
"""Of address space: with less, Python itself does not come to our first line."""


def attempt(seed: int, folder: Path) -> str:
    """One command with too little of something."""
    rng = Random(seed)
    way = rng.choices(("memory", "files", "stack", "processes", "processor"), (6, 2, 1, 1, 0.5))[0]
    errand = chosen(rng, (quick, 0.9), (kept, 0.1))
    known = undisturbed(errand)
    around = Around.laid_out(rng, errand, folder / "work")
    (folder / "temporary").mkdir()
    ended = _short(rng, way, errand, folder)
    if way == "processor" and ended.signal in {signal.SIGXCPU, signal.SIGKILL}:
        return "processor: ended by the system"
    word = judged(ended)
    if ended.code not in {errand.code, 1, 2}:
        raise Found(f"with little {way} it ends with {ended.code} ({ended.stderr.strip()!r}): {ended.line}")
    if ended.code == errand.code and answer_of(errand, ended.out) != known.answer:
        raise Found(f"with little {way} it says something else: {ended.line}")
    around.judge(known, ended_well=ended.code == errand.code, early=ended.code != errand.code)
    if left := around.left_over(store=True) + os.listdir(folder / "temporary"):
        raise Found(f"{masked(left)} left with little {way}: {ended.line}")
    return f"{way}: {word}"


def _short(rng: Random, way: str, errand: Errand, folder: Path) -> Ran:
    environment = {"TMPDIR": str(folder / "temporary")}
    anew = rng.random() < _ANEW
    work = folder / "work"
    if way == "memory":
        if anew:
            most = _LEAST_ANEW + int(rng.expovariate(1 / (500 * _MEBIBYTE)))
            return fresh(errand.arguments, work, seconds=120, environment=environment, memory=most)
        left = Conditions(left=int(rng.expovariate(1 / (rng.choice((1, 8, 60)) * _MEBIBYTE)))).asked()
        return ran(errand.arguments, work, seconds=120, environment=environment, prepare=left)
    limits = _limits(rng, way)
    how = fresh if anew and way != "stack" else ran
    return how(errand.arguments, work, seconds=120, environment=environment, limits=limits)


def _limits(rng: Random, way: str) -> Mapping[str, int]:
    if way == "files":
        return {"RLIMIT_NOFILE": rng.randrange(6, 40)}
    if way == "stack":
        return {"RLIMIT_STACK": rng.choice((256, 512, 1024, 4096)) << 10}
    if way == "processes":
        return {"RLIMIT_NPROC": rng.choice((0, 1, 2, 8))}
    return {"RLIMIT_CPU": 1}


MEMORY = Suite(
    "memory",
    "Commands with too little memory, files, stack, processes or processor time: the same answer as ever, or a sentence; "
    "nothing half-written and no hang; an undisturbed run judges.",
    attempt,
    limit=300,
    sample=1,
)
