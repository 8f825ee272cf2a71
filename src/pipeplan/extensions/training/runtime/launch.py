"""Launch one process per rank on this host, watch them, and leave none running.

A process that fails writes its error to a file for the launcher to read. Ranks of a job that another launcher started exit
by themselves when they hang.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

import torch

from pipeplan.extensions.training.options import ModelOptions
from pipeplan.extensions.training.runtime.agreement import innermost, is_from_elsewhere
from pipeplan.extensions.training.runtime.model import error_line
from pipeplan.extensions.training.runtime.progress import Phase, Places, RankPlace
from pipeplan.foundation.errors import InputError, PipeplanError, RunError
from pipeplan.foundation.files import temporary_folder


@dataclass(frozen=True, slots=True)
class RankFailure:
    """Failure of a process.

    Attributes
    ----------
    when
        Time of the failure on the host's monotonic clock, in nanoseconds.
    message
        Description in one line.
    place
        Place of the rank in its schedule.
    ours, is_input
        True if pipeplan raised the error deliberately; true if it is about the input.
    trace
        Traceback of the process, with those of the causes.
    elsewhere
        True if another rank raised it first.
    """

    when: int
    message: str
    place: RankPlace
    ours: bool
    is_input: bool
    trace: str
    elsewhere: bool

    @classmethod
    def of(cls, error: BaseException, place: RankPlace) -> RankFailure:
        """Return an error as a failure, by its innermost cause."""
        trace = "".join(traceback.format_exception(error)).rstrip()
        error = innermost(error)
        ours = isinstance(error, PipeplanError)
        message = str(error) if ours else error_line(error)
        return cls(
            time.monotonic_ns(), message, place, ours, isinstance(error, InputError), trace, is_from_elsewhere(error)
        )


def read_whole(path: Path, default: Any = None) -> Any:
    """Return the value that :func:`write_whole` wrote, or the default if there is none."""
    return pickle.loads(path.read_bytes()) if path.exists() else default


def write_whole(path: Path, value: Any) -> None:
    """Write a value so that the file is complete or absent."""
    # Renaming is atomic, so the launcher never reads half a file.
    part = path.with_suffix(".part")
    part.write_bytes(pickle.dumps(value))
    part.replace(path)


POLL = 0.05
"""Seconds between two checks of the processes."""

STARTING_LIMIT = 120.0
"""Seconds in which a rank must import PyTorch, join the others and build its model."""

GRACE = 2.0
"""Seconds that the other ranks have to report their own errors after one has failed."""


class RankTask(Protocol):
    """Work for all ranks together. It must be picklable."""

    @property
    def ranks(self) -> int:
        """Return the number of processes that the task needs."""

    @property
    def options(self) -> ModelOptions:
        """Return the options of the model; the device is ``cpu`` or ``cuda``."""

    def describe(self, rank: int, place: RankPlace) -> str:
        """Describe what a rank is doing, for messages."""

    def work(self, rank: int, device: torch.device, places: Places) -> Any:
        """Do one process's work in a process group of all ranks; the first rank's answer is the task's."""


class Files:
    """The files in a folder that the launcher and its processes share."""

    def __init__(self, folder: Path) -> None:
        self.task = folder / "task.pickle"
        self.result = folder / "result.pickle"
        self.places = folder / "places"
        self.store = folder / "store"
        self.folder = folder

    def failure(self, rank: int) -> Path:
        """Return the file in which a rank writes its failure."""
        return self.folder / f"failure{rank}.pickle"

    def code(self, rank: int) -> Path:
        """Return the file with the exit code of a rank that shares its parent process with others."""
        return self.folder / f"code{rank}.pickle"

    def output(self, rank: int) -> Path:
        """Return the file with what a rank's process prints."""
        return self.folder / f"output{rank}.txt"


def launch(task: RankTask, watcher: Callable[[Sequence[RankPlace]], None] | None = None) -> Any:
    """Do a task in new processes on this host, one per rank, and return the first rank's answer.

    No process is left running: their process groups are killed as a whole at the end, and the kernel kills them if this
    process dies first.

    Parameters
    ----------
    task
        The work of all ranks.
    watcher
        Function that receives the places of all ranks many times a second.

    Raises
    ------
    RunError
        If a rank dies or raises, or if no rank makes progress within the task's timeout; the message names the rank and
        what it was doing.
    InputError
        If a rank finds an error in the input, or the task cannot be pickled.
    """
    with temporary_folder() as folder:
        files = Files(folder)
        _write_task(task, files.task)
        places = Places(task.ranks, files.places)
        for rank in range(task.ranks):
            places.tell(rank, 0, 0, Phase.STARTING)
        processes = _Processes(files)
        try:
            processes.start(task)
            _watch(task, processes, places, files, watcher)
        finally:
            processes.kill()
        if not files.result.exists():
            raise RunError(f"{task.describe(0, places.of(0))}: the process exited without a result or an error message")
        return pickle.loads(files.result.read_bytes())


def _write_task(task: RankTask, path: Path) -> None:
    try:
        path.write_bytes(pickle.dumps(task))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"the model cannot be sent to another process ({error}); pass it as module:function instead"
        ) from None


