"""A module run in one process a rank, each with one thread, joined by gloo over the loopback."""

import os
import pickle
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def run_ranks(module: str, ranks: int, job: Any, timeout: float = 300.0) -> list[Any]:
    """What ``module.main(job)`` returns in each of ``ranks`` processes, in the order of their ranks.

    The processes have ``RANK``, ``LOCAL_RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and ``MASTER_PORT`` as torchrun gives them;
    the module starts its own process group. ``job`` and what is returned are pickled. Starting takes some seconds, so a job
    is best a list of cases.

    Raises
    ------
    RuntimeError
        If a process fails, with the end of what it wrote, or if they take longer than ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "job").write_bytes(pickle.dumps(job))
        place = {"WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        running = [start(module, folder, place | {"RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in range(ranks)]
        try:
            wait(running, folder, module, timeout)
        finally:
            for process in running:
                process.kill()
                process.wait()
        return [pickle.loads((folder / f"result{rank}").read_bytes()) for rank in range(ranks)]


def start(module: str, folder: Path, place: dict[str, str]) -> subprocess.Popen[bytes]:
    """A rank's process, which writes what it says into a file of its own."""
    environment = os.environ | place | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(ROOT / "src"), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    with (folder / f"log{place['RANK']}").open("wb") as log:
        command = [sys.executable, "-m", "tests.processes", module, str(folder)]
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)


def wait(running: list[subprocess.Popen[bytes]], folder: Path, module: str, timeout: float) -> None:
    """Until every process has ended well; the first that fails, or the time, ends them all."""
    until = time.monotonic() + timeout
    while any(process.poll() is None for process in running):
        if any(process.returncode for process in running) or time.monotonic() > until:
            break
        time.sleep(0.05)
    time.sleep(0.2)  # A rank that fails brings others down, which may be seen first.
    failed = [rank for rank, process in enumerate(running) if process.poll()]
    late = [] if failed else [rank for rank, process in enumerate(running) if process.poll() is None]
    if failed or late:
        what = f"rank(s) {failed} failed" if failed else f"rank(s) {late} did not end within {timeout:g} s"
        said = [
            f"rank {rank}:\n{(folder / f'log{rank}').read_text(errors='replace')[-4000:]}" for rank in failed or late
        ]
        raise RuntimeError("\n".join([f"{module}: {what}", *said]))


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


def main(module: str, folder: Path) -> None:
    """In the process of a rank: run the module's ``main`` on the job and leave what it returns."""
    import importlib

    result = importlib.import_module(module).main(pickle.loads((folder / "job").read_bytes()))
    (folder / f"result{os.environ['RANK']}").write_bytes(pickle.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
