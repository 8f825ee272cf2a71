"""Moves from outside: their functions are compiled where they are used; else annealings by them run as Python."""

from __future__ import annotations

import warnings
from functools import cache

from pipeplan.extensions.search.kernels.arrays import OutsideMoves
from pipeplan.extensions.search.moves.move import Move
from pipeplan.foundation.kernels import Kernel, is_native


def outside_moves(moves: tuple[Move, ...]) -> OutsideMoves:
    """Return the functions of the moves that have no number."""
    functions = ([getattr(move, name) for move in moves if move.number is None] for name in OutsideMoves._fields)
    return OutsideMoves(*functions)


def run_with(kernel: Kernel, moves: tuple[Move, ...]) -> Kernel:
    """Return what runs a kernel by these moves: the kernel, or Python if moves from outside cannot be compiled."""
    outside = tuple(move for move in moves if move.number is None)
    return kernel if not outside or not is_native() or _are_compiled(outside) else Kernel(kernel.function, native=False)


@cache
def _are_compiled(moves: tuple[Move, ...]) -> bool:
    """Return True if moves could be compiled; if not, a warning says why."""
    from pipeplan.foundation.kernels.functions import CompilerError, KernelError, compile_functions

    try:
        compile_functions([function for row in outside_moves(moves) for function in row])
    except (CompilerError, KernelError, OSError) as error:
        names = ", ".join(move.name for move in moves)
        message = f"annealings by these moves run as Python, many times as slowly: {names}; {error}"
        warnings.warn(message, RuntimeWarning, stacklevel=2)
        return False
    return True
