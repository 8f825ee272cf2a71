"""A prediction beside the measurement of its run: how far it is off, and which part of it.

What a log of whole steps cannot tell is reported as such. Megatron-LM's timers (``--timing-log-level 1`` and ``2``) tell the
parts of a step apart; what they contain is in its ``schedules.py``, ``p2p_communication.py`` and ``training.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

import numpy as np
from msgspec.structs import asdict

from pipeplan.extensions.planning.calibration import Calibration
from pipeplan.extensions.planning.error_bars import table
from pipeplan.extensions.planning.estimates.estimating import step_end
from pipeplan.extensions.planning.estimates.running import run
from pipeplan.extensions.planning.estimates.stages import stage_costs
from pipeplan.extensions.planning.hardware import Cluster
from pipeplan.extensions.planning.results import Estimate, StepTime
from pipeplan.extensions.planning.runs.factors import UNLIKELY
from pipeplan.extensions.planning.runs.logs import Measurement
from pipeplan.extensions.planning.workload import ModelShape
from pipeplan.foundation.readable import change
from pipeplan.foundation.records import Record, titles_of
from pipeplan.model import Floats, counted

REPEATED = 0.03
"""Fraction by which two measurements of one run differ."""

SAME = 0.0005
"""Fraction of a step below which a difference is none."""

PLAUSIBLE = 2.0
"""Factor on its prediction up to which a single part is named as a possible explanation of a difference."""

SAME_JOB = 1.25
"""Ratio of logged to predicted FLOPs up to which both are of one job: trainers count attention differently."""


class ComparedPart(Record, frozen=True, kw_only=True):
    """Part of the step: predicted and measured seconds, each the least and the largest over the ranks."""

    part: str
    predicted_s: tuple[float, float]
    measured_s: tuple[float, float]

    @property
    def off(self) -> float:
        """Measured less predicted seconds of the slowest rank."""
        return self.measured_s[1] - self.predicted_s[1]


class ComparedMemory(Record, frozen=True, kw_only=True):
    """Peak memory of a pipeline rank in GiB: predicted, and measured as allocated and as reserved by the allocator.

    The rank is null if the log does not name it: it is compared with the fullest one.
    """

    rank: int | None
    predicted_gib: float
    allocated_gib: float | None
    reserved_gib: float | None


class MeasuredStep(Record, frozen=True, kw_only=True):
    """Measurement of a run beside its prediction.

    Attributes
    ----------
    source, trainer, steps, warm_up, other_batches
        As those of the measurement; ``steps`` is the number of those that count.
    step_time_s, spread_s
        Median step time, and the range without the slowest and the fastest tenth.
    ratio, within_error_bar
        Measured over predicted step time, and whether it lies within the error bar; null if there is none.
    parts, suspects
        Parts of the step that the log's timers tell apart; without timers, parts that could explain the difference alone,
        with the factor on their prediction.
    findings
        Which part is off, and what to measure next, one sentence each.
    """

    source: str
    trainer: str
    steps: int
    warm_up: int
    other_batches: int
    step_time_s: float
    spread_s: tuple[float, float]
    ratio: float
    within_error_bar: bool | None
    parts: tuple[ComparedPart, ...]
    suspects: dict[str, float]
    memory: tuple[ComparedMemory, ...]
    findings: tuple[str, ...]

    @property
    def verdict(self) -> str:
        """How far the run is from the prediction: ``the run took 14.25 s, 3.1% longer``."""
        off = self.ratio - 1.0
        size = f"{abs(off):.1%} {'longer' if off > 0 else 'less'}" if abs(off) >= SAME else "as predicted"
        return f"the run took {self.step_time_s:.4g} s, {size}{self._within}"

    @property
    def _within(self) -> str:
        return {True: ", within the error bar", False: ", outside of the error bar", None: ""}[self.within_error_bar]

    @property
    def heading(self) -> str:
        """The measured step beside the prediction, in a line."""
        others = f", {self.other_batches} of other batches" if self.other_batches else ""
        low, high = self.spread_s
        logged = (
            f" (median of {counted(self.steps, 'logged step')}, most of them {low:.4g}-{high:.4g} s; left out: "
            f"{counted(self.warm_up, 'warm-up step')}{others})"
        )
        step = f"measured {self.step_time_s:.4g} s{logged if self.trainer else ''}"
        return f"{step}: {self.ratio:.4g} times the prediction{self._within}"


def compared(
    model: ModelShape,
    cluster: Cluster,
    estimate: Estimate,
    measurement: Measurement,
    *,
    calibration: Calibration | None = None,
) -> MeasuredStep:
    """Return the measurement of a run beside the estimate of its configuration."""
    times, bar = measurement.seconds(estimate.configuration), estimate.error_bar
    step, (low, high) = median(times), np.quantile(times, (0.1, 0.9)).tolist()
    parts = tuple(_parts(_predicted(model, cluster, estimate, calibration), measurement.timers(), step))
    suspects = {} if parts else _suspects(estimate.time, step - estimate.step_time)
    memory = tuple(_memory(estimate, measurement))
    within = None if bar is None else bar.step_time_s[0] <= step <= bar.step_time_s[1]
    findings = [
        *_other_job(estimate, measurement),
        *([_CHECK] if within is False else []),
        *(_by_timers(parts) if parts else _by_steps(step / estimate.step_time, suspects, measurement.trainer)),
        *_memory_findings(memory),
    ]
    return MeasuredStep(
        source=measurement.source,
        trainer=measurement.trainer,
        steps=len(times),
        warm_up=measurement.warm_up,
        other_batches=measurement.other_batches,
        step_time_s=step,
        spread_s=(low, high),
        ratio=step / estimate.step_time,
        within_error_bar=within,
        parts=parts,
        suspects=suspects,
        memory=memory,
        findings=tuple(findings),
    )


_CHECK = "check first that the configuration is the one that ran: software, precision, recomputation, schedule"

FORWARD, BACKWARD, WAITING = "forward", "backward", "waiting for other stages"
PIPELINE, REDUCTION = "forward, backward and waiting", "gradient reduction"
OPTIMIZER, REST = "optimizer, gathering of weights", "outside of these: data, logging"


def _predicted(
    model: ModelShape, cluster: Cluster, estimate: Estimate, calibration: Calibration | None
) -> dict[str, Floats]:
    """Return the seconds that each pipeline rank is predicted to spend in what Megatron's timers measure."""
    configuration = estimate.configuration
    stages = stage_costs(model, cluster, configuration, calibration=calibration)
    ran = run(stages, configuration)
    places = ran.schedule.placement.table
    end = step_end(model, cluster, configuration, stages, table=places, calibration=calibration)

    def by_rank(seconds: Floats) -> Floats:
        total = np.bincount(places.ravel(), np.tile(seconds, len(places)), configuration.pipeline)
        return total * configuration.microbatches / len(places)

    return {
        FORWARD: by_rank(stages.forward),
        BACKWARD: by_rank(stages.backward_input + stages.backward_weight),
        WAITING: ran.ends - ran.busy,
        PIPELINE: ran.ends,
        REDUCTION: end.reduce,
        OPTIMIZER: end.optimizer + end.gather,
    }


