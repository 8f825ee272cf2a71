"""An hour of the web app: ``python -m tests.torture.soak --seconds 3600 --rate 5``.

A server of its own on a free port of loopback is asked so many times a second: every operation that it describes, honest and
wrong, clients that hang up, dribble or do not read, and now and then a worker is killed. Every half minute what it holds is
written down: memory, descriptors, threads, processes. At the end its memory and descriptors must be flat, no answer an error
of the server's, and nothing left: no process, no temporary file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import combinations
from pathlib import Path
from random import Random
from statistics import median
from typing import Any

from tests.torture import box
from tests.torture.running import ended_as_by_ctrl_c
from tests.torture.suite import Found
from tests.torture.web import attacks
from tests.torture.web.attacks import Target
from tests.torture.web.honest import require_right
from tests.torture.web.judging import judged
from tests.torture.web.served import Figures, Served
from tests.torture.web.wire import exchange

EVERY = 30.0
"""Seconds between two looks at what the server holds."""

WARM = 0.2
"""The first part of the time, which does not count: caches fill."""

MOST_SERVER = 16.0
"""MiB an hour by which the server's memory may grow: what cannot be told from the noise of an allocator."""

MOST_WORKER = 48.0
"""The same of a worker."""

MOST_DESCRIPTORS = 6
"""By how much the median number of descriptors may grow from the first to the last third."""

_ACTIONS: dict[str, float] = {
    "honest": 8,
    "described": 8,
    "wrong": 8,
    "protocol": 3,
    "garbage": 1,
    "dribbled": 1,
    "pipelined": 1,
    "hung up": 0.3,
    "half heads": 0.1,
    "unread": 0.1,
    "left stream": 0.2,
    "killed": 0.05,
    "killed stream": 0.02,
}
"""How often each is done."""

_HARSH: dict[str, Callable[[Target, Random], str]] = {
    "protocol": attacks.wrong_protocol,
    "garbage": attacks.garbage,
    "dribbled": attacks.dribbled,
    "pipelined": attacks.pipelined,
    "hung up": attacks.hung_up,
    "half heads": attacks.half_heads,
    "unread": attacks.unread,
    "left stream": attacks.left_streams,
    "killed": attacks.killed,
    "killed stream": attacks.killed_stream,
}
_SHOWN = 600
"""Signs of a finding that are told."""

_AT_ONCE = 24
"""Clients at one time; what would be one more is left out and counted."""


@dataclass
class Record:
    """What was seen."""

    statuses: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    found: Counter[str] = field(default_factory=Counter)
    looks: list[tuple[float, Figures]] = field(default_factory=list)
    seeds: dict[str, int] = field(default_factory=dict)
    left_out: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def find(self, sentence: str, seed: int) -> None:
        """Write down what is wrong, with the seed of the first client that saw it, and say it at once."""
        sentence = sentence[:_SHOWN]
        with self.lock:
            if sentence not in self.found:
                print(f"FOUND by the client of seed {seed}: {sentence}", flush=True)
            self.found[sentence] += 1
            self.seeds.setdefault(sentence, seed)

    def add(self, what: str, word: str, seconds: float) -> None:
        """Write down what came of a request."""
        with self.lock:
            self.statuses[word] += 1
            self.seconds[what].append(seconds)


def soak(
    seconds: float, rate: float, seed: int, folder: Path, tell: Callable[[str, dict[str, Any]], None]
) -> dict[str, Any]:
    """Ask for so long; gives all figures, with ``wrong`` in sentences. Ctrl-C ends it early, as SIGTERM does."""
    served = Served(folder, box.environment(folder))
    record, target, rng = Record(), Target(served, tries=10), Random(seed)
    running = threading.Semaphore(_AT_ONCE)
    begun = time.monotonic()
    next_look, number = 0.0, 0
    with suppress(KeyboardInterrupt), ThreadPoolExecutor(_AT_ONCE) as pool:
        while (now := time.monotonic() - begun) < seconds and served.runs():
            if now >= next_look:
                record.looks.append((now, served.figures()))
                next_look += EVERY
                tell(_line(record, number), _document(record, number, _wrong(record)))
            if running.acquire(blocking=False):
                pool.submit(_released, running, _asked, target, record, rng.randrange(2**32))
                number += 1
            else:
                record.left_out += 1
            time.sleep(max(0.0, (number + record.left_out) / rate - (time.monotonic() - begun)))
    runs = served.runs()
    time.sleep(2)
    record.looks.append((time.monotonic() - begun, served.figures() if runs else record.looks[-1][1]))
    code, outlived = served.end() if runs else (served.exit_code, [])
    temporary = [path.name for path in (folder / "temporary").rglob("*")]
    said = served.said().splitlines()
    wrong = [*_wrong(record), *_ended(runs, code, outlived, temporary, said)]
    return _document(record, number, wrong) | {"asked_for": seconds, "rate": rate, "seed": seed}


def _released(running: threading.Semaphore, work: Callable[..., None], *arguments: Any) -> None:
    try:
        work(*arguments)
    finally:
        running.release()


def _asked(target: Target, record: Record, seed: int) -> None:
    """One client."""
    rng = Random(seed)
    action = rng.choices(list(_ACTIONS), list(_ACTIONS.values()))[0]
    before = time.monotonic()
    what = action
    try:
        if action == "honest":
            require_right(target.port, seed, tries=target.tries)
            word = "answered"
        elif action in ("described", "wrong"):
            operation = rng.choice(target.description.operations)
            what = f"{operation.method} {operation.path}"
            sent, words = attacks.question(target, rng, hostile=action == "wrong", operation=operation)
            answer = exchange(target.port, sent)
            judged(answer, words, echoed=sent)
            word = str(answer.status) if answer is not None else "none"
        else:
            word = _HARSH[action](target, rng)
    except Found as found:
        word = "found"
        record.find(f"{action}: {found}", seed)
    except Exception as error:
        word = "found"
        record.find(f"{action}: {type(error).__name__}: {error}", seed)
    record.add(what, word, time.monotonic() - before)


