"""The moves of the search by their numbers, which are their places in ``table.MOVES``; moves from outside follow.

A step draws the number of a move by the moves' weights, then calls the three functions of that move::

    numbers   0 force   1 shift   2 and 3 shift on stages   4 pair ...   12 turn on some stages   13, 14 ... from outside
    weights   3         7         3     3                   0            0                        4   1
"""

from pipeplan.extensions.search.kernels.arrays import OUTSIDE, Change, Decisions, FlatProblem, OutsideMoves, StepOptions
from pipeplan.extensions.search.moves import decision_kernel as decision
from pipeplan.extensions.search.moves import mode_kernel as mode
from pipeplan.extensions.search.moves import shift_kernel as shift
from pipeplan.extensions.search.moves import turn_kernel as turn
from pipeplan.model import Ints

(
    FORCE,
    SHIFT,
    SHIFT_ON_STAGES,
    SHIFT_MICROBATCHES,
    PAIR,
    FULL,
    WEIGHTS,
    MODE,
    EXCHANGE_MODES,
    LEAD,
    TURN_EVERYWHERE,
    EXCHANGE_TURNS,
    TURN_HERE,
) = range(OUTSIDE)
"""Numbers of the search's own moves; moves from outside have the numbers from ``OUTSIDE`` on."""


def propose(
    move: int,
    options: StepOptions,
    problem: FlatProblem,
    decisions: Decisions,
    place: int,
    change: Change,
    random: Ints,
) -> None:
    """Draw what a move does at a place into ``change.terms``."""
    reach = options.reach
    if move == FORCE:
        decision.propose_forced(problem, reach, decisions, place, change, random)
    elif move == SHIFT:
        shift.propose(problem, reach, decisions, place, change, random)
    elif move == SHIFT_ON_STAGES:
        shift.propose_stages(problem, reach, decisions, place, change, random)
    elif move == SHIFT_MICROBATCHES:
        shift.propose_microbatches(problem, reach, decisions, place, change, random)
    elif move == PAIR:
        decision.propose_pair(problem, reach, decisions, place, change, random)
    elif move == FULL:
        decision.propose_full(problem, reach, decisions, place, change, random)
    elif move == WEIGHTS:
        decision.propose_weights(problem, reach, decisions, place, change, random)
    elif move == MODE:
        mode.propose(problem, reach, decisions, place, change, random)
    elif move == EXCHANGE_MODES:
        mode.propose_exchange(problem, reach, decisions, place, change, random)
    elif move == LEAD:
        mode.propose_lead(problem, reach, decisions, place, change, random)
    elif move == TURN_EVERYWHERE:
        turn.propose_everywhere(problem, reach, decisions, place, change, random)
    elif move == EXCHANGE_TURNS:
        turn.propose_exchange(problem, reach, decisions, place, change, random)
    elif move == TURN_HERE:
        turn.propose_here(problem, reach, decisions, place, change, random)
    else:
        options.outside.propose[move - OUTSIDE](problem, reach, decisions, place, change, random)


def apply(move: int, outside: OutsideMoves, problem: FlatProblem, decisions: Decisions, change: Change) -> bool:
    """Apply a move. Return false if there was nothing to change."""
    if move == FORCE:
        return decision.force(problem, decisions, change)
    if move <= SHIFT_MICROBATCHES:
        return shift.apply(problem, decisions, change)
    if move == PAIR:
        return decision.toggle_pair(problem, decisions, change)
    if move == FULL:
        return decision.toggle_full(problem, decisions, change)
    if move == WEIGHTS:
        return decision.change_weights(problem, decisions, change)
    if move == MODE:
        return mode.apply(problem, decisions, change)
    if move == EXCHANGE_MODES:
        return mode.exchange(problem, decisions, change)
    if move == LEAD:
        return mode.change_lead(problem, decisions, change)
    if move == EXCHANGE_TURNS:
        return turn.exchange(problem, decisions, change)
    if move < OUTSIDE:
        return turn.apply(problem, decisions, change)
    return outside.apply[move - OUTSIDE](problem, decisions, change)


def undo(move: int, outside: OutsideMoves, problem: FlatProblem, decisions: Decisions, change: Change) -> None:
    """Undo a move that ``apply`` has just applied."""
    if move == FORCE:
        decision.unforce(problem, decisions, change)
    elif move <= SHIFT_MICROBATCHES:
        shift.undo(problem, decisions, change)
    elif move == PAIR:
        decision.toggle_pair_back(problem, decisions, change)
    elif move == FULL:
        decision.toggle_full_back(problem, decisions, change)
    elif move == WEIGHTS:
        decision.restore_weights(problem, decisions, change)
    elif move == MODE:
        mode.undo(problem, decisions, change)
    elif move == EXCHANGE_MODES:
        mode.exchange_back(problem, decisions, change)
    elif move == LEAD:
        mode.restore_lead(problem, decisions, change)
    elif move == EXCHANGE_TURNS:
        turn.exchange_back(problem, decisions, change)
    elif move < OUTSIDE:
        turn.undo(problem, decisions, change)
    else:
        outside.undo[move - OUTSIDE](problem, decisions, change)
