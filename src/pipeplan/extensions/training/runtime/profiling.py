"""Measure the costs of a model's stages, of transfers, and of the time lost between ops."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import torch
import torch.distributed as dist

from pipeplan.costs import Spread, options_of
from pipeplan.extensions.training.options import ModelOptions, ProfileOptions, RunOptions
from pipeplan.extensions.training.runtime.clocks import clock_for
from pipeplan.extensions.training.runtime.group import choose_device, in_job, ready_for_backward
from pipeplan.extensions.training.runtime.launch import launch
from pipeplan.extensions.training.runtime.model import Model, cut
from pipeplan.extensions.training.runtime.models import model_for
from pipeplan.extensions.training.runtime.progress import (
    HowFar,
    Phase,
    Places,
    ProgressListener,
    RankPlace,
    Watcher,
    starting,
)
from pipeplan.extensions.training.runtime.requirements import BACKWARD_VERSIONS, require_torch
from pipeplan.extensions.training.runtime.results import Profile
from pipeplan.extensions.training.runtime.running import RunTask
from pipeplan.extensions.training.runtime.stage_measurement import Stage, StageProfile, measure
from pipeplan.foundation.errors import InputError
from pipeplan.model import COMPUTE_KINDS, RECEIVE_KINDS, Floats, Placement, Schedule, Timeline, among, dependencies
from pipeplan.passes import lower_for_torch
from pipeplan.strategies import strategy

if TYPE_CHECKING:
    from pipeplan.extensions.training.keywords import ProfileOptionsKeywords


@dataclass(frozen=True, slots=True)
class LostTime:
    """Overhead between ops, in milliseconds.

    Attributes
    ----------
    op_gap
        Time from the end of an op to the start of the next, if nothing is sent, received or waited for in between.
    message_time
        Additional time of each message in between; None if there was none.
    """

    op_gap: Spread
    message_time: Spread | None


def lost_time(timeline: Timeline, wait: Floats) -> LostTime | None:
    """Return the overhead between the ops of a measured step; None if all consecutive ops have a message between them.

    Waiting for a message that another rank has not sent yet is idle time, and left out. The remaining time between two ops
    is a gap plus the time of each message that is sent or received there.

    Parameters
    ----------
    timeline
        Timeline in milliseconds of a schedule with its communication and without overlapped pairs.
    wait
        Time that the rank waited at each op, shape (ops,).
    """
    schedule = timeline.schedule
    op = np.flatnonzero(among(schedule.columns.kind, COMPUTE_KINDS))
    neighbours = schedule.rank[op[1:]] == schedule.rank[op[:-1]]
    before, after = op[:-1][neighbours], op[1:][neighbours]
    # Whatever is between two compute ops of a row counts as a message.
    messages = after - before - 1
    alone = messages == 0
    if not alone.any():
        return None
    needs = dependencies(schedule).arrival[after]
    received = (needs >= 0) & among(schedule.columns.kind[needs], RECEIVE_KINDS)
    # Every wait includes the time to turn to the op, and nothing else if the op needs no message.
    turning = float(np.median(wait[after][~received])) if not received.all() else 0.0
    lost = timeline.start[after] - timeline.end[before] - np.where(received, wait[after] - turning, 0.0)
    gap = Spread.of(lost[alone])
    # What exceeds the gap is due to the messages, in equal parts.
    per_message = (lost[~alone] - gap.median) / messages[~alone]
    return LostTime(gap, Spread.of(np.maximum(per_message, 0.0)) if per_message.size else None)


PING_PONGS = 50
"""Number of round trips of a message, of which the median counts."""

STEPS = 3
"""Number of steps to measure the overhead between ops, of which the one of median length counts."""

_MEASURING_STAGES = -1
"""Step number that ranks report while they measure their stages, before the first step."""


@dataclass(frozen=True, kw_only=True)
class ProfileTask:
    """The measurement that every process takes part in; see :func:`~pipeplan.runtime.profile`.

    Attributes
    ----------
    placement
        Rank of each stage.
    trial
        Schedule with its communication on the same ranks, one stage each, to measure the overhead between ops.
    options
        Options of the profile; the device is ``cpu`` or ``cuda``.
    """

    placement: Placement
    trial: Schedule
    options: ProfileOptions

    @property
    def ranks(self) -> int:
        """Return the number of processes that the task needs."""
        return self.placement.ranks

    def describe(self, rank: int, place: RankPlace) -> str:
        """Describe what a rank is doing, for messages."""
        if place.phase != Phase.STARTING and place.step != _MEASURING_STAGES:
            return f"{place.describe(self.trial, rank)}, while measuring what is lost between ops"
        stage = place.position // (self.options.repeats + self.options.warmup)
        doing = "starting up" if place.phase == Phase.STARTING else f"measuring its stage number {stage}"
        return f"rank {rank}, {doing}"

    @property
    def _rounds(self) -> int:
        """Return the number of rounds over all stages of a rank; a rank with fewer stages waits for the others."""
        return self.placement.chunks * (self.options.repeats + self.options.warmup)

    def how_far(self, places: Sequence[RankPlace]) -> HowFar:
        """Return the number of finished rounds, and trial steps after them, from the places of all ranks."""
        trial = self._trial()
        steps = trial.options.warmup + trial.options.steps
        work = self._rounds + steps
        if starting(places):
            return HowFar("starting up", 1, 1, 0.0, work)
        if any(place.step == _MEASURING_STAGES for place in places):
            done = min(place.position for place in places if place.step == _MEASURING_STAGES)
            return HowFar("round", done + 1, self._rounds, done, work)
        far = trial.how_far(places)
        return HowFar("trial step", min(int(far.done), steps - 1) + 1, steps, self._rounds + far.done, work)

    def work_alone(self, report: ProgressListener | None = None) -> Profile:
        """Measure all stages one after the other, in this process."""
        rounds = self.placement.stages * (self.options.repeats + self.options.warmup)
        done = 0

        def measuring(_: Sequence[RankPlace]) -> HowFar:
            return HowFar("round", min(done + 1, rounds), rounds, done, rounds)

        watcher = None if report is None else Watcher(report, measuring)

        def meet() -> None:
            nonlocal done
            if watcher is not None:
                watcher([])
            done += 1

        threads = torch.get_num_threads()
        torch.set_num_threads(self.options.threads)
        # A collection runs before every round. Over the objects of the imported modules it takes a fifth of a second.
        gc.freeze()
        try:
            device = torch.device(self.options.device)
            ready_for_backward(device)
            model = model_for(self.options)
            ranges = cut(model, self.placement.stages, self.options.layout)
            stages = measure_stages(model, ranges, device, self.options.seed, self._measure(meet))
        finally:
            gc.unfreeze()
            torch.set_num_threads(threads)
        return self._profile(stages, device, together=False)

    def work(self, rank: int, device: torch.device, places: Places) -> Profile:
        """Measure this rank's stages while the other ranks measure theirs, then a transfer, then whole steps."""
        model = model_for(self.options)
        ranges = cut(model, self.placement.stages, self.options.layout)
        mine = self.placement.stages_on(rank)
        rounds = self._rounds

        def meet() -> None:
            nonlocal rounds
            rounds -= 1
            places.tell(rank, _MEASURING_STAGES, self._rounds - 1 - rounds, Phase.COMPUTING)
            dist.barrier()

        profiles = measure_stages(
            model, [ranges[stage] for stage in mine], device, self.options.seed, self._measure(meet)
        )
        # A rank with fewer stages still takes part in the barriers of the others.
        while rounds > 0:
            meet()
        by_rank: list[Any] = [None] * self.ranks
        dist.all_gather_object(by_rank, dict(zip(mine, profiles, strict=True)))
        stages = {stage: one for part in by_rank for stage, one in part.items()}
        ordered = tuple(stages[stage] for stage in sorted(stages))
        transfer = self._transfer(ordered, rank, device)
        return self._profile(ordered, device, together=True, transfer=transfer, lost=self._lost(rank, device, places))

    def _measure(self, meet: Callable[[], None]) -> Callable[[Stage], StageProfile]:
        return partial(measure, repeats=self.options.repeats, warmup=self.options.warmup, meet=meet)

    def _transfer(self, stages: tuple[StageProfile, ...], rank: int, device: torch.device) -> float | None:
        """Return the milliseconds of a transfer of the largest tensor between the first two ranks; None with one rank."""
        if self.ranks < 2:
            return None
        size = max(stage.input_bytes for stage in stages[1:]) if len(stages) > 1 else 1
        payload = torch.zeros(size, dtype=torch.uint8, device=device)
        clock = clock_for(device)
        # Ranks 0 and 1 measure; the others only take part in the exchange of results.
        trips = [_ping_pong(payload, rank, clock) for _ in range(PING_PONGS)] if rank < 2 else [0.0]
        by_rank: list[Any] = [None] * self.ranks
        dist.all_gather_object(by_rank, median(trips))
        return float(by_rank[0])

    def _lost(self, rank: int, device: torch.device, places: Places) -> LostTime | None:
        """Return the overhead between ops in steps of the runtime; None with one rank."""
        if self.ranks < 2:
            return None
        run = self._trial().train(device, places)
        return lost_time(run.timeline, run.wait)

    def _trial(self) -> RunTask:
        shared = {field.name: getattr(self.options, field.name) for field in fields(ModelOptions)}
        return RunTask(schedule=self.trial, options=RunOptions(**{**shared, "layout": None, "steps": STEPS}))

    def _profile(
        self,
        stages: tuple[StageProfile, ...],
        device: torch.device,
        *,
        together: bool,
        transfer: float | None = None,
        lost: LostTime | None = None,
    ) -> Profile:
        model = model_for(self.options)
        return Profile(
            stages=stages,
            placement=self.placement,
            p2p_time=transfer,
            op_gap=None if lost is None else lost.op_gap,
            message_time=None if lost is None else lost.message_time,
            model=model.name,
            device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            dtype=model.dtype,
            threads=self.options.threads,
            torch_version=str(torch.__version__),
            repeats=self.options.repeats,
            together=together,
            roles=(model.roles or (None,) * len(model.layers)) if self.options.per_layer else None,
        )


