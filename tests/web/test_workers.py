"""Work in processes: bounded in time and number, and a process that dies is replaced."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time

import pytest

from pipeplan.web.workers import BusyError, TooSlowError, WorkError, Workers


def double(number):
    return 2 * number


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def die(code):
    os._exit(code)


def die_once(mark):
    """End the process of the first call, and leave a mark for the second one."""
    if not mark.exists():
        mark.touch()
        os._exit(3)
    return "lived"


def die_once_and_tell(mark, tell):
    tell(die_once(mark).encode())


def tell_and_die(code, tell):
    tell(b"one")
    os._exit(code)


def process_of(_):
    return os.getpid()


def fail(message):
    raise ValueError(message)


def greedy(_):
    raise MemoryError


def run(coroutine):
    return asyncio.run(coroutine)


async def answers(workers, *asked):
    try:
        return await asyncio.gather(*(workers.ask(work, argument) for work, argument in asked), return_exceptions=True)
    finally:
        workers.end()


def test_work_is_done():
    assert run(answers(Workers(1), (double, 2), (double, 3))) == [4, 6]


def test_what_takes_too_long_is_ended_and_the_next_is_done():
    slow, next_ = run(answers(Workers(1, seconds=1.5), (sleep, 60), (double, 2)))
    assert isinstance(slow, TooSlowError)
    assert next_ == 4


def test_what_kills_two_processes_is_refused_by_name_and_the_next_is_done():
    dead, next_ = run(answers(Workers(1), (die, 3), (double, 2)))
    assert isinstance(dead, WorkError)
    assert "(die), probably for lack of memory" in str(dead)
    assert next_ == 4


def test_what_a_dead_process_was_asked_is_asked_of_another_one(tmp_path):
    mark = tmp_path / "once"
    assert run(answers(Workers(1), (die_once, mark), (double, 2))) == ["lived", 4]


def test_processes_that_were_killed_or_stopped_between_requests_cost_no_answer():
    async def asked():
        workers = Workers(2, begin=0.5)
        try:
            await workers.start(double, 1)
            for sign in (signal.SIGKILL, signal.SIGSTOP):
                for process in multiprocessing.active_children():
                    assert process.pid is not None
                    os.kill(process.pid, sign)
                assert await workers.ask(double, 2) == 4
                await workers.start(double, 1)
        finally:
            workers.end()

    run(asked())


async def _abandoned(workers, *asked):
    tasks = [asyncio.create_task(workers.ask(work, argument)) for work, argument in asked]
    await asyncio.sleep(0.05)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_who_stops_waiting_leaves_the_queue_and_work_for_nobody_is_ended():
    async def asked():
        workers = Workers(1, waiting=2)
        try:
            await workers.ask(double, 1)
            await _abandoned(workers, (sleep, 60), (sleep, 60), (sleep, 60))
            return await asyncio.wait_for(workers.ask(double, 2), 30)
        finally:
            workers.end()

    assert run(asked()) == 4


def test_work_for_nobody_that_is_nearly_done_keeps_its_process():
    async def asked():
        workers = Workers(1)
        try:
            first = await workers.ask(process_of, None)
            await _abandoned(workers, (sleep, 0.3))
            return first, await workers.ask(process_of, None)
        finally:
            workers.end()

    first, then = run(asked())
    assert first == then


def test_a_process_that_dies_while_it_tells_is_said():
    async def asked():
        workers = Workers(1)
        try:
            parts = workers.stream(tell_and_die, 3)
            assert await anext(parts) == b"one"
            with pytest.raises(WorkError, match="ended, and with it the answer"):
                await anext(parts)
            return await workers.ask(double, 2)
        finally:
            workers.end()

    assert run(asked()) == 4


def test_what_dies_before_it_tells_is_told_by_another_process(tmp_path):
    async def asked():
        workers = Workers(1)
        try:
            return [part async for part in workers.stream(die_once_and_tell, tmp_path / "once")]
        finally:
            workers.end()

    assert run(asked()) == [b"lived"]


def test_a_lack_of_memory_is_said():
    short, next_ = run(answers(Workers(1), (greedy, 0), (double, 2)))
    assert isinstance(short, WorkError)
    assert next_ == 4


def test_an_error_comes_back_without_ending_the_process():
    wrong, next_ = run(answers(Workers(1), (fail, "why"), (double, 2)))
    assert isinstance(wrong, RuntimeError)
    assert "ValueError: why" in str(wrong)
    assert next_ == 4


@pytest.mark.parametrize("steps", range(6))
def test_who_leaves_while_a_process_starts_leaves_none(steps):
    async def asked():
        workers = Workers(1)
        asking = asyncio.create_task(workers.ask(double, 1))
        for _ in range(steps):
            await asyncio.sleep(0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        left = multiprocessing.active_children()
        workers.end()
        for process in left:
            until = time.monotonic() + 30
            while process.exitcode is None and time.monotonic() < until:  # a thread of theirs waits for it, too
                await asyncio.sleep(0.01)
            assert process.exitcode in (0, -signal.SIGKILL)  # and has no traceback to show

    run(asked())


def test_nobody_waits_for_ever():
    slow, next_ = run(answers(Workers(1, patience=0.2), (sleep, 1.0), (double, 2)))
    assert slow == 1.0
    assert isinstance(next_, BusyError)


def test_too_many_at_once_are_refused():
    found = run(answers(Workers(1, waiting=1), (sleep, 0.3), (double, 1), (double, 2), (double, 3)))
    assert found[:2] == [0.3, 2]
    assert all(isinstance(each, BusyError) for each in found[2:])
