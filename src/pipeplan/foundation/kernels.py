"""Run hot loops as plain Python on lists while a process has little to do, and as machine code once it has much.

A kernel is a plain function over flat arrays, in a file named ``*_kernel.py`` that does not import Numba. Wrapped in
:class:`Kernel`, it runs undecorated on lists (190-290 ns per op) until the process has passed it about three million op
evaluations. From then on it is compiled by Numba (4-11 ns per op), with the machine code cached on disk. So a small job
pays neither for Numba's import (0.3 s) nor for compilation, and both ways have one source.
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
"""Functions that Python calls. The others need no code that converts Python objects."""


class Kernel:
    """A hot loop that runs as plain Python or compiled.

    The function's last parameters are its outputs: arrays that it writes in place. It returns None or a number. Arrays
    and numbers that belong together may be passed as one named tuple. It may call other plain functions: by name, or as
    variables of the function that it is defined in.

    Parameters
    ----------
    function
        The loop, in the subset of Python that Numba compiles.
    compile_after
        Number of op evaluations after which it is compiled: smaller for a loop that usually runs for long.
    """

    def __init__(self, function: Loop, compile_after: int = COMPILE_AFTER) -> None:
        self.function = function
        _ENTRIES.add(function)
        self.compile_after = compile_after
        self.evaluations = 0
        self._compiled: Loop | None = None

    @property
    def is_compiled(self) -> bool:
        """Return whether the next call runs machine code."""
        return self._compiled is not None

    def __call__(self, inputs: Sequence[Argument], outputs: Sequence[Output], *, work: int) -> Any:
        """Run the loop on ``inputs``, writing to ``outputs``; ``work`` is its number of op evaluations."""
        self.evaluations += work
        if self._compiled is not None:
            return run_compiled(self._compiled, inputs, outputs)
        if (self.evaluations >= self.compile_after or _EAGER) and not _LATE:
            # Only one kernel compiles at a time. Waiting here would stop the search that goes on without a late one.
            return self.compile(inputs, outputs)
        return self._run_on_lists(inputs, outputs)

    def compile(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        """Compile the loop for all further calls. Return its result for these arguments, which should need little work."""
        _BEING_COMPILED.add(self)
        try:
            from pipeplan.foundation.numba_internals import folder_of

            loop = compile_loop(self.function)
            with _without_collection():
                answer = run_compiled(loop, inputs, outputs)
            self._compiled = loop
            for compiled in _EAGER:
                compiled.append((self.function.__name__, folder_of(loop)))
            return answer
        finally:
            _BEING_COMPILED.discard(self)

    def _run_on_lists(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        # Python reads items of lists about ten times as fast as those of arrays.
        results = list(map(_as_lists, outputs))
        answer = self.function(*map(_as_lists, inputs), *results)
        for output, result in zip(outputs, results, strict=True):
            _write_back(output, result)
        return answer


_BEING_COMPILED: set[Kernel] = set()

CompiledKernels = list[tuple[str, str | None]]
"""Name of each kernel's function, and the folder with its machine code."""

_EAGER: list[CompiledKernels] = []


@contextmanager
def compiled_at_once() -> Iterator[CompiledKernels]:
    """Compile every kernel at its first call in the block, however little work it has; yield the list of those compiled."""
    compiled: CompiledKernels = []
    _EAGER.append(compiled)
    try:
        yield compiled
    finally:
        _EAGER.pop()


@contextmanager
def _without_collection() -> Iterator[None]:
    """Disable garbage collection, which took a sixth of Numba's compile time: almost all its objects stay."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def run_compiled(loop: Loop, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
    """Run a loop that Numba has compiled."""
    from pipeplan.foundation.numba_internals import packed

    return loop(*map(packed, inputs), *map(packed, outputs))


_LATE: set[Future[Any]] = set()


def go_on_without(compiling: Future[Any]) -> None:
    """Start no compilation until a late kernel is compiled; loops run in the form they have now."""
    _LATE.add(compiling)
    compiling.add_done_callback(_LATE.discard)


def are_being_compiled() -> bool:
    """Return whether a kernel is being compiled or read from disk."""
    return bool(_BEING_COMPILED)


def is_native() -> bool:
    """Return True if kernels run as machine code."""
    return True


def _as_lists(value: Argument) -> Any:
    """Convert arrays to lists, also within named tuples; numbers are unchanged."""
    if isinstance(value, tuple):
        return type(value)(*map(_as_lists, value))
    return value.tolist() if isinstance(value, np.ndarray) else value


def _write_back(output: Output, result: Any) -> None:
    """Copy the lists back into the arrays that they were made from."""
    if isinstance(output, tuple):
        for part, values in zip(output, result, strict=True):
            _write_back(part, values)
    else:
        output[...] = result


def dispatcher(functions: Sequence[Callable[..., Answer]]) -> Callable[..., Answer]:
    """Combine functions of the same signature into one whose first argument selects the function to call.

    A compiled loop cannot pick a function from a table. This function compares numbers instead, and is compiled like any
    other that a loop calls. It compares three numbers per level, because each level is compiled with all levels below it.
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
    """Mark a small function that a loop calls for every op: its code is copied into the loop.

    A call passes every array, which costs more than such a function does. An inlined function cannot be called with
    ``*arguments``.
    """
    vars(function)[_INLINED] = True
    return function


_INLINED = "inlined"

_COMPILING = RLock()


def compile_loop(function: Loop) -> Loop:
    """Compile a function and the plain functions that it calls with Numba: without the GIL, and stored on disk if possible.

    Threads that compile the same function at once wait for each other and get the same result.
    """
    if not isinstance(function, FunctionType):
        raise TypeError(f"cannot compile {function!r}: expected a plain function")
    with _COMPILING:
        return _compiled(function, True)


@cache
def _compiled(function: FunctionType, entry: bool) -> Loop:
    from pipeplan.foundation.numba_internals import compiled_on_disk

    # Compile the functions that it calls, and link them under the names by which it calls them.
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
    """Return the variables of the enclosing function that this one uses, in the order of its cells."""
    cells = (cell.cell_contents for cell in function.__closure__ or ())
    return dict(zip(function.__code__.co_freevars, cells, strict=True))


def _named(function: FunctionType) -> dict[str, Any]:
    """Return the global and enclosing variables that a function names."""
    return {name: function.__globals__.get(name) for name in function.__code__.co_names} | _enclosed(function)


def _called(function: FunctionType) -> dict[str, FunctionType]:
    return {name: helper for name, helper in _named(function).items() if isinstance(helper, FunctionType)}


@cache
def _digest(function: FunctionType) -> str:
    """Return a digest of a function's code, of the constants that it names, and of the functions that it calls.

    Numba only checks the function's own file to see whether a cached function is out of date, but the names may come from
    other files.
    """
    code = function.__code__
    constants = [value for value in _named(function).values() if isinstance(value, int | float)]
    inline = _INLINED in vars(function)
    own = repr((code.co_code, code.co_consts, code.co_names, code.co_varnames, constants, inline))
    # A changed helper changes the digests of all its callers.
    parts = [own, *(_digest(helper) for helper in _called(function).values())]
    return sha256("".join(parts).encode()).hexdigest()[:12]
