"""Users' own training loops: each function is what a script does on one rank, and gives what the test is to look at.

``python -m tests.runtime.own_loop FOLDER SCENARIO...`` is one process of a job; its rank is in the environment as torchrun
sets it. Each scenario's answer goes to ``FOLDER/SCENARIO.RANK.pickle``.
"""

import copy
import os
import pickle
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import pipeplan
from pipeplan.model import Schedule, parse_schedule
from pipeplan.runtime import Pipeline
from pipeplan.strategies import strategy

WIDTHS = (12, 16, 8, 24, 10, 20, 14, 6, 4)
"""Of what passes between stages: no two neighbours have the same shape."""

MICROBATCHES = 4
SAMPLES = 8


class Layer(nn.Module):
    """A stage: weights, a bias that meets the data behind a nonlinearity, and a norm."""

    def __init__(self, wide_in: int, wide_out: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(wide_in)
        self.up, self.down = nn.Linear(wide_in, 32), nn.Linear(32, wide_out, bias=False)
        self.shift = nn.Parameter(torch.zeros(wide_out))

    def forward(self, x: Tensor) -> Tensor:
        return self.down(torch.tanh(self.up(self.norm(x)))) + self.shift


def layers(stages: int) -> list[nn.Module]:
    """All stages of the model, the same on every rank."""
    torch.manual_seed(7)
    return [Layer(WIDTHS[stage], WIDTHS[stage + 1]) for stage in range(stages)]


def batches(steps: int, samples: int = SAMPLES, wide_out: int = 4) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(3)
    return [
        (torch.randn(samples, WIDTHS[0], generator=generator), torch.randn(samples, wide_out, generator=generator))
        for _ in range(steps)
    ]


def data(steps: int, stages: int, samples: int = SAMPLES) -> list[tuple[Tensor, Tensor]]:
    return batches(steps, samples, WIDTHS[stages])


def loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.mse_loss(output, target)


class Alone:
    """The same training without a pipeline, in one process: microbatch after microbatch."""

    def __init__(self, modules: list[nn.Module], *, autocast: bool = False) -> None:
        self.model = nn.Sequential(*modules)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.autocast = autocast

    def gradients(self, inputs: Tensor, targets: Tensor, microbatches: int = MICROBATCHES) -> list[float]:
        losses = []
        for x, target in zip(inputs.chunk(microbatches), targets.chunk(microbatches), strict=True):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
                found = loss(self.model(x), target)
            (found / microbatches).backward()
            losses.append(float(found.detach()))
        return losses

    def apply(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()


def apart(pipeline: Pipeline, alone: Alone) -> float:
    """The largest difference of a gradient of this rank's stages, relative to the largest gradient of the stage."""
    found = 0.0
    for stage, module in pipeline.stages.items():
        ours = [None if p.grad is None else whole(p.grad) for p in module.parameters()]
        theirs = [p.grad for p in alone.model[stage].parameters()]
        largest = max((float(g.abs().max()) for g in theirs if g is not None), default=1.0)
        for mine, other in zip(ours, theirs, strict=True):
            if other is None:
                found = max(found, 0.0 if mine is None else float(mine.abs().max()))
                continue
            assert mine is not None, "a parameter has no gradient"
            found = max(found, float((mine - other).abs().max()) / largest)
    return found


def whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def mine(schedule: Schedule, modules: list[nn.Module], rank: int | None = None) -> dict[int, nn.Module]:
    """This rank's stages of a schedule."""
    rank = dist.get_rank() if rank is None else rank
    return {stage: modules[stage] for stage in schedule.placement.stages_on(rank)}



class Found:
    """What a scenario compares: the largest differences of gradients, losses and weights from a single process."""

    def __init__(self) -> None:
        self.gradients = self.losses = self.weights = 0.0

    def compare(self, pipeline: Pipeline, alone: Alone, told: Tensor | None, expected: list[float]) -> None:
        assert (told is None) == (not pipeline.is_last)
        self.gradients = max(self.gradients, apart(pipeline, alone))
        shared = pipeline.broadcast(told).tolist()
        self.losses = max(self.losses, *(abs(a - b) for a, b in zip(shared, expected, strict=True)))

    def compare_weights(self, pipeline: Pipeline, alone: Alone) -> None:
        for stage, module in pipeline.stages.items():
            for ours, theirs in zip(module.parameters(), alone.model[stage].parameters(), strict=True):
                self.weights = max(self.weights, float((whole(ours.detach()) - theirs.detach()).abs().max()))

    def __iter__(self) -> Any:
        return iter((self.gradients, self.losses, self.weights))


def plan(name: str, ranks: int | None = None, microbatches: int = MICROBATCHES) -> Schedule:
    ours = strategy(name)
    return ours(ours.shape(ranks or dist.get_world_size(), microbatches))


def trained(given: Any, schedule: Schedule, steps: int = 3, **options: Any) -> tuple[float, ...]:
    """A training with everything that a step of one's own loop may hold, beside a single process."""
    modules = options.get("modules", layers)(schedule.stages)
    alone, found = Alone(copy.deepcopy(modules), autocast=options.get("autocast", False)), Found()
    pipeline = Pipeline(given, list(mine(schedule, modules).values()), loss, microbatches=schedule.microbatches)
    trainable = list(pipeline.parameters()) or [nn.Parameter(torch.zeros(1))]
    optimizer = torch.optim.AdamW(trainable, lr=1e-2)
    for inputs, targets in data(steps, schedule.stages):
        with torch.autocast("cpu", torch.bfloat16, enabled=options.get("autocast", False)):
            told = pipeline.step(inputs if pipeline.is_first else None, targets if pipeline.is_last else None)
        expected = alone.gradients(inputs, targets, schedule.microbatches)
        found.compare(pipeline, alone, told, expected)
        if "clip" in options:
            norm = pipeline.clip_grad_norm_(options["clip"], options.get("norm_type", 2.0))
            whole_norm = nn.utils.clip_grad_norm_(alone.model.parameters(), options["clip"], options.get("norm_type", 2.0))
            assert abs(float(norm - whole_norm)) <= 1e-6 * float(whole_norm), (norm, whole_norm)
            assert float(whole_norm) > options["clip"]
            found.compare(pipeline, alone, told, expected)
        optimizer.step()
        optimizer.zero_grad()
        alone.apply()
    found.compare_weights(pipeline, alone)
    return tuple(found)


def strategies() -> Any:
    """By name: strategies of full and split backwards, of one chunk and more."""
    names = ("gpipe", "1f1b", "zb-h1", "zbv", "dualpipev", "interleaved-1f1b", "hanayo", "v-min")
    return {name: trained(name, plan(name)) for name in names}


def sources() -> Any:
    """A searched schedule, a simulated one, a timeline, and files; forwards out of the microbatches' order."""
    searched = pipeplan.search(placement="v", microbatches=MICROBATCHES, ranks=2, evaluations=50)
    folder = Path(sys.argv[1])
    if dist.get_rank() == 0:
        pipeplan.save(plan("zbv"), folder / "zbv.csv")
        pipeplan.save(searched, folder / "searched.json")
    dist.barrier()
    backwards = parse_schedule("0F1 0F0 0B1 0B0\n1F1 1F0 1B1 1B0")
    given: dict[str, tuple[Any, Schedule]] = {
        "searched": (searched, searched.timeline.schedule),
        "timeline": (searched.timeline, searched.timeline.schedule),
        "simulated": (pipeplan.simulate("hanayo", ranks=2, microbatches=MICROBATCHES), plan("hanayo")),
        "csv": (folder / "zbv.csv", plan("zbv")),
        "json": (str(folder / "searched.json"), searched.timeline.schedule),
        "backwards": (backwards, backwards),
    }
    return {name: trained(source, schedule) for name, (source, schedule) in given.items()}


def mixed_precision() -> Any:
    return {name: trained(name, plan(name), autocast=True) for name in ("1f1b", "zbv")}


def clipped() -> Any:
    return {
        kind: trained("zbv", plan("zbv"), clip=limit, norm_type=kind) for kind, limit in ((2.0, 0.1), (float("inf"), 0.01))
    }


class Checkpointed(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.module, x, use_reentrant=False)


def checkpointed() -> Any:
    """Activations are computed again inside the stages."""
    modules = lambda stages: [Checkpointed(module) for module in layers(stages)]  # noqa: E731
    return {name: trained(name, plan(name), modules=modules) for name in ("1f1b", "zbv")}


def bare(stages: int, without: tuple[int, ...]) -> list[nn.Module]:
    """Stages, some of them without parameters."""
    found = layers(stages)
    for stage in without:
        wide_in, wide_out = WIDTHS[stage], WIDTHS[stage + 1]
        found[stage] = Padded(wide_in, wide_out)
    return found


class Padded(nn.Module):
    """No parameters: columns are repeated or left out."""

    def __init__(self, wide_in: int, wide_out: int) -> None:
        super().__init__()
        self.columns = [column % wide_in for column in range(wide_out)]

    def forward(self, x: Tensor) -> Tensor:
        return x[:, self.columns].sin()


def without_parameters() -> Any:
    """The first stage, one in the middle, the last."""
    found = {}
    for name in ("1f1b", "interleaved-1f1b", "zb-h1", "zbv"):
        stages = plan(name).stages
        for without in {(0,), (stages // 2,), (stages - 1,)}:
            modules = partial(bare, without=without)
            found[name, without] = trained(name, plan(name), modules=modules)
    return found


def frozen() -> Any:
    """As where only adapters train: the first stage not at all, the others in part."""

    def modules(stages: int) -> list[nn.Module]:
        found = layers(stages)
        found[0].requires_grad_(False)
        for layer in found[1:]:
            layer.up.requires_grad_(False)  # type: ignore[union-attr]
        return found

    return {name: trained(name, plan(name), modules=modules) for name in ("1f1b", "zb-h1", "zbv")}


SCENARIOS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in (
        strategies,
        sources,
        mixed_precision,
        clipped,
        checkpointed,
        without_parameters,
        frozen,
    )
}


def main(folder: str, *names: str) -> None:
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.FileStore(f"{folder}/store", world)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world, timeout=timedelta(seconds=30))
    for name in names:
        Path(folder, f"{name}.{rank}.pickle").write_bytes(pickle.dumps(SCENARIOS[name]()))
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
