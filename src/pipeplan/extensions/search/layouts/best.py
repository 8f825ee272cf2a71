"""Search for the best layout of a model's layers on the stages of a schedule.

It starts from even splits, balanced stages and splits by chunks, descends from each to a local optimum, and alternates
between branch and bound and walks until the layout is proven or time is up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from math import inf
from time import monotonic

import numpy as np

from pipeplan.costs import Overhead
from pipeplan.extensions.search.layouts.branch import LayoutBranching, StageArcs, least_by, possible
from pipeplan.extensions.search.layouts.order import OrderGraph
from pipeplan.extensions.search.layouts.pairs import StagePairs
from pipeplan.extensions.search.layouts.problem import Clock, Deadline, Laid, LayoutProblem, descend, walk
from pipeplan.extensions.search.layouts.stages import (
    TIMES,
    BestLayout,
    LaidLayer,
    LayerParts,
    RankPeaks,
    StageOption,
    StageTables,
    parts_of,
)
from pipeplan.foundation.errors import InfeasibleError, ShapeError
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.model import Floats, Kind, Placement, Schedule, tolerances
from pipeplan.strategies import Shape, Strategy, strategy


def even_splits(layers: int, stages: int, *, bare_first: bool, bare_last: bool) -> Iterator[tuple[int, ...]]:
    """Yield even splits of layers over stages, each once, the plainest first.

    A remainder goes to the earlier stages, the later ones, or those in the middle. As Megatron's switches that account for
    embedding and loss do, the first stage, the last, or both may have one layer less.

    Parameters
    ----------
    bare_first, bare_last
        Whether the first and the last stage can do without their own transformer layers.
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
    """Yield splits with equal stages within a chunk, except for one chunk in which only some ranks have one more layer.

    Which chunks have one more layer matters if ranks alternate between forwards of one chunk and backwards of another.
    """
    base, more = divmod(layers, placement.stages)
    chunks, chunk_of = placement.chunks, placement.chunk_of[0]
    full, some = divmod(more, placement.ranks)
    for larger in combinations(range(chunks), full):
        for partly in (chunk for chunk in range(chunks) if chunk not in larger):
            stages = [stage for stage, chunk in enumerate(chunk_of) if chunk == partly]
            for taking in {tuple(stages[:some]), tuple(stages[len(stages) - some :])}:
                yield tuple(base + (chunk in larger or stage in taking) for stage, chunk in enumerate(chunk_of))