def _ping_pong(payload: torch.Tensor, rank: int, clock: Any) -> float:
    """Return half the time of a round trip, in milliseconds."""
    clock.restart()
    start = clock.mark()
    for sender in (0, 1):
        if rank == sender:
            dist.send(payload, dst=1 - rank)
        else:
            dist.recv(payload, src=1 - rank)
    first, last = clock.times([start, clock.mark()]).tolist()
    return float(last - first) / 2e6


def measure_stages(
    model: Model,
    ranges: Any,
    device: torch.device,
    seed: int,
    measure_one: Callable[[Stage], StageProfile],
) -> tuple[StageProfile, ...]:
    """Measure stages of a model in its order; ``ranges`` has the first layer of each, and one past its last."""
    data, targets = (part.to(device) for part in model.microbatch(0, 0, seed=seed))
    profiles: list[StageProfile] = []
    reached = 0
    for first, stop in ranges:
        # A stage is measured on the output of the layers before it: real inputs, not random ones.
        data = _passed(model, range(reached, first), data, seed)
        reached = first
        last = stop == len(model.layers)
        loss = partial(_loss_on, model, targets) if last else None
        module = model.build(first, stop, seed=seed, device=device)
        profiles.append(measure_one(Stage(module, (first, stop), data, loss, first == 0)))
    return tuple(profiles)


