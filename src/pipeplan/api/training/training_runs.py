"""A schedule trained for real, beside what was predicted for it; and costs, measured on a model or taken from a run.

What trains or measures needs PyTorch; what takes costs from a run's traces does not.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast, final, overload

from msgspec import UNSET, UnsetType

from pipeplan.api.arguments import Given, ScheduleLike, asked
from pipeplan.api.planning.calibrations import CalibrationProfile, calibrate_gpu, calibrate_on_run
from pipeplan.api.presentable import Presentable
from pipeplan.api.results import Result, result_of
from pipeplan.api.simulations import simulated
from pipeplan.api.sources import label, resolve
from pipeplan.api.training.measured_costs import with_op_times
from pipeplan.api.training.noise import noise_of_ops, noise_of_steps
from pipeplan.api.training.run_costs import RunCosts, read_run_costs
from pipeplan.api.training.training_progress import RuntimeReport, TrainingReport, part
from pipeplan.api.units import in_unit
from pipeplan.costs import RUN_SETTINGS, Settings, require_settings
from pipeplan.drawing import View, view_of
from pipeplan.errors import CostError, InputError, UnknownNameError
from pipeplan.files import path_of
from pipeplan.model import TIME_UNITS, Schedule, require_flags, require_text, units_in
from pipeplan.passes import require_expressible
from pipeplan.readable import Times, change, percent
from pipeplan.simulation import Simulation

if TYPE_CHECKING:
    from rich.console import RenderableType

    from pipeplan.formats import Content, Format
    from pipeplan.hardware import Gpu
    from pipeplan.runtime import Model, Profile, RunResult
    from pipeplan.workload import ModelShape

QUICK_ROUNDS = 7
"""Rounds of the profile that a run without costs takes first."""

BEFORE_THE_RUN = "costs measured right before the run"


@dataclass(frozen=True, kw_only=True)
class _Machine:
    """What is measured, and on what."""

    model: str | Model = "gpt-tiny"
    layout: tuple[int, ...] | None = None
    device: str = "auto"
    threads: int = 1
    seed: int = 0
    timeout: float = 120.0
    dtype: str | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.model, "layers"):  # its class needs PyTorch
            require_text(self.model, "model", longest=4096, field="model")
        for name, known in (("device", _DEVICES), ("dtype", (None, *_DTYPES))):
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value not in known:
                raise UnknownNameError(name, str(value), filter(None, known), field=name)


_DEVICES = ("auto", "cpu", "cuda")
_DTYPES = ("float32", "bfloat16")


@final
@dataclass(frozen=True, eq=False)
class TrainingRun(Presentable):
    """A run, and what was predicted for it.

    ``to_frame()`` has a row an op of the measured step.

    Attributes
    ----------
    run
        The run as it was measured.
    predicted
        The same schedule simulated; on the costs given, or on those that were measured right before the run.
    predicted_on
        Where the costs are from, in words.
    """

    run: RunResult
    predicted: Result
    predicted_on: str

    @property
    def predicted_seconds(self) -> float:
        """The predicted step time: the makespan of the simulation."""
        return self.predicted.makespan * units_in(self.predicted.timeline.unit, "s")

    @cached_property
    def measured(self) -> Result:
        """The measured timeline as a result, in the unit of the costs."""
        timeline = in_unit(self.run.timeline, self.predicted.timeline.unit)
        return result_of(Simulation(timeline, self.predicted.costs))

    @property
    def change(self) -> float:
        """How much longer the median step took than predicted, as a share of the prediction; below 0 where shorter."""
        return self.run.median_step_seconds / self.predicted_seconds - 1

    @property
    def noise(self) -> str | None:
        """That the machine was too noisy for small differences to say anything, in a sentence; None where it was quiet."""
        return noise_of_steps(self.run.step_spread, "s")

    def views(self) -> Sequence[View]:
        """The prediction above the run, on one axis."""
        name = self.predicted.name
        predicted = view_of(self.predicted.timeline, title=f"{name}, predicted")
        return [predicted, view_of(self.measured.timeline, title=f"{name}, measured")]

    def to_dict(self) -> dict[str, Any]:
        """The figures of the measured timeline, with the step times, the prediction and the gradients' difference.

        A loss or a difference that is not finite, which JSON has no word for, is None.
        """
        run = self.run
        return self.measured.to_dict() | {
            "step_seconds": {
                "median": run.median_step_seconds,
                "steps": list(run.step_seconds),
                "spread": run.step_spread.relative,
            },
            "noise": self.noise,
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

    def contents(self) -> Mapping[Content, Callable[[Format], Any]]:
        """Return the writable contents of the measured step."""
        return self.measured.contents()

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.training_runs import training_parts  # late: tables load rich

        return training_parts(self)

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


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@final
@dataclass(frozen=True, eq=False)
class CostProfile(Presentable):
    """What a model's stages cost on a machine, as measured or as a run's traces show.

    ``save("costs.yaml")`` writes the config file that says so; ``to_frame()`` has a row a stage, times in milliseconds.

    Attributes
    ----------
    measured
        Every stage's times with their spread, and what was measured on what: of a model also its bytes, of a run also what
        lay between its ops and how long its steps took.
    """

    measured: Profile | RunCosts

    def settings(self) -> Settings:
        """The costs as a config file holds them."""
        return self.measured.settings()

    def checks(self) -> Sequence[str]:
        """What a run's own steps say about its costs, and whether the machine was noisy, a sentence each."""
        if isinstance(self.measured, RunCosts):
            noise = noise_of_steps(self.measured.measured_steps, "ms")
            return [self.measured.check(), *self.measured.doubts(), *([] if noise is None else [noise])]
        noise = noise_of_ops(
            (f"{words} of stage {number}", spread)
            for number, stage in enumerate(self.measured.stages)
            for words, spread in (("forward", stage.forward), ("backward", stage.backward))
        )
        return [] if noise is None else [noise]

    def views(self) -> Sequence[View]:
        """None: costs have no picture."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """The settings, by name."""
        return {key: value for key, value in asdict(self.settings()).items() if value is not None}

    def write_whole(self, path: Path) -> bool:
        """Write the config file."""
        self.measured.write(path)
        return True

    def table(self) -> Iterable[RenderableType]:
        """Return what ``print()`` shows."""
        from pipeplan.api.tables.training_runs import cost_parts  # late: tables load rich

        return cost_parts(self)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        if isinstance(self.measured, RunCosts):
            return self.measured.rows()
        return [
            {
                "stage": number,
                "forward": stage.forward.median,
                "backward": stage.backward.median,
                "backward_input": stage.backward_input.median,
                "backward_weight": stage.backward_weight.median,
                "recompute": stage.recompute.median,
                "offload": stage.offload.median,
                "activation_bytes": stage.activation_bytes,
                "weight_activation_bytes": stage.weight_activation_bytes,
                "recompute_bytes": stage.recompute_bytes,
                "offload_bytes": stage.offload_bytes,
                "static_bytes": stage.static_bytes,
            }
            for number, stage in enumerate(self.measured.stages)
        ]

    def __repr__(self) -> str:
        if isinstance(self.measured, RunCosts):
            return f"<CostProfile of {self.measured.source}: {len(self.measured.stages)} stages, {self.measured.run}>"
        return f"<CostProfile of {self.measured.model}: {len(self.measured.stages)} stages on {self.measured.device}>"


def run(
    schedule: ScheduleLike | UnsetType = UNSET,
    /,
    *,
    model: str | Model = "gpt-tiny",
    layout: Sequence[int] | None = None,
    steps: int = 5,
    warmup: int = 1,
    verify: bool = False,
    receives: Literal["early", "late"] = "early",
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int = 1,
    seed: int = 0,
    timeout: float = 120.0,
    dtype: Literal["float32", "bfloat16"] | None = None,
    progress: TrainingReport | None = None,
    **settings: Unpack[Given],
) -> TrainingRun:
    """Train a model with a schedule under torch.distributed, measure it, and predict its step time.

    Starts a process a rank on this host, or joins the torchrun job that this process is in. Without costs the model's
    stages are measured first.

    Parameters
    ----------
    schedule
        What :func:`pipeplan.simulate` takes; of a timeline, simulated or measured, the order of ops is trained.
    model
        ``gpt-tiny``, ``gpt-small``, ``llama-3-8b``, ``module:function``, or a :class:`pipeplan.runtime.Model`.
    layout
        How many layers each stage has; None cuts evenly by the model's weights.
    steps, warmup
        Timed steps, and untimed ones before them; all train.
    verify
        Compare every loss and gradient with a single-process run.
    receives
        Receive as early as possible, or right before it is needed.
    device
        ``cpu``, ``cuda``, or ``auto``: cuda where every rank has a GPU.
    threads
        CPU threads of each rank.
    seed
        Of weights and data.
    timeout
        Seconds without progress after which a rank counts as hung.
    dtype
        Of the parameters; None: the model's own.
    progress
        Told at most twice a second what is being done, in words, and how much of all is done, from 0 to 1.
    **settings
        Shape and costs, with their ``time_unit``.

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
    require_settings(
        RUN_SETTINGS, layout=layout, steps=steps, warmup=warmup, threads=threads, seed=seed, timeout=timeout
    )
    require_flags(verify=verify)
    from pipeplan.runtime import choose_device, require_torch
    from pipeplan.runtime import run as run_schedule

    require_torch()
    source, given = asked(schedule, settings)
    if given.forward_times is not None and given.time_unit not in TIME_UNITS:
        raise CostError(
            f"times are compared with a run in their unit: give time_unit, one of {', '.join(TIME_UNITS)}",
            field="time_unit",
        )
    trained = resolve(source, given, of_measured=True)
    require_expressible(trained)
    simulated(trained, _until_measured(given))
    machine = _Machine(
        model=model,
        layout=None if layout is None else tuple(layout),
        # One device for both: a profile alone would take the only GPU of a host, on which the ranks have no room.
        device=choose_device(device, trained.ranks),
        threads=threads,
        seed=seed,
        timeout=timeout,
        dtype=dtype,
    )
    costs, origin = _costs(trained, given, machine, part(progress, 0.0, 0.5, "costs: "))
    done = run_schedule(
        trained,
        model,
        layout=machine.layout,
        steps=steps,
        warmup=warmup,
        verify=verify,
        receives=receives,
        device=machine.device,
        threads=threads,
        seed=seed,
        timeout=timeout,
        dtype=dtype,
        progress=part(progress, 0.5 if origin == BEFORE_THE_RUN else 0.0, 1.0),
    )
    return TrainingRun(done, simulated(trained, costs or with_op_times(done.timeline, given)), origin)


