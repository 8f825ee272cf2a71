"""A module run in one process a rank, each with one thread, joined by gloo over the loopback."""

import gc
import importlib
import multiprocessing
import os
import pickle
import random
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parents[1]

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "pipeplan.runtime"])


def run_ranks(module: str, ranks: int, job: Any, timeout: float = 300.0) -> list[Any]:
    """What ``module.main(job)`` returns in each of ``ranks`` processes, in the order of their ranks.

    The processes have ``RANK``, ``LOCAL_RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` as torchrun gives them;
    the module starts its own process group. ``job`` and what is returned are pickled. Loading PyTorch takes some seconds:
    the ranks are forks of one process that has loaded the module, and this one is a fork of one that has loaded PyTorch.

    Raises
    ------
    RuntimeError
        If a process fails, with the end of what each wrote, or if they take longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job").write_bytes(pickle.dumps(job))
        variables = environment(ranks)
        running = FORKS.Process(target=lead, args=(module, folder, ranks, variables))
        with patch.dict(os.environ, variables):  # of the server that forks, if this call starts it
            running.start()
        try:
            wait(running, folder, module, timeout)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(running.pid or 0, signal.SIGKILL)
            running.join()
        return [pickle.loads((folder / f"result{rank}").read_bytes()) for rank in range(ranks)]


def environment(ranks: int) -> dict[str, str]:
    """What torchrun gives to every rank, except the number of the rank itself."""
    paths = [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {
        "WORLD_SIZE": str(ranks),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": os.pathsep.join(paths),
    }


def wait(running: BaseProcess, folder: Path, module: str, timeout: float) -> None:
    """Until all ranks have ended well; the first that fails, or the time, ends them all."""
    running.join(timeout)
    what = f"did not end within {timeout:g} s" if running.exitcode is None else "failed"
    if running.exitcode != 0:
        logs = sorted(folder.glob("log*"))
        texts = [f"{log.name}:\n{log.read_text(errors='replace')[-4000:]}" for log in logs]
        raise RuntimeError("\n".join([f"{module}: rank(s) {what}", *texts]))


def free_port() -> int:
    """A port that nobody listens on now, below those that the system gives to outgoing connections."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as taken:
            try:
                taken.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("of a hundred ports from 20000 to 32000 none is free")


def lead(module: str, folder: Path, ranks: int, variables: dict[str, str]) -> None:
    """Load the module once and fork the ranks; the process exits with 1 as soon as one of them fails."""
    os.setsid()
    os.environ.clear()  # the process that this one is a fork of may have been started with others
    os.environ.update(variables)
    redirect(folder / "log")
    work = importlib.import_module(module).main
    gc.freeze()  # as a worker of the runtime does
    for rank in range(ranks):
        if os.fork() == 0:
            os._exit(as_rank(rank, work, folder))
    codes = (os.waitstatus_to_exitcode(os.wait()[1]) for _ in range(ranks))
    sys.exit(1 if any(codes) else 0)


def redirect(path: Path) -> None:
    """Write what the process prints to a file."""
    with path.open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)


def as_rank(rank: int, work: Callable[[Any], Any], folder: Path) -> int:
    """Leave what the work on the job returns, and what it writes, in files of this rank."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
    redirect(folder / f"log{rank}")
    try:
        result = work(pickle.loads((folder / "job").read_bytes()))
        (folder / f"result{rank}").write_bytes(pickle.dumps(result))
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0
