"""Functions from outside, compiled with the compiler of this machine for kernels that call them from a row of functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pipeplan.foundation.kernels.compiler import CompilerError, compiled_once
from pipeplan.foundation.kernels.library import ADDRESSES, SOURCE
from pipeplan.foundation.kernels.writer import KernelError, write_functions

__all__ = ["CompilerError", "KernelError", "compile_functions"]

_LIBRARIES: list[ctypes.CDLL] = []
"""Libraries of such functions, which stay as long as their addresses."""


def compile_functions(functions: Sequence[Callable[..., Any]]) -> None:
    """Compile functions, or find them compiled in the user's cache folder, so that kernels can call them.

    Raises
    ------
    KernelError
        For a function that uses what kernels may not use.
    CompilerError
        If there is no compiler, or it fails.
    OSError
        If a file cannot be read, or the library not be loaded.
    """
    sources = {
        f"function{number}": (function.__module__, Path(function.__code__.co_filename), function.__name__)
        for number, function in enumerate(functions)
    }
    native = ctypes.CDLL(str(compiled_once(write_functions(sources, SOURCE))))
    _LIBRARIES.append(native)
    for name, function in zip(sources, functions, strict=True):
        ADDRESSES[function] = ctypes.cast(native[name], ctypes.c_void_p).value or 0
