"""Sweeps on a Dask scheduler and workers, by joblib's own backend."""

import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from joblib import parallel_config

from pipeplan.foundation.sweeps import SweepTask, sweep
from tests.foundation.sweeps.waiting import until
from tests.foundation.sweeps.work import even_only, nap_and_note

distributed = pytest.importorskip("distributed")


HOST = ["--host", "127.0.0.1"]


class LocalCluster:
    """A scheduler, and workers of one thread each."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--port", "0", "--dashboard-address", "127.0.0.1:0", *HOST)
        for _ in range(workers):
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
    def address(self) -> str:
        """Once the scheduler has said it."""
        until(self.file, 3)
        return str(self.file)

    def end(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()


@pytest.mark.slow
def test_workers_of_a_cluster_run_the_tasks_and_a_store_resumes(tmp_path: Path) -> None:
    log, store = tmp_path / "naps", tmp_path / "sweep.db"
    naps = [SweepTask(str(number), 20) for number in range(40)]
    numbers = [SweepTask(str(number), number) for number in range(6)]
    function = partial(nap_and_note, str(log))
    cluster = LocalCluster(tmp_path, workers=2)
    try:
        with distributed.Client(scheduler_file=cluster.address) as client, parallel_config(backend="dask"):
            client.wait_for_workers(2)
            results = list(sweep(function, naps, answer=int, asked={}, workers=2, store=store))
            failures = {
                result.key: result.failure.kind
                for result in sweep(even_only, numbers, answer=int, asked={}, workers=2)
                if result.failure
            }
            with closing(sweep(function, naps, answer=int, asked={}, workers=2)) as stopped:
                next(stopped)
    finally:
        cluster.end()
    assert sorted(int(result.key) for result in results) == list(range(40))
    assert failures == {"1": "refused", "3": "refused", "4": "failed", "5": "refused"}
    processes = Counter(log.read_text().split())
    assert len(processes) == 2
    assert str(os.getpid()) not in processes
    assert all(result.stored for result in sweep(function, naps, answer=int, asked={}, store=store))
