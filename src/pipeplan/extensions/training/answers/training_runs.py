"""Training runs under PyTorch, compared with their predictions."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, final

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from pipeplan.answers.answers import AnswerRecord, contents_of
from pipeplan.answers.arguments import ScheduleLike, apart, asked
from pipeplan.answers.parts import columns, facts, line
from pipeplan.answers.sharding import sharded
from pipeplan.answers.simulating.record import ResultRecord
from pipeplan.answers.simulating.result import Result, result_of
from pipeplan.answers.simulating.simulate import simulated
from pipeplan.answers.sources import in_unit, resolve
from pipeplan.costs import Settings, options_of
from pipeplan.drawing import View, view_of
from pipeplan.extensions.training.answers.measuring import (
    RuntimeReport,
    TrainingReport,
    noise_of_steps,
    part,
    stages_measured,
)
from pipeplan.extensions.training.options import ModelOptions, ProfileOptions, RunOptions
from pipeplan.foundation.errors import CostError
from pipeplan.foundation.readable import TIME_UNITS, Times, change, percent, units_in
from pipeplan.foundation.records import Evidence, Record, holding
from pipeplan.model import Floats, Placement, Schedule, Timeline
from pipeplan.passes import require_expressible
from pipeplan.simulation import Simulation, with_op_times

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.extensions.training.keywords import RunKeywords
    from pipeplan.extensions.training.runtime.results import RunResult
    from pipeplan.formats import Content, Format

QUICK_ROUNDS = 7
"""Profiling rounds before a run that was given no costs."""

BEFORE_THE_RUN = "costs measured right before the run"


class StepSeconds(Record, frozen=True, kw_only=True):
    """Seconds of a step: the median, each of them, and their spread over the median."""

    median: float
    steps: tuple[float, ...]
    spread: float


@final
class TrainingRun(ResultRecord, AnswerRecord, frozen=True, kw_only=True, eq=False):
    """A run and its prediction: the figures of the measured step, the prediction, and the gradients.

    ``to_frame()`` has a row per op of the measured step. A loss or a difference that is not finite, which JSON has no word
    for, is None; so are differences that were not requested.
    """

    step_seconds: StepSeconds
    noise: str | None
    predicted_seconds: float
    predicted_on: str
    max_gradient_difference: float | None
    gradients_equal: bool | None
    tolerance: float
    losses: tuple[float | None, ...]
    model: str
    device: str
    dtype: str
    threads: int
    torch: str

    run = Evidence["RunResult"]()
    """The run as it was measured."""

    predicted = Evidence[Result]()
    """The same schedule simulated; on the costs given, or on those that were measured right before the run."""

    measured = Evidence[Result]()
    """The measured timeline as a result, in the unit of the costs."""

    @property
    def change(self) -> float:
        """Measured over predicted step time, less 1."""
        return self.run.median_step_seconds / self.predicted_seconds - 1

    def _views(self) -> Sequence[View]:
        """Return the prediction above the run, on one axis."""
        name = self.predicted.name
        predicted = view_of(self.predicted.timeline, title=f"{name}, predicted")
        return [predicted, view_of(self.measured.timeline, title=f"{name}, measured")]

    def _contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the writable contents of the measured step; its file also has the times of all steps."""
        contents = contents_of(self.measured)
        steps = tuple(in_unit(step, self.measured.timeline.unit) for step in self.run.steps)
        return {**contents, "timeline": lambda chosen: replace(contents["timeline"](chosen), steps=steps)}

    def _table(self) -> Iterable[RenderableType]:
        """Return the run, its predicted next to its measured times, and the gradients."""
        run, predicted = self.run, self.predicted
        schedule = predicted.schedule
        heading = (
            f"{predicted.name} on {run.model} ({run.dtype}, {run.device}, {run.threads} thread(s) per rank): "
            f"{schedule.ranks} ranks, {schedule.stages} stages ({schedule.placement.name}), "
            f"{schedule.microbatches} microbatches"
        )
        times = Times.of((*run.step_seconds, self.predicted_seconds), "s")
        rows = [
            ("step, measured", f"{times.text(run.median_step_seconds)}, {_of_steps(run.step_seconds, times)}"),
            ("step, predicted", f"{times.text(self.predicted_seconds)}: {_compared(self.change)}"),
            ("predicted on", self.predicted_on),
            *([("noise", self.noise)] if self.noise else []),
            ("loss", f"{run.losses[0]:.4f} to {run.losses[-1]:.4f} in {len(run.losses)} steps"),
            ("gradients", _gradients(run)),
        ]
        return (
            line(heading, "bold"),
            facts(rows, above=1, below=1),
            _bubbles(predicted.timeline.from_first_start(), self.measured.timeline),
        )

    def _rows(self) -> Any:
        return self.measured._rows()

    def __repr__(self) -> str:
        seconds, predicted = self.run.median_step_seconds, self.predicted_seconds
        times = Times.of((seconds, predicted), "s")
        spread = f", steps spread by {percent(self.run.step_spread.relative)}" if self.noise else ""
        return (
            f"<TrainingRun of {self.predicted.name}: step {times.text(seconds)}, {change(self.change)} against the "
            f"predicted {times.text(predicted)}{spread}>"
        )


