"""What engines share: waiting for kernels, and the seconds."""

import subprocess
import sys
import threading
import time

import pytest

from pipeplan.extensions.search import Run
from pipeplan.extensions.search.budget import Budget
from pipeplan.extensions.search.engines.building_blocks import BuildingBlocks
from pipeplan.extensions.search.engines.published import FixedOrders
from pipeplan.foundation import kernels
from pipeplan.foundation.kernels import Kernel
from pipeplan.model import Placement
from tests.extensions.search.problems import problem


class SlowToCompile:
    """Stands for a kernel whose compilation ends when it is told to."""

    def __init__(self):
        self.go_on = threading.Event()
        self.ready = threading.Event()

    def compile(self, inputs, outputs):
        self.go_on.wait()
        self.ready.set()


def run_of(seconds, report=None):
    """A search whose own clock stands still."""
    run = Run(problem(Placement.v(4), 8, limit=2), Budget(seconds, None, lambda: 0.0), report=report)
    run.offer(run.encoder.from_order(run.encoder.one_by_one()), "one", "one")
    return run


@pytest.fixture
def slow(monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.run.REPORT_EVERY", 0.01)
    kernel = SlowToCompile()
    yield kernel
    kernel.go_on.set()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.run.FREE_WAIT", 0.01)


def test_a_search_waits_for_its_kernels_and_no_seconds_are_spent(slow):
    run = run_of(0.05)
    threading.Timer(0.1, slow.go_on.set).start()
    run.compile(slow, (), ())
    assert slow.go_on.is_set()
    assert not run.is_over


@pytest.mark.usefixtures("impatient")
def test_a_search_goes_without_kernels_that_take_too_long(slow):
    run = run_of(0.1)
    run.compile(slow, (), ())
    assert not run.is_over
    assert next(run.rounds(1, 1)) == (0, 1)
    assert run.compiled_after is None


@pytest.mark.usefixtures("impatient")
def test_a_search_says_after_how_many_seconds_a_late_kernel_was_ready(slow):
    now = [0.0]
    run = Run(problem(Placement.v(4), 8), Budget(0.01, None, lambda: now[0]))
    assert run.compiled_after == 0
    run.compile(slow, (), ())
    assert run.lacks_kernels
    now[0] = 0.005
    slow.go_on.set()
    wait_until(lambda: not run.lacks_kernels)
    assert run.compiled_after == 0.005


@pytest.mark.usefixtures("impatient")
def test_a_kernel_that_is_not_begun_when_the_search_ends_is_never_compiled(slow):
    run, second = run_of(0.01), SlowToCompile()
    run.compile(slow, (), ())
    run.compile(second, (), ())
    run.end()
    for kernel in (second, slow):
        kernel.go_on.set()
    assert slow.ready.wait(10)
    assert run.compiled_after is None
    assert not second.ready.is_set()


@pytest.mark.usefixtures("impatient")
def test_loops_run_as_plain_python_while_another_kernel_is_compiled(slow, monkeypatch):
    behind = Kernel(len)
    monkeypatch.setattr(kernels, "compile_loop", lambda function: lambda *_: slow.compile((), ()))
    calls: list[object] = []
    counting = Kernel(lambda *_: calls.append(1), compile_after=1)
    run = run_of(0.01)
    run.compile(behind, (), ())
    wait_until(kernels.are_being_compiled)
    counting((), (), work=10)
    assert calls == [1]
    slow.go_on.set()
    wait_until(lambda: not kernels.are_being_compiled())
    counting((), (), work=10)
    assert calls == [1]  # compiled from now on


def wait_until(holds):
    """Wait until something holds that another thread brings about."""
    for _ in range(1000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it does not hold after ten seconds")


def test_who_stops_a_search_that_waits_for_its_kernels_does_not_wait(slow):
    waiting: list[bool] = []

    def stop(news):
        if waiting:
            raise KeyboardInterrupt

    run = run_of(60, stop)
    waiting.append(True)
    run.compile(slow, (), ())
    assert run.budget.stopped.is_set()
    assert run.is_over


_ENDS_MEANWHILE = """
import atexit, sys, threading, time
from pipeplan.foundation.kernels import Kernel
from pipeplan.extensions.search import run
from tests.extensions.search.test_run import run_of

run.FREE_WAIT = run.REPORT_EVERY = 0.01
compiling = Kernel(len)
compiling.compile = lambda *_: (time.sleep(0.2), print("compiled", flush=True))
run_of(0.02).compile(compiling, (), ())
print("over", flush=True)
"""


def test_a_process_does_not_end_under_a_kernel_that_is_still_compiled():
    ended = subprocess.run([sys.executable, "-c", _ENDS_MEANWHILE], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["over", "compiled"]


def test_what_goes_wrong_while_a_kernel_is_compiled_is_raised():
    class Broken:
        def compile(self, inputs, outputs):
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        run_of(1).compile(Broken(), (), ())


def test_of_large_published_schedules_none_is_begun_that_is_not_likely_to_be_done_in_time(monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.engines.published.LARGE", 1)
    now, offer = [0.0], Run.offer_published

    def slowly(run, schedule, name):
        now[0] += 4.0
        offer(run, schedule, name)

    monkeypatch.setattr(Run, "offer_published", slowly)
    run = Run(problem(Placement.v(4), 8), Budget(10.0, None, lambda: now[0]))
    FixedOrders()(run)
    assert run.best is not None
    assert run.budget.seconds == 8.0


def test_building_blocks_have_their_share_where_published_schedules_took_theirs():
    now = [0.0]
    run = Run(problem(Placement.linear(4), 8, limit=2), Budget(10.0, None, lambda: now[0]))
    run.offer(run.encoder.from_order(run.encoder.one_by_one()), "one", "one")
    now[0] = 5.0
    BuildingBlocks(first_round=8_000)(run)
    assert run.best is not None
    assert run.best.found_by == "building blocks"


def test_of_large_schedules_the_evaluator_is_compiled_once_there_is_an_answer(monkeypatch):
    monkeypatch.setattr("pipeplan.extensions.search.engines.published.LARGE", 1)
    found: list[float | None] = []
    monkeypatch.setattr(Run, "compile", lambda run, *_: found.append(run.best and run.best.value))
    run = Run(problem(Placement.v(4), 8), Budget(10.0, None, lambda: 0.0))
    FixedOrders()(run)
    assert len(found) == 1
    assert found[0] is not None
