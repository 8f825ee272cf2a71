"""A plan for a terminal: the choice in a few lines, then why, beside what, and how sure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pipeplan.api.planning.configurations import degrees_in_words, in_words, layout_in_words, recompute_in_words
from pipeplan.api.tables.parts import columns, facts, figure, line, shown_ranks
from pipeplan.drawing import MEMORY_SHARES, TIME_SHARES, Share
from pipeplan.files import GIBIBYTE
from pipeplan.model import counted, one_line
from pipeplan.readable import percent

if TYPE_CHECKING:
    # A plan's table must not load the planner for those who print another answer.
    from pipeplan.api.planning.plans import Plan
    from pipeplan.planner import Configuration, Estimate


MOST_OF_FRONT = 10
"""Configurations of a front that are listed."""


def plan_parts(plan: Plan) -> Iterator[RenderableType]:
    """The answer, from what is decided on to what would change it."""
    yield line(plan.heading, "bold")
    if plan.best is None:
        yield from _nothing(plan)
        return
    yield Padding(facts(_choice(plan, plan.best)), (1, 0))
    if plan.unfinished:
        yield line(f"note: {plan.unfinished}")
        yield Text("")
    yield from _runners_up(plan)
    yield from _front(plan)
    yield from estimate_parts(plan.best, plan.planned.memory_limit)
    yield from _searched(plan)
    yield from _sensitivity(plan)
    yield from _trust(plan.best)
    yield from _left_out(plan)
    yield from _flags(plan)


def _nothing(plan: Plan) -> Iterator[RenderableType]:
    yield line(plan.miss)
    closest = plan.planned.closest_miss
    if closest is not None:
        yield from estimate_parts(closest.estimate, plan.planned.memory_limit)
    yield line(_counted(plan))


def _choice(plan: Plan, best: Estimate) -> list[tuple[str, str]]:
    chosen = best.configuration
    limit = plan.planned.memory_limit / GIBIBYTE
    return [
        ("degrees", f"{degrees_in_words(chosen)} on {chosen.gpus} GPUs, ZeRO-{chosen.zero}, {chosen.precision}"),
        ("schedule", ", ".join(_schedule(chosen))),
        ("microbatch", counted(chosen.microbatch_size, "sequence")),
        ("layers on each stage", layout_in_words(chosen)),
        ("recomputed or moved", recompute_in_words(chosen)),
        ("step", step_in_words(best)),
        ("tokens a second", f"{best.tokens_per_second:,.0f} ({best.tokens_per_second / chosen.gpus:,.0f} a GPU)"),
        ("MFU", f"{percent(best.mfu)} of the dense peak (causal attention half, recomputation not counted)"),
        ("peak memory", f"{best.peak_bytes / GIBIBYTE:.1f} GiB of {limit:.1f} GiB that may be used"),
        ("chosen for", f"{plan.planned.objective}; {_counted(plan)}"),
    ]


def _schedule(chosen: Configuration) -> Iterator[str]:
    yield chosen.schedule
    if chosen.chunks > 1:
        yield f"{counted(chosen.chunks, 'chunk')} a rank"
    yield counted(chosen.microbatches, "microbatch")


def step_in_words(found: Estimate) -> str:
    """The step's time, with the error bar where there is one."""
    bar = found.error_bar
    between = (
        ""
        if bar is None
        else f" ({figure(found.step_time * bar.low)} to {figure(found.step_time * bar.high)} s likely)"
    )
    return f"{figure(found.step_time)} s{between}"


def _counted(plan: Plan) -> str:
    counts, planned = plan.planned.counts, plan.planned
    rest = "" if planned.complete else " or not reached"
    return (
        f"{counted(counts.legal, 'legal configuration')}: {counts.over_memory:,} over memory, {counts.too_slow:,} too slow "
        f"by their bounds{rest}; {counted(counts.estimated, 'estimate')} in {planned.seconds:.1f} s"
    )


def _runners_up(plan: Plan) -> Iterator[RenderableType]:
    if not plan.planned.runners_up:
        return
    table = columns("runner-up", "step (s)", "peak\n(GiB)", padding=1)
    table.add_column("lost because", overflow="fold")
    for runner in plan.planned.runners_up:
        found = runner.estimate
        figures = figure(found.step_time), f"{found.peak_bytes / GIBIBYTE:.1f}"
        table.add_row(one_line(in_words(found.configuration)), *figures, one_line(runner.lost_because))
    yield table
    yield Text("")


def _front(plan: Plan) -> Iterator[RenderableType]:
    if len(plan.planned.front) < 2:
        return
    table = columns("front: no other is better in both", "step (s)", "peak (GiB)", "MFU", padding=1)
    shown = _thinned(plan.planned.front)
    for found in shown:
        figures = figure(found.step_time), f"{found.peak_bytes / GIBIBYTE:.1f}", percent(found.mfu)
        table.add_row(one_line(in_words(found.configuration)), *figures)
    yield table
    if len(shown) < len(plan.planned.front):
        yield line(f"{len(plan.planned.front) - len(shown)} between these are in the JSON and in the picture")
    yield Text("")


