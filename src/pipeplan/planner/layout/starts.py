"""Where the search for a layout starts: even splits, balanced stages, splits by chunks, each led down to where it ends."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from pipeplan.model import Floats, Placement, tolerances
from pipeplan.planner.layout.arcs import StageArcs, least_by, possible
from pipeplan.planner.layout.climb import descend
from pipeplan.planner.layout.problem import Deadline, Laid, LayoutProblem
from pipeplan.planner.layout.stages import TIMES


def even_splits(layers: int, stages: int, *, bare_first: bool, bare_last: bool) -> Iterator[tuple[int, ...]]:
    """Layers of each stage, each split once, the plainest first.

    Where they do not come out even, the earlier stages have one more, or the later ones, or those in the middle. Megatron's
    switches that account for embedding and loss take one layer off the first stage, the last, or both.

    Parameters
    ----------
    bare_first, bare_last
        Whether the first and the last stage can do without a layer of their own.
    """
    seen = set()
    for first in (0, 1):
        for last in (0, 1):
            for counts in _spread(layers + first + last, stages):
                split = list(counts)
                split[0] -= first
                split[-1] -= last
                least = [1] * stages
                least[0], least[-1] = least[0] - bare_first, least[-1] - (bare_last and stages > 1)
                if all(map(int.__ge__, split, least)) and tuple(split) not in seen:
                    seen.add(tuple(split))
                    yield tuple(split)


def chunkwise_splits(layers: int, placement: Placement) -> Iterator[tuple[int, ...]]:
    """Splits whose stages of one chunk have the same number of layers but on some ranks of one chunk, each once.

    Which chunks have one more matters where ranks alternate between a forward of one chunk and a backward of another.
    """
    each, more = divmod(layers, placement.stages)
    chunks, chunk_of = placement.chunks, placement.chunk_of[0]
    full, some = divmod(more, placement.ranks)
    for larger in combinations(range(chunks), full):
        for partly in (chunk for chunk in range(chunks) if chunk not in larger):
            stages = [stage for stage, chunk in enumerate(chunk_of) if chunk == partly]
            for taking in {tuple(stages[:some]), tuple(stages[len(stages) - some :])}:
                yield tuple(each + (chunk in larger or stage in taking) for stage, chunk in enumerate(chunk_of))


def _spread(layers: int, stages: int) -> Iterator[tuple[int, ...]]:
    each, more = divmod(layers, stages)
    for start in (0, stages - more, (stages - more) // 2):
        yield tuple(each + (start <= stage < start + more) for stage in range(stages))


def balanced(problem: LayoutProblem) -> Laid | None:
    """The layout, or None where some stage can hold nothing that is left for it.

    Where that leaves a choice, the squares of the stages' times add up to the least. What chunks of one rank hold together
    is not looked at.
    """
    stages = [possible(problem, stage, np.inf) for stage in range(problem.stages)]
    times = [stage.features[:, TIMES].sum(axis=1) for stage in stages]
    slowest = float(_to_end(problem, stages, times, np.maximum)[0, 0])
    if slowest == np.inf:
        return None
    most = slowest * (1 + tolerances.ROUNDING)
    stages = [stage.keep(of_stage <= most) for stage, of_stage in zip(stages, times, strict=True)]
    squares = [of_stage[of_stage <= most] ** 2 for of_stage in times]
    to_end = _to_end(problem, stages, squares, np.add)
    counts, choices, at = [], [], 0
    for number, stage in enumerate(stages):
        here = stage.at(at)
        nearest = int((squares[number][here] + to_end[number + 1, stage.stop[here]]).argmin())
        stop = int(stage.stop[here][nearest])
        counts.append(stop - at)
        choices.append(int(stage.choice[here][nearest]))
        at = stop
    return Laid(tuple(counts), tuple(choices))


def _to_end(problem: LayoutProblem, stages: list[StageArcs], values: list[Floats], together: np.ufunc) -> Floats:
    """Return the least value of each stage with all later ones, by the first layer; shape (stages + 1, layers + 1)."""
    found = np.full((problem.stages + 1, problem.layers + 1), np.inf)
    found[-1, -1] = 0.0
    for number in reversed(range(problem.stages)):
        stage = stages[number]
        least_by(stage.first, together(values[number], found[number + 1][stage.stop]), found[number])
    return found


DESCENT = 0.3
"""Share of the time that is left, for the descent from each start."""


def start_of(problem: LayoutProblem, even: Laid | None, deadline: Deadline) -> Laid:
    """Return the start of branching: the best of descents from an even split, balanced stages, and splits by chunks."""
    starts = best_evens(problem) or [_thriftiest_even(problem)]
    if (level := balanced(problem)) is not None:
        starts.append(level)
    if even and problem.order.schedule.placement.chunks > 1:
        starts.append(_best_chunkwise(problem, even, deadline.part(DESCENT)))
    starts = sorted((_eased(problem, start) for start in starts), key=lambda laid: _rank(problem, laid))
    tried = starts[: 2 if problem.order.schedule.placement.chunks > 1 else 1]
    found = [descend(problem, start, deadline.part(DESCENT)) for start in tried]
    fitting = [laid for laid in (*found, *([even] if even else [])) if problem.fits(laid)]
    return min(fitting or found, key=problem.makespan)


def best_evens(problem: LayoutProblem) -> list[Laid]:
    """The best of the even splits that fit with one choice everywhere, two of different layers at most, the better first."""
    fitting = sorted((laid for laid in _evens(problem) if problem.fits(laid)), key=problem.makespan)
    different = {laid.counts: laid for laid in reversed(fitting)}
    return sorted(different.values(), key=problem.makespan)[:2]


def _rank(problem: LayoutProblem, laid: Laid) -> tuple[float, float]:
    """Return the sort key: bytes over the limits, then time."""
    return float(problem.peaks.over(problem.of(laid))), problem.makespan(laid)


def _eased(problem: LayoutProblem, laid: Laid) -> Laid:
    """Return a layout that fits with the fastest choice on each stage with which it still fits, one after the other."""
    if not problem.fits(laid):
        return laid
    for stage in range(problem.stages):
        now = float(problem.of(laid)[stage, TIMES].sum())
        others = []
        for choice in range(len(problem.tables.choices)):
            other = Laid(laid.counts, (*laid.choices[:stage], choice, *laid.choices[stage + 1 :]))
            takes = float(problem.of(other)[stage, TIMES].sum())
            if takes < now:
                others.append((takes, choice, other))
        laid = next((other for _, _, other in sorted(others, key=lambda each: each[:2]) if problem.fits(other)), laid)
    return laid


def _evens(problem: LayoutProblem) -> list[Laid]:
    parts, stages = problem.tables.parts, problem.stages
    splits = even_splits(problem.layers, stages, bare_first=bool(parts.start), bare_last=bool(parts.end))
    whole = [number for number, choice in enumerate(problem.tables.choices) if choice.layers is None]
    return [Laid(split, (choice,) * stages) for split in splits for choice in whole]


def _best_chunkwise(problem: LayoutProblem, even: Laid, deadline: Deadline) -> Laid:
    """Return the best split by chunks that fits with the even split's choices, as far as time goes."""
    best = even
    for split in chunkwise_splits(problem.layers, problem.order.schedule.placement):
        if deadline.passed():
            break
        laid = Laid(split, even.choices)
        if min(split[1:-1], default=1) > 0 and np.isfinite(problem.of(laid)).all() and problem.fits(laid):
            best = min(best, laid, key=problem.makespan)
    return best


def _thriftiest_even(problem: LayoutProblem) -> Laid:
    return min(_evens(problem), key=lambda laid: float(problem.peaks.over(problem.of(laid))))
