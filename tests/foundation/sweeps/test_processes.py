"""Sweeps on processes of this machine."""

import multiprocessing
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from pipeplan.foundation.errors import RunError
from pipeplan.foundation.sweeps import SweepTask, sweep
from tests.foundation.sweeps.waiting import WAIT, is_gone, until
from tests.foundation.sweeps.work import Square, count, die_at, even_only, nap_and_note, square


def test_answers_and_failures_are_those_of_one_process() -> None:
    many = [SweepTask(str(n), n) for n in range(1, 500)]
    results = list(sweep(square, many, answer=Square, asked={}, workers=2))
    assert {result.key: result.answer for result in results} == {str(n): square(n) for n in range(1, 500)}
    here, there = (
        {result.key: result.failure and result.failure.message for result in results}
        for results in (sweep(even_only, many[:6], answer=int, asked={}, workers=workers) for workers in (1, 2))
    )
    assert here == there


def _answers_of_two_workers(pipe: Connection) -> None:
    numbers = [SweepTask(str(n), n) for n in range(1, 20)]
    pipe.send([entry.required() for entry in sweep(square, numbers, answer=Square, asked={}, workers=2)])


def test_a_process_that_may_have_no_children_does_the_work_itself() -> None:
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=_answers_of_two_workers, args=(far,), daemon=True)
    process.start()
    far.close()
    assert near.recv() == [square(number) for number in range(1, 20)]
    process.join()
    near.close()


def test_a_process_that_dies_ends_the_sweep_and_the_store_keeps_what_is_finished(tmp_path: Path) -> None:
    numbers = [SweepTask(str(n), n) for n in range(40)]
    store = tmp_path / "sweep.db"
    with pytest.raises(RunError, match="a worker process died, most likely for lack of memory: try fewer workers"):
        list(sweep(partial(die_at, (21,)), numbers, answer=int, asked={}, workers=2, store=store))
    resumed = list(sweep(abs, numbers, answer=int, asked={}, workers=2, store=store))
    assert sorted(result.required() for result in resumed) == list(range(40))
    assert 0 < sum(result.stored for result in resumed) < 40


def test_a_system_that_gives_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("joblib.externals.loky.backend.popen_loky_posix.Popen._launch", none)
    with pytest.raises(RunError, match=r"cannot start 64 worker processes \(.*Resource temp.*\); try fewer workers"):
        list(sweep(square, [SweepTask("1", 1)], answer=Square, asked={}, workers=64))


def test_a_sweep_that_is_closed_early_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    naps = [SweepTask(str(n), 20) for n in range(1000)]
    with closing(sweep(partial(nap_and_note, str(log)), naps, answer=int, asked={}, workers=2)) as outcome:
        for number, _ in enumerate(outcome):
            if number == 20:
                break
    workers = {int(line) for line in log.read_text().split()}
    assert len(workers) == 2
    assert all(is_gone(worker) for worker in workers)


SWEEP = """
import sys
import threading
from functools import partial
from pathlib import Path
from pipeplan.foundation.sweeps import SweepTask, sweep
from tests.foundation.sweeps.work import count

log, store, workers = sys.argv[1:]
tasks = [SweepTask(str(number), (number, 20)) for number in range(100)]
list(sweep(partial(count, log), tasks, answer=int, asked={}, workers=int(workers), store=Path(store)))
"""


@pytest.mark.parametrize(("workers", "deadly"), [(1, signal.SIGKILL), (2, signal.SIGKILL), (2, signal.SIGINT)])
def test_a_sweep_that_is_killed_at_60_percent_resumes_and_repeats_nothing(
    tmp_path: Path, workers: int, deadly: signal.Signals
) -> None:
    log, store = tmp_path / "log", tmp_path / "sweep.db"
    process = subprocess.Popen(
        [sys.executable, "-c", SWEEP, log, store, str(workers)],
        stderr=subprocess.DEVNULL,
    )
    begun = until(log, 60)
    process.send_signal(deadly)
    assert process.wait(WAIT) == -deadly
    # Reading cleans up behind the one that was killed, so a copy is read and the store itself is left as it was.
    copy = tmp_path / "copy"
    copy.mkdir()
    for part in tmp_path.glob("sweep.db*"):
        shutil.copy(part, copy)
    with closing(sqlite3.connect(copy / store.name)) as file:
        kept = {key for (key,) in file.execute("SELECT key FROM finished")}
    # Under way are at most two batches a worker, of a tenth of a second: five tasks.
    assert len(begun) - 2 * workers * 10 <= len(kept) < 100
    tasks = [SweepTask(str(number), (number, 1)) for number in range(100)]
    outcome = list(sweep(partial(count, str(log)), tasks, answer=int, asked={}, workers=workers, store=store))
    assert {entry.key for entry in outcome if entry.stored} == kept
    assert sorted(entry.required() for entry in outcome) == list(range(100))
    done = Counter(log.read_text().split())
    assert [key for key in kept if done[key] > 1] == [], "what is stored is not repeated"
    with closing(sqlite3.connect(store)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_sweeps_in_two_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    naps = [SweepTask(str(n), 20) for n in range(60)]
    function = partial(nap_and_note, str(tmp_path / "log"))
    all_of_one: list[int] = []

    def other() -> None:
        all_of_one.extend(entry.required() for entry in sweep(function, naps, answer=int, asked={}, workers=2))

    with closing(sweep(function, naps, answer=int, asked={}, workers=2)) as outcome:
        thread = threading.Thread(target=other)
        next(outcome)
        thread.start()
        next(outcome)
    thread.join()
    assert all_of_one == [20] * 60