class _Processes:
    """The processes of all ranks."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._started: list[tuple[subprocess.Popen[bytes], Sequence[int]]] = []

    def start(self, task: RankTask) -> None:
        """Start all of them."""
        for ranks in _sharing(task):
            with self._files.output(ranks[0]).open("wb") as output:
                self._started.append((_start(task, ranks, self._files.folder, output), ranks))

    def codes(self) -> list[int | None]:
        """Return the exit code of every rank's process; None while it runs."""
        found: list[int | None] = []
        for process, ranks in self._started:
            code = process.poll()  # before the files, which a process that ends leaves
            found += [read_whole(self._files.code(rank), code) for rank in ranks]
        return found

    def kill(self) -> None:
        """Kill all of them before waiting for any: a process may wait for another one."""
        for process, _ in self._started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        for process, _ in self._started:
            process.wait()


def _sharing(task: RankTask) -> Sequence[Sequence[int]]:
    """Return the ranks of each started process. Loading PyTorch takes seconds: ranks on CPUs fork from one that has.

    CUDA forbids that after its first use, and macOS after that of some of its libraries.
    """
    if sys.platform == "linux" and task.options.device == "cpu":
        return [range(task.ranks)]
    return [[rank] for rank in range(task.ranks)]


def _start(task: RankTask, ranks: Sequence[int], folder: Path, output: IO[bytes]) -> subprocess.Popen[bytes]:
    # The other process must import what this one can: the model's module may be next to the caller's script.
    paths = [str(Path(__file__).parents[4]), *filter(None, sys.path)]
    environment = os.environ | {
        "WORLD_SIZE": str(task.ranks),
        "LOCAL_WORLD_SIZE": str(task.ranks),
        "OMP_NUM_THREADS": str(task.options.threads),
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)),
    }
    if sys.platform == "linux":
        # All ranks are on this host; its own name may not resolve to an address.
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    command = [
        sys.executable,
        "-m",
        "pipeplan.extensions.training.runtime.worker",
        str(folder),
        str(os.getpid()),
        *map(str, ranks),
    ]
    return subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
    )


def _watch(
    task: RankTask,
    processes: _Processes,
    places: Places,
    files: Files,
    watcher: Callable[[Sequence[RankPlace]], None] | None,
) -> None:
    while True:
        codes = processes.codes()
        if any(codes):
            raise _failure(task, processes, places, files)
        if all(code == 0 for code in codes):
            return
        now = places.all()
        if watcher is not None:
            watcher(now)
        if places.stalled(limit := patience(now, task.options.timeout)):
            raise RunError(f"no rank made progress for {limit:g} s: {_culprit(task, now)}")
        time.sleep(POLL)


def patience(places: Iterable[RankPlace], timeout: float) -> float:
    """Return the seconds that may pass without progress: more while a rank is starting up."""
    starting = any(place.phase == Phase.STARTING for place in places)
    return max(timeout, STARTING_LIMIT) if starting else timeout


def _failure(task: RankTask, processes: _Processes, places: Places, files: Files) -> PipeplanError:
    """Return the first failure: a rank killed from outside, else the earliest error that a rank reported."""
    # The error that is seen first need not be the first: give every rank time to report.
    until = time.monotonic() + GRACE
    while time.monotonic() < until and None in processes.codes():
        time.sleep(POLL)
    failures: dict[int, RankFailure] = {
        rank: failure for rank in range(task.ranks) if (failure := read_whole(files.failure(rank)))
    }
    for rank, code in enumerate(processes.codes()):
        if code and rank not in failures:
            last_line = _last_line(files.output(rank))
            return RunError(f"{task.describe(rank, places.of(rank))}: {_ending(code)}{last_line}")
    # An error of another library may only follow from a broken connection; an error of pipeplan never does.
    rank = min(failures, key=lambda rank: (failures[rank].elsewhere, not failures[rank].ours, failures[rank].when))
    first = failures[rank]
    error = (
        InputError(first.message)
        if first.is_input
        else RunError(f"{task.describe(rank, first.place)}: {first.message}")
    )
    # Python prints notes below a traceback, as with --debug.
    error.add_note(f"In the process of rank {rank}:\n{first.trace}")
    return error


def _ending(code: int) -> str:
    if code < 0:
        return f"the process was killed by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").strip().splitlines()
    return f": {lines[-1]}" if lines else ""


def _culprit(task: RankTask, places: tuple[RankPlace, ...]) -> str:
    """Describe the ranks that hold up the others: those that do not wait, or all of them if all wait."""
    open_places = {rank: place for rank, place in enumerate(places) if place.phase != Phase.DONE}
    busy = {rank: place for rank, place in open_places.items() if place.phase != Phase.WAITING}
    return "; ".join(task.describe(rank, place) for rank, place in (busy or open_places).items())


EXIT_CODE = 1


@contextmanager
def watchdog(
    places: Places,
    rank: int,
    timeout: float,
    describe: Callable[[], str],
    watcher: Callable[[Sequence[RankPlace]], None] | None = None,
) -> Iterator[None]:
    """Exit the process if its rank makes no progress for ``timeout`` seconds during the block.

    A waiting rank has twice that time, so that the rank it waits for is named first. ``watcher`` receives the rank's place
    about once a second.
    """
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(min(1.0, timeout / 4)):
            place = places.of(rank)
            if watcher is not None:
                watcher([place])
            limit = patience([place], 2 * timeout if place.phase == Phase.WAITING else timeout)
            if places.rank_stalled(rank, limit):
                print(f"pipeplan: no progress for {limit:g} s: {describe()}", file=sys.stderr, flush=True)
                # The main thread may hang in a collective, which no exception can interrupt.
                os._exit(EXIT_CODE)

    thread = threading.Thread(target=watch, name="pipeplan watchdog", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
