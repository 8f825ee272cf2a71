"""Honest requests, whose figures must be those of the Python API."""

from __future__ import annotations

import json
import time
from functools import cache
from typing import Any

import pipeplan
from tests.torture.suite import Found
from tests.torture.web.judging import judged
from tests.torture.web.wire import PATIENCE, Wire, request

SHAPES: tuple[dict[str, Any], ...] = (
    {"ranks": 2, "microbatches": 4},
    {"ranks": 4, "microbatches": 8, "forward_times": 1.5},
    {"ranks": 4, "microbatches": 6, "forward_times": 1.0, "backward_times": 2.5, "p2p_time": 0.1},
    {"ranks": 3, "microbatches": 5, "memory_limit": "2act"},
)
NAMES = ("1f1b", "gpipe", "zb-h1")


@cache
def _known(shape: int) -> dict[str, tuple[float, float | None]]:
    """Makespan and bound of each schedule, from Python."""
    found = pipeplan.compare(*NAMES, **SHAPES[shape])
    return {each.name: (each.to_dict()["makespan"], each.to_dict()["lower_bound"]) for each in found}


def asked(shape: int) -> bytes:
    """The request for a shape."""
    return request("POST", "/api/compare", json.dumps({"settings": SHAPES[shape], "schedules": NAMES}).encode())


def require_right(port: int, number: int, seconds: float = PATIENCE, tries: int = 3) -> None:
    """Ask for one of the shapes, again where the server has too much to do, as often as ``tries`` says.

    Raises Found where its figures are not Python's.
    """
    shape = number % len(SHAPES)
    with Wire(port, seconds=seconds) as wire:
        wire.send(asked(shape))
        try:
            answer = wire.answer()
        except TimeoutError:
            raise Found(f"an honest request is not answered within {seconds:g} s") from None
    word = judged(answer, "an honest request")
    assert answer is not None
    if word == "busy" and tries > 1:
        time.sleep(float(answer.header("retry-after")))
        require_right(port, number, seconds, tries - 1)
        return
    if word != "answered":
        raise Found(f"an honest request is refused: status {answer.status}: {answer.body[:300]!r}")
    results = {each["schedule"]: (each["makespan"], each["lower_bound"]) for each in answer.json()["results"]}
    if results != _known(shape):
        raise Found(f"an honest request is answered {results}, and Python says {_known(shape)}")
