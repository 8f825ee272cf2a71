"""The command: ``python -m tests.torture [SUITE ...] --seconds 600 --workers 2 --seed 0``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.torture.running import Asked, run
from tests.torture.suite import Suite
from tests.torture.worker import suites_of

_SECONDS = 600.0


def main(arguments: Sequence[str] | None = None, module: str = "tests.torture.suites") -> int:
    """Run what is asked for; the exit code is 1 where something was found.

    Parameters
    ----------
    arguments
        Of the command line.
    module
        Where the suites are.
    """
    suites = suites_of(module)
    asked = _parser(suites).parse_args(arguments)
    chosen = [suites[name] for name in dict.fromkeys(asked.suites)] or list(suites.values())
    if asked.list:
        print("\n".join(f"{suite.name}: {suite.about}{_absent(suite)}" for suite in chosen))
        return 0
    seconds = _SECONDS if asked.seconds is None and asked.cases is None else asked.seconds
    watched = () if asked.unwatched else (Path.home(), Path.cwd())
    how = Asked(module, seconds, asked.cases, asked.seed, asked.workers, asked.box, asked.keep, watched)
    tally = run(chosen, how, lambda line: print(f"\r{line}" if sys.stdout.isatty() else line, flush=True))
    print(file=sys.stderr)
    print("\n".join(tally.lines()))
    return 1 if tally.found else 0


def _absent(suite: Suite) -> str:
    why = suite.needs()
    return "" if why is None else f" (not here: {why})"


def _parser(suites: dict[str, Suite]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[[], *suites], metavar="SUITE", help="which (all)")
    parser.add_argument("--list", action="store_true", help="say what there is")
    parser.add_argument("--seconds", type=float, help=f"time after which no case is begun ({_SECONDS:g})")
    parser.add_argument("--cases", type=int, help="how many of each suite; without --seconds, however long they take")
    parser.add_argument("--seed", type=int, default=0, help="seed of each suite's first case (0)")
    parser.add_argument("--workers", type=int, default=2, help="processes (2)")
    parser.add_argument("--box", type=Path, help="folder for all that is written (a temporary one)")
    parser.add_argument("--keep", action="store_true", help="keep the folders of cases that found something")
    parser.add_argument(
        "--unwatched", action="store_true", help="let others write into home and working folder meanwhile"
    )
    return parser
