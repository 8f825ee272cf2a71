"""Sweeps on a Dask scheduler and workers, started here; one of them is killed."""

import logging
import os
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from pipeplan.errors import FormatError, InputError, MissingExtraError, RunError
from pipeplan.sweeps import SweepProgress, SweepTask, sweep
from tests.sweeps.local_cluster import LocalCluster
from tests.sweeps.waiting import until
from tests.sweeps.work import count, die_at, even_only, nap_and_note

distributed = pytest.importorskip("distributed")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    running = LocalCluster(tmp_path, workers=2)
    try:
        yield running
    finally:
        running.end()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """A cluster for tests that leave it as it is."""
    running = LocalCluster(tmp_path_factory.mktemp("cluster"), workers=1)
    try:
        yield running
    finally:
        running.end()


def test_a_worker_that_is_killed_loses_no_task(cluster: LocalCluster, tmp_path: Path) -> None:
    """The same code as on processes; and what the store holds is not done again."""
    log, store = tmp_path / "naps", tmp_path / "sweep.db"
    naps = [SweepTask(str(number), 20) for number in range(120)]
    function = partial(nap_and_note, str(log))

    def kill() -> None:
        os.kill(int(Counter(until(log, 40)).most_common()[0][0]), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    levels = [logging.getLogger(name).level for name in ("distributed", "distributed.client")]
    found = list(sweep(function, naps, answer=int, asked={}, dask=cluster.address, store=store))
    killer.join()
    assert sorted(int(each.key) for each in found) == list(range(120))
    assert [each.failure for each in found] == [None] * 120
    assert levels == [logging.getLogger(name).level for name in ("distributed", "distributed.client")]
    done = Counter(log.read_text().split())
    killed = done.most_common()[-1]
    assert len(done) == 2
    assert done.total() < 120 + 2 * 40, f"at most the batches under way are done again, of {killed}"
    again = list(sweep(function, naps, answer=int, asked={}, dask=cluster.address, store=store))
    assert all(each.stored for each in again)
    assert Counter(log.read_text().split()) == done


def test_failures_and_tasks_that_kill(cluster: LocalCluster) -> None:
    """Dask gives a batch up after two workers; each task of it has its turn alone."""
    for _ in range(3):
        cluster.add_worker()
    numbers = [SweepTask(str(n), n) for n in range(6)]
    found = {each.key: each for each in sweep(even_only, numbers, answer=int, asked={}, dask=cluster.address)}
    assert {key: each.failure.kind for key, each in found.items() if each.failure} == {
        "1": "refused",
        "3": "refused",
        "4": "failed",
        "5": "refused",
    }
    found = {
        each.key: each for each in sweep(partial(die_at, (1,)), numbers[:3], answer=int, asked={}, dask=cluster.address)
    }
    assert {key: each.failure.kind for key, each in found.items() if each.failure} == {"1": "lost"}


def test_a_scheduler_that_is_gone_ends_the_sweep_with_what_is_stored(
    cluster: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeplan.sweeps.dask_workers.RECONNECT_SECONDS", 2.0)
    naps = [SweepTask(str(number), (number, 50)) for number in range(300)]

    def kill(progress: SweepProgress) -> None:
        if progress.done > 20:
            with suppress(ProcessLookupError):
                cluster.scheduler.kill()

    function = partial(count, str(tmp_path / "naps"))
    with pytest.raises(RunError, match="a store keeps what was finished"):
        list(sweep(function, naps, answer=int, asked={}, dask=cluster.address, store=tmp_path / "s", progress=kill))
    found = list(
        sweep(even_only, [SweepTask(str(n), n) for n in range(300)], answer=int, asked={}, store=tmp_path / "s")
    )
    assert sum(each.stored for each in found) > 20


def test_workers_that_are_all_gone_end_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = LocalCluster(tmp_path, workers=1)
    try:
        list(sweep(even_only, [SweepTask("2", 2)], answer=int, asked={}, dask=cluster.address))
        monkeypatch.setattr("pipeplan.sweeps.dask_workers.WORKER_SECONDS", 1.0)
        with pytest.raises(RunError, match="has lost all its workers; a store keeps what was finished"):
            list(sweep(partial(die_at, (1,)), [SweepTask("1", 1)], answer=int, asked={}, dask=cluster.address))
        with pytest.raises(InputError, match=r"has no workers; start some with: dask worker") as error:
            list(sweep(even_only, [SweepTask("2", 2)], answer=int, asked={}, dask=cluster.address))
        assert error.value.field == "dask"
    finally:
        cluster.end()


def test_another_version_on_the_workers_is_refused(lasting: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeplan.sweeps.dask_workers.version", lambda: "99.0")
    with pytest.raises(InputError, match=r"the worker has pipeplan .*, and the sweep has 99\.0; install one") as error:
        list(sweep(even_only, [SweepTask("2", 2)], answer=int, asked={}, dask=lasting.address))
    assert error.value.field == "dask"


def test_workers_without_the_function_are_refused(
    lasting: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def same(number):\n    return number\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here  # type: ignore[import-not-found]

    with pytest.raises(InputError, match=r"lacks the function of the sweep .*only_here.*; install pipeplan") as error:
        list(sweep(only_here.same, [SweepTask("2", 2)], answer=int, asked={}, dask=lasting.address))
    assert error.value.field == "dask"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:1", "nothing answers within 0.5 s; start one with: dask scheduler"),
        ("tcp://nowhere.invalid:8786", "nothing answers within 0.5 s"),
        ("nonsense", "missing port number in address 'nonsense'"),
        ("http://127.0.0.1:8786", "unknown address scheme 'http'"),
        ("", "missing port number"),
    ],
)
def test_an_address_where_no_scheduler_is(address: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeplan.sweeps.dask_workers.CONNECT_SECONDS", 0.5)
    with pytest.raises(InputError, match=reason) as error:
        list(sweep(even_only, [SweepTask("2", 2)], answer=int, asked={}, dask=address))
    assert error.value.field == "dask"
    assert f"cannot reach a scheduler at '{address}'" in str(error.value)


def test_a_file_that_no_scheduler_wrote(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"type": "Scheduler"}')
    with pytest.raises(FormatError, match="it has no address"):
        list(sweep(even_only, [], answer=int, asked={}, dask=str(tmp_path / "s.json")))
    with pytest.raises(InputError, match="cannot read the scheduler's file"):
        list(sweep(even_only, [], answer=int, asked={}, dask=str(tmp_path / "none.json")))


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingExtraError, match=r"pip install '\.\[cluster\]'"):
        list(sweep(even_only, [], answer=int, asked={}, dask="127.0.0.1:8786"))
