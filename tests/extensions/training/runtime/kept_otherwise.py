"""Users' own training loops by schedules that recompute and offload; a job as ``own_loop`` is one."""

import copy
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from pipeplan.extensions.training.runtime.offloading import ThreadLink
from pipeplan.model import Schedule, parse_schedule
from pipeplan.passes import insert_offload, insert_recompute
from pipeplan.runtime import Pipeline
from tests.extensions.training.runtime.own_loop import (
    MICROBATCHES,
    Alone,
    Busy,
    Careful,
    Checkpointed,
    Differences,
    answers,
    data,
    layers,
    loss,
    mine,
    plan,
    trained,
)


def offloaded(schedule: Schedule, stages: Iterable[int]) -> Schedule:
    """Every microbatch on some stages leaves right behind its forward and comes back ahead of the op before its backward."""
    every = [(stage, microbatch) for stage in stages for microbatch in range(schedule.microbatches)]
    return insert_offload(schedule, every, offload_behind=0)


def ways(name: str, **options: Any) -> dict[str, Schedule]:
    """A strategy with everything recomputed, everything offloaded, and stage by stage in turn, every third kept."""
    kept = plan(name, **options)
    stages = range(kept.stages)
    mixed = offloaded(insert_recompute(kept, stages[::3]), stages[1::3])
    return {"recomputed": insert_recompute(kept), "offloaded": offloaded(kept, stages), "mixed": mixed}


def alike() -> Any:
    """Full and split backwards, one chunk and more, and what may be in a stage."""
    source = {
        f"{name}, {way}": schedule for name in ("1f1b", "zbv", "dualpipev") for way, schedule in ways(name).items()
    }
    result = {name: trained(schedule, schedule, steps=2) for name, schedule in source.items()}
    mixed = ways("zbv")["mixed"]
    for modules in (careful, checkpointed, frozen):
        options = {"modules": modules, "autocast": modules is careful}
        result[modules.__name__] = trained(mixed, mixed, steps=2, **options)
    return result


def by_hand() -> Any:
    """Copies before messages are sent, a recomputation before its output is; and whatever stands between them."""
    rows = (
        "0F0 0OFFLOAD0 0SEND_F0 0F1 0R1 0SEND_F1 0RELOAD0 0RECV_B0 0B0 0RECV_B1 0B1 0REDUCE_GRAD\n"
        "1RECV_F0 1F0 1OFFLOAD0 1RECV_F1 1F1 1RELOAD0 1B0 1SEND_B0 1R1 1B1 1SEND_B1 1REDUCE_GRAD"
    )
    schedule = parse_schedule(rows)
    return trained(schedule, schedule, steps=2)


def passing() -> Any:
    """Stages that give on what they were given, gradients too: the largest difference of a gradient."""
    result = {}
    for way, schedule in ways("zbv").items():
        torch.manual_seed(1)
        modules = [nn.Identity() if stage % 2 else nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for stage in range(4)]
        alone = copy.deepcopy(nn.Sequential(*modules))
        pipeline = Pipeline(schedule, list(mine(schedule, modules).values()), loss)
        x, target = torch.randn(8, 6), torch.randn(8, 6)
        pipeline.step(x, target)
        for inputs, targets in zip(x.chunk(MICROBATCHES), target.chunk(MICROBATCHES), strict=True):
            (loss(alone(inputs), targets) / MICROBATCHES).backward()
        pairs = [pair for stage, module in pipeline.stages.items()
                 for pair in zip(module.parameters(), alone[stage].parameters(), strict=True)]  # fmt: skip
        result[way] = max((float((ours.grad - theirs.grad).abs().max()) for ours, theirs in pairs), default=0.0)
    return result


def careful(stages: int) -> list[nn.Module]:
    return [Careful(module) for module in layers(stages)]


def checkpointed(stages: int) -> list[nn.Module]:
    return [Checkpointed(module) for module in layers(stages)]


def frozen(stages: int) -> list[nn.Module]:
    result = layers(stages)
    result[0].requires_grad_(False)
    return result


