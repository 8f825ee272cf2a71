"""Table of the moves of the search."""

from __future__ import annotations

from pipeplan.extensions.search.moves import decision_kernel as decision
from pipeplan.extensions.search.moves import mode_kernel as mode
from pipeplan.extensions.search.moves import numbered_kernel as numbered
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
        number=numbered.FORCE,
    ),
    Move(
        name="shift an op",
        weight=7,
        propose=shift.propose,
        apply=shift.apply,
        undo=shift.undo,
        number=numbered.SHIFT,
    ),
    Move(
        name="shift on stages",
        weight=3,
        propose=shift.propose_stages,
        apply=shift.apply,
        undo=shift.undo,
        number=numbered.SHIFT_ON_STAGES,
    ),
    Move(
        name="shift on stages and microbatches",
        weight=3,
        propose=shift.propose_microbatches,
        apply=shift.apply,
        undo=shift.undo,
        number=numbered.SHIFT_MICROBATCHES,
    ),
    Move(
        name="overlap a pair",
        weight=3,
        propose=decision.propose_pair,
        apply=decision.toggle_pair,
        undo=decision.toggle_pair_back,
        number=numbered.PAIR,
        can_gain=lambda encoder: encoder.overlaps,
    ),
    Move(
        name="make backwards full",
        weight=3,
        propose=decision.propose_full,
        apply=decision.toggle_full,
        undo=decision.toggle_full_back,
        number=numbered.FULL,
        can_gain=lambda encoder: encoder.may_run_full,
    ),
    Move(
        name="change whose weight backward is next",
        weight=3,
        propose=decision.propose_weights,
        apply=decision.change_weights,
        undo=decision.restore_weights,
        number=numbered.WEIGHTS,
        can_gain=lambda encoder: encoder.decides_weight,
    ),
    Move(
        name="keep, recompute or offload",
        weight=4,
        propose=mode.propose,
        apply=mode.apply,
        undo=mode.undo,
        number=numbered.MODE,
        can_gain=lambda encoder: encoder.decides_mode,
    ),
    Move(
        name="exchange what is kept",
        weight=3,
        propose=mode.propose_exchange,
        apply=mode.exchange,
        undo=mode.exchange_back,
        number=numbered.EXCHANGE_MODES,
        can_gain=lambda encoder: encoder.decides_mode,
    ),
    Move(
        name="fetch back earlier or later",
        weight=2,
        propose=mode.propose_lead,
        apply=mode.change_lead,
        undo=mode.restore_lead,
        number=numbered.LEAD,
        can_gain=lambda encoder: encoder.decides_mode and encoder.problem.choices.offload,
    ),
    Move(
        name="move a microbatch to another turn",
        weight=4,
        propose=turn.propose_everywhere,
        apply=turn.apply,
        undo=turn.undo,
        number=numbered.TURN_EVERYWHERE,
        can_gain=lambda encoder: encoder.varies,
    ),
    Move(
        name="exchange two microbatches",
        weight=4,
        propose=turn.propose_exchange,
        apply=turn.exchange,
        undo=turn.exchange_back,
        number=numbered.EXCHANGE_TURNS,
        can_gain=lambda encoder: encoder.varies,
    ),
    Move(
        name="move a microbatch on some stages",
        weight=3,
        propose=turn.propose_here,
        apply=turn.apply,
        undo=turn.undo,
        number=numbered.TURN_HERE,
        can_gain=lambda encoder: encoder.varies,
    ),
)
"""All moves with their weights; ``numbered_kernel`` calls the functions of each by its number."""
