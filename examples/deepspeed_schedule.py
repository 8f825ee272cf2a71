"""Trains a small model with DeepSpeed's own pipeline engine, in an order of pipeplan's, and with DeepSpeed's own order.

    pipeplan export eager-1f1b --ranks 2 --microbatches 6 --to torch-csv -o plan.csv
    torchrun --nproc-per-node 2 examples/deepspeed_schedule.py plan.csv

Both train from the same weights on the same batches: their losses and weights are the same, only the order is another. To
train your own model by a plan, take ``PlannedSchedule``; the engine runs it unchanged, on GPUs and on CPUs::

    schedule = pipeplan.read_schedule("plan.csv")
    engine._train_schedule = lambda: PlannedSchedule(schedule, engine.stage_id)
    engine.train_batch(batches)

What the engine can run is one stage a rank, full backwards, forwards in the order of microbatches, and on the last rank
each forward followed by its backward, since that one takes the loss of the last forward.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import deepspeed
import torch
import torch.distributed as dist
from deepspeed.pipe import LayerSpec, PipelineModule
from deepspeed.runtime.pipe import schedule as deepspeed_schedule
from deepspeed.runtime.pipe.engine import PipelineEngine

import pipeplan
from pipeplan import Kind, Schedule

WIDTH, MICROBATCH_SIZE, SEED = 32, 4, 7


class PlannedSchedule(deepspeed_schedule.PipeSchedule):
    """One rank's instructions in the order of a schedule.

    Sends and receives block in DeepSpeed, so all ranks meet in one order of transfers: each stands where the op that needs
    it is about to start, when every op takes one unit of time. A gradient is so received right before its backward, as it
    must be: the engine keeps one gradient at a time, in the memory into which it also receives activations.

    Parameters
    ----------
    schedule
        One stage a rank, of forwards and full backwards; transfers in it are placed anew.
    rank
        Whose instructions these are: the engine's ``stage_id``.

    Raises
    ------
    ValueError
        For a schedule that DeepSpeed's engine cannot run.
    """

    def __init__(self, schedule: Schedule, rank: int) -> None:
        super().__init__(schedule.microbatches, schedule.ranks, rank)
        require_runnable(schedule)
        self._instructions = instructions(schedule, rank)

    def steps(self) -> Iterator[list[deepspeed_schedule.PipeInstruction]]:
        """An instruction a step, and at the end the optimizer's."""
        for instruction in self._instructions:
            yield [instruction]
        yield [
            deepspeed_schedule.ReduceTiedGrads(),
            deepspeed_schedule.ReduceGrads(),
            deepspeed_schedule.OptimizerStep(),
        ]

    def num_pipe_buffers(self) -> int:
        """One a microbatch: what a buffer held is freed when its microbatch is done."""
        return self.micro_batches


def require_runnable(schedule: Schedule) -> None:
    """Refuse what the engine cannot run, with the rule that it breaks."""
    if schedule.placement.name != "linear":
        raise ValueError(
            f"DeepSpeed runs one stage a rank, in order; this schedule's placement is {schedule.placement.name}"
        )
    if schedule.slices > 1:
        raise ValueError(f"DeepSpeed runs whole sequences; this schedule slices them in {schedule.slices}")
    computes = [[op for op in row if op.kind.is_compute] for row in schedule]
    kinds = {op.kind for row in computes for op in row}
    if kinds != {Kind.F, Kind.B}:
        raise ValueError(
            f"DeepSpeed runs forwards and full backwards; this schedule has {', '.join(sorted(kind.name for kind in kinds))}"
        )
    for rank, row in enumerate(computes):
        forwards = [op.microbatch for op in row if op.kind is Kind.F]
        if forwards != sorted(forwards):
            raise ValueError(f"DeepSpeed loads microbatches in order; rank {rank} forwards them as {forwards}")
    last = [op.microbatch for op in computes[-1]]
    if last[::2] != last[1::2]:
        raise ValueError(
            "DeepSpeed's last rank takes the loss of its last forward, so each forward there needs its backward right behind"
        )


