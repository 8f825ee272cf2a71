"""A process that tries cases one after another, and the handle by which another gives it them."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair

from tests.torture import box
from tests.torture.judging import signal_name
from tests.torture.suite import Found, Suite

_PATIENCE = 10.0
"""Seconds beyond its limit after which a case that its own alarm does not end is killed with the process around it."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case: ``outcome`` in a word or two, or ``fault`` in a sentence."""

    suite: str
    seed: int
    outcome: str
    fault: str | None
    seconds: float


class _TimeIsUp(BaseException):
    """Not an Exception: a case that takes those back would go on."""


def suites_of(module: str) -> dict[str, Suite]:
    """The suites that a module holds, by name."""
    found: tuple[Suite, ...] = import_module(module).SUITES
    return {suite.name: suite for suite in found}


def tried(suite: Suite, seed: int, folder: Path) -> Verdict:
    """Try one case in a folder of its own, which is the working folder meanwhile."""
    before = time.monotonic()
    folder.mkdir(parents=True)
    outcome, fault, strays = "found", None, len(box.strays())
    try:
        with _alarm(suite.limit), _inside(folder):
            outcome = suite.attempt(seed, folder)
    except _TimeIsUp:
        fault = f"hangs: no end after {suite.limit:g} s"
    except Found as found:
        fault = str(found)
    except Exception as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({Path(at.filename).name}, line {at.lineno})"
    if fault is None and (new := box.strays()[strays:]):
        outcome, fault = "found", f"out of its box: {new[0]}"
    return Verdict(suite.name, seed, outcome, fault, time.monotonic() - before)


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _TimeIsUp

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)  # again where it was swallowed
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


class Worker:
    """A process in a box of its own, which tries one case at a time and is replaced where a case ends or outlasts it.

    Parameters
    ----------
    module
        Where its suites are.
    home
        Its box.
    kernels
        A folder for compiled kernels that workers share.
    """

    def __init__(self, module: str, home: Path, kernels: Path) -> None:
        self._module, self._home, self._kernels = module, home, kernels
        self._suites = suites_of(module)
        self.at: tuple[Suite, int, float] | None = None
        self._start()

    @property
    def connection(self) -> Connection:
        """Something can be read there when a case has ended."""
        return self._connection

    def begin(self, suite: Suite, seed: int) -> None:
        """Try a case."""
        self.at = (suite, seed, time.monotonic())
        with suppress(BrokenPipeError):  # it has died, which `verdict` will say
            self._connection.send((suite.name, seed, str(self.folder(suite, seed))))

    def folder(self, suite: Suite, seed: int) -> Path:
        """A case's folder."""
        return self._home / "cases" / f"{suite.name}-{seed}"

    def verdict(self) -> Verdict | None:
        """What came of the case; None where it is still being tried."""
        assert self.at is not None
        suite, _, since = self.at
        took = time.monotonic() - since
        if self._connection.poll():
            try:
                found: Verdict = self._connection.recv()
            except (EOFError, ConnectionResetError):
                found = self._again(f"the process that tried it died of {self._death()}")
        elif took > suite.limit + _PATIENCE:
            found = self._again(f"hangs: killed after {suite.limit + _PATIENCE:g} s, deaf to its alarm")
        else:
            return None
        self.at = None
        return found

    def tried(self, suite: Suite, seed: int) -> Verdict:
        """Try a case and wait for what comes of it."""
        self.begin(suite, seed)
        while (found := self.verdict()) is None:
            self._connection.poll(0.5)
        return found

    def end(self) -> None:
        """Kill it, with all that it has started."""
        self._connection.close()
        box.end_processes(self._home)
        self._process.wait()

    def _again(self, fault: str) -> Verdict:
        assert self.at is not None
        suite, seed, since = self.at
        self.end()
        self._start()
        return Verdict(suite.name, seed, "found", fault, time.monotonic() - since)

    def _death(self) -> str:
        code = self._process.wait()
        return signal_name(-code) if code < 0 else f"exit code {code}"

    def _start(self) -> None:
        ours, theirs = socketpair()
        self._home.mkdir(parents=True, exist_ok=True)
        environment = box.environment(self._home, self._kernels) | {"NUMBA_CACHE_DIR": str(self._kernels)}
        with (self._home / "log.txt").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    f"from tests.torture.worker import work; work({self._module!r}, {theirs.fileno()}, {os.getpid()})",
                ],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._home,
                env=environment,
                start_new_session=True,
            )
        theirs.close()
        self._connection = Connection(ours.detach())


def _end_with(parent: int) -> None:
    """Where the run is killed, so are its workers with all that they have started, on Linux: also within a case."""

    def end(*_: object) -> None:
        box.end_processes(Path(os.environ[box.MARK]))
        os._exit(1)

    if sys.platform == "linux":
        signal.signal(signal.SIGUSR1, end)
        ctypes.CDLL(None).prctl(_SIGNAL_AT_DEATH_OF_PARENT, signal.SIGUSR1)
    if os.getppid() != parent:  # it was killed before it could be told of that
        end()


_SIGNAL_AT_DEATH_OF_PARENT = 1


def work(module: str, descriptor: int, parent: int) -> None:
    """Try what the other side, the process ``parent``, asks for until it hangs up."""
    _end_with(parent)
    suites, connection = suites_of(module), Connection(descriptor)
    while True:
        try:
            name, seed, folder = connection.recv()
        except EOFError:
            return
        connection.send(tried(suites[name], seed, Path(folder)))