@overload
def profile(
    schedule: ScheduleLike | None = None,
    /,
    *,
    source: str | os.PathLike[str] | None = None,
    model: str | Model = "gpt-tiny",
    layout: Sequence[int] | None = None,
    repeats: int = 15,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int = 1,
    seed: int = 0,
    timeout: float = 120.0,
    dtype: Literal["float32", "bfloat16"] | None = None,
    calibrate: None = None,
    progress: TrainingReport | None = None,
    **settings: Unpack[Given],
) -> CostProfile: ...


@overload
def profile(
    *,
    calibrate: str | os.PathLike[str] | ModelShape | Mapping[str, Any],
    gpu: str | os.PathLike[str] | Gpu | None = None,
    sequence: int | None = None,
    microbatch_size: int = 1,
    source: str | os.PathLike[str] | None = None,
    calibration: str | os.PathLike[str] | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int = 1,
    repeats: int = 15,
    progress: TrainingReport | None = None,
) -> CalibrationProfile: ...


def profile(
    schedule: ScheduleLike | None = None,
    /,
    *,
    source: str | os.PathLike[str] | None = None,
    model: str | Model = "gpt-tiny",
    layout: Sequence[int] | None = None,
    repeats: int = 15,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    threads: int = 1,
    seed: int = 0,
    timeout: float = 120.0,
    dtype: Literal["float32", "bfloat16"] | None = None,
    calibrate: str | os.PathLike[str] | ModelShape | Mapping[str, Any] | None = None,
    gpu: str | os.PathLike[str] | Gpu | None = None,
    sequence: int | None = None,
    microbatch_size: int = 1,
    calibration: str | os.PathLike[str] | None = None,
    progress: TrainingReport | None = None,
    **settings: Unpack[Given],
) -> CostProfile | CalibrationProfile:
    """Measure what a model's stages cost, or take it from a run's traces, as a config file for everything else.

    With ``calibrate``: what one GPU takes over what the planner expects of it, for ``calibration`` of a plan.

    Every rank measures its stages at the same time, as they will run. Times are medians in milliseconds.

    Parameters
    ----------
    schedule
        One whose placement says which rank holds each stage.
    source
        Instead of a model: the folder of a run's traces, one trace, or a timeline that :func:`pipeplan.run` has measured.
        Takes all steps and replicas of it, and needs no PyTorch.
    repeats
        Measured rounds.
    model, layout, device, threads, seed, timeout, dtype, progress
        As for :func:`pipeplan.run`.
    calibrate
        A model (a preset's name, a config.json, the keys of a shape) whose kernels are measured on one GPU, without a
        schedule or settings; with ``source``, the file of the configuration that ran, whose stages are compared.
    gpu
        Whose data sheet is corrected: its name, or a cluster's file with one of one's own.
    sequence, microbatch_size
        Tokens and sequences that the kernels run on; None: what the model was trained on, at most 8192.
    calibration
        With ``source``: a file of what is known already.
    **settings
        The shape.

    Raises
    ------
    MissingExtraError
        Without PyTorch.
    InputError
        For a ``source`` that cannot be read or holds no times, and for a schedule, a model or settings beside it.
    PipeplanError
        For what :func:`pipeplan.run` raises it.
    """
    require_settings(
        RUN_SETTINGS, layout=layout, repeats=repeats, threads=threads, seed=seed, timeout=timeout, sequence=sequence,
        microbatch_size=microbatch_size,
    )  # fmt: skip
    if calibrate is not None:
        if source is not None:
            of = path_of(cast("str", calibrate), "the file of the configuration", field="calibrate")
            return calibrate_on_run(of, source, calibration=calibration)
        if gpu is None:
            raise InputError("which GPU is calibrated: give gpu, such as h100-sxm, or a file", field="gpu")
        return calibrate_gpu(
            calibrate,
            gpu,
            sequence=sequence,
            microbatch_size=microbatch_size,
            device=device,
            threads=threads,
            samples=repeats,
            progress=lambda share: None if progress is None else progress("measuring kernels", share),
        )
    meant, given = asked(UNSET if schedule is None else schedule, settings)
    machine = _Machine(
        model=model,
        layout=None if layout is None else tuple(layout),
        device=device,
        threads=threads,
        seed=seed,
        timeout=timeout,
        dtype=dtype,
    )
    if source is not None:
        _require_nothing_beside(schedule, given, machine)
        return CostProfile(read_run_costs(source))
    return CostProfile(_profile(resolve(meant, given, of_measured=True), machine, repeats, part(progress)))


