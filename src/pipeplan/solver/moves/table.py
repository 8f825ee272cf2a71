"""The moves of the search, in one table."""

from __future__ import annotations

from pipeplan.solver.moves import forced_weight_kernel as forced_weight
from pipeplan.solver.moves import full_backward_kernel as full_backward
from pipeplan.solver.moves import lead_kernel as lead
from pipeplan.solver.moves import mode_kernel as mode
from pipeplan.solver.moves import pair_kernel as pair
from pipeplan.solver.moves import shift_kernel as shift
from pipeplan.solver.moves import weight_order_kernel as weight_order
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
    Move(
        name="change whose weight backward is next",
        weight=3,
        propose=weight_order.propose,
        apply=weight_order.apply,
        undo=weight_order.undo,
        can_gain=lambda encoder: encoder.decides_weight,
        wide=True,
    ),
    Move(
        name="keep, recompute or offload",
        weight=4,
        propose=mode.propose,
        apply=mode.apply,
        undo=mode.undo,
        can_gain=lambda encoder: encoder.decides_mode,
        wide=True,
    ),
    Move(
        name="exchange what is kept",
        weight=3,
        propose=mode.propose_exchange,
        apply=mode.exchange,
        undo=mode.exchange_back,
        can_gain=lambda encoder: encoder.decides_mode,
        wide=True,
    ),
    Move(
        name="fetch back earlier or later",
        weight=2,
        propose=lead.propose,
        apply=lead.apply,
        undo=lead.undo,
        can_gain=lambda encoder: encoder.decides_mode and encoder.problem.choices.offload,
        wide=True,
    ),
)
"""Every move with its weight. A new one is a file beside these and a row here."""
