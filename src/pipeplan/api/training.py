"""A schedule trained for real, beside what was predicted for it; and a model's costs, measured. Both need PyTorch."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeplan.api.commands import simulate_with
from pipeplan.api.results import Result
from pipeplan.api.sources import Source, plan
from pipeplan.costs import Settings
from pipeplan.errors import CostError
from pipeplan.model import Kind, Schedule, Timeline
from pipeplan.passes.torch_lowering import require_expressible
from pipeplan.simulation import Simulation

if TYPE_CHECKING:
    from pipeplan.runtime import Profile, RunResult

SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
"""In a unit of time."""

QUICK_ROUNDS = 7
"""Rounds of the profile that a run without costs takes first."""


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a model is trained or measured; see :func:`pipeplan.runtime.run.run` for what each means."""

    model: str = "gpt-tiny"
    layout: tuple[int, ...] | None = None
    steps: int = 5
    warmup: int = 1
    verify: bool = False
    receives: str = "early"
    device: str = "auto"
    threads: int = 1
    seed: int = 0
    timeout: float = 120.0
    dtype: str | None = None

    @property
    def files(self) -> tuple[Path, ...]:
        """What the model is read from, where it is a function of the user's own in this folder."""
        module, colon, _ = self.model.partition(":")
        path = Path(*module.split("."))
        return (path.with_suffix(".py"), path / "__init__.py") if colon else ()


@dataclass(frozen=True, eq=False)
class Training:
    """A run, and what was predicted for it.

    Attributes
    ----------
    run
        The run as it was measured.
    predicted
        The same plan simulated; on the costs given, or on those that were measured right before the run.
    predicted_on
        Where the costs are from, in words.
    """

    run: RunResult
    predicted: Result
    predicted_on: str

    @property
    def predicted_seconds(self) -> float:
        """The predicted step time: the makespan of the simulation."""
        return self.predicted.makespan * SECONDS[self.predicted.timeline.unit]

    @cached_property
    def measured(self) -> Result:
        """The measured timeline as a result, in the unit of the costs."""
        return Result(Simulation(self._in_unit_of_costs(self.run.timeline), self.predicted.costs))

    def _in_unit_of_costs(self, timeline: Timeline) -> Timeline:
        unit = self.predicted.timeline.unit
        factor = SECONDS[timeline.unit] / SECONDS[unit]
        return replace(timeline, start=timeline.start * factor, end=timeline.end * factor, unit=unit)

    def to_dict(self) -> dict[str, Any]:
        """The figures of the measured timeline, with the step times, the prediction and the gradients' difference.

        A loss or a difference that is not finite, which JSON has no word for, is None.
        """
        run = self.run
        return self.measured.to_dict() | {
            "step_seconds": {"median": run.median_step_seconds, "steps": list(run.step_seconds)},
            "predicted_seconds": self.predicted_seconds,
            "predicted_on": self.predicted_on,
            "max_gradient_difference": _finite(run.max_gradient_difference),
            "gradients_equal": run.gradients_equal,
            "tolerance": run.tolerance,
            "losses": [_finite(loss) for loss in run.losses],
            "model": run.model,
            "device": run.device,
            "dtype": run.dtype,
            "threads": run.threads,
            "torch": run.torch_version,
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def run_with(source: Source, settings: Settings, options: TrainingOptions) -> Training:
    """Train a model with a schedule under torch.distributed, and predict its step time.

    Without costs the model's stages are measured first.

    Raises
    ------
    CostError
        For costs without a unit of time: a prediction in nothing cannot be compared with a measurement.
    PipeplanError
        For what :func:`~pipeplan.api.commands.simulate` and :func:`pipeplan.runtime.run.run` raise it.
    """
    from pipeplan.runtime import run

    if settings.forward_times is not None and settings.time_unit not in SECONDS:
        raise CostError(f"say the unit of the times to compare them with a run: --time-unit {', '.join(SECONDS)}")
    schedule = plan(source, settings)
    require_expressible(schedule)
    simulate_with(schedule, settings)
    costs, origin = _costs(schedule, settings, options)
    done = run(
        schedule,
        options.model,
        layout=options.layout,
        steps=options.steps,
        warmup=options.warmup,
        verify=options.verify,
        receives=options.receives,  # type: ignore[arg-type]
        device=options.device,
        threads=options.threads,
        seed=options.seed,
        timeout=options.timeout,
        dtype=options.dtype,
    )
    costs = costs or _of_run(done, settings)
    return Training(done, simulate_with(schedule, costs), origin)


def _costs(schedule: Schedule, settings: Settings, options: TrainingOptions) -> tuple[Settings | None, str]:
    """What to predict on, and where it is from; None where it can only be the run itself."""
    if settings.forward_times is not None:
        return settings, "the costs given"
    if "RANK" in os.environ:
        return None, "this run's own op times: costs are not measured inside a torchrun job"
    return _measured(schedule, settings, options), "costs measured right before the run"


def _of_run(done: RunResult, settings: Settings) -> Settings:
    """The settings with each stage's mean op times in a run."""
    columns, times = done.schedule.columns, done.timeline.end - done.timeline.start

    def mean(*kinds: Kind) -> tuple[float, ...] | None:
        chosen = np.isin(columns.kind, kinds)
        count = np.bincount(columns.stage[chosen], minlength=done.schedule.stages)
        total = np.bincount(columns.stage[chosen], times[chosen], minlength=done.schedule.stages)
        return tuple((total / count).tolist()) if count.all() else None

    return replace(
        settings,
        forward_times=mean(Kind.F),
        backward_times=mean(Kind.B),
        backward_input_times=mean(Kind.I),
        backward_weight_times=mean(Kind.W),
        time_unit=done.timeline.unit,
    )


def _measured(schedule: Schedule, settings: Settings, options: TrainingOptions) -> Settings:
    """The settings with the costs of a quick profile of the model on the schedule's placement."""
    measured = _profile(schedule, options, QUICK_ROUNDS).settings()
    return replace(
        measured,
        ranks=settings.ranks,
        chunks=settings.chunks,
        stages=settings.stages,
        microbatches=settings.microbatches,
        memory_limit=settings.memory_limit,
    )


def profile_with(source: Source, settings: Settings, options: TrainingOptions, *, repeats: int) -> Profile:
    """Measure the stages of a model on the placement of a schedule. Raises what :func:`run_with` does."""
    return _profile(plan(source, settings), options, repeats)


def _profile(schedule: Schedule, options: TrainingOptions, repeats: int) -> Profile:
    from pipeplan.runtime import profile

    return profile(
        options.model,
        schedule.placement,
        layout=options.layout,
        repeats=repeats,
        device=options.device,
        threads=options.threads,
        seed=options.seed,
        timeout=options.timeout,
        dtype=options.dtype,
    )