def training_run(run: RunResult, predicted: Result, predicted_on: str) -> TrainingRun:
    """Return a run with its prediction; ``predicted_on`` names the source of the costs."""
    timeline = in_unit(run.timeline, predicted.timeline.unit)
    measured = result_of(Simulation(timeline, predicted.costs))
    return holding(
        TrainingRun(
            **msgspec.structs.asdict(measured),
            step_seconds=StepSeconds(
                median=run.median_step_seconds, steps=run.step_seconds, spread=run.step_spread.relative
            ),
            noise=noise_of_steps(run.step_spread, "s"),
            predicted_seconds=predicted.timeline.from_first_start().makespan * units_in(predicted.timeline.unit, "s"),
            predicted_on=predicted_on,
            max_gradient_difference=_finite(run.max_gradient_difference),
            gradients_equal=run.gradients_equal,
            tolerance=run.tolerance,
            losses=tuple(map(_finite, run.losses)),
            model=run.model,
            device=run.device,
            dtype=run.dtype,
            threads=run.threads,
            torch=run.torch_version,
        ),
        run=run,
        predicted=predicted,
        measured=measured,
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def run(
    schedule: ScheduleLike | UnsetType = UNSET,
    /,
    *,
    progress: TrainingReport | None = None,
    **options: Unpack[RunKeywords],
) -> TrainingRun:
    """Train a model with a schedule under torch.distributed, measure it, and predict its step time.

    Starts a process per rank on this host, or joins the torchrun job that this process is in. Without costs the model's
    stages are measured first.

    Parameters
    ----------
    schedule
        Argument of :func:`pipeplan.simulate`; of a timeline, simulated or measured, the order of ops is trained.
    progress
        Called at most twice a second with the current task in words, and the completed share, from 0 to 1.
    **options
        Options of a run, and shape and costs, with their ``time_unit``.

    Other Parameters
    ----------------
    device
        Device to train on: cpu (gloo), cuda (NCCL), or auto (cuda if every rank has a GPU) (default: auto).
    threads
        CPU threads per rank (default: 1).
    model
        Model to train: gpt-tiny, gpt-small, llama-3-8b, or module:function; in Python also a pipeplan.runtime.Model
        (default: gpt-tiny).
    layout
        Number of layers of each stage (default: balanced by layer weights).
    seed
        Random seed of weights and data (default: 0).
    timeout
        Seconds without progress after which a rank is considered hung (default: 120).
    dtype
        Data type of the parameters (default: the model's own).
    steps
        Number of timed steps (default: 5).
    warmup
        Number of untimed training steps before the timed ones (default: 1).
    verify
        Compare every loss and gradient with a single-process run, for which each rank holds the whole model.
    receives
        Time to post receives: as early as possible, or right before the message is needed (late) (default: early).
    learning_rate
        Learning rate of AdamW (default: 0.001).
    kineto
        Existing folder for PyTorch's own profile of one more step: rank0.json and so on.
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Raises
    ------
    MissingExtraError
        Without PyTorch.
    CostError
        For costs without a unit of time: a prediction without one cannot be compared with a measurement.
    ShapeError
        For a schedule that PyTorch's runtime cannot express.
    RunError
        If a rank dies, raises or hangs; the message names it and its op.
    PipeplanError
        For what :func:`pipeplan.simulate` raises it.
    """
    chosen, settings = apart(RunOptions, options)
    return trained(*asked(schedule, settings), options_of(RunOptions, chosen), progress=progress)


def trained(
    source: ScheduleLike, settings: Settings, options: RunOptions, *, progress: TrainingReport | None = None
) -> TrainingRun:
    """Train by the schedule and return the run; :func:`run` describes the arguments."""
    from pipeplan.extensions.training.runtime.group import choose_device
    from pipeplan.extensions.training.runtime.requirements import require_torch
    from pipeplan.extensions.training.runtime.running import run_with

    require_torch()
    if settings.forward_times is not None and settings.time_unit not in TIME_UNITS:
        raise CostError(
            f"comparing the times with a run needs their unit: set time_unit to one of {', '.join(TIME_UNITS)}",
            field="time_unit",
        )
    schedule = resolve(source, settings, of_measured=True)
    require_expressible(schedule)
    if settings.sharding_rule is not None:
        schedule = sharded(schedule, settings)
    simulated(schedule, _until_measured(settings))
    # One device for both: a profile alone would take the only GPU of a host, on which the ranks have no room.
    options = replace(options, device=choose_device(options.device, schedule.ranks))
    lengths = _shares(settings)
    costs, origin = _costs(schedule, settings, lengths, options, part(progress, 0.0, 0.5, "costs: "))
    doing = part(progress, 0.5 if origin == BEFORE_THE_RUN else 0.0, 1.0)
    done = run_with(schedule, options, lengths=lengths, progress=doing)
    if costs is None:
        # The means of all microbatches are the times of the mean one.
        rule = _relative(settings, schedule.placement, lambda factors: factors.mean(axis=1, keepdims=True))
        costs = with_op_times(done.timeline, rule)
    return training_run(done, simulated(schedule, costs), origin)


def model_files(model: str) -> tuple[Path, ...]:
    """Return the files that may hold a model that is the user's own function: ``module:function``."""
    module, colon, _ = model.partition(":")
    parts = module.split(".")
    if not colon or not all(part.isidentifier() for part in parts):
        return ()
    path = Path(*parts)
    return path.with_suffix(".py"), path / "__init__.py"


def _until_measured(settings: Settings) -> Settings:
    """Return the settings with free copies to the host where all costs are yet to be measured."""
    copies = settings.forward_times, settings.offload_times, settings.offload_bandwidth
    return replace(settings, offload_times=0.0) if copies == (None, None, None) else settings


def _costs(
    schedule: Schedule,
    settings: Settings,
    lengths: tuple[float, ...] | None,
    options: ModelOptions,
    progress: RuntimeReport | None,
) -> tuple[Settings | None, str]:
    """Return the costs of the prediction and their origin; None if only the run itself can tell."""
    if settings.forward_times is not None:
        return settings, "the costs given"
    if "RANK" in os.environ:
        return None, "this run's own op times: costs are not measured inside a torchrun job"
    shared = {field.name: getattr(options, field.name) for field in fields(ModelOptions)}
    measured = stages_measured(schedule, ProfileOptions(**shared, repeats=QUICK_ROUNDS), progress)
    shape = {name: getattr(settings, name) for name in ("ranks", "chunks", "stages", "microbatches", "memory_limit")}
    if lengths is not None:
        # The model was measured with its whole sequence, which is that of the longest microbatch.
        longest = [lengths.index(max(lengths))]
        rule = _relative(settings, schedule.placement, lambda factors: factors[:, longest])
        shape["microbatch_factors"] = rule.microbatch_factors
    return replace(measured.settings(), **shape), BEFORE_THE_RUN


def _shares(settings: Settings) -> tuple[float, ...] | None:
    """Return the lengths of the microbatches relative to the longest; None if they are alike.

    Raises CostError for factors per stage or of several kinds: a run can only make sequences longer or shorter.
    """
    factors = settings.microbatch_factors
    if settings.lengths is not None:
        numbers = [float(np.sum(length)) for length in settings.lengths]
    elif factors is None:
        return None
    elif isinstance(factors, tuple) and not any(isinstance(factor, tuple) for factor in factors):
        numbers = [float(np.sum(factor)) for factor in factors]
    else:
        raise CostError(
            "a run needs one factor per microbatch, which makes its sequences longer or shorter: set a list of numbers or "
            "lengths",
            field="microbatch_factors",
        )
    return tuple(number / max(numbers) for number in numbers)


def _relative(settings: Settings, placement: Placement, units: Callable[[Floats], Floats]) -> Settings:
    """Return the settings with the microbatches' factors divided by what ``units`` makes of them."""
    factors = settings.factors(placement)
    if factors is None:
        return settings
    rule: dict[str, Any] = dict.fromkeys(("lengths", "reference_length", "attention_share", "attention_model"))
    return replace(settings, **rule, microbatch_factors=factors.relative_to(units).tables)


def _of_steps(steps: tuple[float, ...], times: Times) -> str:
    if len(steps) == 1:
        return "one step"
    return f"the median of {len(steps)} steps ({times.number(min(steps))} to {times.text(max(steps))})"


def _compared(share: float) -> str:
    if percent(share) == percent(0.0):
        return "the run took as long"
    return f"the run took {percent(abs(share))} {'longer' if share > 0 else 'less'}"


def _gradients(run: RunResult) -> str:
    if run.max_gradient_difference is None:
        return "not compared (--verify compares them with a single-process run)"
    verdict = (
        "equal" if run.max_gradient_difference == 0 else "within tolerance" if run.gradients_equal else "DIFFERENT"
    )
    return f"{verdict}: largest difference {run.max_gradient_difference:.3g}, tolerance {run.tolerance:.3g}"


def _bubbles(predicted: Timeline, measured: Timeline) -> RenderableType:
    times = Times.of((predicted.makespan, measured.makespan), predicted.unit)
    unit = f"\n({times.unit})" if times.unit else ""
    table = columns(
        "rank", f"busy, predicted{unit}", "busy,\nmeasured", "idle,\npredicted", "idle,\nmeasured", padding=1
    )
    for rank in range(predicted.schedule.ranks):
        values = (predicted.work[rank], measured.work[rank], predicted.idle[rank], measured.idle[rank])
        table.add_row(str(rank), *(times.number(float(value)) for value in values))
    return table
