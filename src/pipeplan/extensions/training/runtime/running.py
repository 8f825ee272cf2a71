"""Train a model with a schedule in PyTorch's pipeline runtime, measure every op, and compare the gradients."""

from __future__ import annotations

import copy
import gc
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from pipeplan.extensions.training.options import RunOptions
from pipeplan.extensions.training.runtime.agreement import from_first_rank
from pipeplan.extensions.training.runtime.gradients import Difference, Reference
from pipeplan.extensions.training.runtime.group import choose_device, in_job, local_device, process_group
from pipeplan.extensions.training.runtime.launch import RankFailure, launch, watchdog
from pipeplan.extensions.training.runtime.model import cut, ties_between_stages
from pipeplan.extensions.training.runtime.models import model_for
from pipeplan.extensions.training.runtime.pipeline import Pipeline
from pipeplan.extensions.training.runtime.progress import (
    HowFar,
    Phase,
    Places,
    ProgressListener,
    RankPlace,
    Watcher,
    starting,
)
from pipeplan.extensions.training.runtime.recording import Recording
from pipeplan.extensions.training.runtime.requirements import require_torch
from pipeplan.extensions.training.runtime.results import RunResult
from pipeplan.extensions.training.runtime.ties import Tied
from pipeplan.foundation.errors import InputError, PipeplanError, RunError
from pipeplan.model import Schedule
from pipeplan.passes import lower_for_torch

RELATIVE_TOLERANCE = {("cpu", "float32"): 0.0, ("cuda", "float32"): 1e-4}
"""Tolerance of a gradient's difference, relative to the largest gradient; 2 % for bfloat16, which has 8 bits of mantissa."""


@dataclass(frozen=True, kw_only=True)
class RunTask:
    """The training run that every process takes part in.

    Attributes
    ----------
    schedule
        Schedule with its communication, as PyTorch's runtime executes it.
    options
        Options of the run; the device is ``cpu`` or ``cuda``.
    lengths
        Share of the model's sequence that each microbatch has; None if all have the whole.
    """

    schedule: Schedule
    options: RunOptions
    lengths: tuple[float, ...] | None = None

    @property
    def ranks(self) -> int:
        """Return the number of processes that the task needs."""
        return self.schedule.ranks

    def describe(self, rank: int, place: RankPlace) -> str:
        """Describe what a rank is doing, for messages."""
        return place.describe(self.schedule, rank)

    def how_far(self, places: Sequence[RankPlace]) -> HowFar:
        """Return the number of finished steps, from the places of all ranks or of the first one."""
        total = self.options.warmup + self.options.steps
        if starting(places):
            return HowFar("starting up", 1, 1, 0.0, total)
        lengths = np.diff(self.schedule.offsets)
        ends = [
            float(total) if place.phase == Phase.DONE else _steps_done(place, int(lengths[rank]))
            for rank, place in enumerate(places)
        ]
        done = float(np.mean(ends))
        step = min(int(done), total - 1)
        if step < self.options.warmup:
            return HowFar("warm-up", step + 1, self.options.warmup, done, total)
        return HowFar("step", step - self.options.warmup + 1, self.options.steps, done, total)

    def work(self, rank: int, device: torch.device, places: Places) -> RunResult:
        """Train in a process group of all ranks. Every rank returns the same result."""
        model = model_for(self.options)
        ranges = cut(model, self.schedule.stages, self.options.layout)
        tied = from_first_rank(lambda: ties_between_stages(model, ranges, seed=self.options.seed, device=device))
        return self.train(device, places, tied)

    def train(self, device: torch.device, places: Places, tied: Tied = ()) -> RunResult:
        """Train with these ties. When only times are measured, the weights do not matter."""
        return _Trainer(self, device, places, tied).run()


def _shortened(pair: tuple[Tensor, Tensor], share: float) -> tuple[Tensor, Tensor]:
    """Return the first tokens of each sequence of a microbatch; both tensors have the sequence as second dimension."""
    inputs, targets = pair
    if inputs.ndim < 2 or targets.ndim < 2 or inputs.shape[1] != targets.shape[1]:
        raise InputError(
            f"microbatches of different lengths need a model of sequences, not inputs of shape {tuple(inputs.shape)} and "
            f"targets of shape {tuple(targets.shape)}",
            field="model",
        )
    length = max(round(share * inputs.shape[1]), 1)
    return inputs[:, :length].contiguous(), targets[:, :length].contiguous()


