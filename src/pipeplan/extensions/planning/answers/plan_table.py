"""Table and picture of a plan: the choice, its reasons, and the inputs that would change it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from itertools import islice, product
from string import ascii_lowercase
from typing import TYPE_CHECKING

from msgspec.structs import asdict

from pipeplan.answers.headlined import ShownOptions, more_rows
from pipeplan.answers.parts import MOST_ROWS, columns, facts, figure, line
from pipeplan.drawing.front import FrontView
from pipeplan.drawing.plan import PlanView
from pipeplan.extensions.planning import Configuration, Estimate, GpuMemory, StepTime, software
from pipeplan.extensions.planning.answers.estimates import (
    assumption_parts,
    estimate_parts,
    peak_in_words,
    spent_in_words,
    step_in_words,
)
from pipeplan.extensions.planning.choice.choice import INDISTINGUISHABLE
from pipeplan.extensions.planning.choice.describing import beside, degrees_in_words, schedule_in_words, zero_in_words
from pipeplan.extensions.planning.choice.sentences import (
    fit_in_words,
    pipelined_in_words,
    trainer_in_words,
    training_in_words,
    what_in_words,
)
from pipeplan.extensions.planning.plan_records import BestConfiguration, PlannedConfiguration, PlanResult
from pipeplan.foundation.readable import percent
from pipeplan.foundation.records import titles_of
from pipeplan.model import counted, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

MOST_RUNNERS_UP = 3
"""Runners-up that are listed without ``--all`` and ``--verbose``."""

DETAILS = ("parts of the step", "memory of each rank", "the Pareto front", "changed inputs", "what was not tried")
"""What ``--verbose`` adds to a plan."""


def choice_parts(plan: PlanResult, best: BestConfiguration, shown: ShownOptions) -> Iterator[RenderableType]:
    """Return the choice and what decides; with ``verbose``, all that speaks for and against it."""
    details = shown.verbose
    yield facts(_choice(plan, best, details=details), above=1, below=1)
    if details and (pipelined := pipelined_in_words(plan)):
        yield line(pipelined)
        yield line()
    yield from _runners_up(plan, best, shown)
    yield from _searched(plan, best, shown)
    if details:
        yield from _front(plan, shown)
        yield from estimate_parts(best, plan.memory_limit_gib)
    yield from assumption_parts(plan.assumptions, f"--fix software={best.configuration.software}", shown)
    if details:
        yield from _sensitivity(plan)
        yield from _trust(best)
    else:
        if unusual := _unusual_assumptions(best):
            yield line(f"also assumed: {'; '.join(unusual)}")
        if changes := _changes_in_words(plan):
            yield line(f"another plan is best with: {changes}")
    if plan.left_out and details:
        yield line(f"tried only if fixed (--fix) or allowed (--allow): {'; '.join(plan.left_out)}")


def miss_parts(plan: PlanResult, shown: ShownOptions) -> Iterator[RenderableType]:
    """Return the configuration that comes nearest where nothing fits."""
    yield line()
    if plan.closest_miss is not None:
        if shown.verbose:
            yield from estimate_parts(plan.closest_miss, plan.memory_limit_gib)
        else:
            yield line(f"on the fullest rank: {peak_in_words(plan.closest_miss)}")
    yield line(f"none of {counted(plan.counts.legal, 'valid configuration')} fits")


def _choice(plan: PlanResult, best: BestConfiguration, *, details: bool) -> list[tuple[str, str]]:
    chosen = best.configuration
    size = counted(chosen.microbatch_size, "sequence")
    per_gpu = f"{best.tokens_per_second / chosen.gpus:,.0f} per GPU"
    saved = "no recomputation, no offload" if best.recompute == "none" else f"recomputation, offload: {best.recompute}"
    # The headline has the step and its error, and the peak.
    more = [
        ("software", software(chosen.software).title),
        ("step", step_in_words(best)),
        ("peak memory", f"{best.peak_memory_gib:.1f} of {plan.memory_limit_gib:.1f} GiB{fit_in_words(plan)}"),
        ("fullest rank", peak_in_words(best)),
        ("chosen from", _counted(plan)),
    ]
    return [
        *((("trainer", trainer_in_words(plan, reasons=details)),) if plan.trainer else ()),
        ("degrees", ", ".join(_degrees(chosen))),
        ("schedule", f"{', '.join(_schedule(chosen))} of {size}"),
        ("layers", f"{best.layout}; {saved}"),
        ("spent on", spent_in_words(best)),
        ("tokens/s", f"{best.tokens_per_second:,.0f} ({per_gpu}), MFU {percent(best.mfu)}"),
        *((("training", training_in_words(plan.totals)),) if plan.totals is not None else ()),
        *(more if details else ()),
    ]


def _degrees(chosen: Configuration) -> Iterator[str]:
    degrees = degrees_in_words(chosen)
    yield f"{degrees} on {chosen.gpus:,} GPUs" if chosen.gpus > 1 else degrees
    yield zero_in_words(chosen)
    yield chosen.precision


def _schedule(chosen: Configuration) -> Iterator[str]:
    if chosen.pipeline == 1:
        yield _without_pipeline(chosen)
    else:
        yield chosen.schedule
    if chosen.chunks > 1:
        yield f"{counted(chosen.chunks, 'chunk')} per rank"
    yield counted(chosen.microbatches, "microbatch")


def _without_pipeline(chosen: Configuration) -> str:
    """Return that there is no pipeline, and the kinds of parallelism in its place: ``no pipeline (FSDP only)``."""
    data = "DP" if chosen.zero < 3 else "FSDP" if chosen.replicate == 1 else "HSDP"
    degrees = {data: chosen.data, "TP": chosen.tensor, "CP": chosen.context, "EP": chosen.expert}
    kinds = [name for name, degree in degrees.items() if degree > 1]
    return f"no pipeline ({' + '.join(kinds)}{' only' if len(kinds) == 1 else ''})" if kinds else "no pipeline"


def _counted(plan: PlanResult) -> str:
    counts = plan.counts
    rest = "" if plan.complete else " or not reached (--seconds reaches more)"
    return (
        f"{counted(counts.legal, 'valid configuration')}: {counts.over_memory:,} exceed memory, {counts.too_slow:,} ruled "
        f"out by bounds{rest}; {counted(counts.estimated, 'estimate')} in {plan.seconds:.1f} s"
    )


def _runners_up(plan: PlanResult, best: BestConfiguration, shown: ShownOptions) -> Iterator[RenderableType]:
    """Return the table of the plan and the runners-up.

    It has the first ones, the best with a pipeline if the plan has none, and one that is faster but does not fit.
    """
    if not plan.runners_up:
        return
    others: list[tuple[PlannedConfiguration, str]] = [(runner, runner.lost_because) for runner in plan.runners_up]
    if plan.pipelined is not None and not plan.pipelined.won:
        listed = [runner.configuration for runner, _ in others]
        if plan.pipelined.configuration not in listed:
            others.insert(1, (plan.pipelined, plan.pipelined.because))
    most = len(others) if shown.all else MOST_ROWS - 1 if shown.verbose else MOST_RUNNERS_UP
    over = [row for row in others[most - 1 :] if row[0].peak_memory_gib > plan.memory_limit_gib]
    rows = [*others[: most - 1], *over[:1]] if over else others[:most]
    table = columns("configuration", "step (s)", "GiB", "lost because", padding=1, text_last=True)
    words = best.words if shown.verbose else what_in_words(best.configuration)
    table.add_row(one_line(words), figure(best.step_time), f"{best.peak_memory_gib:.1f}", "the plan")
    for estimate, because in rows:
        words = estimate.words if shown.verbose else beside(estimate.configuration, best.configuration)
        why = because if shown.verbose else _main_cause(because)
        table.add_row(one_line(words), figure(estimate.step_time), f"{estimate.peak_memory_gib:.1f}", one_line(why))
    yield table
    yield from more_rows(len(others) - len(rows), "further configuration")
    yield line()


def _main_cause(because: str) -> str:
    """Return a reason without the smaller of its causes, each of which begins with the sign of its seconds."""
    return re.split(r", [+-]", because, maxsplit=1)[0]


def _changes_in_words(plan: PlanResult) -> str:
    """Return the changed inputs with which another plan is the best, the largest effect first: ``memory limit -10%``."""
    changes = sorted((effect for effect in plan.sensitivity if effect.changes), key=lambda effect: -abs(effect.gain))
    return ", ".join(effect.what for effect in changes)


def _front(plan: PlanResult, shown: ShownOptions) -> Iterator[RenderableType]:
    if len(plan.front) < 2:
        return
    table = columns("Pareto front", "step (s)", "peak (GiB)", "MFU", padding=1)
    listed = plan.front if shown.all else _thinned(plan.front)
    for entry in listed:
        figures = figure(entry.step_time), f"{entry.peak_memory_gib:.1f}", percent(entry.mfu)
        table.add_row(one_line(entry.words), *figures)
    yield table
    yield from more_rows(len(plan.front) - len(listed), "point")
    yield line()


def _thinned(front: Sequence[PlannedConfiguration]) -> Sequence[PlannedConfiguration]:
    """Return the ends of a front and evenly spaced points between them."""
    if len(front) <= MOST_ROWS:
        return front
    return [front[round(place * (len(front) - 1) / (MOST_ROWS - 1))] for place in range(MOST_ROWS)]


def _searched(plan: PlanResult, best: BestConfiguration, shown: ShownOptions) -> Iterator[RenderableType]:
    searched = plan.searched
    if searched is None:
        return
    slower = ", still slower than the plan" if searched.step_time > best.step_time else ""
    steps = f"{figure(searched.step_time)} s instead of {figure(searched.instead_of_s)} s{slower}"
    if not shown.verbose:
        yield line(f"a searched order takes {steps}: -o NAME.searched.csv writes it for PyTorch's runtime")
        return
    yield line(
        f"searched order: {steps} for {searched.words} (found by {searched.found_by}; optimality gap "
        f"{percent(searched.optimality_gap)}). No trainer flag can express this order: -o NAME.searched.csv writes it for "
        "PyTorch's runtime"
    )
    yield line()


def _sensitivity(plan: PlanResult) -> Iterator[RenderableType]:
    """Return the table of changed inputs."""
    table = columns("changed input", "step (s)", "best plan", padding=1, text_last=True)
    for effect in plan.sensitivity:
        choice = effect.instead if effect.changes else "unchanged"
        table.add_row(effect.what, figure(effect.step_time), one_line(choice))
    yield table
    yield line()


def _trust(best: Estimate) -> Iterator[RenderableType]:
    """Return how sure the prediction is: the error bar, the origin of times, all assumptions."""
    if (bar := best.error_bar) is not None:
        yield line(f"error: most of {bar.basis} took {bar.low:.2f}-{bar.high:.2f} times the prediction")
    for origin in ("measured", "calibrated", "analytic"):
        if kinds := [kind for kind, source in best.costs_from.items() if source == origin]:
            yield line(f"{origin}: {', '.join(kinds)}")
    if best.assumed:
        yield line(f"assumed: {'; '.join(best.assumed)}")


def _unusual_assumptions(best: Estimate) -> list[str]:
    """Return the assumptions besides those of every plan: the trainer's software, and causal attention."""
    return [assumed for assumed in best.assumed if not assumed.startswith(("software: ", "attention: causal"))]


