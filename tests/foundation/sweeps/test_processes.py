"""Sweeps on processes of this machine, which die now and then."""

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
from tests.foundation.sweeps.work import Square, count, die_at, die_once, even_only, nap_and_note, square


def test_many_small_tasks_on_two_processes() -> None:
    found = list(sweep(square, [SweepTask(str(n), n) for n in range(1, 500)], answer=Square, asked={}, workers=2))
    assert len(found) == 499
    assert {each.key: each.answer for each in found} == {str(n): square(n) for n in range(1, 500)}


def test_failures_are_those_of_one_process() -> None:
    numbers = [SweepTask(str(n), n) for n in range(6)]
    here, there = (
        {each.key: each.failure and each.failure.message for each in found}
        for found in (sweep(even_only, numbers, answer=int, asked={}, workers=workers) for workers in (1, 2))
    )
    assert here == there


def _answers_of_two_workers(pipe: Connection) -> None:
    numbers = [SweepTask(str(n), n) for n in range(1, 20)]
    pipe.send([each.required() for each in sweep(square, numbers, answer=Square, asked={}, workers=2)])


def test_a_process_that_may_have_no_children_does_the_work_itself() -> None:
    context = multiprocessing.get_context("spawn")
    near, far = context.Pipe()
    process = context.Process(target=_answers_of_two_workers, args=(far,), daemon=True)
    process.start()
    far.close()
    assert near.recv() == [square(number) for number in range(1, 20)]
    process.join()
    near.close()


def test_a_process_that_dies_loses_no_task(tmp_path: Path) -> None:
    found = list(
        sweep(
            partial(die_once, str(tmp_path)), [SweepTask(str(n), n) for n in range(60)], answer=int, asked={}, workers=2
        )
    )
    assert (tmp_path / "died").exists()
    assert sorted(each.required() for each in found) == list(range(60))


def test_a_long_task_beside_tasks_that_kill_is_answered(tmp_path: Path) -> None:
    """While 0 sleeps in one process, 7 kills the other, again and again."""
    log = tmp_path / "log"
    long = [SweepTask("long", 0), *(SweepTask(f"deadly {n}", 7) for n in range(2))]
    found = {each.key: each for each in sweep(partial(_sleep_or_die, str(log)), long, answer=int, asked={}, workers=2)}
    assert found["long"].answer == 0
    assert [found[f"deadly {n}"].failure is not None for n in range(2)] == [True] * 2


def _sleep_or_die(log: str, number: int) -> int:
    count(log, (number, 0 if number else 300))
    return die_at((7,), number)


def test_a_task_that_kills_is_reported_and_the_others_are_done() -> None:
    numbers = [SweepTask(str(n), n) for n in range(40)]
    found = {each.key: each for each in sweep(partial(die_at, (3, 21)), numbers, answer=int, asked={}, workers=2)}
    assert {key for key, each in found.items() if each.failure} == {"3", "21"}
    lost = found["21"].failure
    assert lost is not None
    assert (lost.kind, lost.message) == (
        "lost",
        "its worker died, also when run alone; there may have been too little memory",
    )
    assert sorted(each.answer for each in found.values() if each.answer is not None) == sorted(set(range(40)) - {3, 21})


def test_processes_that_all_die_end_the_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeplan.foundation.sweeps.engine._MAX_DEATHS", 3)
    numbers = [SweepTask(str(n), n) for n in range(100)]
    with pytest.raises(RunError, match="5 workers in a row died without finishing a task"):
        list(sweep(partial(die_at, tuple(range(100))), numbers, answer=int, asked={}, workers=2))


def test_a_system_that_gives_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object, **__: object) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr("joblib.externals.loky.backend.popen_loky_posix.Popen._launch", none)
    with pytest.raises(RunError, match=r"cannot start 64 worker processes \(.*Resource temp.*\); try fewer workers"):
        list(sweep(square, [SweepTask("1", 1)], answer=Square, asked={}, workers=64))


def test_a_sweep_that_is_closed_early_leaves_no_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    naps = [SweepTask(str(n), 20) for n in range(1000)]
    with closing(sweep(partial(nap_and_note, str(log)), naps, answer=int, asked={}, workers=2)) as found:
        for number, _ in enumerate(found):
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


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("deadly", [signal.SIGKILL, signal.SIGINT])
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
    found = list(sweep(partial(count, str(log)), tasks, answer=int, asked={}, workers=workers, store=store))
    assert {each.key for each in found if each.stored} == kept
    assert sorted(each.required() for each in found) == list(range(100))
    done = Counter(log.read_text().split())
    assert [key for key in kept if done[key] > 1] == [], "what is stored is not repeated"
    with closing(sqlite3.connect(store)) as file:
        assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)


ENDLESS = """
import sys
import threading
from functools import partial
from pipeplan.foundation.sweeps import SweepTask, sweep
from tests.foundation.sweeps.work import nap_and_note

naps = [SweepTask(str(number), 10) for number in range(100_000)]
list(sweep(partial(nap_and_note, sys.argv[1]), naps, answer=int, asked={}, workers=2))
"""


def test_workers_end_with_a_sweep_that_is_killed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = subprocess.Popen([sys.executable, "-c", ENDLESS, str(log)])
    workers = {int(line) for line in until(log, 40)}
    process.kill()
    process.wait()
    assert len(workers) == 2
    assert all(is_gone(worker) for worker in workers)


def test_sweeps_in_two_threads_do_not_disturb_each_other(tmp_path: Path) -> None:
    naps = [SweepTask(str(n), 20) for n in range(60)]
    function = partial(nap_and_note, str(tmp_path / "log"))
    all_of_one: list[int] = []

    def other() -> None:
        all_of_one.extend(each.required() for each in sweep(function, naps, answer=int, asked={}, workers=2))

    with closing(sweep(function, naps, answer=int, asked={}, workers=2)) as found:
        thread = threading.Thread(target=other)
        next(found)
        thread.start()
        next(found)
    thread.join()
    assert all_of_one == [20] * 60
