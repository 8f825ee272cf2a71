"""Sweeps on a Dask scheduler and workers, by joblib's own backend."""

import os
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from joblib import parallel_config

from pipeplan.sweeps import SweepTask, sweep
from tests.sweeps.local_cluster import LocalCluster
from tests.sweeps.work import even_only, nap_and_note

distributed = pytest.importorskip("distributed")


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
