"""A call of every entry of the library of kernels, with the arguments that pipeplan passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

import pipeplan
from pipeplan.extensions.search import search
from pipeplan.extensions.search.layouts.order import OrderGraph
from pipeplan.foundation.kernels import Kernel
from pipeplan.foundation.kernels.library import NativeEntry
from pipeplan.strategies import Shape
from pipeplan.strategies.controllable_memory import build_v_min
from tests.torture.schedules.evaluations import moved
from tests.torture.schedules.problems import long_problem, random_problem

Arguments = tuple[tuple[Any, ...], tuple[Any, ...]]


@dataclass(frozen=True)
class Call:
    """An entry and the inputs and outputs of a call, as they were before it."""

    entry: NativeEntry
    arguments: Arguments

    def values(self) -> list[Any]:
        """Return arrays, numbers and lists of functions in the order of the entry's leaves."""
        return list(_leaves(self.arguments))

    def with_value(self, place: int, value: Any) -> Arguments:
        """Return copies of the arguments, but another value at the place of a leaf."""
        values = [_copied(each) for each in self.values()]
        values[place] = value
        inputs, outputs = _rebuilt(self.arguments, iter(values))
        return inputs, outputs


def recorded_calls() -> list[Call]:
    """Return a call of each entry, and another one wherever other arrays are empty."""
    calls: dict[tuple[Any, ...], Call] = {}
    run = Kernel.__call__

    def record(kernel: Kernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        assert kernel.entry is not None
        arguments = (tuple(inputs), tuple(outputs))
        empty = tuple(isinstance(value, np.ndarray) and not value.size for value in _leaves(arguments))
        key = (kernel.entry.name, empty)
        if key not in calls:
            calls[key] = Call(kernel.entry, _rebuilt(arguments, map(_copied, list(_leaves(arguments)))))
        return run(kernel, inputs, outputs)

    with patch.object(Kernel, "__call__", record):
        _simulate()
        _search()
    return list(calls.values())


def _simulate() -> None:
    shape: dict[str, Any] = {"ranks": 3, "microbatches": 6, "p2p_time": 0.1}
    for communication in ("edge", "contended", "streams", "blocking"):
        pipeplan.simulate("1f1b", communication=communication, **shape)
    pipeplan.explain("1f1b", ranks=2, microbatch_factors=[1.0, 2.0, 3.0, 1.0])
    build_v_min(Shape(3, 4))
    OrderGraph(pipeplan.simulate("1f1b", ranks=3, microbatches=6).schedule).path(np.ones((3, 3)))


def _search() -> None:
    for seed in range(12):
        search(random_problem(Random(seed)), evaluations=300)
    search(replace(random_problem(Random(3)), communication="streams"), evaluations=400)
    moved(Random(0), long_problem(Random(0)), locally=True)


def _leaves(value: Any) -> Iterator[Any]:
    """Yield arrays, numbers and lists of functions within tuples."""
    if isinstance(value, tuple):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _rebuilt(shape: Any, values: Iterator[Any]) -> Any:
    """Return tuples as in ``shape``, with other values."""
    if not isinstance(shape, tuple):
        return next(values)
    parts = [_rebuilt(part, values) for part in shape]
    return type(shape)(*parts) if hasattr(shape, "_fields") else tuple(parts)
