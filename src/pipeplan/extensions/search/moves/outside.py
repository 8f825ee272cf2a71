"""Moves from outside the package: compiled at first use; if that fails, annealings by them run as Python."""

from __future__ import annotations

import warnings
from functools import cache
from threading import Lock
from typing import get_args, get_type_hints

from pipeplan.extensions.search.kernels.arrays import OutsideMoves
from pipeplan.extensions.search.moves.move import Move
from pipeplan.foundation.kernels import Kernel, is_native

_COMPILING = Lock()
"""Held while moves are compiled, so that only the first thread of a search compiles them, and warns if that fails."""


def outside_moves(moves: tuple[Move, ...]) -> OutsideMoves:
    """Return the functions of the moves from outside, in the order of the moves."""
    functions = ([getattr(move, name) for move in moves if move.number is None] for name in OutsideMoves._fields)
    return OutsideMoves(*functions)


def run_with(kernel: Kernel, moves: tuple[Move, ...]) -> Kernel:
    """Return the kernel; or one that runs it as Python if it calls moves from outside that cannot be compiled."""
    outside = tuple(move for move in moves if move.number is None)
    if not outside or not is_native():
        return kernel
    with _COMPILING:
        return kernel if _are_compiled(outside) else Kernel(kernel.function, native=False)


@cache
def _are_compiled(moves: tuple[Move, ...]) -> bool:
    """Compile moves from outside. Return False, with a warning that says why, if that fails."""
    from pipeplan.foundation.kernels.functions import CompilerError, KernelError, compile_functions

    types = get_type_hints(OutsideMoves)
    try:
        compile_functions(
            [
                (function, *get_args(types[name]))
                for name, row in zip(OutsideMoves._fields, outside_moves(moves), strict=True)
                for function in row
            ]
        )
    except (CompilerError, KernelError, OSError) as error:
        names = ", ".join(move.name for move in moves)
        message = f"annealings by these moves run as Python, many times slower: {names}; {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return False
    return True
