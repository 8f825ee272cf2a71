"""Users' own training loops with tied parameters; a job as :mod:`tests.extensions.training.runtime.own_loop` is one."""

import copy
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from pipeplan.extensions.training.runtime.gradients import Reference
from pipeplan.model import Schedule
from pipeplan.runtime import Pipeline, ties_of
from tests.extensions.training.runtime.own_loop import MICROBATCHES, Layer, answers, mine, plan, refused, whole

VOCABULARY, WIDE = 11, 6


class Probe(nn.Module):
    """A stage in the middle that uses the embedding's weight, too."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(VOCABULARY, WIDE))

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.softmax(x @ self.weight.T, -1) @ self.weight


def stages_of(stages: int, probed: tuple[int, ...] = ()) -> list[nn.Module]:
    """The stages of a language model, each with weights of its own: nothing is tied yet."""
    torch.manual_seed(3)
    parts: list[OrderedDict[str, nn.Module]] = [OrderedDict(body=Layer(WIDE, WIDE)) for _ in range(stages)]
    for stage in probed:
        parts[stage]["probe"] = Probe()
    parts[0] = OrderedDict(emb=nn.Embedding(VOCABULARY, WIDE), **parts[0])
    parts[-1]["head"] = nn.Linear(WIDE, VOCABULARY, bias=False)
    return [nn.Sequential(part) for part in parts]


def tied_in_one_process(stages: list[nn.Module]) -> list[nn.Module]:
    """A copy of the stages in which all have the embedding's weight."""
    alone: Any = copy.deepcopy(stages)
    for stage in alone:
        for name in ("probe", "head"):
            if hasattr(stage, name):
                getattr(stage, name).weight = alone[0].emb.weight
    return alone


def batch(step: int, samples: int = 2 * MICROBATCHES) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    x, y = torch.randint(VOCABULARY, (2, samples), generator=generator).unbind()
    return x, y


def loss(output: Tensor, target: Tensor) -> Tensor:
    return nn.functional.cross_entropy(output, target)


def gradients_apart(pipeline: Pipeline, alone: list[nn.Module]) -> float:
    """The largest difference of a gradient, relative to the largest one of its stage."""
    result = 0.0
    for stage, module in pipeline.stages.items():
        largest = max(float(p.grad.abs().max()) for p in alone[stage].parameters() if p.grad is not None)
        for ours, theirs in zip(module.parameters(), alone[stage].parameters(), strict=True):
            assert ours.grad is not None
            assert theirs.grad is not None
            result = max(result, float((whole(ours.grad) - theirs.grad).abs().max()) / largest)
    return result


def weights_apart(pipeline: Pipeline, alone: list[nn.Module]) -> float:
    return max(
        float((whole(ours.detach()) - theirs.detach()).abs().max())
        for stage, module in pipeline.stages.items()
        for ours, theirs in zip(module.parameters(), alone[stage].parameters(), strict=True)
    )


def one_process(stages: list[nn.Module], x: Tensor, y: Tensor) -> None:
    """Gradients of the mean, by PyTorch alone."""
    model = nn.Sequential(*stages)
    for inputs, targets in zip(x.chunk(MICROBATCHES), y.chunk(MICROBATCHES), strict=True):
        (loss(model(inputs), targets) / MICROBATCHES).backward()


def optimizer_of(parameters: Any) -> torch.optim.Optimizer:
    return torch.optim.AdamW(dict.fromkeys(parameters), lr=1e-2)


def parameters_of(stages: list[nn.Module]) -> Any:
    return dict.fromkeys(parameter for stage in stages for parameter in stage.parameters())


def trained(schedule: Schedule, probed: tuple[int, ...] = (), *, one: bool = False) -> tuple[float, ...]:
    """Three steps beside the same sums in one process, and beside PyTorch's own backward of the tied model.

    With ``one``, the stages of a rank hold one tensor, as those of a V placement should; else each has its own.
    """
    stages = stages_of(schedule.stages, probed)
    alone, plain = tied_in_one_process(stages), tied_in_one_process(stages)
    stages = tied_in_one_process(stages) if one else stages
    pipeline = Pipeline(schedule, mine(schedule, stages), loss, tied=ties_of(alone))
    reference = Reference(alone, pipeline.schedule, loss)
    optimizers = [optimizer_of(pipeline.parameters()), *(optimizer_of(parameters_of(s)) for s in (alone, plain))]
    apart = losses = beside = 0.0
    for step in range(3):
        x, y = batch(step)
        ours = pipeline.broadcast(pipeline.step(x, y)).tolist()
        theirs = reference.step(x.chunk(MICROBATCHES), y.chunk(MICROBATCHES))
        one_process(plain, x, y)
        losses = max(losses, *(abs(a - b) for a, b in zip(ours, theirs, strict=True)))
        apart, beside = max(apart, gradients_apart(pipeline, alone)), max(beside, gradients_apart(pipeline, plain))
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    return apart, losses, weights_apart(pipeline, alone), beside


def strategies() -> Any:
    """Full and split backwards, one chunk and more."""
    result = {name: trained(plan(name)) for name in ("gpipe", "1f1b", "zb-h1", "interleaved-1f1b")}
    return result | {name: trained(plan(name), one=True) for name in ("zbv", "dualpipev")}


def apart() -> Any:
    """Tied tensors on one rank: those of both ends of a V, and two of a tie of three names."""
    return {
        "zbv": trained(plan("zbv")),
        "interleaved-1f1b": trained(plan("interleaved-1f1b"), probed=(1,)),
    }