def _spread(layers: int, stages: int) -> Iterator[tuple[int, ...]]:
    base, more = divmod(layers, stages)
    for start in (0, stages - more, (stages - more) // 2):
        yield tuple(base + (start <= stage < start + more) for stage in range(stages))


def balanced(problem: LayoutProblem) -> Laid | None:
    """Return the layout with the fastest slowest stage; None if some stage has no possible run of layers.

    Ties are broken by the smallest sum of squared stage times. Memory that chunks of one rank share is not considered.
    """
    stages = [possible(problem, stage, np.inf) for stage in range(problem.stages)]
    times = [stage.features[:, TIMES].sum(axis=1) for stage in stages]
    # First minimize the slowest stage, then the sum of squares among the layouts that attain it: two dynamic programs.
    slowest = float(_to_end(problem, stages, times, np.maximum)[0, 0])
    if slowest == np.inf:
        return None
    # Only runs of layers within the best possible slowest stage remain.
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
    """Return the minimum over all ways to give the layers from a first one on to the stages from a first one on.

    Shape (stages + 1, layers + 1); ``together`` combines the values of stages.
    """
    least = np.full((problem.stages + 1, problem.layers + 1), np.inf)
    least[-1, -1] = 0.0
    for number in reversed(range(problem.stages)):
        stage = stages[number]
        least_by(stage.first, together(values[number], least[number + 1][stage.stop]), least[number])
    return least


DESCENT = 0.3
"""Fraction of the remaining time for the descent from each start."""


def start_of(problem: LayoutProblem, even: Laid | None, deadline: Deadline) -> Laid:
    """Return the start of branch and bound: the best local optimum from even, balanced and chunkwise layouts."""
    starts = best_evens(problem) or [min(_evens(problem), key=lambda laid: float(problem.peaks.over(problem.of(laid))))]
    if (level := balanced(problem)) is not None:
        starts.append(level)
    if even and problem.order.schedule.placement.chunks > 1:
        starts.append(_best_chunkwise(problem, even, deadline.part(DESCENT)))
    starts = sorted((_eased(problem, start) for start in starts), key=lambda laid: _rank(problem, laid))
    tried = starts[: 2 if problem.order.schedule.placement.chunks > 1 else 1]
    descended = [descend(problem, start, deadline.part(DESCENT)) for start in tried]
    fitting = [laid for laid in (*descended, *([even] if even else [])) if problem.fits(laid)]
    return min(fitting or descended, key=problem.makespan)


def best_evens(problem: LayoutProblem) -> list[Laid]:
    """Return at most two even splits, of different layers, that fit with one choice on all stages; the better first."""
    fitting = sorted((laid for laid in _evens(problem) if problem.fits(laid)), key=problem.makespan)
    different = {laid.counts: laid for laid in reversed(fitting)}
    return sorted(different.values(), key=problem.makespan)[:2]


def _rank(problem: LayoutProblem, laid: Laid) -> tuple[float, float]:
    """Return the sort key of a layout: bytes over the limits, then makespan."""
    return float(problem.peaks.over(problem.of(laid))), problem.makespan(laid)


def _eased(problem: LayoutProblem, laid: Laid) -> Laid:
    """Return a layout that fits with the fastest choice on each stage that still fits, one stage after the other."""
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
        laid = next(
            (other for _, _, other in sorted(others, key=lambda candidate: candidate[:2]) if problem.fits(other)), laid
        )
    return laid


def _evens(problem: LayoutProblem) -> list[Laid]:
    parts, stages = problem.tables.parts, problem.stages
    splits = even_splits(problem.layers, stages, bare_first=bool(parts.start), bare_last=bool(parts.end))
    whole = [number for number, choice in enumerate(problem.tables.choices) if choice.layers is None]
    return [Laid(split, (choice,) * stages) for split in splits for choice in whole]


def _best_chunkwise(problem: LayoutProblem, even: Laid, deadline: Deadline) -> Laid:
    """Return the best split by chunks that fits with the even split's choices, as far as time allows."""
    best = even
    for split in chunkwise_splits(problem.layers, problem.order.schedule.placement):
        if deadline.passed():
            break
        laid = Laid(split, even.choices)
        if min(split[1:-1], default=1) > 0 and np.isfinite(problem.of(laid)).all() and problem.fits(laid):
            best = min(best, laid, key=problem.makespan)
    return best


TURN = 0.4
"""Fraction of the remaining time for branch and bound, and then for a walk."""

ALONE = 0.8
"""The same fraction if ranks have one stage each: branch and bound is then soon complete."""

ANY = 1e6
"""Multiple of a makespan that no layout exceeds, because no option of a layer takes a million times as long as another."""


def best_layout(
    layers: Sequence[LaidLayer],
    schedule: Schedule | Strategy | str,
    shape: Shape | None = None,
    *,
    transfer: float = 0.0,
    overhead: Overhead | None = None,
    limits: float | Sequence[float] | None = None,
    host_bandwidth: float = inf,
    some_layers: Sequence[str] = (),
    slowdown: float = 1.0,
    delayed_weights: bool = False,
    seconds: float = 1.0,
    clock: Clock = monotonic,
) -> BestLayout:
    """Return the layers and the option of each stage that minimize the makespan of a step within memory limits.

    Parameters
    ----------
    layers
        Layers of the model, in order.
    schedule
        Schedule, or a strategy (or its name) that generates it from ``shape``.
    transfer
        Seconds of one microbatch's message between ranks.
    overhead
        Overhead between ops.
    limits
        Maximum bytes per rank, everything included; one number: the same for every rank; None: unlimited.
    host_bandwidth
        Bandwidth to and from the host, bytes/s each way. The time of a stage's offload beyond its F is added to F, beyond
        its I to I.
    some_layers
        Names of options that may also apply to only the first layers of a stage (Megatron's ``--recompute-method block``, by
        stage); other options apply to all layers of a stage.
    slowdown, delayed_weights
        How pairs of layers with segments run, as in :class:`~pipeplan.costs.Segments`. In a schedule that overlaps no ops,
        segments change nothing, except that delayed weights shorten full backwards.
    seconds
        Time budget; the best even split and the first steps of the descent are evaluated in any case.

    Raises
    ------
    InfeasibleError
        If no layout stays within the limits, or none was found in the time.
    InputError
        If the model has no transformer layers, or too few of them for the stages.
    CostError
        If there is not one limit per rank.
    """
    made = _schedule(schedule, shape)
    parts = parts_of(layers)
    needed = made.stages - bool(parts.start) - bool(parts.end and made.stages > 1)
    if len(parts.middle) < needed:
        raise ShapeError(
            f"{len(parts.middle)} transformer layers are too few for {made.stages} stages: every stage without the "
            "embedding or the head needs one",
            field="layers",
        )
    tables = StageTables(parts, choices_of(parts, some_layers, made.stages), host_bandwidth)
    pairs = None
    if any(option.segments for layer in layers for option in layer.options):
        pairs = StagePairs(tables, made.stages, slowdown=slowdown, delayed_weights=delayed_weights)
    problem = layout_problem((made, transfer, overhead), tables, RankPeaks(made, limits), pairs)
    return search(problem, Deadline.after(seconds, clock))


def layout_problem(
    order: tuple[Schedule, float, Overhead | None], tables: StageTables, peaks: RankPeaks, pairs: StagePairs | None
) -> LayoutProblem:
    """Return the layout problem of an order, without pairs if these do not matter in it.

    ``order`` is a schedule with the seconds of a message between ranks, and the overhead between ops.
    """
    schedule = order[0]
    if pairs is not None and not (schedule.joined.any() or (pairs.delayed_weights and schedule.has(Kind.B))):
        pairs = None
    return LayoutProblem(OrderGraph(*order, segmented=pairs is not None), tables, peaks, pairs)


def layout_peaks(
    layers: Sequence[LaidLayer], schedule: Schedule, layout: Sequence[int], options: Sequence[StageOption]
) -> tuple[float, ...]:
    """Return the peak bytes of each rank for a layout and the options of its stages."""
    parts = parts_of(layers)
    if len(layout) != schedule.stages or sum(layout) != len(parts.middle) or len(options) != schedule.stages:
        raise ShapeError(
            f"invalid layout {tuple(layout)}: expected {schedule.stages} stages with {len(parts.middle)} layers in total "
            "and an option each",
            field="layers",
        )
    choices = tuple(dict.fromkeys(options))
    tables, bounds = StageTables(parts, choices), Laid(tuple(layout), ()).bounds
    features = [
        tables.of_stage(stage, schedule.stages)[choices.index(option), bounds[stage], bounds[stage + 1]]
        for stage, option in enumerate(options)
    ]
    # A stage without layers holds nothing.
    held = np.where(np.isfinite(features), features, 0.0)
    return tuple(RankPeaks(schedule).peaks(held).tolist())


def _schedule(schedule: Schedule | Strategy | str, shape: Shape | None) -> Schedule:
    if isinstance(schedule, Schedule):
        return schedule
    if shape is None:
        raise ShapeError("a strategy needs a shape: pass ranks, microbatches and chunks", field="ranks")
    rule = strategy(schedule) if isinstance(schedule, str) else schedule
    return rule(shape)


def choices_of(parts: LayerParts, some_layers: Sequence[str], stages: int) -> tuple[StageOption, ...]:
    """Return all choices of a stage: each option for all layers, and options of ``some_layers`` for the first ones."""
    names = dict.fromkeys(option.name for layer in (*parts.middle, *parts.end) for option in layer.options)
    # No stage of a good layout has twice the even number of layers.
    most = 2 * -(-len(parts.middle) // stages)
    some = [StageOption(name=name, layers=count) for name in some_layers if name in names for count in range(1, most)]
    return (*(StageOption(name=name) for name in names), *some)


def search(problem: LayoutProblem, deadline: Deadline) -> BestLayout:
    """Return the best layout of a problem; see :func:`best_layout`."""
    # Even split first, as the reference; then descents, branch and bound in turns with walks, and ties by simplicity.
    if problem.pairs is not None:
        evens = filter(problem.fits, _evens(problem))
        problem.restrict(min(map(problem.makespan_alone, evens), default=inf))
    even = next(iter(best_evens(problem)), None)
    best = start_of(problem, even, deadline)
    if not problem.fits(best):
        best = _fitting(problem, best, deadline)
    best, bound = _improved(problem, best, deadline)
    best = _plainest(problem, best)
    makespan = problem.makespan(best)
    bound = min(bound, makespan)
    return BestLayout(
        layout=best.counts,
        options=tuple(problem.tables.choices[choice] for choice in best.choices),
        makespan=makespan,
        lower_bound=bound,
        proven=makespan <= bound * (1 + tolerances.ROUNDING),
        even_layout=even.counts if even else None,
        even_option=problem.tables.choices[even.choices[0]] if even else None,
        even_makespan=problem.makespan(even) if even else inf,
        peaks=tuple(problem.peaks.peaks(problem.of(best)).tolist()),
        simulated=problem.order.evaluations,
    )


def _plainest(problem: LayoutProblem, best: Laid) -> Laid:
    """Return the same layout with earlier choices on stages that take no longer with them, if it still fits."""
    for stage in range(problem.stages):
        for choice in range(best.choices[stage]):
            choices = (*best.choices[:stage], choice, *best.choices[stage + 1 :])
            other = Laid(best.counts, choices)
            takes, now = problem.of(other)[stage, TIMES], problem.of(best)[stage, TIMES]
            if not (takes <= now).all() or not problem.fits(other):
                continue
            # A pair can be longer with ops that are shorter.
            if problem.pairs is None or problem.makespan(other) <= problem.makespan(best):
                best = other
                break
    return best


def _fitting(problem: LayoutProblem, nearest: Laid, deadline: Deadline) -> Laid:
    """Return any layout that fits, after the descent found none. Raises InfeasibleError."""
    result = LayoutBranching(problem, ANY * problem.makespan(nearest), deadline).run()
    if result.better is None:
        over = float(problem.peaks.over(problem.of(nearest))) / GIBIBYTE
        raise InfeasibleError(
            f"{'no' if result.complete else 'found no'} layout of {problem.layers} layers on {problem.stages} stages "
            f"{'fits' if result.complete else 'in time that fits'} the memory limits; the nearest is {over:.3g} GiB over: "
            "recompute or offload more, or use more ranks",
            field="memory_limit",
        )
    return result.better


def _improved(problem: LayoutProblem, best: Laid, deadline: Deadline) -> tuple[Laid, float]:
    """Improve a layout until it is proven or time is up; return it with a lower bound on all layouts."""
    bound, turn = 0.0, TURN if problem.order.schedule.placement.chunks > 1 else ALONE
    # Branch and bound proves or improves; when its turn ends without either, a walk looks elsewhere.
    while True:
        problem.thin()
        problem.probe_ranks(best)
        branched = LayoutBranching(problem, problem.makespan(best), deadline.part(turn)).run()
        bound = max(bound, branched.bound)
        if branched.better is not None:
            best = descend(problem, branched.better, deadline)
        elif branched.complete or deadline.passed():
            return best, bound
        else:
            walked = walk(problem, best, deadline.part(TURN))
            best = descend(problem, walked, deadline) if walked != best else best