def _steps_done(place: RankPlace, ops: int) -> float:
    """Return the number of steps that a rank has done, including the share of its current one."""
    if place.phase == Phase.BETWEEN_STEPS:
        return place.step + 1.0
    return place.step + min(place.position / max(ops, 1), 1.0)


class _Trainer:
    """One rank's pipeline with its optimizers, and the same training in a single process for comparison."""

    def __init__(self, task: RunTask, device: torch.device, places: Places, tied: Tied) -> None:
        torch.set_num_threads(task.options.threads)
        self.task, self.device = task, device
        self.model = model_for(task.options)
        self.ranges = cut(self.model, task.schedule.stages, task.options.layout)
        modules = {stage: self._build(stage) for stage in task.schedule.placement.stages_on(dist.get_rank())}
        # An invalid schedule runs all the same: the verification of gradients reports its effect.
        self.pipeline = Pipeline(
            task.schedule,
            modules,
            self.model.loss,
            device=device,
            tied=tied,
            varying_lengths=task.lengths is not None,
            checked=False,
            places=places,
        )
        self.optimizers = _optimizers(modules.values(), task.options.learning_rate)
        self.difference = Difference()
        self.reference: Reference | None = None
        if task.options.verify:
            # Copied together: a model may return the layers that share a parameter as modules that it has built before.
            stages = copy.deepcopy([self._build(stage) for stage in range(task.schedule.stages)])
            self.reference = Reference(stages, task.schedule, self.model.loss)
            self.reference_optimizers = _optimizers(stages, task.options.learning_rate)

    def _build(self, stage: int) -> nn.Module:
        return self.model.build(*self.ranges[stage], seed=self.task.options.seed, device=self.device)

    def run(self) -> RunResult:
        # Warm-up steps load kernels and connect the ranks; they are not recorded.
        losses = [self._step(number) for number in range(self.task.options.warmup)]
        with self.pipeline.record() as recording:
            losses += [
                self._step(number)
                for number in range(self.task.options.warmup, self.task.options.warmup + self.task.options.steps)
            ]
        if self.task.options.kineto is not None:
            self._profiled_step(len(losses), Path(self.task.options.kineto))
        return self._result(recording, losses)

    def _step(self, number: int) -> list[float]:
        inputs, targets = self._batch(number)
        # A garbage collection in the middle of a step would be measured as part of an op.
        gc.collect()
        gc.disable()
        # Ranks begin together, so that the step does not include waiting for the slowest one to get here.
        dist.barrier()
        losses = self.pipeline.step(inputs, targets)
        gc.enable()
        shared: list[float] = self.pipeline.broadcast(losses).tolist()
        if self.reference is not None:
            self._compare(self.reference, inputs, targets, shared)
        _apply(self.optimizers)
        return shared

    def _batch(self, step: int) -> tuple[list[Tensor], list[Tensor]]:
        made = [
            self.model.microbatch(step, number, seed=self.task.options.seed)
            for number in range(self.task.schedule.microbatches)
        ]
        sizes = {part.shape[:1] for pair in made for part in pair}
        if len(sizes) > 1 or () in sizes:
            raise InputError(f"all microbatches of model {self.model.name} need the same size, not {sorted(sizes)}")
        if self.task.lengths is not None:
            made = [_shortened(pair, share) for pair, share in zip(made, self.task.lengths, strict=True)]
        inputs, targets = zip(*made, strict=True)
        return [part.to(self.device) for part in inputs], [part.to(self.device) for part in targets]

    def _compare(self, reference: Reference, inputs: list[Tensor], targets: list[Tensor], losses: list[float]) -> None:
        expected = reference.step(inputs, targets)
        apart = max(abs(ours - theirs) for ours, theirs in zip(losses, expected, strict=True))
        self.difference |= reference.compare(self.pipeline.stages) | Difference(loss=apart)
        _apply(self.reference_optimizers)

    def _profiled_step(self, number: int, folder: Path) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        if self.device.type == "cuda":
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        with torch.profiler.profile(activities=activities) as profile:
            self._step(number)
        profile.export_chrome_trace(str(folder / f"rank{self.pipeline.rank}.json"))

    def _result(self, recording: Recording, losses: list[list[float]]) -> RunResult:
        difference, peaks = self._agreed()
        relative = RELATIVE_TOLERANCE.get((self.device.type, self.model.dtype), 0.02)
        return RunResult(
            timeline=recording.timeline,
            steps=recording.on_one_clock(),
            wait=recording.wait,
            step_seconds=recording.step_seconds,
            losses=tuple(sum(step) / len(step) for step in losses),
            max_gradient_difference=difference.gradient if self.task.options.verify else None,
            max_loss_difference=difference.loss if self.task.options.verify else None,
            tolerance=relative * difference.scale,
            peak_bytes=peaks,
            model=self.model.name,
            device=self.device.type,
            dtype=self.model.dtype,
            threads=self.task.options.threads,
            torch_version=str(torch.__version__),
        )

    def _agreed(self) -> tuple[Difference, tuple[int, ...] | None]:
        """Return the largest difference on any rank, and every rank's peak memory."""
        on_gpu = self.device.type == "cuda"
        peak = torch.cuda.max_memory_allocated(self.device) if on_gpu else 0
        by_rank: list[Any] = [None] * self.task.ranks
        dist.all_gather_object(by_rank, (self.difference, peak))
        largest = Difference()
        for difference, _ in by_rank:
            largest |= difference
        return largest, tuple(peak for _, peak in by_rank) if on_gpu else None


