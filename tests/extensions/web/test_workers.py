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


async def answers(workers, *questions):
    try:
        return await asyncio.gather(
            *(workers.ask(work, argument) for work, argument in questions), return_exceptions=True
        )
    finally:
        workers.end()


def test_work_is_done():
    assert asyncio.run(answers(Workers(1), (double, 2), (double, 3))) == [4, 6]


@pytest.mark.parametrize(
    ("work", "argument", "error", "message"),
    [
        (sleep, 60, TooSlowError, "more than 3 seconds"),
        (die, 3, WorkError, "probably out of memory"),
        (exhaust, 0, WorkError, "probably out of memory"),
        (fail, "why", ValueError, "why"),
    ],
)
def test_work_that_fails_is_refused_and_the_next_is_done(work, argument, error, message):
    first, then = asyncio.run(answers(Workers(1, seconds=3), (work, argument), (double, 2)))
    assert isinstance(first, error)
    assert message in str(first)
    assert then == 4


def test_cancelling_ends_the_work():
    async def cancelled():
        workers = Workers(1)
        try:
            await workers.start(double, 1)
            asking = asyncio.create_task(workers.ask(sleep, 600))
            await asyncio.sleep(0.2)
            asking.cancel()
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


@pytest.mark.parametrize(
    ("work", "argument", "error"), [(tell_and_die, 3, WorkError), (tell_and_sleep, 600, TooSlowError)]
)
def test_a_stream_that_ends_early_says_so(work, argument, error):
    async def told():
        parts = Workers(1, seconds=3).stream(work, argument)
        assert await anext(parts) == b"one"
        with pytest.raises(error):
            await anext(parts)

    asyncio.run(told())


def telling(tell):
    """Run a coroutine with one worker."""

    async def told():
        workers = Workers(1)
        try:
            return await tell(workers)
        finally:
            workers.end()

    return asyncio.run(told())


async def parts_of(workers, work, argument):
    return [part async for part in workers.stream(work, argument)]


def test_who_stops_listening_ends_the_work_and_the_next_is_done():
    async def told(workers):
        first = workers.stream(tell_slowly, 400)
        part = await anext(first)
        await first.aclose()
        return part, await parts_of(workers, tell_slowly, 3)

    assert telling(told) == (b"0", [b"0", b"1", b"2"])


def test_a_process_tells_the_next_answer_unless_it_died_or_failed():
    async def told(workers):
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

    assert len(set(telling(told))) == 3