def clipped() -> Any:
    """Norms that count the tied weight once, two steps that accumulate, and the gradients after clipping."""
    result = {}
    for name in ("1f1b", "zb-h1"):
        for norm_type in (2.0, float("inf")):
            schedule = plan(name)
            stages = stages_of(schedule.stages)
            plain = tied_in_one_process(stages)
            pipeline = Pipeline(name, mine(schedule, stages), loss, microbatches=MICROBATCHES, tied=ties_of(plain))
            for step in range(2):
                x, y = batch(step)
                pipeline.step(x, y)
                one_process(plain, x, y)
            limit = 0.01
            ours = pipeline.clip_grad_norm_(limit, norm_type)
            theirs = nn.utils.clip_grad_norm_(parameters_of(plain), limit, norm_type)
            result[name, norm_type] = abs(float(ours / theirs) - 1), gradients_apart(pipeline, plain)
    return result


def resumed() -> Any:
    """A checkpoint loads, and copies that differ in it get the value of the first one; an error is raised on all ranks."""
    schedule = plan("1f1b")
    stages = stages_of(schedule.stages)
    pipeline = Pipeline(schedule, mine(schedule, stages), loss, tied=[("0.emb.weight", "1.head.weight")])
    state = {name: value + dist.get_rank() for name, value in pipeline.state_dict().items()}
    expected = stages_of(schedule.stages)[0].emb.weight
    pipeline.load_state_dict(state)
    (tied,) = (pipeline.stages[stage].get_parameter(path) for stage, path in ((0, "emb.weight"), (1, "head.weight"))
               if stage in pipeline.stages)  # fmt: skip
    kept = tied.detach().clone()
    lacking = refused(lambda: pipeline.load_state_dict(state if pipeline.is_first else {}))
    return torch.equal(kept, expected), lacking


def refusals() -> Any:
    """What cannot be tied: all ranks raise the same."""
    schedule, rank = plan("interleaved-1f1b"), dist.get_rank()

    def make(*ties: Any, change: Callable[[Any], None] = lambda _: None) -> str:
        stages = stages_of(schedule.stages)
        change(stages)
        return refused(lambda: Pipeline(schedule, mine(schedule, stages), loss, tied=ties))

    def alias(stages: Any) -> None:
        stages[0].alias = stages[0].emb

    emb, head = "0.emb.weight", "3.head.weight"
    return {
        "accepted": make((emb, head)),
        "a string": make(emb, head),
        "one name": make((emb,)),
        "no stage": make(("emb.weight", head)),
        "stage": make((emb, "4.head.weight")),
        "parameter": make((emb, "3.head.wieght")),
        "shape": make((emb, "3.body.shift")),
        "type": make((emb, head), change=lambda stages: stages[3].bfloat16()),
        "trained": make((emb, head), change=lambda stages: stages[0].emb.requires_grad_(False)),
        "twice": make((emb, head), ("1.body.shift", head)),
        "alias": make((emb, head), ("0.alias.weight", "2.body.shift"), change=alias),
        "unlike": make((emb, head) if rank else (head, emb)),
        "on one rank": make(*[(emb, head)][rank:]),
    }


def replicated() -> Any:
    """Two pipelines of two ranks side by side: DDP, and FSDP2 around stages, with two steps that accumulate."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    replica, rank = mesh["dp"].get_local_rank(), mesh["pp"].get_local_rank()
    group = mesh["dp"].get_group()
    ways: dict[str, Callable[[nn.Module], nn.Module]] = {
        "ddp": lambda module: DistributedDataParallel(module, process_group=group),
        "ddp, views": lambda module: DistributedDataParallel(module, process_group=group, gradient_as_bucket_view=True),
        "fsdp": lambda module: fully_shard(module, mesh=mesh["dp"]),
    }
    result = {}
    for name, chosen in {"1f1b": ("ddp, views", "fsdp"), "zb-h1": ("ddp", "fsdp")}.items():
        for way in chosen:
            wrap = ways[way]
            schedule = plan(name, 2)
            stages = stages_of(schedule.stages)
            plain = tied_in_one_process(stages)
            own = {stage: wrap(module) for stage, module in mine(schedule, stages, rank).items()}
            pipeline = Pipeline(schedule, own, loss, tied=ties_of(plain), group=mesh["pp"])
            optimizers = optimizer_of(pipeline.parameters()), optimizer_of(parameters_of(plain))
            apart = 0.0
            for first in (0, 2):
                for step in range(first, first + 2):
                    x, y = batch(step, 4 * MICROBATCHES)
                    pipeline.step(x.chunk(2)[replica], y.chunk(2)[replica])
                    one_process(plain, x, y)
                ours = pipeline.clip_grad_norm_(1.0)
                theirs = nn.utils.clip_grad_norm_(parameters_of(plain), 1.0)
                assert abs(float(ours / theirs) - 1) < 1e-5, (name, way, ours, theirs)
                apart = max(apart, gradients_apart(pipeline, plain))
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            result[name, way] = apart, weights_apart(pipeline, plain)
    return result


def over_four() -> Any:
    """A tie over three of four ranks: all of them hold the same bits after three steps."""
    return {name: trained(plan(name), probed=(1,)) for name in ("1f1b", "zb-h1", "interleaved-1f1b")}


SCENARIOS: dict[str, Callable[[], Any]] = {
    function.__name__: function for function in (strategies, apart, clipped, resumed, refusals, replicated, over_four)
}


def main(job: tuple[Path, tuple[str, ...]]) -> dict[str, Any]:
    return answers(SCENARIOS, *job)
