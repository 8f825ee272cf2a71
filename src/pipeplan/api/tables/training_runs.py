"""A run beside its prediction, and a profile, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding

from pipeplan.api.tables.parts import columns, facts, line, sizes
from pipeplan.api.training.noise import noise_of_steps
from pipeplan.api.training.run_costs import RunCosts
from pipeplan.api.training.training_runs import CostProfile, TrainingRun
from pipeplan.readable import Times, change, percent, time_text

if TYPE_CHECKING:
    from pipeplan.runtime import Profile


def cost_parts(profile: CostProfile) -> tuple[RenderableType, ...]:
    """What stages cost, from wherever it was measured."""
    measured = profile.measured
    return run_cost_parts(measured) if isinstance(measured, RunCosts) else profile_parts(profile, measured)


def run_cost_parts(costs: RunCosts) -> tuple[RenderableType, ...]:
    """What the ops of a run took, with their spread, and its steps beside what is predicted on these costs."""
    kinds = list(dict.fromkeys(kind for times in costs.stages for kind in times))
    table = columns("stage", *(f"{kind} (ms)" if kind == kinds[0] else kind for kind in kinds), padding=1)
    for number_, times in enumerate(costs.stages):
        spreads = [str(times[kind]) if kind in times else "" for kind in kinds]
        # Quartiles stand below their median where three columns of both would leave no room for the first one.
        table.add_row(str(number_), *(each.replace(" (", "\n(") if len(kinds) > 2 else each for each in spreads))
    rows = [(words, f"{spread} ms") for words, spread in costs.between() if spread is not None]
    steps, predicted = costs.measured_steps, costs.predicted_step
    form = Times.of((steps.median, predicted), "ms")
    step = (
        f"{form.text(steps.median)} (half of {steps.count}: {form.number(steps.low)} to {form.text(steps.high)}); "
        f"on these costs {form.text(predicted)} ({change(costs.error)})"
    )
    rows.append(("step, measured", step))
    rows += [("noise", noise)] if (noise := noise_of_steps(steps, "ms")) else []
    notes = [line(costs.provenance()[0])]
    if costs.run.left_out:
        notes.append(line(f"left out, without times of a run: {len(costs.run.left_out)} file(s)"))
    notes += [line(f"warning: {reason}", "yellow") for reason in costs.doubts()]
    return *notes, Padding(facts(rows), (1, 0)), table


def training_parts(training: TrainingRun) -> tuple[RenderableType, ...]:
    """What ran, predicted beside measured, and the gradients."""
    run, predicted = training.run, training.predicted
    schedule = predicted.schedule
    heading = (
        f"{predicted.name} on {run.model} ({run.dtype}, {run.device}, {run.threads} thread(s) a rank): "
        f"{schedule.ranks} ranks, {schedule.stages} stages ({schedule.placement.name}), {schedule.microbatches} microbatches"
    )
    times = Times.of((*run.step_seconds, training.predicted_seconds), "s")
    rows = [
        ("step, measured", f"{times.text(run.median_step_seconds)}, {_of_steps(run.step_seconds, times)}"),
        ("step, predicted", f"{times.text(training.predicted_seconds)}: {_compared(training.change)}"),
        ("predicted on", training.predicted_on),
        *([("noise", training.noise)] if training.noise else []),
        ("loss", f"{run.losses[0]:.4f} to {run.losses[-1]:.4f} in {len(run.losses)} steps"),
        ("gradients", _gradients(training)),
    ]
    return line(heading, "bold"), Padding(facts(rows), (1, 0)), _bubbles(training)


def _of_steps(steps: tuple[float, ...], times: Times) -> str:
    """Of how many steps a median is, and between which they lie."""
    if len(steps) == 1:
        return "one step"
    return f"the median of {len(steps)} steps ({times.number(min(steps))} to {times.text(max(steps))})"


def _compared(share: float) -> str:
    """A run beside its prediction."""
    if percent(share) == percent(0.0):
        return "the run took as long"
    return f"the run took {percent(abs(share))} {'longer' if share > 0 else 'less'}"


def _gradients(training: TrainingRun) -> str:
    run = training.run
    if run.max_gradient_difference is None:
        return "not compared (--verify compares them with a single-process run)"
    verdict = (
        "equal" if run.max_gradient_difference == 0 else "within tolerance" if run.gradients_equal else "DIFFERENT"
    )
    return f"{verdict}: largest difference {run.max_gradient_difference:.3g}, tolerance {run.tolerance:.3g}"


def _bubbles(training: TrainingRun) -> RenderableType:
    predicted, measured = training.predicted.timeline, training.measured.timeline
    times = Times.of((predicted.makespan, measured.makespan), predicted.unit)
    unit = f"\n({times.unit})" if times.unit else ""
    table = columns(
        "rank", f"busy, predicted{unit}", "busy,\nmeasured", "idle,\npredicted", "idle,\nmeasured", padding=1
    )
    for rank in range(predicted.schedule.ranks):
        values = (predicted.work[rank], measured.work[rank], predicted.idle[rank], measured.idle[rank])
        table.add_row(str(rank), *(times.number(float(value)) for value in values))
    return table


def profile_parts(profile: CostProfile, measured: Profile) -> tuple[RenderableType, ...]:
    """Times with their spread and bytes of every stage."""
    stages = measured.stages
    forms = [
        (stage.forward, stage.backward, stage.backward_input, stage.backward_weight, stage.recompute, stage.offload)
        for stage in stages
    ]
    times = Times.of((spread.median for spreads in forms for spread in spreads), "ms")
    table = columns("stage", f"F ({times.unit})", "B", "I", "W", "R", "copy", "held", "by W", "static", padding=1)
    held = (
        sizes([float(getattr(stage, name)) for stage in stages])
        for name in ("activation_bytes", "weight_activation_bytes", "static_bytes")
    )
    for number_, (spreads, *bytes_) in enumerate(zip(forms, *held, strict=True)):
        table.add_row(str(number_), *(times.number(spread.median) for spread in spreads), *bytes_)
    transfer = "not measured" if measured.p2p_time is None else time_text(measured.p2p_time, "ms")
    said = [("transfer between ranks", transfer)]
    said += [] if measured.op_gap is None else [("gap before every op", time_text(measured.op_gap.median, "ms"))]
    said += (
        []
        if measured.message_time is None
        else [("a message takes from a rank", time_text(measured.message_time.median, "ms"))]
    )
    said += [("noise", text) for text in profile.checks()]
    return *map(line, measured.provenance()[:2]), Padding(facts(said), (1, 0)), table
