"""Table of the moves of the search."""

from __future__ import annotations

from pipeplan.extensions.search.moves import decision_kernel as decision
from pipeplan.extensions.search.moves import mode_kernel as mode
from pipeplan.extensions.search.moves import shift_kernel as shift
from pipeplan.extensions.search.moves import turn_kernel as turn
from pipeplan.extensions.search.moves.move import Move

MOVES: tuple[Move, ...] = (
    Move(
        name="force a weight backward",
        weight=3,
        propose=decision.propose_forced,
        apply=decision.force,
        undo=decision.unforce,
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
        propose=decision.propose_pair,
        apply=decision.toggle_pair,
        undo=decision.toggle_pair_back,
        can_gain=lambda encoder: encoder.overlaps,
    ),
    Move(
        name="make backwards full",
        weight=3,
        propose=decision.propose_full,
        apply=decision.toggle_full,
        undo=decision.toggle_full_back,
        can_gain=lambda encoder: encoder.may_run_full,
    ),
    Move(
        name="change whose weight backward is next",
        weight=3,
        propose=decision.propose_weights,
        apply=decision.change_weights,
        undo=decision.restore_weights,
        can_gain=lambda encoder: encoder.decides_weight,
    ),
    Move(
        name="keep, recompute or offload",
        weight=4,
        propose=mode.propose,
        apply=mode.apply,
        undo=mode.undo,
        can_gain=lambda encoder: encoder.decides_mode,
    ),
    Move(
        name="exchange what is kept",
        weight=3,
        propose=mode.propose_exchange,
        apply=mode.exchange,
        undo=mode.exchange_back,
        can_gain=lambda encoder: encoder.decides_mode,
    ),
    Move(
        name="fetch back earlier or later",
        weight=2,
        propose=mode.propose_lead,
        apply=mode.change_lead,
        undo=mode.restore_lead,
        can_gain=lambda encoder: encoder.decides_mode and encoder.problem.choices.offload,
    ),
    Move(
        name="move a microbatch to another turn",
        weight=4,
        propose=turn.propose_everywhere,
        apply=turn.apply,
        undo=turn.undo,
        can_gain=lambda encoder: encoder.varies,
    ),
    Move(
        name="exchange two microbatches",
        weight=4,
        propose=turn.propose_exchange,
        apply=turn.exchange,
        undo=turn.exchange_back,
        can_gain=lambda encoder: encoder.varies,
    ),
    Move(
        name="move a microbatch on some stages",
        weight=3,
        propose=turn.propose_here,
        apply=turn.apply,
        undo=turn.undo,
        can_gain=lambda encoder: encoder.varies,
    ),
)
"""All moves with their weights. To add a move, write its functions in a file next to this one and add a row here."""
