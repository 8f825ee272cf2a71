"""Stage costs, measured on a model or read from the traces of a run.

Measuring a model needs PyTorch; taking costs from traces does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack, final, overload

import msgspec
from msgspec import UNSET

from pipeplan.answers.answers import FilePath
from pipeplan.answers.arguments import NO_OVERRIDES, ScheduleLike, apart, asked, require_used
from pipeplan.answers.parts import columns, facts, line
from pipeplan.answers.sources import label, resolve
from pipeplan.costs import (
    SETTINGS,
    CalibrationOptions,
    CalibrationOptionsKeywords,
    Settings,
    options_of,
    write_costs_file,
)
from pipeplan.extensions.training.answers.measuring import (
    TrainingReport,
    noise_of_ops,
    noise_of_steps,
    part,
    stages_measured,
)
from pipeplan.extensions.training.answers.run_costs import RunCosts, read_run_costs
from pipeplan.extensions.training.answers.settings_record import SettingsRecord
from pipeplan.extensions.training.options import ProfileOptions
from pipeplan.foundation.errors import InputError
from pipeplan.foundation.extensions import required_service
from pipeplan.foundation.readable import Times, change, size_texts, time_text
from pipeplan.foundation.records import Evidence, holding

if TYPE_CHECKING:
    from rich.console import RenderableType

    # Planning answers a profile with ``calibrate``; training finds it by what it registers.
    from pipeplan.extensions.planning.answers.calibrations import CalibrationProfile
    from pipeplan.extensions.planning.answers.options import ModelLike
    from pipeplan.extensions.planning.hardware import Gpu
    from pipeplan.extensions.planning.names import GpuName
    from pipeplan.extensions.training.keywords import ProfileKeywords
    from pipeplan.extensions.training.runtime.results import Profile

_TIMES = ("forward", "backward", "backward_input", "backward_weight", "recompute", "offload")
_BYTES = ("activation_bytes", "weight_activation_bytes", "recompute_bytes", "offload_bytes", "static_bytes")
"""Measured quantities of a stage."""


@final
class CostProfile(SettingsRecord, frozen=True, kw_only=True, eq=False):
    """Stage costs measured on a machine or read from a run's traces, by the names of the settings.

    ``save("costs.yaml")`` writes the config file of these settings; ``to_frame()`` has a row per stage, times in
    milliseconds.
    """

    measured = Evidence["Profile | RunCosts"]()
    """Times of every stage with their spread, and what was measured on what: of a model also its bytes, of a run also the
    gaps between its ops and its step times."""

    @classmethod
    def of(cls, measured: Profile | RunCosts) -> CostProfile:
        """Return the costs of a measurement."""
        settings = {name: value for name, value in vars(measured.settings()).items() if value is not None}
        return holding(cls(**settings), measured=measured)

    def settings(self) -> Settings:
        """Return the costs as simulations take them."""
        return Settings(**{name: value for name, value in msgspec.structs.asdict(self).items() if value is not UNSET})

    def checks(self) -> Sequence[str]:
        """Return notes on the costs: whether a run's own steps agree with them, and whether the machine was noisy."""
        if isinstance(self.measured, RunCosts):
            noise = noise_of_steps(self.measured.measured_steps, "ms")
            return [self.measured.check(), *self.measured.doubts(), *([] if noise is None else [noise])]
        noise = noise_of_ops(
            (f"{words} of {'stage' if self.measured.roles is None else 'layer'} {number}", spread)
            for number, stage in enumerate(self.measured.stages)
            for words, spread in (("forward", stage.forward), ("backward", stage.backward))
        )
        return [] if noise is None else [noise]

    def _write_whole(self, path: Path) -> bool:
        """Write the config file."""
        write_costs_file(path, self.settings(), self.measured.provenance())
        return True

    def _table(self) -> Iterable[RenderableType]:
        """Return the table of the stages' costs."""
        measured = self.measured
        return _run_parts(measured) if isinstance(measured, RunCosts) else _profile_parts(measured, self.checks())

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        if isinstance(self.measured, RunCosts):
            return self.measured.rows()
        return [
            {"stage": number}
            | {name: getattr(stage, name).median for name in _TIMES}
            | {name: getattr(stage, name) for name in _BYTES}
            for number, stage in enumerate(self.measured.stages)
        ]

    def __repr__(self) -> str:
        if isinstance(self.measured, RunCosts):
            return f"<CostProfile of {self.measured.source}: {len(self.measured.stages)} stages, {self.measured.run}>"
        return f"<CostProfile of {self.measured.model}: {len(self.measured.stages)} stages on {self.measured.device}>"


