"""Today's checkout against an earlier commit: both do the same errands in turn, through the public commands, in one run.

Run with ``make bench BEFORE=REVISION``, or ``python -m benchmarks.against REVISION``. Both are installed with compiled
kernels, each into a folder. Other packages are those of this environment, which must have what the earlier commit needs.
Machines are noisy: what counts is the ratio of the medians, and that answers are the same or better.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent.parent
BIG = "interleaved-zb -p 32 -m 256 --chunks 4"
TIGHT = (
    "--placement v -p 8 -m 24 -f 100 --backward-input-times 120 --backward-weight-times 80 --p2p-time 10 --times-per stage "
    "--memory-limit 5act"
)


@dataclass(frozen=True, slots=True)
class Errand:
    """What is timed, as the words behind ``pipeplan``; with ``--json`` the answer's makespan is shown too.

    Without ``cached``, no bytecode of the sources is at hand or kept, as in many containers.
    """

    name: str
    words: str
    cached: bool = True


ERRANDS = (
    Errand("cold start", "simulate -s 4 -b 8 --no-visualization"),
    Errand("cold start, JSON", "simulate -p 4 -m 8 --json"),
    Errand("cold start, JSON, no bytecode", "simulate -p 4 -m 8 --json", cached=False),
    Errand("cold start, picture", "simulate -p 4 -m 8"),
    Errand("all schedules compared", "compare -p 4 -m 8"),
    Errand("98,304 ops: build, check, simulate", f"simulate {BIG} --no-visualization --json"),
    Errand("98,304 ops: the page", f"simulate {BIG} -o page.html"),
    Errand("search, 60,000 evaluations", f"search {TIGHT} --evaluations 60000 --seed 1 --workers 1 --json"),
)


def install(tree: Path, folder: Path) -> Path:
    """Install the package of a checkout into a folder, without what it depends on; return the folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), str(tree)]
    subprocess.run(command, check=True)
    return folder


def spend(installed: Path, errand: Errand, folder: Path) -> tuple[float, float | None]:
    """CPU seconds of one run of the package in a folder, and the makespan that it answers."""
    sources = installed if errand.cached else _bare(installed, folder)
    keeps = {} if errand.cached else {"PYTHONDONTWRITEBYTECODE": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pipeplan", *errand.words.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(sources)} | keeps,
        capture_output=True,
        text=True,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, json.loads(done.stdout)["makespan"] if "--json" in errand.words else None


def _bare(installed: Path, folder: Path) -> Path:
    """A copy of the package without bytecode, which is kept beside its sources."""
    bare = folder / f"bare-{installed.name}"
    if not bare.exists():
        shutil.copytree(installed, bare, ignore=shutil.ignore_patterns("__pycache__"))
    return bare


def compare(before: Path, today: Path, runs: int) -> None:
    """Print a row an errand: CPU seconds of the packages in two folders, their ratio, and the answers."""
    print(f"{'CPU seconds, medians of ' + str(runs):<38} {'before':>8} {'now':>8} {'ratio':>7}   makespan before, now")
    with tempfile.TemporaryDirectory() as folder:
        for errand in ERRANDS:
            pairs = [(spend(before, errand, Path(folder)), spend(today, errand, Path(folder))) for _ in range(runs + 1)]
            was, now = (median(pair[side][0] for pair in pairs[1:]) for side in (0, 1))
            answers = pairs[0][0][1], pairs[0][1][1]
            shown = "" if answers[0] is None else f"   {answers[0]:g}, {answers[1]:g}"
            print(f"{errand.name:<38} {was:8.3f} {now:8.3f} {now / was:7.2f}{shown}")


def main() -> None:
    """Install the earlier commit and this one, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="HEAD~1", help="the commit before (HEAD~1)")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each, behind one that warms up (5)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        made = subprocess.run(
            ["git", "worktree", "add", "--detach", "--quiet", str(tree), options.revision],
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode:
            print(f"not compared with {options.revision}: {made.stderr.strip()}")
            return
        try:
            before, today = (
                install(tree, Path(folder) / "installed-before"),
                install(HERE, Path(folder) / "installed-today"),
            )
            compare(before, today, options.runs)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(tree)], cwd=HERE, check=True)


if __name__ == "__main__":
    main()
