"""A process of ``launch``: ``python -m pipeplan.extensions.training.runtime.worker FOLDER PARENT RANK...``."""

from __future__ import annotations

import ctypes
import gc
import os
import pickle
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from pipeplan.extensions.training.runtime.group import local_device, process_group
from pipeplan.extensions.training.runtime.launch import Files, RankFailure, RankTask, write_whole
from pipeplan.extensions.training.runtime.progress import Phase, Places, RankPlace

# Option of Linux's prctl: the signal that this process gets when its parent dies (linux/prctl.h).
_PR_SET_PDEATHSIG = 1


def main(folder: Path, parent: int, ranks: Sequence[int]) -> int:
    """Do the task in a folder as one rank, or as several, each in a process of its own. Return the exit code."""
    die_with(parent)
    # A collection runs before every measured step. Over the objects of the imported modules it takes a fifth of a second.
    gc.freeze()
    files = Files(folder)
    return _fork(ranks, files) if len(ranks) > 1 else _work_as(ranks[0], files)


def _fork(ranks: Sequence[int], files: Files) -> int:
    """Fork a process for each rank, and write the exit code of each when it ends."""
    parent = os.getpid()
    running = {}
    for rank in ranks:
        process = os.fork()
        if process == 0:
            die_with(parent)
            with files.output(rank).open("ab") as output:
                os.dup2(output.fileno(), 1)
                os.dup2(output.fileno(), 2)
            _leave(_work_as(rank, files))
        running[process] = rank
    while running:
        process, status = os.wait()
        write_whole(files.code(running.pop(process)), os.waitstatus_to_exitcode(status))
    return 0


def _leave(code: int) -> None:
    """Exit without the functions that the parent process registered for its own exit."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _work_as(rank: int, files: Files) -> int:
    """Do the task as a rank. Return the exit code: 1 if it failed."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    task: RankTask = pickle.loads(files.task.read_bytes())
    places = Places(task.ranks, files.places)
    try:
        _work(task, rank, places, files)
    except (Exception, SystemExit) as error:
        _write_failure(error, places.of(rank), files.failure(rank))
        return 1
    places.tell(rank, 0, 0, Phase.DONE)
    return 0


def _work(task: RankTask, rank: int, places: Places, files: Files) -> None:
    torch.set_num_threads(task.options.threads)
    device = local_device(task.options.device, rank)
    # The launcher notices first if no rank makes progress, and names the op; this timeout is for when it cannot.
    with process_group(device, task.ranks, timeout=2 * task.options.timeout, store=files.store):
        try:
            answer = task.work(rank, device, places)
        except (Exception, SystemExit) as error:
            # Written before leaving the group: leaving breaks the other ranks' connections, and their errors must not look
            # like the first one.
            _write_failure(error, places.of(rank), files.failure(rank))
            raise
        if rank == 0:
            write_whole(files.result, answer)


def _write_failure(error: BaseException, place: RankPlace, path: Path) -> None:
    """Write the failure unless one is there: the first one counts."""
    if not path.exists():
        write_whole(path, RankFailure.of(error, place))


def die_with(parent: int) -> None:
    """Make the kernel kill this process when its parent dies. Linux only: elsewhere it lives until its own timeout."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        # The parent may have died before the call.
        if os.getppid() != parent:
            os._exit(1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), list(map(int, sys.argv[3:]))))