def _require_nothing_beside(schedule: ScheduleLike | None, given: Settings, machine: _Machine) -> None:
    """A run has its schedule, its model and its times."""
    if schedule is not None:
        raise InputError(f"traces say which schedule they are of: leave out {label(schedule)}")
    for beside, default in ((given, Settings()), (machine, _Machine())):
        for field in fields(beside):
            if getattr(beside, field.name) != getattr(default, field.name):
                raise InputError(
                    f"traces say what was run and how long it took: leave out {field.name}", field=field.name
                )


def model_files(model: str) -> tuple[Path, ...]:
    """What a model is read from, where it is a function of the user's own in this folder: ``module:function``."""
    module, colon, _ = model.partition(":")
    parts = module.split(".")
    if not colon or not all(part.isidentifier() for part in parts):
        return ()
    path = Path(*parts)
    return path.with_suffix(".py"), path / "__init__.py"


def _until_measured(settings: Settings) -> Settings:
    """The settings, with copies to the host that take no time where all costs are to be measured."""
    said = settings.forward_times, settings.offload_times, settings.offload_bandwidth
    return replace(settings, offload_times=0.0) if said == (None, None, None) else settings


def _costs(
    schedule: Schedule, settings: Settings, machine: _Machine, progress: RuntimeReport | None
) -> tuple[Settings | None, str]:
    """What to predict on, and where it is from; None where it can only be the run itself."""
    if settings.forward_times is not None:
        return settings, "the costs given"
    if "RANK" in os.environ:
        return None, "this run's own op times: costs are not measured inside a torchrun job"
    return _measured(schedule, settings, machine, progress), BEFORE_THE_RUN


def _measured(schedule: Schedule, settings: Settings, machine: _Machine, progress: RuntimeReport | None) -> Settings:
    """The settings with the costs of a quick profile of the model on the schedule's placement."""
    return replace(
        _profile(schedule, machine, QUICK_ROUNDS, progress).settings(),
        ranks=settings.ranks,
        chunks=settings.chunks,
        stages=settings.stages,
        microbatches=settings.microbatches,
        memory_limit=settings.memory_limit,
    )


def _profile(schedule: Schedule, machine: _Machine, repeats: int, progress: RuntimeReport | None) -> Profile:
    from pipeplan.runtime import profile as profile_model

    return profile_model(
        machine.model,
        schedule.placement,
        layout=machine.layout,
        repeats=repeats,
        device=machine.device,
        threads=machine.threads,
        seed=machine.seed,
        timeout=machine.timeout,
        dtype=machine.dtype,
        progress=progress,
    )
