"""Runs the hot loops: as plain Python on lists while a process has little to do, compiled once it has much.

A kernel is a plain function over flat arrays, in a file named ``*_kernel.py`` that does not import Numba. Wrapped in
:class:`Kernel`, it runs undecorated on lists (190-290 ns an op) until the process has given it about three million op
evaluations; from then on it is compiled by Numba (4-11 ns an op), with the machine code cached on disk. So a small job
pays neither Numba's import (0.3 s) nor compilation, and there is one source.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from threading import RLock
from types import CellType, FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

COMPILE_AFTER = 3_000_000
"""Op evaluations after which compiling a kernel has paid for itself."""

Argument = NDArray[Any] | int | float | tuple["Argument", ...]
Output = NDArray[Any] | tuple["Output", ...]
Loop = Callable[..., Any]
Answer = TypeVar("Answer")
Function = TypeVar("Function", bound=Callable[..., Any])


_ENTRIES: set[Loop] = set()
"""Functions that Python calls: the others need no code that takes Python's objects apart."""


class Kernel:
    """A hot loop with two ways to run it.

    The function's last parameters are its outputs: arrays that it writes in place. It returns None or a number. Arrays
    and numbers that belong together may be passed as one named tuple. It may call other plain functions: by name, or as
    variables of the function that it is defined in.

    Parameters
    ----------
    function
        The loop, in the subset of Python that Numba compiles.
    compile_after
        Op evaluations after which it is compiled: less for loops that are rarely run only a little.
    """

    def __init__(self, function: Loop, compile_after: int = COMPILE_AFTER) -> None:
        self.function = function
        _ENTRIES.add(function)
        self.compile_after = compile_after
        self.evaluations = 0
        self._compiled: Loop | None = None

    @property
    def is_compiled(self) -> bool:
        """Whether the next run is that of machine code."""
        return self._compiled is not None

    def __call__(self, inputs: Sequence[Argument], outputs: Sequence[Output], *, work: int) -> Any:
        """Run the loop over ``inputs`` into ``outputs``; ``work`` is the number of op evaluations it takes."""
        self.evaluations += work
        if self._compiled is not None:
            return run_compiled(self._compiled, inputs, outputs)
        if self.evaluations >= self.compile_after and not _LATE:
            # One is compiled at a time: waiting for a late one would stop the search that goes on without it.
            return self.compile(inputs, outputs)
        return self._run_on_lists(inputs, outputs)

    def compile(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        """Be compiled from now on, and give what the call with these arguments does, which should ask for little work."""
        _BEING_COMPILED.append(self)
        try:
            loop = compile_loop(self.function)
            with _without_collection():
                answer = run_compiled(loop, inputs, outputs)
            self._compiled = loop
            return answer
        finally:
            _BEING_COMPILED.remove(self)

    def _run_on_lists(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        results = [_as_lists(output) for output in outputs]
        answer = self.function(*(_as_lists(value) for value in inputs), *results)
        for output, result in zip(outputs, results, strict=True):
            _write_back(output, result)
        return answer


_BEING_COMPILED: list[Kernel] = []


@contextmanager
def _without_collection() -> Iterator[None]:
    """Collect no garbage meanwhile: Numba makes millions of objects that stay, and a sixth of its time went into these."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def run_compiled(loop: Loop, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
    """Run a loop that Numba has compiled."""
    from pipeplan.kernel_tuples import packed

    return loop(*map(packed, inputs), *map(packed, outputs))


_LATE: set[Future[Any]] = set()


def go_on_without(compiling: Future[Any]) -> None:
    """Run every loop as it is, plain Python or compiled, until a kernel that is late has been compiled."""
    _LATE.add(compiling)
    compiling.add_done_callback(_LATE.discard)


def are_being_compiled() -> bool:
    """Whether any kernel is being compiled, or read from disk, at this moment."""
    return bool(_BEING_COMPILED)


def _as_lists(value: Argument) -> Any:
    """An array as a list, a named tuple of arrays (or of such tuples) as one of lists, a number as it is."""
    if isinstance(value, tuple):
        return type(value)(*map(_as_lists, value))
    return value.tolist() if isinstance(value, np.ndarray) else value


def _write_back(output: Output, result: Any) -> None:
    """Write lists into the arrays that they were."""
    if isinstance(output, tuple):
        for part, values in zip(output, result, strict=True):
            _write_back(part, values)
    else:
        output[...] = result


def dispatcher(functions: Sequence[Callable[..., Answer]]) -> Callable[..., Answer]:
    """One function for several of the same signature: its first argument says which of them is called with the others.

    Loops cannot pick a function from a table once they are compiled. This one compares, and is compiled like any function
    that a loop calls; it has few levels, since each is compiled with all that is below it.
    """
    if len(functions) == 1:
        (only,) = functions

        def call_only(_which: int, *arguments: Any) -> Answer:
            return only(*arguments)

        return call_only
    first, second = functions[:2]
    if len(functions) == 2:

        def call_one_of_two(which: int, *arguments: Any) -> Answer:
            if which == 0:
                return first(*arguments)
            return second(*arguments)

        return call_one_of_two
    third, others = functions[2], dispatcher(functions[3:] or functions[2:])

    def call(which: int, *arguments: Any) -> Answer:
        if which == 0:
            return first(*arguments)
        if which == 1:
            return second(*arguments)
        if which == 2:
            return third(*arguments)
        return others(which - 3, *arguments)

    return call


def inlined(function: Function) -> Function:
    """Mark a function that a loop calls for every op: it is compiled into the loop, as if its code stood there.

    A call hands on every array of every tuple, which costs more than such a function does. It may then not be called with
    ``*arguments``.
    """
    vars(function)[_INLINED] = True
    return function


_INLINED = "inlined"

_COMPILING = RLock()


def compile_loop(function: Loop) -> Loop:
    """``function`` compiled by Numba, with the plain functions that it calls: without the GIL, kept on disk where it can be.

    Threads that ask for one function at once wait, and get the same.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"only plain functions are compiled, not {function!r}")
    with _COMPILING:
        return _compiled(function, True)


@cache
def _compiled(function: FunctionType, entry: bool) -> Loop:
    from pipeplan.kernel_cache import compiled_on_disk

    helpers = {name: _compiled(helper, helper in _ENTRIES) for name, helper in _called(function).items()}
    linked = FunctionType(
        function.__code__,
        function.__globals__ | helpers,
        function.__name__,
        function.__defaults__,
        tuple(CellType(helpers.get(name, value)) for name, value in _enclosed(function).items()),
    )
    linked.__qualname__ = f"{function.__name__}-{_digest(function)}{'' if entry else '-part'}"
    return compiled_on_disk(linked, inline=_INLINED in vars(function), entry=entry)


def _enclosed(function: FunctionType) -> dict[str, Any]:
    """The variables of the function that this one is defined in, in the order in which it keeps them."""
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def _named(function: FunctionType) -> dict[str, Any]:
    """What a function names: globals, and variables of the function that it is defined in."""
    return {name: function.__globals__.get(name) for name in function.__code__.co_names} | _enclosed(function)


def _called(function: FunctionType) -> dict[str, FunctionType]:
    """The plain functions that a function calls."""
    return {name: helper for name, helper in _named(function).items() if isinstance(helper, FunctionType)}


@cache
def _digest(function: FunctionType) -> str:
    """Changes when the code of a function, a constant that it names, or a function that it calls does.

    Numba sees that a cached function is out of date by its own file alone, and what it names may stand in another.
    """
    code = function.__code__
    constants = [value for value in _named(function).values() if isinstance(value, int | float)]
    inline = _INLINED in vars(function)
    own = repr((code.co_code, code.co_consts, code.co_names, code.co_varnames, constants, inline))
    parts = [own, *(_digest(helper) for helper in _called(function).values())]
    return sha256("".join(parts).encode()).hexdigest()[:12]