def _parts(
    predicted: Mapping[str, Floats], timers: Mapping[str, tuple[float, float]], step: float
) -> Iterator[ComparedPart]:
    """Yield the disjoint parts that the timers measure, and the rest of the step."""
    zero = (0.0, 0.0)
    names = ("forward-backward", "all-grads-sync", "optimizer", "backward-compute")
    whole, reduction, optimizer, backward = (timers.get(name, zero) for name in names)
    measured = {REDUCTION: reduction, OPTIMIZER: optimizer}
    if "forward-compute" in timers:
        waits = [pair for name, pair in timers.items() if name.endswith(("-send", "-recv"))]
        waited = (sum(low for low, _ in waits), sum(high for _, high in waits))
        measured = {FORWARD: timers["forward-compute"], BACKWARD: backward, WAITING: waited} | measured
    elif whole != zero:
        # The timer of the pipeline includes the reduction.
        measured = {PIPELINE: (whole[0] - reduction[0], whole[1] - reduction[1])} | measured
    else:
        return
    for part, seconds in measured.items():
        ranks = predicted[part]
        yield ComparedPart(part=part, predicted_s=(float(ranks.min()), float(ranks.max())), measured_s=seconds)
    if zero not in (whole, optimizer):
        rest = max(0.0, step - whole[1] - optimizer[1])
        yield ComparedPart(part=REST, predicted_s=zero, measured_s=(rest, rest))


def _suspects(time: StepTime, difference: float) -> dict[str, float]:
    """Return the parts that alone could explain a difference with their factors, the least changed one first."""
    titles = titles_of(StepTime)
    factors = {titles[name]: 1.0 + difference / value for name, value in asdict(time).items() if value > 0}
    plausible = {title: factor for title, factor in factors.items() if 1 / PLAUSIBLE <= factor <= PLAUSIBLE}
    return dict(sorted(plausible.items(), key=lambda pair: abs(pair[1] - 1.0)))


