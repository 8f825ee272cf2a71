"""The longest chain of a candidate: the ops that decide when it ends."""

from pipeplan.model import Ints
from pipeplan.solver.kernels.arrays import CandidateTiming, Decisions, FlatProblem
from pipeplan.solver.kernels.row_kernel import index_of
from pipeplan.solver.kernels.slice_kernel import mirrored


def trace(problem: FlatProblem, decisions: Decisions, timing: CandidateTiming, critical: Ints) -> None:
    """Write the places of the longest chain of a candidate just timed, the last one first, behind their number.

    From the end of the rank that is done last back to a start: an op that waited was held up by its source, any other by
    the op before it on its rank.
    """
    last = 0
    for rank in range(1, len(problem.work)):
        if timing.clock[rank] - timing.begin[rank] > timing.clock[last] - timing.begin[last]:
            last = rank
    place = problem.offsets[last + 1] - 1
    count = 0
    while True:
        count += 1
        critical[count] = place
        if timing.waited[place] > 0:
            place += timing.waited[place] - 1
            op_class = decisions.order[place]
            index = index_of(decisions.order, problem.offsets[problem.rank[op_class]], place)
            if op_class % 2 == 1 and problem.source[op_class] == op_class - 1:
                index = mirrored(index, problem.slices)
            place = timing.position[problem.first[problem.source[op_class]] + index]
        elif place == problem.offsets[problem.rank[decisions.order[place]]]:
            break
        else:
            place -= 1
    critical[0] = count