@overload
def profile(
    schedule: ScheduleLike | None = None,
    /,
    *,
    source: FilePath | None = None,
    calibrate: None = None,
    progress: TrainingReport | None = None,
    **options: Unpack[ProfileKeywords],
) -> CostProfile: ...


@overload
def profile(
    *,
    calibrate: ModelLike,
    gpu: GpuName | FilePath | Gpu | None = None,
    source: FilePath | None = None,
    calibration: FilePath | None = None,
    progress: TrainingReport | None = None,
    **options: Unpack[CalibrationOptionsKeywords],
) -> CalibrationProfile: ...


def profile(
    schedule: ScheduleLike | None = None,
    /,
    *,
    source: FilePath | None = None,
    calibrate: ModelLike | None = None,
    gpu: GpuName | FilePath | Gpu | None = None,
    calibration: FilePath | None = None,
    progress: TrainingReport | None = None,
    **options: Any,
) -> CostProfile | CalibrationProfile:
    """Measure the costs of a model's stages, or take them from a run's traces; the answer can be saved as a config file.

    With ``calibrate``: the measured over the expected times of one GPU, for ``calibration`` of a plan.

    Every rank measures its stages at the same time, as they will run. Times are medians in milliseconds.

    Parameters
    ----------
    schedule
        Schedule whose placement assigns the stages to ranks.
    source
        Instead of a model: the folder of a run's traces, one trace, or a timeline that ``run`` has measured.
        Takes all steps and replicas of it, and needs no PyTorch.
    calibrate
        A model (a preset's name, a config.json, the keys of a shape) whose kernels are measured on one GPU, without a
        schedule or settings; with ``source``, the file of the configuration that ran, whose stages are compared, or its
        steps if ``source`` is a log. Or a ledger of runs with their measured steps.
    gpu
        GPU whose data sheet is corrected: its name, or a cluster's file with your own GPU.
    calibration
        With ``source``: an existing calibration file to correct.
    progress
        Progress callback as in :func:`pipeplan.run`.
    **options
        Options of a profile, and the shape; with ``calibrate``, ``device``, ``threads``, ``repeats``, ``sequence`` and
        ``microbatch_size``.

    Other Parameters
    ----------------
    device
        Device to train on: cpu (gloo), cuda (NCCL), or auto (cuda if every rank has a GPU) (default: auto).
    threads
        CPU threads per rank (default: 1).
    repeats
        Number of measured rounds (default: 15).
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
    warmup
        Number of rounds before the measured ones (default: 3).
    per_layer
        Measure every layer on its own: one profile then serves every schedule and layout.
    sequence
        Sequence length in tokens (default: the model's context length, at most 8192).
    microbatch_size
        Sequences per microbatch (default: 1).
    settings, config
        Settings of shape and costs, as a value or a mapping, or in a config file; the other keywords override them. All
        are keywords, too: ``docs/reference/options.md`` lists them.

    Raises
    ------
    MissingExtraError
        Without PyTorch.
    InputError
        For a ``source`` that cannot be read or holds no times, and for a schedule, a model or settings in addition to it.
    PipeplanError
        For what :func:`pipeplan.run` raises it.
    """
    if calibrate is not None:
        chosen = options_of(CalibrationOptions, options)
        calibrated = required_service("planning", "calibrated")
        answer: CalibrationProfile = calibrated(
            calibrate, chosen, gpu=gpu, source=source, calibration=calibration, progress=progress
        )
        return answer
    own, keywords = apart(ProfileOptions, options)
    profiled_as = options_of(ProfileOptions, own)
    measured_order, settings = asked(UNSET if schedule is None else schedule, keywords)
    if source is not None:
        return costs_of_run(source, schedule, settings, profiled_as)
    return profiled(measured_order, settings, profiled_as, progress=progress, overrides=keywords)


