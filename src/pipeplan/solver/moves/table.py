"""The moves of the search, in one table."""

from __future__ import annotations

from pipeplan.solver.moves import forced_weight_kernel as forced_weight
from pipeplan.solver.moves import full_backward_kernel as full_backward
from pipeplan.solver.moves import pair_kernel as pair
from pipeplan.solver.moves import shift_kernel as shift
from pipeplan.solver.moves.move import Move

MOVES: tuple[Move, ...] = (
    Move(
        name="force a weight backward",
        weight=3,
        propose=forced_weight.propose,
        apply=forced_weight.apply,
        undo=forced_weight.undo,
    ),
    Move(name="shift an op", weight=7, propose=shift.propose, apply=shift.apply, undo=shift.undo),
    Move(name="shift on stages", weight=3, propose=shift.propose_stages, apply=shift.apply, undo=shift.undo),
    Move(
        name="shift on stages and microbatches",
        weight=3,
        propose=shift.propose_microbatches,
        apply=shift.apply,
        undo=shift.undo,
    ),
    Move(
        name="overlap a pair",
        weight=3,
        propose=pair.propose,
        apply=pair.apply,
        undo=pair.undo,
        can_gain=lambda encoder: encoder.overlaps,
    ),
    Move(
        name="make backwards full",
        weight=3,
        propose=full_backward.propose,
        apply=full_backward.apply,
        undo=full_backward.undo,
        can_gain=lambda encoder: encoder.may_run_full,
    ),
)
"""Every move with its weight. A new one is a file beside these and a row here."""