Optimizers = Sequence[torch.optim.Optimizer]


def _optimizers(modules: Any, learning_rate: float) -> Optimizers:
    """Return one optimizer per stage, so that updates do not depend on the placement. Each parameter is in one of them."""
    # Stages may share a parameter, which must be updated once.
    owned: set[nn.Parameter] = set()
    optimizers = []
    for module in modules:
        parameters = [parameter for parameter in module.parameters() if parameter not in owned]
        owned.update(parameters)
        if parameters:
            optimizers.append(torch.optim.AdamW(parameters, lr=learning_rate))
    return optimizers


def _apply(optimizers: Optimizers) -> None:
    for optimizer in optimizers:
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def run_with(
    schedule: Schedule,
    options: RunOptions,
    *,
    lengths: tuple[float, ...] | None = None,
    progress: ProgressListener | None = None,
) -> RunResult:
    """Train for some steps with a schedule, on this host or as one rank of the torchrun job that this process is in.

    In a job, every process calls this with the same arguments and gets the same result.

    Parameters
    ----------
    schedule
        A schedule that PyTorch's runtime can express: one copy of the model, whole sequences, any placement. R, OFFLOAD and
        RELOAD run in their place. Communication is inserted unless the schedule already has it.
    options
        Model, device and number of steps.
    lengths
        Shares of the model's sequence that the microbatches have.
    progress
        Function that receives the progress twice a second; in a job, in the process of the first rank.

    Raises
    ------
    ShapeError
        If PyTorch's runtime cannot express the schedule.
    DeadlockError
        If ranks wait for each other.
    InputError
        If the model cannot be loaded or cut, an option is invalid, the job has another size, or the port is in use.
    RunError
        If a rank dies, raises or hangs; the message names it and its op.
    """
    require_torch()
    task = RunTask(
        schedule=lower_for_torch(schedule, receives=options.receives),
        options=replace(options, device=choose_device(options.device, schedule.ranks)),
        lengths=lengths,
    )
    # Raise errors of the model or its layout here, before any process starts.
    cut(model_for(task.options), schedule.stages, options.layout)
    watcher = None if progress is None else Watcher(progress, task.how_far)
    if in_job():
        return _in_job(task, watcher)
    result: RunResult = launch(task, watcher)
    return result


def _in_job(task: RunTask, watcher: Watcher | None) -> RunResult:
    """Do this process's part in a job that is already running, and name the rank in every error."""
    places = Places(task.ranks)
    rank = int(os.environ["RANK"])
    device = local_device(task.options.device, rank)
    try:
        # A waiting rank is given longer, so that the rank it waits for is named first.
        with process_group(device, task.ranks, timeout=2 * task.options.timeout) as rank:
            places.tell(rank, 0, 0, Phase.STARTING)
            first = watcher if rank == 0 else None
            with watchdog(places, rank, task.options.timeout, lambda: task.describe(rank, places.of(rank)), first):
                return task.work(rank, device, places)
    except PipeplanError:
        raise
    except Exception as error:
        failure = RankFailure.of(error, places.of(rank))
        raise RunError(f"{task.describe(rank, failure.place)}: {failure.message}") from error