def _memory(estimate: Estimate, measurement: Measurement) -> Iterator[ComparedMemory]:
    """Yield the peak of each pipeline rank: global ranks are numbered with the pipeline outermost."""
    peaks, group = estimate.peak_memory_by_rank_gib, estimate.configuration.gpus // estimate.configuration.pipeline
    held: tuple[dict[int, float], dict[int, float]] = ({}, {})
    for most, by_gpu in zip(held, measurement.memory, strict=True):
        for gpu, gib in by_gpu.items():
            most[gpu // group] = max(most.get(gpu // group, 0.0), gib)
    for rank in sorted({*held[0], *held[1]}):
        known, predicted = (rank, peaks[rank]) if rank >= 0 else (None, max(peaks))
        allocated, reserved = (most.get(rank) for most in held)
        yield ComparedMemory(rank=known, predicted_gib=predicted, allocated_gib=allocated, reserved_gib=reserved)


def _other_job(estimate: Estimate, measurement: Measurement) -> Iterator[str]:
    times = measurement.seconds(estimate.configuration)
    logged = [step.tflops * 1e12 * time for step, time in zip(measurement.steps, times, strict=True)]
    ratio = median(logged) / (estimate.flops / estimate.configuration.gpus)
    if ratio and not 1 / SAME_JOB <= ratio <= SAME_JOB:
        yield (
            f"another job? the log counts {ratio:.2f} times the FLOPs per GPU of this configuration: check model, cluster, "
            "batch and sequence (at long sequences, trainers that count attention in full have more)"
        )


def _by_timers(parts: tuple[ComparedPart, ...]) -> Iterator[str]:
    # One slow rank makes the others wait: waiting is named only if nothing else is off by half as much.
    worst = max(parts, key=lambda part: abs(part.off) * (0.5 if part.part == WAITING else 1.0))
    yield (
        f"off the most: {worst.part}, {worst.measured_s[1]:.3g} s for the predicted {worst.predicted_s[1]:.3g} s on the "
        f"slowest rank ({worst.off:+.2g} s)"
    )
    if any(part.part == FORWARD for part in parts):
        yield "timers of level 2 synchronize the GPU around each of them: they slow the step and end its overlap"
    elif worst.part in _NEXT:
        yield f"measure next: {_NEXT[worst.part]}"


_NEXT = {
    PIPELINE: "--timing-log-level 2 separates forward, backward and waiting",
    REDUCTION: "the bandwidth of the data-parallel groups (nccl-tests), and whether the reduction overlaps the backward",
    OPTIMIZER: "--timing-log-level 1 also times params-all-gather and optimizer-inner-step, which are parts of it",
    REST: "--timing-log-level 2 also times batch-generator; the others are logging, checkpoints and garbage collection",
}


def _by_steps(ratio: float, suspects: Mapping[str, float], trainer: str) -> Iterator[str]:
    if abs(ratio - 1.0) <= REPEATED:
        yield f"no part stands out: two measurements of one run differ by {REPEATED:.0%}, too"
        return
    named = ", ".join(f"{part} at {factor:.2f} times its prediction" for part, factor in suspects.items())
    if not 1 / UNLIKELY < ratio < UNLIKELY:
        yield "another unit, or another job? steps are in seconds, such as 14.25s or 14250ms"
        return
    yield "whole steps do not tell which part is off; " + (
        f"alone, each of these would explain it: {named}"
        if named
        else f"none explains it with at most {PLAUSIBLE:g} times its prediction: several are off, or something that is not "
        "predicted takes time, such as data loading, checkpoints or another job"
    )
    yield (
        "measure next: --timing-log-level 2 --timing-log-option minmax (timers of forward, backward, waiting, optimizer)"
        if trainer.startswith("Megatron")
        else "measure next: a profiler trace of a step, for `pipeplan calibrate CONFIGURATION --from TRACES`"
    )


def _memory_findings(memory: tuple[ComparedMemory, ...]) -> Iterator[str]:
    off = {held: (held.allocated_gib or 0.0) / held.predicted_gib - 1.0 for held in memory if held.allocated_gib}
    reserved = [(held.reserved_gib, held.predicted_gib) for held in memory if held.reserved_gib]
    if off:
        worst = max(off, key=lambda held: abs(off[held]))
        where = "the fullest rank" if worst.rank is None else f"rank {worst.rank}"
        within = "within" if table().memory.low <= 1.0 + off[worst] <= table().memory.high else "outside of"
        yield (
            f"allocated memory is off the most on {where}: {worst.allocated_gib:.1f} GiB for the predicted "
            f"{worst.predicted_gib:.1f} GiB ({change(off[worst])}), {within} the error of such predictions"
        )
    elif reserved:
        most, predicted = max(reserved)
        yield (
            f"the log has only reserved memory, {most:.1f} GiB, which is at least what is allocated: the predicted "
            f"{predicted:.1f} GiB {'are too high' if most < predicted else 'can be right'}"
        )