def profiled(
    schedule: ScheduleLike,
    settings: Settings,
    options: ProfileOptions,
    *,
    progress: TrainingReport | None = None,
    overrides: Mapping[str, Any] = NO_OVERRIDES,
) -> CostProfile:
    """Measure the costs of a model's stages; see :func:`profile`.

    ``overrides`` are the options that are set for this call alone, not in a shared file.
    """
    require_used(overrides, _OF_COSTS, "a profile measures the costs of every stage")
    return CostProfile.of(stages_measured(resolve(schedule, settings, of_measured=True), options, part(progress)))


_OF_COSTS = tuple(
    name for name, setting in SETTINGS.items() if setting.group not in ("shape", "more") or name == "slice_attention"
)
"""Settings that do not determine the stages of a profile."""


def costs_of_run(
    source: FilePath, schedule: ScheduleLike | None, settings: Settings, options: ProfileOptions
) -> CostProfile:
    """Return the costs of a run's traces. Raises InputError for a schedule, model or times in addition to them."""
    if schedule is not None:
        raise InputError(f"the traces already determine the schedule: drop {label(schedule)}")
    for options_or_settings in (settings, options):
        for field in fields(options_or_settings):
            if field.name != "repeats" and getattr(options_or_settings, field.name) != field.default:
                raise InputError(
                    f"the traces already determine the model and its times: drop {field.name}", field=field.name
                )
    return CostProfile.of(read_run_costs(source))


def _run_parts(costs: RunCosts) -> tuple[RenderableType, ...]:
    """Return the times of the ops of a run, with their spread, and its steps with their prediction."""
    kinds = list(dict.fromkeys(kind for times in costs.stages for kind in times))
    table = columns("stage", *(f"{kind} (ms)" if kind == kinds[0] else kind for kind in kinds), padding=1)
    for number_, times in enumerate(costs.stages):
        spreads = [str(times[kind]) if kind in times else "" for kind in kinds]
        # Quartiles are below their median where three columns of both would leave no room for the first one.
        table.add_row(str(number_), *(text.replace(" (", "\n(") if len(kinds) > 2 else text for text in spreads))
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
    notes += [line(remark) for remark in costs.segments.remarks]
    notes += [line(f"warning: {reason}", "yellow") for reason in costs.doubts()]
    return *notes, facts(rows, above=1, below=1), table


def _profile_parts(measured: Profile, checks: Sequence[str]) -> tuple[RenderableType, ...]:
    stages = measured.stages
    forms = [[getattr(stage, name) for name in _TIMES] for stage in stages]
    times = Times.of((spread.median for spreads in forms for spread in spreads), "ms")
    noun = "stage" if measured.roles is None else "layer"
    table = columns(noun, f"F ({times.unit})", "B", "I", "W", "R", "copy", "held", "by W", "static", padding=1)
    held = (
        size_texts([float(getattr(stage, name)) for stage in stages])
        for name in ("activation_bytes", "weight_activation_bytes", "static_bytes")
    )
    for number_, (spreads, *bytes_) in enumerate(zip(forms, *held, strict=True)):
        table.add_row(str(number_), *(times.number(spread.median) for spread in spreads), *bytes_)
    transfer = "not measured" if measured.p2p_time is None else time_text(measured.p2p_time, "ms")
    rows = [("transfer between ranks", transfer)]
    rows += [] if measured.op_gap is None else [("gap before every op", time_text(measured.op_gap.median, "ms"))]
    rows += (
        []
        if measured.message_time is None
        else [("a message takes from a rank", time_text(measured.message_time.median, "ms"))]
    )
    rows += [("noise", text) for text in checks]
    return *map(line, measured.provenance()[:2]), facts(rows, above=1, below=1), table
