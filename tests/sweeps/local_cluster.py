"""A Dask scheduler and workers, started here."""

import os
import subprocess
import sys
from pathlib import Path

from tests.sweeps.waiting import until

HOST = ["--host", "127.0.0.1"]


class LocalCluster:
    """A scheduler, and workers of one thread each that nobody starts again."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0", *HOST)
        self.scheduler = self._processes[0]
        for _ in range(workers):
            self.add_worker()

    def add_worker(self) -> None:
        self._start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", *HOST)

    def _start(self, *words: str) -> None:
        search_path = os.pathsep.join([os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])])
        with (self.folder / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "dask", *words, "--scheduler-file", str(self.file)],
                    stdout=log,
                    stderr=log,
                    env={
                        **os.environ,
                        "PYTHONPATH": search_path,
                        "DASK_TEMPORARY_DIRECTORY": str(self.folder),
                        "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
                    },
                )
            )

    @property
    def workers(self) -> list["subprocess.Popen[bytes]"]:
        """Their processes."""
        return self._processes[1:]

    @property
    def address(self) -> str:
        """Once the scheduler has said it."""
        until(self.file, 3)
        return str(self.file)

    def end(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
