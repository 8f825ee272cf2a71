"""Simulated annealing (Kirkpatrick, Gelatt and Vecchi 1983): the parts that all annealings share, and that by moves.

Arrays, of which ``walk`` holds most: ``decisions`` and ``best`` are the current and the best candidate; ``state.value`` has
their values, ``state.temperature`` the temperature and its factor per step, ``state.random`` the random number,
``state.critical`` the number of places of the longest chain, then the places; ``change`` has what a move did, to undo it.
One step::

    order    F0 F1 I0 F2 I1        place 3 is drawn from the longest chain
    propose        F2, 1 to the front
    apply    F0 F1 F2 I0 I1        timed: 812, at most the limit of 815 that was drawn before
    accept   the current candidate, and the best one if no value was lower; else undo

The random limit before the evaluation is threshold accepting with the exponential distribution of Metropolis' rule.
"""

from pipeplan.extensions.search.kernels.arrays import (
    AnnealingState,
    CandidateTiming,
    Decisions,
    FlatProblem,
    SearchWalk,
    StepOptions,
)
from pipeplan.extensions.search.kernels.evaluating_kernel import evaluate_by
from pipeplan.extensions.search.kernels.random_kernel import draw, draw_weighted
from pipeplan.extensions.search.kernels.row_kernel import copy_numbers, index_of, mirrored
from pipeplan.extensions.search.kernels.timing_kernel import INFEASIBLE
from pipeplan.extensions.search.kernels.varied_kernel import op_index
from pipeplan.extensions.search.moves.numbered_kernel import apply, propose, undo
from pipeplan.model import Floats, Ints

CRITICAL_OF = 16
"""Denominator of the share of steps that start at an op of the longest chain."""


def cool(state: AnnealingState) -> None:
    """Lower the temperature by a step."""
    state.temperature[0] *= state.temperature[1]


def accepted_up_to(state: AnnealingState, waits: Floats) -> float:
    """Return the largest acceptable value: the current one and the temperature times an exponential variate.

    The variate is drawn from the quantiles ``waits``, before the value is known. So the evaluation can stop as soon as a
    rank must be later than that.
    """
    # Metropolis accepts a worsening d with probability exp(-d / T): as often as an exponential variate of mean T is above d.
    variate = waits[draw(state.random, len(waits))]
    limit: float = min(state.value[0] + state.temperature[0] * variate, INFEASIBLE / 2)
    return limit


def accept(state: AnnealingState, value: float) -> bool:
    """Continue from a step's value; true if no value before was as low."""
    state.value[0] = value
    if value < state.value[1]:
        state.value[1] = value
        return True
    return False


def copy_decisions(source: Decisions, target: Decisions) -> None:
    """Copy one candidate's decisions onto another's."""
    copy_numbers(source.order, target.order)
    copy_numbers(source.forced, target.forced)
    copy_numbers(source.joined, target.joined)
    copy_numbers(source.full, target.full)
    copy_numbers(source.prefer, target.prefer)
    copy_numbers(source.mode, target.mode)
    copy_numbers(source.lead, target.lead)
    copy_numbers(source.turn, target.turn)


def draw_place(state: AnnealingState, critical: int, positions: int) -> int:
    """Draw the place where a step starts: in ``critical`` of 16 cases an op of the longest chain, else any op.

    Only ops of the longest chain can make the schedule shorter on their own.
    """
    if state.critical[0] > 0 and draw(state.random, CRITICAL_OF) < critical:
        place: int = state.critical[1 + draw(state.random, state.critical[0])]
        return place
    return draw(state.random, positions)


def anneal(problem: FlatProblem, options: StepOptions, steps: int, walk: SearchWalk, timing: CandidateTiming) -> None:
    """Anneal for a number of steps; the best candidate seen goes to ``walk.best``.

    A step draws where it starts, a move by its weight, and what that move does there. It is kept if the value grows by
    no more than the temperature allows, else taken back.
    """
    decisions, state, change = walk.decisions, walk.state, walk.change
    for _ in range(steps):
        # Draw a move, and apply it.
        cool(state)
        place = draw_place(state, options.critical, len(decisions.order))
        move = draw_weighted(state.random, options.weights)
        propose(move, options, problem, decisions, place, change, state.random)
        if not apply(move, options.outside, problem, decisions, change):
            continue
        # The limit is drawn first: an evaluation stops as soon as it must be above.
        limit = accepted_up_to(state, options.waits)
        value = evaluate_by(options.evaluator, problem, decisions, options.target, limit, timing)
        if value > limit:
            undo(move, options.outside, problem, decisions, change)
            continue
        # Accepted: the next steps start from its longest chain.
        if options.critical > 0:
            trace(problem, decisions, timing, state.critical)
        if accept(state, value):
            copy_decisions(decisions, walk.best)


def trace(problem: FlatProblem, decisions: Decisions, timing: CandidateTiming, critical: Ints) -> None:
    """Write the longest chain of a candidate just timed: the number of its places, then the places, the last one first.

    From the end of the rank that is done last back to a start: an op that waited was held up by its source, any other by
    the op before it on its rank.
    """
    # Back from the last op of that rank, over whatever held each op up.
    place = last_place(problem, timing)
    count = 0
    while True:
        count += 1
        critical[count] = place
        if timing.waited[place] > 0:
            # It, or the op that it overlaps with, waited for its source on another rank.
            place += timing.waited[place] - 1
            op_class = decisions.order[place]
            earlier = index_of(decisions.order, problem.offsets[problem.rank[op_class]], place)
            index = op_index(decisions.turn, problem.first[op_class], earlier, problem.slices)
            if op_class % 2 == 1 and problem.source[op_class] == op_class - 1:
                index = mirrored(index, problem.slices)
            place = timing.position[problem.first[problem.source[op_class]] + index]
        elif place == problem.offsets[problem.rank[decisions.order[place]]]:
            break
        else:
            place -= 1
    critical[0] = count


def last_place(problem: FlatProblem, timing: CandidateTiming) -> int:
    """Return the place of the last op of the rank that takes longest."""
    last = 0
    for rank in range(1, len(problem.work)):
        if timing.clock[rank] - timing.begin[rank] > timing.clock[last] - timing.begin[last]:
            last = rank
    place: int = problem.offsets[last + 1] - 1
    return place


def next_candidate(
    problem: FlatProblem, options: StepOptions, limit: float, tries: int, walk: SearchWalk, timing: CandidateTiming
) -> bool:
    """Change the current candidate by one move to one whose value is at most ``limit``; store it in ``state.value[0]``.

    Returns false if none of ``tries`` moves led to one; then nothing is changed.
    """
    decisions, state, change = walk.decisions, walk.state, walk.change
    if options.critical > 0:
        value = evaluate_by(options.evaluator, problem, decisions, options.target, INFEASIBLE / 2, timing)
        if value < INFEASIBLE:
            trace(problem, decisions, timing, state.critical)
    for _ in range(tries):
        # Draw a move, and apply it.
        place = draw_place(state, options.critical, len(decisions.order))
        move = draw_weighted(state.random, options.weights)
        propose(move, options, problem, decisions, place, change, state.random)
        if not apply(move, options.outside, problem, decisions, change):
            continue
        # Keep the first candidate that is good enough, and take back all others.
        value = evaluate_by(options.evaluator, problem, decisions, options.target, limit, timing)
        if value <= limit:
            state.value[0] = value
            return True
        undo(move, options.outside, problem, decisions, change)
    return False
