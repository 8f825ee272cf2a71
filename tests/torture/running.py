"""One case, tried in a folder of its own and ended when it takes too long."""

from __future__ import annotations

import signal
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.torture.suite import Found


@dataclass(frozen=True)
class Verdict:
    """The outcome of a case in a word or two, and where something is wrong, ``fault`` in a sentence."""

    suite: str
    seed: int
    outcome: str
    fault: str | None
    seconds: float

    @property
    def line(self) -> str:
        """The command that shows the finding again, with the finding as its comment."""
        fault = " ".join((self.fault or "").split())
        return f"python -m tests.torture {self.suite} --seed {self.seed} --cases 1   # {fault}"


class _TimeIsUp(BaseException):
    """Not an Exception: a case that catches those would go on."""


def tried(name: str, seed: int) -> Verdict:
    """Try one case of the suite with this name."""
    from tests.torture.suites import SUITES

    suite = next(suite for suite in SUITES if suite.name == name)
    before = time.monotonic()
    outcome, fault = "found", None
    try:
        with tempfile.TemporaryDirectory(prefix="pipeplan-torture-") as folder, chdir(folder), _alarm(suite.limit):
            outcome = suite.attempt(seed, Path(folder))
    except _TimeIsUp:
        fault = f"hangs: no end after {suite.limit:g} s"
    except Found as found:
        fault = str(found)
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"
    return Verdict(name, seed, outcome, fault, time.monotonic() - before)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _TimeIsUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # repeated in case the first one is swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