def instructions(schedule: Schedule, rank: int) -> list[deepspeed_schedule.PipeInstruction]:
    """What a rank does, in order: at each unit of time the transfers that its ops and its neighbours' need, then its op."""
    timeline = pipeplan.simulate(schedule, forward_times=1.0, backward_times=1.0, times_per="stage").timeline
    last = schedule.ranks - 1
    found: list[tuple[tuple[float, ...], list[deepspeed_schedule.PipeInstruction]]] = []
    for op, start in zip(timeline.schedule.columns, timeline.start.tolist(), strict=True):
        forward, buffer = op.kind is Kind.F, op.microbatch
        if not op.kind.is_compute:
            continue
        # Of the transfers of one moment gradients go first, then activations from the last rank to the first.
        when = (start, float(forward), float(-op.stage))
        if op.stage == rank:
            compute = [deepspeed_schedule.ForwardPass(buffer) if forward else deepspeed_schedule.BackwardPass(buffer)]
            if forward and rank in (0, last):
                compute.insert(0, deepspeed_schedule.LoadMicroBatch(buffer))
            found.append(((start, 2.0), compute))
        sender = op.stage - 1 if forward else op.stage + 1
        if not 0 <= sender <= last:
            continue
        if op.stage == rank:
            receive = deepspeed_schedule.RecvActivation if forward else deepspeed_schedule.RecvGrad
            found.append((when, [receive(buffer)]))
        if sender == rank:
            send = deepspeed_schedule.SendActivation if forward else deepspeed_schedule.SendGrad
            found.append((when, [send(buffer)]))
    found.sort(key=lambda entry: entry[0])
    return [instruction for _, group in found for instruction in group]


def main(arguments: list[str] | None = None) -> int:
    """Train twice, print the losses, and compare losses and weights; the exit code is 1 if they differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path, help="a schedule file (.csv, .json)")
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args(arguments)
    schedule = pipeplan.read_schedule(options.plan)
    deepspeed.init_distributed("gloo" if not torch.cuda.is_available() else "nccl", auto_mpi_discovery=False)
    own = train(schedule, options.layers, options.steps, planned=False)
    planned = train(schedule, options.layers, options.steps, planned=True)
    apart = max(float((a - b).abs().max()) for a, b in zip(own, planned, strict=True))
    largest = torch.tensor(apart)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    if dist.get_rank() == 0:
        print(f"largest difference of losses and weights: {largest.item():.3g}")
    return int(largest.item() > 1e-5)


def train(schedule: Schedule, layers: int, steps: int, *, planned: bool) -> list[torch.Tensor]:
    """The loss of every step and this rank's weights after the last, in DeepSpeed's own order or the plan's."""
    engine = engine_for(schedule, layers)
    if planned:
        engine._train_schedule = lambda: PlannedSchedule(schedule, engine.stage_id)
    batches = microbatches(schedule.microbatches * steps)
    losses = [engine.train_batch(batches).detach().clone() for _ in range(steps)]
    if dist.get_rank() == 0:
        print("planned" if planned else "its own", " ".join(f"{loss.item():.6f}" for loss in losses))
    return losses + [parameter.detach().clone() for parameter in engine.module.parameters()]


def engine_for(schedule: Schedule, layers: int) -> PipelineEngine:
    """DeepSpeed's engine over a small model with the same weights every time."""
    torch.manual_seed(SEED)
    module = PipelineModule(
        [LayerSpec(torch.nn.Sequential, torch.nn.Linear(WIDTH, WIDTH), torch.nn.Tanh()) for _ in range(layers)],
        num_stages=schedule.ranks,
        loss_fn=torch.nn.functional.mse_loss,
        partition_method="uniform",
        seed_layers=False,
    )
    config = {
        "train_micro_batch_size_per_gpu": MICROBATCH_SIZE,
        "gradient_accumulation_steps": schedule.microbatches,
        "steps_per_print": sys.maxsize,
    }
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    engine, *_ = deepspeed.initialize(model=module, optimizer=optimizer, config=config)
    return engine


def microbatches(count: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """The same inputs and targets on every rank and every time."""
    generator = torch.Generator().manual_seed(SEED)
    for _ in range(count):
        inputs = torch.randn(MICROBATCH_SIZE, WIDTH, generator=generator)
        yield inputs, inputs.flip(1)


if __name__ == "__main__":
    sys.exit(main())