MOST_COMPARED = 6
"""Configurations whose step times are compared."""


def plan_view(plan: PlanResult) -> PlanView:
    """Return the picture: the front, the step's time of the first few, and the memory of the best one's ranks.

    If nothing fits, it shows the closest miss.
    """
    shown = [estimate for estimate in (plan.best or plan.closest_miss, *plan.runners_up) if estimate is not None]
    return PlanView(
        title=plan.heading if plan.best is None else f"{plan.headline}\n{plan.heading}",
        front=None if plan.best is None else _front_view(plan, plan.best),
        times=[
            (f"{place or 'chosen'}: {_label(estimate)}", asdict(estimate.time))
            for place, estimate in enumerate(shown[:MOST_COMPARED])
        ],
        memory=[(f"rank {rank}", asdict(held)) for rank, held in enumerate(shown[0].memory)] if shown else [],
        time_titles=titles_of(StepTime),
        memory_titles=titles_of(GpuMemory),
        limit=plan.memory_limit_gib,
    )


def _front_view(plan: PlanResult, best: Estimate) -> FrontView:
    """Return the front with the fastest and the chosen point, those that predictions cannot tell apart, and the limit."""
    front = sorted(plan.front or (best,), key=lambda estimate: estimate.peak_bytes)
    places = {runner.configuration: str(place) for place, runner in enumerate(plan.runners_up, start=1)}
    fastest = min(front, key=lambda estimate: estimate.step_time)
    letters = _letters(len(front))

    def name(estimate: Estimate) -> str:
        here = [
            "chosen" if estimate.configuration == best.configuration else "",
            "fastest" if estimate is fastest else "",
            places.get(estimate.configuration, ""),
        ]
        return ", ".join(filter(None, here)) or next(letters)

    names = [name(estimate) for estimate in front]
    shown = {estimate.configuration for estimate in front}
    marks: list[Estimate] = [runner for runner in plan.runners_up if runner.configuration not in shown]
    if best.configuration not in shown:
        marks.insert(0, best)
    others = [(places.get(other.configuration, "chosen"), other) for other in marks]
    return FrontView(
        title="Step time against memory",
        memory_label="peak memory (GiB)",
        time_label="step time",
        points=[_place(estimate) for estimate in front],
        names=names,
        key=[
            *((name, _in_a_line(estimate)) for name, estimate in zip(names, front, strict=True)),
            *((name, _in_a_line(other)) for name, other in others),
        ],
        unit="s",
        bounds=[],
        marks=[(name, *_place(other)) for name, other in others],
        ours="Pareto front",
        others="runners-up",
        band=(1 + INDISTINGUISHABLE) * fastest.step_time,
        band_title=f"within {INDISTINGUISHABLE:.0%} of the fastest",
        limit=(plan.memory_limit_gib, f"limit, {plan.memory_limit_gib:.1f} GiB"),
    )


def _label(estimate: Estimate) -> str:
    chosen = estimate.configuration
    return f"{degrees_in_words(chosen)}\n{schedule_in_words(chosen)}"


def _in_a_line(estimate: Estimate) -> str:
    return _label(estimate).replace("\n", ", ")


def _letters(count: int) -> Iterator[str]:
    """Return names for this many points: a to z, then aa, ab and so on."""
    words = ("".join(letters) for length in itertools.count(1) for letters in product(ascii_lowercase, repeat=length))
    return islice(words, count)


def _place(estimate: Estimate) -> tuple[float, float]:
    return estimate.peak_memory_gib, estimate.step_time
