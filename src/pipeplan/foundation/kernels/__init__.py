"""Kernels: hot loops in a subset of Python, which run as machine code if their library is installed.

A kernel is a plain function over numbers and flat arrays, in a file named ``*_kernel.py``. A build writes all of them as one
C file (:mod:`~pipeplan.foundation.compiling.writer`) and compiles it to a library, which is loaded at the first call
(:mod:`~pipeplan.foundation.kernels.library`). Without a library, or with ``PIPEPLAN_PURE_PYTHON=1`` in the environment, the
same functions run as Python on lists: with the same results, but 10 to 100 times slower.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from pipeplan.foundation.kernels.library import Argument, NativeEntry, Output, entry_of, loaded_library

__all__ = ["Argument", "Kernel", "Output", "inlined", "is_native"]

Function = TypeVar("Function", bound=Callable[..., Any])


class Kernel:
    """A hot loop that runs as machine code or as plain Python.

    The function's last parameters are its outputs: arrays that it writes in place, or named tuples of them. It returns None
    or a number. Arrays and numbers that belong together are passed as one named tuple.

    Parameters
    ----------
    function
        The loop, in the part of Python that kernels may use (``docs/explanation/kernels.md``).
    native
        False to run it as Python in any case.
    """

    def __init__(self, function: Callable[..., Any], *, native: bool = True) -> None:
        self.function = function
        self._native = native

    @cached_property
    def entry(self) -> NativeEntry | None:
        """Function of the library for the loop; None if the loop runs as Python."""
        return entry_of(self.function) if self._native else None

    @property
    def is_compiled(self) -> bool:
        """True if the loop runs as machine code."""
        return self.entry is not None

    def __call__(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        """Run the loop on ``inputs``, writing to ``outputs``; return what it returns.

        Machine code does not check what arrays contain: indices in them must be valid for the arrays that they index. Pass
        no array twice.

        Raises
        ------
        TypeError
            As machine code only: for a wrong number of arguments, or one of another type than its annotation.
        ValueError
            As machine code only: for an array whose length differs from the shape in its annotation.
        """
        return self.in_python(inputs, outputs) if self.entry is None else self.entry(inputs, outputs)

    def in_python(self, inputs: Sequence[Argument], outputs: Sequence[Output]) -> Any:
        """Run the loop as plain Python."""
        # Python reads items of lists about ten times as fast as those of arrays.
        results = list(map(_as_lists, outputs))
        answer = self.function(*map(_as_lists, inputs), *results)
        for output, result in zip(outputs, results, strict=True):
            _write_back(output, result)
        return answer


def inlined(function: Function) -> Function:
    """Mark a small function that a loop calls for every op: its code is copied into the loop."""
    return function


def is_native() -> bool:
    """Return True if kernels run as machine code."""
    return loaded_library() is not None


def _as_lists(value: Argument) -> Any:
    """Convert arrays to lists, also within named tuples; numbers and functions are unchanged."""
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
