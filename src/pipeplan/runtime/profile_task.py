"""What processes do that measure a model's stages together, or one process alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import torch
import torch.distributed as dist

from pipeplan.model import Placement, Schedule
from pipeplan.runtime.agreement import on_first_rank
from pipeplan.runtime.clocks import clock_for
from pipeplan.runtime.group import ready_for_backward
from pipeplan.runtime.layout import cut
from pipeplan.runtime.lost_time import LostTime, lost_time
from pipeplan.runtime.model import Model
from pipeplan.runtime.models import load_model
from pipeplan.runtime.places import Phase, Place, Places
from pipeplan.runtime.profile_result import Profile
from pipeplan.runtime.progress import HowFar, Report, Watcher, starting
from pipeplan.runtime.run_task import RunTask
from pipeplan.runtime.stage_measurement import Stage, StageProfile, measure
from pipeplan.runtime.tied_parameters import require_ties_on_one_rank

PING_PONGS = 50
"""Messages there and back; their median counts."""

STEPS = 3
"""Steps that are run to see what ranks lose between ops; the one of median length counts."""

_MEASURING_STAGES = -1
"""What the ranks tell as their step before there is any."""


@dataclass(frozen=True, kw_only=True)
class ProfileTask:
    """What to measure, as every process is told; see :func:`~pipeplan.runtime.profile`.

    Attributes
    ----------
    trial
        A schedule with its communication on the same ranks, a stage each, that is run to see what they lose between ops.
    """

    model: str | Model
    placement: Placement
    trial: Schedule
    layout: tuple[int, ...] | None
    repeats: int
    warmup: int
    device: str
    threads: int
    seed: int
    timeout: float
    dtype: str | None

    @property
    def ranks(self) -> int:
        """How many processes it needs."""
        return self.placement.ranks

    def load(self) -> Model:
        """The model itself."""
        return (
            load_model(self.model, dtype=self.dtype, timeout=self.timeout)
            if isinstance(self.model, str)
            else self.model
        )

    def describe(self, rank: int, place: Place) -> str:
        """Where a rank is, for messages."""
        if place.phase != Phase.STARTING and place.step != _MEASURING_STAGES:
            return f"{place.describe(self.trial, rank)}, while measuring what is lost between ops"
        stage = place.position // (self.repeats + self.warmup)
        doing = "starting up" if place.phase == Phase.STARTING else f"measuring its stage number {stage}"
        return f"rank {rank}, {doing}"

    @property
    def _rounds(self) -> int:
        """Of all the stages of a rank; a rank with fewer stages than others waits for them."""
        return self.placement.chunks * (self.repeats + self.warmup)

    def how_far(self, places: Sequence[Place]) -> HowFar:
        """How many rounds, and steps of the trial behind them, were done, from the places of all ranks."""
        trial = self._trial()
        work = self._rounds + trial.warmup + trial.steps
        if starting(places):
            return HowFar("starting up", 1, 1, 0.0, work)
        if any(place.step == _MEASURING_STAGES for place in places):
            done = min(place.position for place in places if place.step == _MEASURING_STAGES)
            return HowFar("round", done + 1, self._rounds, done, work)
        far = trial.how_far(places)
        steps = trial.warmup + trial.steps
        return HowFar("trial step", min(int(far.done), steps - 1) + 1, steps, self._rounds + far.done, work)

    def work_alone(self, report: Report | None = None) -> Profile:
        """All stages one after the other, in this process."""
        rounds = self.placement.stages * (self.repeats + self.warmup)
        done = 0

        def measuring(_: Sequence[Place]) -> HowFar:
            return HowFar("round", min(done + 1, rounds), rounds, done, rounds)

        watcher = None if report is None else Watcher(report, measuring)

        def meet() -> None:
            nonlocal done
            if watcher is not None:
                watcher([])
            done += 1

        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads)
        try:
            device = torch.device(self.device)
            ready_for_backward(device)
            model = self.load()
            ranges = cut(model, self.placement.stages, self.layout)
            require_ties_on_one_rank(model, ranges, self.placement, seed=self.seed, device=device)
            stages = measure_stages(model, ranges, device, self.seed, self._measure(meet))
        finally:
            torch.set_num_threads(threads)
        return self._profile(stages, device, together=False)

    def work(self, rank: int, device: torch.device, places: Places) -> Profile:
        """Measure this rank's stages while the other ranks measure theirs; then a transfer, and whole steps."""
        model = self.load()
        ranges = cut(model, self.placement.stages, self.layout)
        on_first_rank(lambda: require_ties_on_one_rank(model, ranges, self.placement, seed=self.seed, device=device))
        mine = self.placement.stages_on(rank)
        rounds = self._rounds

        def meet() -> None:
            nonlocal rounds
            rounds -= 1
            places.tell(rank, _MEASURING_STAGES, self._rounds - 1 - rounds, Phase.COMPUTING)
            dist.barrier()

        found = measure_stages(model, [ranges[stage] for stage in mine], device, self.seed, self._measure(meet))
        while rounds > 0:
            meet()
        told: list[Any] = [None] * self.ranks
        dist.all_gather_object(told, dict(zip(mine, found, strict=True)))
        stages = {stage: one for part in told for stage, one in part.items()}
        ordered = tuple(stages[stage] for stage in sorted(stages))
        transfer = self._transfer(ordered, rank, device)
        return self._profile(ordered, device, together=True, transfer=transfer, lost=self._lost(rank, device, places))

    def _measure(self, meet: Callable[[], None]) -> Callable[[Stage], StageProfile]:
        return partial(measure, repeats=self.repeats, warmup=self.warmup, meet=meet)

    def _transfer(self, stages: tuple[StageProfile, ...], rank: int, device: torch.device) -> float | None:
        """Milliseconds one way between the first two ranks, for the largest tensor sent; None with one rank."""
        if self.ranks < 2:
            return None
        size = max(stage.input_bytes for stage in stages[1:]) if len(stages) > 1 else 1
        payload = torch.zeros(size, dtype=torch.uint8, device=device)
        clock = clock_for(device)
        trips = [_ping_pong(payload, rank, clock) for _ in range(PING_PONGS)] if rank < 2 else [0.0]
        told: list[Any] = [None] * self.ranks
        dist.all_gather_object(told, median(trips))
        return float(told[0])

    def _lost(self, rank: int, device: torch.device, places: Places) -> LostTime | None:
        """What ranks lose between ops in the runtime's own steps; None with one rank."""
        if self.ranks < 2:
            return None
        run = self._trial().train(device, places)
        return lost_time(run.timeline, run.wait)

    def _trial(self) -> RunTask:
        """Some steps of the runtime's own."""
        return RunTask(
            schedule=self.trial,
            model=self.model,
            steps=STEPS,
            device=self.device,
            threads=self.threads,
            seed=self.seed,
            timeout=self.timeout,
            dtype=self.dtype,
        )

    def _profile(
        self,
        stages: tuple[StageProfile, ...],
        device: torch.device,
        *,
        together: bool,
        transfer: float | None = None,
        lost: LostTime | None = None,
    ) -> Profile:
        model = self.load()
        return Profile(
            stages=stages,
            placement=self.placement,
            p2p_time=transfer,
            op_gap=None if lost is None else lost.op_gap,
            message_time=None if lost is None else lost.message_time,
            model=model.name,
            device=torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
            dtype=model.dtype,
            threads=self.threads,
            torch_version=str(torch.__version__),
            repeats=self.repeats,
            together=together,
        )


def _ping_pong(payload: torch.Tensor, rank: int, clock: Any) -> float:
    """Half the time there and back, in milliseconds."""
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
    """Measure some stages of a model, each given by its first layer and one past its last, in the model's order."""
    data, targets = (part.to(device) for part in model.microbatch(0, 0, seed=seed))
    found: list[StageProfile] = []
    reached = 0
    for first, stop in ranges:
        data = _passed(model, range(reached, first), data, seed)
        reached = first
        last = stop == len(model.layers)
        loss = partial(_loss_on, model, targets) if last else None
        module = model.build(first, stop, seed=seed, device=device)
        found.append(measure_one(Stage(module, (first, stop), data, loss, first == 0)))
    return tuple(found)


def _passed(model: Model, layers: range, data: torch.Tensor, seed: int) -> torch.Tensor:
    """The output of some layers, built one at a time."""
    with torch.no_grad():
        for layer in layers:
            data = model.build(layer, layer + 1, seed=seed, device=data.device)(data)
    return data


def _loss_on(model: Model, targets: torch.Tensor, output: torch.Tensor) -> torch.Tensor:
    return model.loss(output, targets)
