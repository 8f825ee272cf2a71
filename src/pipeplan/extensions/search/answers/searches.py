"""The search for a better schedule, under one memory limit or under a row of them. Importing this loads the solver."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from pipeplan.answers.arguments import options_and_settings
from pipeplan.answers.outputs import require_expressible
from pipeplan.answers.published import Allowed, allowed_in_words, missing
from pipeplan.answers.sharding import sharding_searched
from pipeplan.answers.simulating.result import Result, result_of
from pipeplan.answers.simulating.simulate import assumed_times
from pipeplan.answers.sources import label, resolve
from pipeplan.costs import Layout, Settings
from pipeplan.extensions.search import (
    Effort,
    Front,
    FrontMark,
    PlacementTried,
    Problem,
    PublishedEntry,
    SearchProgress,
    SearchResult,
    best_placement,
    require_shape,
    searched_here,
)
from pipeplan.extensions.search import pareto as front_of
from pipeplan.extensions.search.answers.fronts import ParetoFront, front_of_points, front_point
from pipeplan.extensions.search.answers.layouts import layout_spaces, searches_layouts
from pipeplan.extensions.search.answers.options import AUTO, ParetoOptions, ScheduleSearchOptions, SearchOptions
from pipeplan.extensions.search.answers.problems import (
    baseline_of,
    least_need,
    not_compared,
    not_proven,
    problems_of,
    published_everywhere,
    published_under,
    searched_needs,
)
from pipeplan.extensions.search.answers.search_record import record_of
from pipeplan.extensions.search.answers.search_words import slow_kernels
from pipeplan.formats import TimelineContent
from pipeplan.foundation.errors import InputError, ShapeError
from pipeplan.model import Kind, Op, Schedule, from_ops, needs_of

if TYPE_CHECKING:
    from pipeplan.extensions.search.keywords import ParetoKeywords, SearchKeywords


def search(*, progress: Callable[[SearchProgress], None] | None = None, **options: Unpack[SearchKeywords]) -> Result:
    """Return a better schedule for these costs, under a memory limit, and how far from optimal it can be.

    Starts from the published schedules that fit. The result is one like any other, with the story of the search in
    ``result.search`` and the best proven bound in ``result.bound``.

    Parameters
    ----------
    progress
        Called with how far the search is.
    **options
        The options of a search (``SearchOptions``), and shape and costs;
        ``memory_limit`` is one, or one per rank; ``communication`` is how transfers behave.

    Other Parameters
    ----------------
    allow
        Needs that the best or recommended schedule may have: slices (attention over earlier slices of a sequence and a
        loss per slice), copies (two copies of the model), recompute; repeatable or comma-separated. Setting slices or
        recompute allows it, too (default: what settings and named schedules need).
    placement
        Placement to search: auto (every placement that can win), linear, loop, v, wave, bidirectional, bidirectional-v,
        or the rank of each stage, such as 0,1,1,0. auto includes placements that hold the model twice if copies are
        allowed or a start has them (default: auto).
    seconds
        Time budget in seconds; for a Pareto front, of all its limits together (default: 10; for a Pareto front, 10 per
        limit).
    seed
        Random seed (default: 0).
    workers
        Number of threads (default: the number of cores).
    full_backward
        Keep every backward pass whole; alias of leave=split.
    leave
        Choices to keep fixed: split, overlap, weight-order; repeatable or comma-separated.
    objective
        Objective to minimize: the makespan, or the longest span of a rank, with ops that start as soon as they can
        (default: makespan).
    evaluations
        Limit on evaluated schedules; the same seed then gives the same answer. Starts and published schedules are
        always evaluated.
    start
        Schedule to start from, a name or a file; repeatable. The answer is never worse than it.
    decide
        Further choices to optimize: recompute, offload; repeatable or comma-separated.
    layout
        auto: also search for the layers of each stage and the number of chunks, from the costs of each layer (layers);
        the same as layers_per_stage auto (default: the layers per stage that are set).
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Raises
    ------
    InputError
        For a placement, cost, limit, start or budget that cannot be; decisions that exclude each other, or whose costs
        are missing; a measured timeline to start from; blocking communication.
    InfeasibleError
        For a limit below the least feasible one, which the message names.

    Examples
    --------
    >>> better = pipeplan.search(ranks=4, microbatches=8, placement="v", memory_limit="3act", evaluations=20_000)
    >>> better.search.found_by, better.gap  # doctest: +SKIP
    """
    return searched(*options_and_settings(SearchOptions, options), progress=progress)


def searched(
    options: SearchOptions,
    settings: Settings,
    *,
    progress: Callable[[SearchProgress], None] | None = None,
    outputs: Sequence[Path] = (),
) -> Result:
    """See :func:`search`; the answer is one that files of these formats can hold.

    Raises InputError, before the search begins, for a file whose format can hold no schedule of any searched placement.
    """
    if searches_layouts(options, settings):
        return _laid_out(options, settings, progress, outputs)
    problems = _expressible(problems_of(settings, options), outputs)
    schedules = _starts(options, settings, problems)
    effort = _effort(options)
    everywhere = published_everywhere(problems[0], settings)
    here = searched_here(seed=options.seed, workers=effort.workers, effort=effort, progress=progress)
    allowed = searched_needs(options, settings, schedules)
    competing = _competing(everywhere, settings, allowed) if options.placement == AUTO else []
    competing = [entry for entry in competing if _is_expressible(entry.schedule, entry.problem, outputs)]
    best = best_placement(problems, effort, here, published=competing, start=schedules)
    return result_found(
        best.result,
        settings,
        allowed=allowed,
        published=everywhere,
        tried=best.tried,
        starts=bool(schedules),
        timed=effort.seconds is not None,
    )


def _effort(options: SearchOptions) -> Effort:
    """Return the budget of a search: ten seconds without one."""
    seconds = 10.0 if options.seconds is options.evaluations is None else options.seconds
    workers = usable_cores() if options.workers is None else options.workers
    return Effort(seconds=seconds, evaluations=options.evaluations, workers=workers)


def _laid_out(
    options: SearchOptions,
    settings: Settings,
    progress: Callable[[SearchProgress], None] | None,
    outputs: Sequence[Path],
) -> Result:
    """Return the best schedule over all layouts of the searched placements."""
    from pipeplan.extensions.search.joint import joint_search  # it takes time to import

    spaces = layout_spaces(settings, options)
    examples = [space.example for space in spaces]
    expressible = _expressible(examples, outputs)
    spaces = [space for space, example in zip(spaces, examples, strict=True) if example in expressible]
    effort = _effort(options)
    best = joint_search(spaces, effort, seed=options.seed, progress=progress)
    assert best.layout is not None
    laid = replace(settings, layers_per_stage=best.layout)
    allowed = searched_needs(options, settings)
    return result_found(
        best.result,
        laid,
        allowed=allowed,
        published=best.published,
        tried=best.tried,
        layout=best.layout,
        timed=effort.seconds is not None,
    )


def pareto(
    *, progress: Callable[[float, SearchProgress], None] | None = None, **options: Unpack[ParetoKeywords]
) -> ParetoFront:
    """Return the trade-off of time against memory: the best schedule under each of several limits.

    Parameters
    ----------
    progress
        Called with the limit, infinite for none, and how far its search is; ``share`` is that of the whole front.
    **options
        The options of a front (``ParetoOptions``), and shape and costs. The front goes
        from the least feasible limit to ``memory_limit``, one for all ranks; without it, to no limit.

    Other Parameters
    ----------------
    allow
        Needs that the best or recommended schedule may have: slices (attention over earlier slices of a sequence and a
        loss per slice), copies (two copies of the model), recompute; repeatable or comma-separated. Setting slices or
        recompute allows it, too (default: what settings and named schedules need).
    placement
        Placement to search: auto (every placement that can win), linear, loop, v, wave, bidirectional, bidirectional-v,
        or the rank of each stage, such as 0,1,1,0. auto includes placements that hold the model twice if copies are
        allowed or a start has them (default: auto).
    seconds
        Time budget in seconds; for a Pareto front, of all its limits together (default: 10; for a Pareto front, 10 per
        limit).
    seed
        Random seed (default: 0).
    workers
        Number of threads (default: the number of cores).
    full_backward
        Keep every backward pass whole; alias of leave=split.
    leave
        Choices to keep fixed: split, overlap, weight-order; repeatable or comma-separated.
    objective
        Objective to minimize: the makespan, or the longest span of a rank, with ops that start as soon as they can
        (default: makespan).
    evaluations
        Limit on evaluated schedules; the same seed then gives the same answer. Starts and published schedules are
        always evaluated.
    start
        Schedule to start from, a name or a file; repeatable. The answer is never worse than it.
    decide
        Further choices to optimize: recompute, offload; repeatable or comma-separated.
    points
        Approximate number of memory limits to search under; the memory peaks of the best published schedules are among
        them (default: 8).
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Raises
    ------
    InputError
        For fewer than two points, and what :func:`pipeplan.search` raises it for.
    """
    return front_found(*options_and_settings(ParetoOptions, options), progress=progress)


def front_found(
    options: ParetoOptions,
    settings: Settings,
    *,
    progress: Callable[[float, SearchProgress], None] | None = None,
) -> ParetoFront:
    """See :func:`pareto`."""
    problems = problems_of(settings, options)
    schedules = _starts(options, settings, problems)
    unlimited, allowed = replace(settings, memory_limit=None), searched_needs(options, settings, schedules)
    everywhere = published_under(
        replace(problems[0], limits=None), unlimited, in_bytes=problems[0].costs.memory.in_bytes
    )
    points = front_of(
        problems,
        points=options.points,
        seconds=options.seconds,
        evaluations=options.evaluations,
        seed=options.seed,
        workers=usable_cores() if options.workers is None else options.workers,
        progress=progress,
        start=schedules,
        published_at=(
            (lambda limit: _competing(everywhere(limit), unlimited, allowed)) if options.placement == AUTO else None
        ),
    )
    return front_of_points(
        memory="bytes" if points.in_bytes else "activations",
        points=tuple(
            front_point(
                limit=None if point.limit == float("inf") else point.limit,
                peak=point.peak,
                value=point.value,
                result=result_found(
                    point.result,
                    unlimited,
                    allowed=allowed,
                    published=everywhere(point.limit),
                    tried=point.tried,
                    starts=bool(schedules),
                    timed=options.seconds is not None or options.evaluations is None,
                ),
            )
            for point in points.points
        ),
        published=_marks(everywhere, points, problems, allowed),
    )


def _marks(
    published: Callable[[float], list[PublishedEntry]], front: Front, problems: Sequence[Problem], allowed: Allowed
) -> tuple[FrontMark, ...]:
    """Return the published schedules of the searched placements under the limits of a front, by memory, then by time."""
    placements = {problem.placement.rank_of for problem in problems}
    limits = {point.limit for point in front.points}
    if problems[0].limits is None:
        limits.add(float("inf"))
    entries = [entry for limit in sorted(limits) for entry in published(limit)]
    marks = {
        (mark.peak, mark.value, mark.schedule): mark
        for entry in entries
        if entry.schedule.placement.rank_of in placements and not missing(needs_of(entry.schedule), allowed)
        for mark in [FrontMark(schedule=entry.schedule.name, peak=entry.peak, value=entry.value)]
    }
    # Of a shape that is too large to generate all of them, the searches have tried those of their placements.
    return tuple(marks[key] for key in sorted(marks)) if entries else front.marks


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def result_found(
    solution: SearchResult,
    settings: Settings,
    *,
    allowed: Allowed = frozenset(),
    published: Iterable[PublishedEntry] = (),
    tried: tuple[PlacementTried, ...] = (),
    layout: Layout | None = None,
    starts: bool = False,
    timed: bool = False,
) -> Result:
    """Return the solver's schedule as a result, under the name of a search.

    ``allowed`` is what schedules that it is compared with may need; ``published`` are the published schedules of all
    placements, ``tried`` the bound and best value of each placement.
    ``layout``: the layers of each stage, if the search decided them; ``settings`` have them then. ``timed`` is True if the
    search had a time limit.
    """
    simulation, problem = solution.simulation, solution.problem
    baseline = baseline_of(solution, list(published), allowed, fixed=layout is None)
    timeline = replace(simulation.timeline, schedule=solution.schedule.renamed("search"))
    record = record_of(
        solution,
        baseline.here,
        baseline.anywhere,
        baseline.faster_with_more,
        tried,
        need=least_need(problem) if baseline.here is None else None,
        layout=layout,
    )
    warnings, notes = assumed_times(settings, solution.schedule)
    slow = slow_kernels(record) if timed else ()
    return result_of(
        replace(simulation, timeline=timeline),
        limits=problem.limits,
        search=record,
        warnings=(*warnings, *_unused(settings, solution, starts), *slow),
        notes=(*allowed_in_words(settings), *not_compared(problem), *not_proven(solution), *notes),
        sharding=sharding_searched(problem.sharding),
        settings=None if layout is None else settings,
    )


def _expressible(problems: list[Problem], outputs: Sequence[Path]) -> list[Problem]:
    """Return the problems whose schedules the formats of outputs can hold. Raises InputError if there are none."""
    if not outputs:
        return problems
    expressible = [problem for problem in problems if _is_expressible(_one_by_one(problem), problem, outputs)]
    if not expressible:
        _require_expressible(_one_by_one(problems[0]), problems[0], outputs)
    return expressible


def _is_expressible(schedule: Schedule, problem: Problem, outputs: Sequence[Path]) -> bool:
    try:
        _require_expressible(schedule, problem, outputs)
    except InputError:
        return False
    return True


def _require_expressible(schedule: Schedule, problem: Problem, outputs: Sequence[Path]) -> None:
    if outputs:
        there = replace(problem, costs=problem.costs.uniform(), microbatches=schedule.microbatches)
        simulation = there.simulated(schedule)
        require_expressible(
            outputs, TimelineContent(timeline=simulation.timeline, memory=simulation.memory, costs=there.costs)
        )


def _one_by_one(problem: Problem) -> Schedule:
    """Return a schedule of a problem's placement and slices that runs a few microbatches one after the other.

    Its backwards are split where the search may split them.
    """
    placement, slices = problem.placement, range(problem.slices)
    backward = (Kind.I, Kind.W) if problem.split_backward else (Kind.B,)
    microbatches = placement.copies * min(problem.microbatches // placement.copies, 2 * placement.ranks)
    rows: list[list[Op]] = [[] for _ in range(placement.ranks)]
    for microbatch in range(microbatches):
        ranks = placement.table[microbatch * placement.copies // microbatches].tolist()
        for part, (stage, rank) in product(slices, enumerate(ranks)):
            rows[rank].append(Op(Kind.F, stage, microbatch, part))
        for part, (stage, rank) in product(reversed(slices), reversed([*enumerate(ranks)])):
            rows[rank] += (Op(kind, stage, microbatch, part) for kind in backward)
    columns = [from_ops(row) for row in rows]
    return Schedule.from_rows(placement, microbatches, columns, slices=problem.slices, name="search")


def _competing(published: Iterable[PublishedEntry], settings: Settings, allowed: Allowed) -> list[PublishedEntry]:
    """Return the published schedules that an answer is never worse than: those that need nothing but what is allowed.

    They have as many slices as the settings, where these name a number.
    """
    slices = settings.slices
    return [
        entry
        for entry in published
        if not missing(needs_of(entry.schedule), allowed) and slices in (None, entry.schedule.slices)
    ]


def _unused(settings: Settings, solution: SearchResult, starts: bool) -> Iterator[str]:
    """Yield a warning for each setting that has no effect on a search."""
    for name in () if starts else ("group_size", "variant"):
        if getattr(settings, name) is not None:
            yield f"{name.replace('_', ' ')} has no effect: a search finds its own order, unless it has a start"
    if settings.slice_attention is not None and solution.problem.slices == 1:
        yield "slice attention has no effect: a search cuts sequences only with slices"


def _starts(options: ScheduleSearchOptions, settings: Settings, problems: list[Problem]) -> list[Schedule]:
    """Return the schedules that a search goes on from; with any placement, add the problem of each one's own.

    Raises ShapeError for a start of another placement, or of other microbatches or slices, or whose pairs are left out.
    """
    sources = options.start if isinstance(options.start, list | tuple) else [options.start]
    schedules = [resolve(source, settings) for source in sources]
    for source, schedule in zip(sources, schedules, strict=True):
        there = schedule.placement
        own = next((problem for problem in problems if problem.placement.rank_of == there.rank_of), None)
        if own is None and options.placement == AUTO and schedule.ranks == problems[0].placement.ranks:
            own = replace(problems[0], placement=there, costs=settings.costs(there), limits=settings.limits(there))
            problems.append(own)
        if own is None:
            first = problems[0].placement
            raise ShapeError(
                f"cannot start from {label(source)}: its placement is {there.name} with {schedule.stages} stages, "
                f"and the search is for {first.name} with {first.stages}",
                field="start",
            )
        require_shape(schedule, own)
        if own.costs.has_pair_times and not own.choices.overlap and schedule.joined.any():
            raise ShapeError(
                f"cannot start from {label(source)}: it overlaps forwards with backwards, and leave overlap overlaps none: "
                "drop one of the two",
                field="start",
            )
    return schedules
