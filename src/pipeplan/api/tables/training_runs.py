"""A run beside its prediction, and a profile, for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from pipeplan.api.run_costs import RunCosts
from pipeplan.api.tables.parts import columns, facts, line, number, size
from pipeplan.api.training_runs import CostProfile, TrainingRun

if TYPE_CHECKING:
    from pipeplan.runtime import Profile


def cost_parts(profile: CostProfile) -> tuple[RenderableType, ...]:
    """What stages cost, from wherever it was measured."""
    measured = profile.measured
    return run_cost_parts(measured) if isinstance(measured, RunCosts) else profile_parts(measured)


def run_cost_parts(costs: RunCosts) -> tuple[RenderableType, ...]:
    """What the ops of a run took, with their spread, and its steps beside what is predicted on these costs."""
    kinds = list(dict.fromkeys(kind for times in costs.stages for kind in times))
    table = columns("stage", *(f"{kind} (ms)" if kind == kinds[0] else kind for kind in kinds), padding=1)
    for number_, times in enumerate(costs.stages):
        spreads = [str(times[kind]) if kind in times else "" for kind in kinds]
        # Quartiles stand below their median where three columns of both would leave no room for the first one.
        table.add_row(str(number_), *(each.replace(" (", "\n(") if len(kinds) > 2 else each for each in spreads))
    rows = [(words, f"{spread} ms") for words, spread in costs.between() if spread is not None]
    step = f"{costs.measured_steps} ms; on these costs {costs.predicted_step:.4g} ms ({costs.error:+.1%})"
    notes = [line(costs.provenance()[0])]
    if costs.run.left_out:
        notes.append(line(f"left out, without times of a run: {len(costs.run.left_out)} file(s)"))
    return *notes, Padding(facts([*rows, ("step, measured", step)]), (1, 0)), table


def training_parts(training: TrainingRun) -> tuple[RenderableType, ...]:
    """What ran, predicted beside measured, and the gradients."""
    run, predicted = training.run, training.predicted
    schedule = predicted.schedule
    heading = (
        f"{predicted.name} on {run.model} ({run.dtype}, {run.device}, {run.threads} thread(s) a rank): "
        f"{schedule.ranks} ranks, {schedule.stages} stages ({schedule.placement.name}), {schedule.microbatches} microbatches"
    )
    median = run.median_step_seconds
    rows = [
        ("step, measured", f"{median * 1e3:,.1f} ms median of {len(run.step_seconds)} ({_range(run.step_seconds)})"),
        (
            "step, predicted",
            f"{training.predicted_seconds * 1e3:,.1f} ms ({training.predicted_seconds / median - 1:+.1%})",
        ),
        ("predicted on", training.predicted_on),
        ("loss", f"{run.losses[0]:.4f} to {run.losses[-1]:.4f} in {len(run.losses)} steps"),
        ("gradients", _gradients(training)),
    ]
    return line(heading, "bold"), Padding(facts(rows), (1, 0)), _bubbles(training)


def _range(steps: tuple[float, ...]) -> str:
    return f"{min(steps) * 1e3:,.1f} to {max(steps) * 1e3:,.1f}"


def _gradients(training: TrainingRun) -> str:
    run = training.run
    if run.max_gradient_difference is None:
        return "not compared (--verify compares them with a single-process run)"
    verdict = (
        "equal" if run.max_gradient_difference == 0 else "within tolerance" if run.gradients_equal else "DIFFERENT"
    )
    return f"{verdict}: largest difference {run.max_gradient_difference:.3g}, tolerance {run.tolerance:.3g}"


def _bubbles(training: TrainingRun) -> RenderableType:
    unit = training.predicted.timeline.unit
    table = columns(
        "rank", f"busy, predicted\n({unit})", "busy,\nmeasured", "idle,\npredicted", "idle,\nmeasured", padding=1
    )
    predicted, measured = training.predicted.timeline, training.measured.timeline
    for rank in range(predicted.schedule.ranks):
        values = (predicted.work[rank], measured.work[rank], predicted.idle[rank], measured.idle[rank])
        table.add_row(str(rank), *(number(float(value)) for value in values))
    return table


def profile_parts(profile: Profile) -> tuple[RenderableType, ...]:
    """Times with their spread and bytes of every stage."""
    table = columns("stage", "F (ms)", "B", "I", "W", "held", "by W", "static", padding=1)
    for number_, stage in enumerate(profile.stages):
        times = (stage.forward, stage.backward, stage.backward_input, stage.backward_weight)
        sizes = (stage.activation_bytes, stage.weight_activation_bytes, stage.static_bytes)
        table.add_row(str(number_), *(f"{time.median:.3g}" for time in times), *(size(float(value)) for value in sizes))
    transfer = "not measured" if profile.p2p_time is None else f"{profile.p2p_time:.3g} ms"
    notes = [line(text) for text in profile.provenance()[:2]]
    said = [f"transfer between ranks: {transfer}"]
    said += [] if profile.op_gap is None else [f"gap before every op: {profile.op_gap.median:.3g} ms"]
    said += (
        [] if profile.message_time is None else [f"a message takes from a rank: {profile.message_time.median:.3g} ms"]
    )
    return *notes, *map(Text, said), Text(""), table