def _line(record: Record, number: int) -> str:
    now, held = record.looks[-1]
    found = sum(record.found.values())
    return (
        f"{now:6.0f} s  {number:7,} asked  server {held.server / 2**20:6.1f} MiB  workers {held.workers / 2**20:7.1f} MiB  "
        f"{held.processes} processes  {held.descriptors} descriptors  {held.threads} threads  {found} found"
    )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """The growth of a value, in its unit an hour: the median of the slopes between all pairs (Theil 1950, Sen 1968)."""
    slopes = [(y - x) / (t - s) * 3600 for (s, x), (t, y) in combinations(points, 2) if t > s]
    return median(slopes) if slopes else 0.0


def _settled(record: Record) -> list[tuple[float, Figures]]:
    end = record.looks[-1][0]
    return [look for look in record.looks[:-1] if look[0] >= WARM * end]


def growth(record: Record) -> dict[str, float]:
    """MiB an hour of the server and of a worker, and descriptors from the first third to the last."""
    looks = _settled(record)
    third = max(1, len(looks) // 3)
    first, last = looks[:third], looks[-third:]
    return {
        "server_mib_per_hour": slope([(at, held.server / 2**20) for at, held in looks]),
        "worker_mib_per_hour": slope([(at, held.workers / max(held.processes - 1, 1) / 2**20) for at, held in looks]),
        "descriptors": median(held.descriptors for _, held in last) - median(held.descriptors for _, held in first)
        if looks
        else 0.0,
        "threads": median(held.threads for _, held in last) - median(held.threads for _, held in first)
        if looks
        else 0.0,
    }


def _wrong(record: Record) -> list[str]:
    found = growth(record)
    wrong = [
        f"{count} times, first seed {record.seeds[sentence]}: {sentence}"
        for sentence, count in record.found.most_common()
    ]
    for name, most in (("server", MOST_SERVER), ("worker", MOST_WORKER)):
        value = found[f"{name}_mib_per_hour"]
        if value > most:
            wrong.append(f"the memory of the {name} grows by {value:.1f} MiB an hour, and the limit is {most:g}")
    for name in ("descriptors", "threads"):
        if found[name] > MOST_DESCRIPTORS:
            wrong += [f"there are {found[name]:g} {name} more in the last third than in the first"]
    return wrong


def _ended(runs: bool, code: int | None, outlived: list[int], temporary: list[str], said: list[str]) -> list[str]:
    wrong = []
    if not runs:
        wrong.append(f"the server ended before it was told to, with {code}")
    elif code not in (0, 130):
        wrong.append(f"the server ends with {code} when it is told to")
    if outlived:
        wrong.append(f"{len(outlived)} processes outlive it")
    if temporary:
        wrong.append(f"temporary files are left: {', '.join(temporary[:5])}")
    if said:
        wrong.append(f"the server said {len(said)} lines, such as {said[0][:200]!r}")
    return wrong


def _document(record: Record, number: int, wrong: list[str]) -> dict[str, Any]:
    return {
        "asked": number,
        "left_out": record.left_out,
        "statuses": dict(record.statuses.most_common()),
        "growth": growth(record),
        "seconds": {
            what: {"count": len(took), "p50": quantile(took, 0.5), "p99": quantile(took, 0.99), "most": max(took)}
            for what, took in sorted(record.seconds.items())
        },
        "looks": [{"at": at} | asdict(held) for at, held in record.looks],
        "wrong": wrong,
    }


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which a share of the values is."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(document: dict[str, Any]) -> list[str]:
    """The figures for a person."""
    held = document["looks"][-1]
    lines = [f"{'':32} {'asked':>7} {'p50 s':>8} {'p99 s':>8} {'most s':>8}"]
    for what, took in document["seconds"].items():
        lines.append(f"{what:32} {took['count']:7,} {took['p50']:8.3f} {took['p99']:8.3f} {took['most']:8.3f}")
    lines.append("came of it: " + ", ".join(f"{word} {count:,}" for word, count in document["statuses"].items()))
    lines.append(
        f"held at the end: {held['server'] / 2**20:.1f} MiB, {held['descriptors']} descriptors, {held['threads']} threads"
    )
    lines.append("growth: " + ", ".join(f"{name} {value:+.1f}" for name, value in document["growth"].items()))
    lines += [f"WRONG: {sentence}" for sentence in document["wrong"]] or ["nothing found"]
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Soak; the exit code is 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.soak", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0, help="how long (3600)")
    parser.add_argument("--rate", type=float, default=5.0, help="requests a second (5)")
    parser.add_argument("--seed", type=int, default=0, help="of the requests (0)")
    parser.add_argument("--json", type=Path, help="a file for all figures, as they come")
    asked = parser.parse_args(arguments)

    def keep(found: dict[str, Any]) -> None:
        if asked.json is not None:
            asked.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    def tell(line: str, found: dict[str, Any]) -> None:
        print(line, flush=True)
        keep(found)

    folder = Path(tempfile.mkdtemp(prefix="pipeplan-soak-")).resolve()
    os.environ[box.MARK] = str(folder)
    try:
        with ended_as_by_ctrl_c():
            found = soak(asked.seconds, asked.rate, asked.seed, folder, tell)
    finally:
        box.end_processes(folder)
        shutil.rmtree(folder, ignore_errors=True)
    print("\n".join(table(found)))
    keep(found)
    return 1 if found["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
