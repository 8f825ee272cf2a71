"""Simulated annealing of a candidate by moves, each step timed only as far as it changes anything.

The same steps as those of ``annealing_kernel`` with the same random numbers, in a fraction of the time where schedules are
long.
"""

from collections.abc import Callable

from pipeplan.kernels import inlined
from pipeplan.model import Floats, Ints
from pipeplan.solver.kernels.annealing_kernel import accept, accepted_up_to, cool, copy_decisions, draw_place
from pipeplan.solver.kernels.arrays import (
    AnnealingState,
    CandidateTiming,
    Change,
    Decisions,
    FlatProblem,
    Reach,
    Target,
)
from pipeplan.solver.kernels.marks import Marks, Stretch, Touched
from pipeplan.solver.kernels.random_kernel import draw_weighted
from pipeplan.solver.kernels.resuming_kernel import evaluate_from, keep_step, note_touched, place_marks, settle
from pipeplan.solver.kernels.timing_kernel import INFEASIBLE, evaluate


def trace_by_indices(
    problem: FlatProblem, decisions: Decisions, timing: CandidateTiming, indices: Ints, critical: Ints
) -> None:
    """As ``critical_kernel.trace``, where it is known which op of its class stands at a place."""
    last = 0
    for rank in range(1, len(problem.work)):
        if timing.clock[rank] - timing.begin[rank] > timing.clock[last] - timing.begin[last]:
            last = rank
    place = problem.offsets[last + 1] - 1
    count = 0
    while True:
        count += 1
        critical[count] = place
        op_class = decisions.order[place]
        if timing.waited[place] > 0:
            place = timing.position[problem.first[problem.source[op_class]] + indices[place]]
        elif place == problem.offsets[problem.rank[op_class]]:
            break
        else:
            place -= 1
    critical[0] = count


@inlined
def passes(touched: Touched, barrier: Ints) -> bool:
    """Whether some op was moved from before its rank's barrier to behind it, or the other way."""
    for which in range(touched.number[0]):
        rank = touched.ranks[which]
        if touched.first[rank] < barrier[rank] <= touched.last[rank]:
            return True
    return False


def local_annealing_by(
    propose: Callable[..., None], apply: Callable[..., bool], undo: Callable[..., None]
) -> Callable[..., int]:
    """The annealing of a candidate by moves that shift ops or force weight backwards."""

    def anneal_locally(
        problem: FlatProblem,
        weights: Ints,
        reach: Reach,
        critical: int,
        target: Target,
        waits: Floats,
        follower: Ints,
        unit: float,
        barrier: Ints,
        steps: int,
        most: int,
        decisions: Decisions,
        best: Decisions,
        state: AnnealingState,
        change: Change,
        touched: Touched,
        indices: Ints,
        known: Marks,
        marks: Marks,
        stretch: Stretch,
        current: CandidateTiming,
        timing: CandidateTiming,
    ) -> int:
        """Anneal for a number of steps, or until ``most`` places were timed, and return how many steps it were.

        The current candidate is timed afresh at first. No op passes its rank's ``barrier``, which is a place.
        """
        length = evaluate(problem, decisions, target, INFEASIBLE / 2, current)
        place_marks(problem, decisions, length, current, known)
        stretch.visits[0] = 0
        touched.number[0] = 0
        for rank in range(len(problem.work)):
            touched.last[rank] = -1
        # Time it from mark to mark, which are placed but not yet written, in both timings.
        begin_marks(problem, known)
        evaluate_from(
            problem,
            decisions,
            target,
            INFEASIBLE / 2,
            follower,
            unit,
            INFEASIBLE,
            known,
            touched,
            current,
            timing,
            marks,
            stretch,
        )
        keep_step(problem, known, current, timing, marks, stretch, indices)
        for step in range(steps):
            if stretch.visits[0] >= most:
                return step
            cool(state)
            place = draw_place(state, critical, len(decisions.order))
            move = draw_weighted(state.random, weights)
            propose(move, problem, reach, decisions, place, change, state.random)
            change.moves[0] = 0
            if not apply(move, problem, decisions, change):
                continue
            note_touched(problem, decisions, change, touched)
            if passes(touched, barrier):
                undo(move, problem, decisions, change)
                continue
            limit = accepted_up_to(state, waits)
            value = evaluate_from(
                problem,
                decisions,
                target,
                limit,
                follower,
                unit,
                state.value[0],
                known,
                touched,
                current,
                timing,
                marks,
                stretch,
            )
            if value > limit:
                undo(move, problem, decisions, change)
                settle(problem, known, stretch.ends[0], current, timing, timing, indices)
                continue
            keep_step(problem, known, current, timing, marks, stretch, indices)
            if critical > 0:
                trace_by_indices(problem, decisions, current, indices, state.critical)
            if accept(state, value):
                copy_decisions(decisions, best)
        return steps

    return anneal_locally


def begin_marks(problem: FlatProblem, known: Marks) -> None:
    """Write the first mark, which is before the first op."""
    for rank in range(len(problem.work)):
        known.pending[rank] = problem.offsets[rank]
        known.owed[rank] = 0
        known.clock[rank] = 0.0
        known.held[rank] = 0.0
        known.left[rank] = problem.work[rank]
        known.begin[rank] = 0.0
    for op_class in range(len(problem.rank)):
        known.done[op_class] = 0
    known.valid[0] = 1
