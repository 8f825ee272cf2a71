"""The loops whose steps are moves, as kernels: one for each set of moves, and for each way of timing."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from pipeplan.kernels import Kernel, dispatcher
from pipeplan.solver.kernels.arrays import SEARCH_COMPILES_AFTER
from pipeplan.solver.kernels.timing_kernel import evaluate
from pipeplan.solver.kernels.wide_kernel import evaluate_wide
from pipeplan.solver.moves import Move

LoopBy = Callable[..., Callable[..., object]]
"""Makes a loop of a way of timing, and of what proposes, applies and undoes the move of a number."""


@cache
def kernel_by(loop_by: LoopBy, moves: tuple[Move, ...], *, wide: bool = False) -> Kernel:
    """The kernel of a loop that steps by these moves, through the candidates of a wide problem or of another."""
    propose = dispatcher([move.propose for move in moves])
    apply = dispatcher([move.apply for move in moves])
    undo = dispatcher([move.undo for move in moves])
    return Kernel(loop_by(evaluate_wide if wide else evaluate, propose, apply, undo), SEARCH_COMPILES_AFTER)