def _passed(model: Model, layers: range, data: torch.Tensor, seed: int) -> torch.Tensor:
    """Return the output of layers, which are built one at a time to save memory."""
    with torch.no_grad():
        for layer in layers:
            data = model.build(layer, layer + 1, seed=seed, device=data.device)(data)
    return data


def _loss_on(model: Model, targets: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    return model.loss(output, targets)


def profile(
    model: str | Model = "gpt-tiny",
    /,
    placement: Placement | None = None,
    *,
    together: bool | None = None,
    progress: ProgressListener | None = None,
    **options: Unpack[ProfileOptionsKeywords],
) -> Profile:
    """Measure the time and memory of F, B, I and W on every stage of a model.

    Parameters
    ----------
    model
        Built-in name, ``module:function``, or a :class:`~pipeplan.runtime.Model`.
    placement
        Rank of each stage; None: two ranks with one stage each.
    together
        True if one process per rank measures, all at the same time, so that ranks compete for memory bandwidth and clock
        speed as in a run. This also measures a transfer and, in some steps of 1F1B, the overhead between ops. False: one
        stage at a time in this process. None: together on a CPU and if every rank has a GPU.
    progress
        Function that receives the progress, twice a second.
    **options
        The other options of :class:`pipeplan.extensions.training.options.ProfileOptions`.

    Raises
    ------
    InputError
        If the model cannot be loaded or cut, or an option is invalid.
    RunError
        If a process dies, raises or hangs.
    """
    chosen = options_of(ProfileOptions, {"model": model, **options})
    return profile_with(placement or Placement.linear(2), chosen, together=together, progress=progress)


def profile_with(
    placement: Placement,
    options: ProfileOptions,
    *,
    together: bool | None = None,
    progress: ProgressListener | None = None,
) -> Profile:
    """See :func:`profile`."""
    require_torch(BACKWARD_VERSIONS, what="measuring the split backward")
    if options.per_layer:
        placement, options = _layer_by_layer(placement, options)
    if placement.copies > 1:
        raise InputError(
            "a bidirectional placement holds every stage twice; profile the linear one with as many stages"
        )
    if in_job():
        raise InputError("profiling starts its own processes: run it outside torchrun")
    alone = together is False or (together is None and _few_gpus(options.device, placement.ranks))
    device = choose_device(options.device, 1 if alone else placement.ranks)
    task = ProfileTask(
        placement=placement,
        trial=_trial(placement.ranks),
        options=replace(options, device=device),
    )
    cut(model_for(options), placement.stages, options.layout)
    if alone:
        return task.work_alone(progress)
    measured: Profile = launch(task, None if progress is None else Watcher(progress, task.how_far))
    return measured


def _layer_by_layer(placement: Placement, options: ProfileOptions) -> tuple[Placement, ProfileOptions]:
    """Return a placement whose stages are single layers, divided among the ranks of another one, and its layout."""
    if options.layout is not None:
        raise InputError("per_layer measures every layer on its own: drop layout", field="layout")
    shares = cut(model_for(options), placement.ranks)
    rank_of = tuple(rank for rank, (first, stop) in enumerate(shares) for _ in range(first, stop))
    return Placement.of(rank_of), replace(options, layout=(1,) * len(rank_of))


def _trial(ranks: int) -> Schedule:
    """Return 1F1B with its communication: it has ops with no, one and two messages between them."""
    rule = strategy("1f1b")
    return lower_for_torch(rule(rule.shape(ranks, 2 * ranks + 4)))


def _few_gpus(device: str, ranks: int) -> bool:
    """Return whether there are GPUs to measure on, but not one for every rank."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    return device != "cpu" and 0 < gpus < ranks
