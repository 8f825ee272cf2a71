"""A server of the web app on a free port, in a thread of this process, which also does the work of requests."""

from __future__ import annotations

import asyncio
import faulthandler
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the web app needs the extra 'web'")
pytest.importorskip("httpx", reason="the web app is tested with the package 'httpx'")

import uvicorn

from pipeplan.extensions.web.app import create_app
from pipeplan.extensions.web.server import listen
from pipeplan.extensions.web.workers import Workers


class InThreads(Workers):
    """Does the work in threads, which load nothing again; what processes would be sent is pickled all the same.

    Work that its client has given up goes on, where a process would be killed; the server does not wait for it to end.
    """

    async def ask(self, work: Any, argument: object) -> Any:
        work, argument = pickle.loads(pickle.dumps((work, argument)))
        told: Future[Any] = Future()
        told.set_running_or_notify_cancel()
        threading.Thread(target=_do, args=(work, argument, told), daemon=True).start()
        return await asyncio.wrap_future(told)


def _do(work: Any, argument: object, told: Future[Any]) -> None:
    """Do some work, and tell a copy of its answer or of its error; an answer that cannot be copied is an error, too."""
    try:
        answer = pickle.loads(pickle.dumps(work(argument)))
    except Exception as error:
        told.set_exception(pickle.loads(pickle.dumps(error)))
    else:
        told.set_result(answer)


@contextmanager
def running(workers: Workers | None = None, port: int = 0) -> Iterator[str]:
    """The address of a server that runs as long as the block.

    A server that has not ended 30 seconds after the block only prints what its threads do: on a loaded machine that is no
    fault of a test. That ``pipeplan serve`` ends when it is told to is tested in ``test_server.py``.
    """
    with listen("127.0.0.1", port) as listener:
        config = uvicorn.Config(
            create_app(workers=workers or InThreads()),
            http="h11",
            log_level="error",
            ws="none",
            timeout_graceful_shutdown=3,  # a page of the browser may still wait for a plan
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            deadline = time.monotonic() + 60
            while not server.started:
                assert thread.is_alive(), "the server ended"
                assert time.monotonic() < deadline, "the server did not start"
                time.sleep(0.02)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=30)
            if thread.is_alive():
                faulthandler.dump_traceback(all_threads=True)
