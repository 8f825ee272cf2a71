"""Runs the hot loops: as plain Python on lists while a process has little to do, compiled once it has much.

A kernel is a plain function over flat arrays, in a file named ``*_kernel.py`` that does not import Numba. Wrapped in
:class:`Kernel`, it runs undecorated on lists (190-290 ns an op) until the process has given it about three million op
evaluations; from then on it is compiled by Numba (4-11 ns an op), with the machine code cached on disk. So a small job
pays neither Numba's import (0.3 s) nor compilation, and there is one source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from threading import RLock
from types import FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

COMPILE_AFTER = 3_000_000
"""Op evaluations after which compiling a kernel has paid for itself."""

Argument = NDArray[Any] | int | float | tuple[NDArray[Any], ...]
Output = NDArray[Any] | tuple[NDArray[Any], ...]
Loop = Callable[..., Any]


class Kernel:
    """A hot loop with two ways to run it.

    The function's last parameters are its outputs: arrays that it writes in place. It returns None or a number. Arrays
    that belong together may be passed as one named tuple. It may call other plain functions by name.

    Parameters
    ----------
    function
        The loop, in the subset of Python that Numba compiles.
    compile_after
        Op evaluations after which it is compiled: less for loops that are rarely run only a little.
    """

    def __init__(self, function: Loop, compile_after: int = COMPILE_AFTER) -> None:
        self.function = function
        self.compile_after = compile_after
        self.evaluations = 0
        self._compiled: Loop | None = None

    def __call__(self, inputs: Sequence[Argument], outputs: Sequence[Output], *, work: int) -> Any:
        """Run the loop over ``inputs`` into ``outputs``; ``work`` is the number of op evaluations it takes."""
        self.evaluations += work
        if self._compiled is None and self.evaluations >= self.compile_after:
            self._compiled = compile_loop(self.function)
        if self._compiled is not None:
            return self._compiled(*inputs, *outputs)
        return self._run_on_lists(inputs, outputs)

    def compile(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> None:
        """Be compiled from now on; the call that this takes is made with these arguments, which should ask for no work."""
        self._compiled = compile_loop(self.function)
        self._compiled(*inputs, *outputs)

    def _run_on_lists(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        results = [_as_lists(output) for output in outputs]
        answer = self.function(*(_as_lists(value) for value in inputs), *results)
        for output, result in zip(outputs, results, strict=True):
            if isinstance(output, tuple):
                for array, values in zip(output, result, strict=True):
                    array[...] = values
            else:
                output[...] = result
        return answer


def _as_lists(value: Argument) -> Any:
    """An array as a list, a named tuple of arrays as one of lists, a number as it is."""
    if isinstance(value, tuple):
        return type(value)(*(array.tolist() for array in value))
    return value.tolist() if isinstance(value, np.ndarray) else value


_COMPILING = RLock()


def compile_loop(function: Loop) -> Loop:
    """``function`` compiled by Numba, with the plain functions that it calls: without the GIL, kept on disk where it can be.

    Threads that ask for one function at once wait, and get the same.
    """
    with _COMPILING:
        return _compiled(function)


@cache
def _compiled(function: Loop) -> Loop:
    from numba import njit

    from pipeplan.kernel_cache import keep_on_disk

    helpers = {name: compile_loop(helper) for name, helper in _called(function).items()}
    linked = FunctionType(function.__code__, function.__globals__ | helpers, function.__name__, function.__defaults__)
    linked.__qualname__ = f"{function.__name__}-{_digest(function)}"
    compiled: Loop = njit(nogil=True)(linked)
    keep_on_disk(compiled, linked)
    return compiled


def _called(function: Loop) -> dict[str, FunctionType]:
    """The plain functions that a function calls by name."""
    known = {name: function.__globals__.get(name) for name in function.__code__.co_names}
    return {name: helper for name, helper in known.items() if isinstance(helper, FunctionType)}


@cache
def _digest(function: Loop) -> str:
    """Changes when the code of a function, a constant that it names, or a function that it calls does.

    Numba sees that a cached function is out of date by its own file alone, and what it names may stand in another.
    """
    code = function.__code__
    named = [function.__globals__.get(name) for name in code.co_names]
    constants = [value for value in named if isinstance(value, int | float)]
    own = repr((code.co_code, code.co_consts, code.co_names, code.co_varnames, constants))
    parts = [own, *(_digest(helper) for helper in _called(function).values())]
    return sha256("".join(parts).encode()).hexdigest()[:12]