def _thinned(front: Sequence[Estimate]) -> Sequence[Estimate]:
    """The ends of a front and as many between them as a reader takes in."""
    if len(front) <= MOST_OF_FRONT:
        return front
    return [front[round(place * (len(front) - 1) / (MOST_OF_FRONT - 1))] for place in range(MOST_OF_FRONT)]


def estimate_parts(found: Estimate, limit: float | None = None) -> Iterator[RenderableType]:
    """Where the step's time goes, and what each rank's memory holds."""
    yield _spent(found)
    yield Text("")
    yield _held(found, limit)
    yield Text("")


def _spent(found: Estimate) -> Table:
    table = columns("the step's time", "s", "share", padding=1)
    # All with the digits of the step: what is nothing beside it is left out.
    digits = len(figure(found.step_time).partition(".")[2])
    for name, value in asdict(found.time).items():
        if round(value, digits):
            table.add_row(TIME_SHARES[name].title, f"{value:,.{digits}f}", percent(value / found.step_time))
    return table


def _held(found: Estimate, limit: float | None) -> Table:
    held = [asdict(rank) for rank in found.memory]
    used = _used(held, MEMORY_SHARES)
    over = limit is not None and any(rank.total > limit for rank in found.memory)
    heading = "rank, GiB" if not over else f"rank, GiB (! over {(limit or 0) / GIBIBYTE:.1f})"
    titles = [share.title.replace(" ", "\n") for share in used.values()]
    table = columns(heading, *titles, "total", least=titles[::-1])
    shown = shown_ranks(len(held))
    for place, rank in enumerate(shown):
        if place and rank != shown[place - 1] + 1:
            table.add_row("...")
        total = found.memory[rank].total
        mark = " !" if limit is not None and total > limit else ""
        parts = (f"{held[rank][name] / GIBIBYTE:.1f}" for name in used)
        table.add_row(f"{rank}{mark}", *parts, f"{total / GIBIBYTE:.1f}")
    return table


def _used(bars: Sequence[Mapping[str, float]], shares: Mapping[str, Share]) -> dict[str, Share]:
    """The shares that any bar has."""
    return {name: share for name, share in shares.items() if any(bar[name] for bar in bars)}


def _searched(plan: Plan) -> Iterator[RenderableType]:
    searched = plan.planned.searched
    if searched is None:
        return
    best = plan.best
    behind = best is not None and searched.estimate.step_time > best.step_time
    beside = ", and still longer than the choice takes" if behind else ""
    yield line(
        f"a searched order: {figure(searched.estimate.step_time)} s in place of {figure(searched.instead_of)} s for "
        f"{in_words(searched.estimate.configuration)} (found by {searched.found_by}; at most "
        f"{percent(searched.optimality_gap)} above the best order){beside}; no flags say it: -o NAME.searched.csv writes "
        "it for PyTorch's runtime"
    )
    yield Text("")


def _sensitivity(plan: Plan) -> Iterator[RenderableType]:
    if not plan.planned.sensitivity:
        return
    table = columns("if it were", "step (s)", padding=1)
    table.add_column("the choice", overflow="fold")
    for each in plan.planned.sensitivity:
        choice = f"changes to {each.instead}" if each.changes else "stays"
        table.add_row(each.what, figure(each.step_time), one_line(choice))
    yield table
    yield Text("")


def _trust(best: Estimate) -> Iterator[RenderableType]:
    """How sure it is: the nearest runs, where times are from, what was assumed."""
    bar = best.error_bar
    if bar is None:
        yield line("error: no published run is near enough to say")
    else:
        runs = ", ".join(bar.runs[:4]) + (" and more" if len(bar.runs) > 4 else "")
        yield line(
            f"error: the nearest published runs took {bar.low:.2f} to {bar.high:.2f} times the prediction ({runs})"
        )
    by_origin = {
        origin: [kind for kind, found in best.costs_from.items() if found == origin]
        for origin in ("measured", "calibrated", "analytic")
    }
    for origin, kinds in by_origin.items():
        if kinds:
            yield line(f"{origin}: {', '.join(kinds)}")
    for assumed in best.assumed:
        yield line(f"assumed: {assumed}")


def _left_out(plan: Plan) -> Iterator[RenderableType]:
    if plan.planned.left_out:
        yield line(f"tried only where fixed (--fix): {'; '.join(plan.planned.left_out)}")


def _flags(plan: Plan) -> Iterator[RenderableType]:
    """How to get at the flags: they are long, and for one trainer only."""
    if plan.flags:
        yield line(f"flags: --flags {'|'.join(plan.flags)} prints those of one trainer")
