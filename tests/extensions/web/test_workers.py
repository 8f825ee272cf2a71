"""Work in processes is bounded in time and number, and a process that dies takes no other request with it."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest

pytest.importorskip("pebble", reason="the web app needs the extra 'web'")

from pipeplan.extensions.web.workers import BusyError, TooSlowError, WorkError, Workers
from pipeplan.foundation.errors import InputError


def double(number):
    return 2 * number


def sleep(seconds):
    time.sleep(seconds)
    return seconds


def die(code):
    os._exit(code)


def tell_and_die(code, tell):
    tell(b"one")
    os._exit(code)


def tell_and_sleep(seconds, tell):
    tell(b"one")
    time.sleep(seconds)


def tell_slowly(count, tell):
    for number in range(count):
        tell(str(number).encode())
        time.sleep(0.05)


def tell_and_fail(error, tell):
    tell(str(os.getpid()).encode())
    raise error


def tell_process(_, tell):
    tell(str(os.getpid()).encode())


def fail(message):
    raise ValueError(message)


def exhaust(_):
    raise MemoryError


async def answers(workers, *calls):
    try:
        return await asyncio.gather(*(workers.ask(work, argument) for work, argument in calls), return_exceptions=True)
    finally:
        workers.end()


def test_work_that_fails_is_refused_and_the_next_is_done():
    """In one process after the other: by a time limit, a process that dies, too little memory, and an error."""
    failing = [
        (sleep, 60, TooSlowError, "more than 3 seconds"),
        (die, 3, WorkError, "probably out of memory"),
        (exhaust, 0, WorkError, "probably out of memory"),
        (fail, "why", ValueError, "why"),
    ]
    calls = [call for work, argument, *_ in failing for call in ((work, argument), (double, 2))]
    results = asyncio.run(answers(Workers(1, seconds=3), *calls))
    for (_, _, error, message), refused, done in zip(failing, results[::2], results[1::2], strict=True):
        assert isinstance(refused, error)
        assert message in str(refused)
        assert done == 4


def test_cancelling_ends_the_work():
    async def cancelled():
        workers = Workers(1)
        try:
            await workers.start(double, 1)
            request = asyncio.create_task(workers.ask(sleep, 600))
            await asyncio.sleep(0.2)
            request.cancel()
            return await asyncio.wait_for(workers.ask(double, 2), 60)
        finally:
            workers.end()

    assert asyncio.run(cancelled()) == 4


def test_too_many_at_once_are_refused():
    first, second, third, fourth = asyncio.run(
        answers(Workers(1, waiting=1), (sleep, 0.3), (double, 1), (double, 2), (double, 3))
    )
    assert (first, second) == (0.3, 2)
    assert isinstance(third, BusyError)
    assert isinstance(fourth, BusyError)


def test_a_stream_that_ends_early_says_so():
    async def streamed():
        workers = Workers(1, seconds=3)
        for work, argument, error in ((tell_and_die, 3, WorkError), (tell_and_sleep, 600, TooSlowError)):
            parts = workers.stream(work, argument)
            assert await anext(parts) == b"one"
            with pytest.raises(error):
                await anext(parts)

    asyncio.run(streamed())


def with_one_worker(scenario):
    """Run a coroutine function with one worker."""

    async def run():
        workers = Workers(1)
        try:
            return await scenario(workers)
        finally:
            workers.end()

    return asyncio.run(run())


async def parts_of(workers, work, argument):
    return [part async for part in workers.stream(work, argument)]


def test_who_stops_listening_ends_the_work_and_the_next_is_done():
    async def scenario(workers):
        first = workers.stream(tell_slowly, 400)
        part = await anext(first)
        await first.aclose()
        return part, await parts_of(workers, tell_slowly, 3)

    assert with_one_worker(scenario) == (b"0", [b"0", b"1", b"2"])


def test_a_process_tells_the_next_answer_unless_it_died_or_failed():
    async def scenario(workers):
        (first,) = await parts_of(workers, tell_process, None)
        for error, raised in ((InputError("wrong", field="x"), InputError), (ValueError("why"), RuntimeError)):
            stream = workers.stream(tell_and_fail, error)
            assert await anext(stream) == first
            with pytest.raises(raised, match=str(error)):
                await anext(stream)
        (second,) = await parts_of(workers, tell_process, None)
        os.kill(int(second), signal.SIGKILL)
        os.waitid(os.P_PID, int(second), os.WEXITED | os.WNOWAIT)
        (third,) = await parts_of(workers, tell_process, None)
        return first, second, third

    assert len(set(with_one_worker(scenario))) == 3