def busy() -> Any:
    """Dropout draws the same numbers again, and running means see each microbatch once."""
    torch.manual_seed(5)
    modules: list[nn.Module] = [Busy(6) for _ in range(4)]
    x, target = torch.randn(8, 6), torch.randn(8, 6)

    def state(schedule: Schedule) -> list[Tensor]:
        own = copy.deepcopy(modules)
        pipeline = Pipeline(schedule, list(mine(schedule, own).values()), loss)
        torch.manual_seed(6)
        for _ in range(2):
            losses = pipeline.broadcast(pipeline.step(x, target))
        gradients = [p.grad for p in pipeline.parameters() if p.grad is not None]
        buffers = [buffer for module in pipeline.stages.values() for buffer in module.buffers()]
        return [losses, *gradients, *buffers, torch.get_rng_state()]

    expected = state(plan("zbv"))
    return {
        way: all(torch.equal(a, b) for a, b in zip(state(schedule), expected, strict=True))
        for way, schedule in ways("zbv").items()
    }


def peaks() -> Any:
    """The most bytes that PyTorch's allocator held in a step, beyond those before it; the host's are not among them."""

    class Elsewhere(ThreadLink):
        def host_bytes(self, size: int) -> Tensor:
            return torch.from_numpy(np.empty(size, np.uint8))

    def deep() -> nn.Module:
        return nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(8)))

    result = {}
    x, target = torch.randn(2048, 64), torch.randn(2048, 64)
    for way, schedule in {"kept": plan("gpipe"), **ways("gpipe")}.items():
        pipeline = Pipeline(schedule, [deep()], loss)
        with patch("pipeplan.extensions.training.runtime.pipeline.host_link", lambda _: Elsewhere()):
            pipeline.step(x, target)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
            pipeline.step(x, target)
        path = Path.cwd() / f"{way}{pipeline.rank}.json"
        profile.export_chrome_trace(str(path))
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("name") == "[memory]"]
        changes = [event["args"]["Bytes"] for event in sorted(events, key=lambda event: event["ts"])]
        result[way] = int(np.cumsum(changes).max())
    return result


def replicated() -> Any:
    """Two pipelines of one rank side by side: DDP, FSDP2 around stages and their layers."""
    mesh = init_device_mesh("cpu", (2, 1), mesh_dim_names=("dp", "pp"))
    replica = mesh["dp"].get_local_rank()

    def ddp(module: nn.Module) -> nn.Module:
        return DistributedDataParallel(module, process_group=mesh["dp"].get_group())

    def fsdp(module: nn.Module) -> nn.Module:
        for part in module.children():
            if isinstance(part, nn.Linear):
                fully_shard(part, mesh=mesh["dp"])
        return fully_shard(module, mesh=mesh["dp"])

    result = {}
    for name, wrap in (("interleaved-1f1b", ddp), ("zbv", ddp), ("zbv", fsdp)):
        schedule = ways(name, ranks=1)["mixed"]
        modules = layers(schedule.stages)
        alone, compared = Alone(copy.deepcopy(modules)), Differences()
        pipeline = Pipeline(schedule, [wrap(module) for module in modules], loss, group=mesh["pp"])
        optimizer = torch.optim.AdamW(pipeline.parameters(), lr=1e-2)
        for inputs, targets in data(2, schedule.stages, 16):
            step_losses = pipeline.step(inputs.chunk(2)[replica], targets.chunk(2)[replica])
            losses = alone.gradients(inputs, targets, 2 * MICROBATCHES)
            compared.compare(pipeline, alone, step_losses, losses[replica * MICROBATCHES :][:MICROBATCHES])
            optimizer.step()
            optimizer.zero_grad()
            alone.apply()
        result[name, wrap.__name__] = (compared.gradients, compared.losses)
    return result


SCENARIOS: dict[str, Callable[[], Any]] = {
    function.__name__: function for function in (alike, by_hand, passing, busy, peaks, replicated)
}


def main(job: tuple[Path, tuple[str, ...]]) -> dict[str, Any]:
    return answers(SCENARIOS, *job)
