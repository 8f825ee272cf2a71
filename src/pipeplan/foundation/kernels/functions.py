"""Compile functions from outside the package, so that kernels can call them from a row of functions."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from inspect import formatannotation
from pathlib import Path
from typing import Any, get_args, get_type_hints

from pipeplan.foundation.compiling.compiler import CompilerError, compiled_once
from pipeplan.foundation.compiling.writer import KernelError, write_functions
from pipeplan.foundation.kernels.library import ADDRESSES, SOURCE, open_library

__all__ = ["CompilerError", "KernelError", "compile_functions"]


def compile_functions(functions: Sequence[tuple[Callable[..., Any], Any]]) -> None:
    """Compile functions, or load them from the user's cache folder, so that kernels can call them.

    Parameters
    ----------
    functions
        Each function with its type: the ``Callable`` in the annotation of the row of functions.

    Raises
    ------
    KernelError
        For a function outside the part of Python that kernels may use, with other annotations than its type, or not defined
        at the top level of a file.
    CompilerError
        If there is no compiler, the compiler fails, or other users can write to the cache folder.
    OSError
        If the library cannot be loaded.
    """
    sources = {
        f"function{number}": (function.__module__, _file_of(function), function.__name__)
        for number, (function, _) in enumerate(functions)
    }
    text = write_functions(sources, SOURCE)
    for function, type_ in functions:
        _require_type(function, type_)
    # ctypes never unloads a library, so the addresses stay valid.
    native = open_library(compiled_once(text))
    for name, (function, _) in zip(sources, functions, strict=True):
        ADDRESSES[function] = ctypes.cast(native[name], ctypes.c_void_p).value or 0


def _file_of(function: Callable[..., Any]) -> Path:
    """Return the file that defines a function. Raises KernelError if its current text no longer defines this function."""
    code = getattr(function, "__code__", None)
    path, line = (Path(code.co_filename), code.co_firstlineno) if code else (Path("unknown"), 1)
    remedy = "define it with def at the top level of a file, and start Python again after a change"
    try:
        compiled = compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError):
        raise KernelError(path, line, f"{function!r} cannot be read from a file: {remedy}") from None
    if code not in compiled.co_consts:
        raise KernelError(path, line, f"{function!r} is not what this file defines: {remedy}")
    return path


def _require_type(function: Callable[..., Any], type_: Any) -> None:
    """Raise KernelError unless a function has the annotations of a ``Callable``: kernels call it without a check."""
    takes, returns = get_args(type_)
    expected = [*takes, type(None) if returns is None else returns]
    try:
        hints = get_type_hints(function)
    except NameError as error:
        raise _error(function, f"{error}: import it at the top level") from None
    if len(hints) != len(expected):
        raise _error(function, f"{function.__name__} has {len(hints) - 1} parameters: expected {len(expected) - 1}")
    for (name, hint), right in zip(hints.items(), expected, strict=True):
        if hint != right:
            message = f"{name} is annotated with {formatannotation(hint)}: expected {formatannotation(right)}"
            raise _error(function, message)


def _error(function: Callable[..., Any], message: str) -> KernelError:
    return KernelError(Path(function.__code__.co_filename), function.__code__.co_firstlineno, message)
