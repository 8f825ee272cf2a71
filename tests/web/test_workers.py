"""Work in processes: bounded in time and number, and a process that dies is replaced."""

from __future__ import annotations

import asyncio
import os
import time

from pipeplan.web.workers import BusyError, TooSlowError, WorkError, Workers


def double(number):
    return 2 * number


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def die(code):
    os._exit(code)


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


def test_a_process_that_dies_is_replaced():
    dead, next_ = run(answers(Workers(1), (die, 3), (double, 2)))
    assert isinstance(dead, WorkError)
    assert "memory" in str(dead)
    assert next_ == 4


def test_a_lack_of_memory_is_said():
    short, next_ = run(answers(Workers(1), (greedy, 0), (double, 2)))
    assert isinstance(short, WorkError)
    assert next_ == 4


def test_an_error_comes_back_without_ending_the_process():
    wrong, next_ = run(answers(Workers(1), (fail, "why"), (double, 2)))
    assert isinstance(wrong, RuntimeError)
    assert "ValueError: why" in str(wrong)
    assert next_ == 4


def test_too_many_at_once_are_refused():
    found = run(answers(Workers(1, waiting=1), (sleep, 0.3), (double, 1), (double, 2), (double, 3)))
    assert found[:2] == [0.3, 2]
    assert all(isinstance(each, BusyError) for each in found[2:])
