"""Users' own training loops: each function is what a script does on one rank, and gives what the test is to look at.

:func:`main` runs scenarios in one process of a job; its rank is in the environment as torchrun sets it.
"""

import copy
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint_format
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

import pipeplan
from pipeplan.extensions.training.traces import read_run
from pipeplan.foundation.errors import PipeplanError
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
                result = loss(self.model(x), target)
            (result / microbatches).backward()
            losses.append(float(result.detach()))
        return losses

    def apply(self) -> None:
        self.optimizer.step()
        self.optimizer.zero_grad()


def apart(pipeline: Pipeline, alone: Alone) -> float:
    """The largest difference of a gradient of this rank's stages, relative to the largest gradient of the stage."""
    result = 0.0
    for stage, module in pipeline.stages.items():
        ours = [None if p.grad is None else whole(p.grad) for p in module.parameters()]
        missing = [name for name, p in module.named_parameters() if p.grad is None]
        theirs = [p.grad for p in alone.model[stage].parameters()]
        largest = max((float(g.abs().max()) for g in theirs if g is not None), default=1.0)
        for mine, other in zip(ours, theirs, strict=True):
            if other is None:
                result = max(result, 0.0 if mine is None else float(mine.abs().max()))
                continue
            assert mine is not None, f"{missing} of stage {stage} under {pipeline.schedule} have no gradient"
            result = max(result, float((mine - other).abs().max()) / largest)
    return result


def whole(tensor: Tensor) -> Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def mine(schedule: Schedule, modules: list[nn.Module], rank: int | None = None) -> dict[int, nn.Module]:
    """This rank's stages of a schedule."""
    rank = dist.get_rank() if rank is None else rank
    return {stage: modules[stage] for stage in schedule.placement.stages_on(rank)}


class Differences:
    """What a scenario compares: the largest differences of gradients, losses and weights from a single process."""

    def __init__(self) -> None:
        self.gradients = self.losses = self.weights = 0.0

    def compare(self, pipeline: Pipeline, alone: Alone, losses: Tensor | None, expected: list[float]) -> None:
        assert (losses is None) == (not pipeline.is_last)
        self.gradients = max(self.gradients, apart(pipeline, alone))
        shared = pipeline.broadcast(losses).tolist()
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


def trained(source: Any, schedule: Schedule, steps: int = 2, **options: Any) -> tuple[float, ...]:
    """A training with everything that a step of one's own loop may hold, beside a single process."""
    modules = options.get("modules", layers)(schedule.stages)
    alone, result = Alone(copy.deepcopy(modules), autocast=options.get("autocast", False)), Differences()
    pipeline = Pipeline(source, list(mine(schedule, modules).values()), loss, microbatches=schedule.microbatches)
    trainable = list(pipeline.parameters()) or [nn.Parameter(torch.zeros(1))]
    optimizer = torch.optim.AdamW(trainable, lr=1e-2)
    for inputs, targets in data(steps, schedule.stages):
        with torch.autocast("cpu", torch.bfloat16, enabled=options.get("autocast", False)):
            losses = pipeline.step(inputs if pipeline.is_first else None, targets if pipeline.is_last else None)
        expected = alone.gradients(inputs, targets, schedule.microbatches)
        result.compare(pipeline, alone, losses, expected)
        if "clip" in options:
            norm = pipeline.clip_grad_norm_(options["clip"], options.get("norm_type", 2.0))
            whole_norm = nn.utils.clip_grad_norm_(
                alone.model.parameters(), options["clip"], options.get("norm_type", 2.0)
            )
            assert abs(float(norm - whole_norm)) <= 1e-6 * float(whole_norm), (norm, whole_norm)
            assert float(whole_norm) > options["clip"]
            result.compare(pipeline, alone, losses, expected)
        optimizer.step()
        optimizer.zero_grad()
        alone.apply()
    result.compare_weights(pipeline, alone)
    return tuple(result)


def strategies() -> Any:
    """By name: strategies of full and split backwards, of one chunk and more."""
    names = ("gpipe", "zb-h1", "zbv", "dualpipev", "interleaved-1f1b")
    return {name: trained(name, plan(name)) for name in names}


def sources() -> Any:
    """A searched schedule, a simulated one, a timeline, and files; forwards out of the microbatches' order."""
    searched = pipeplan.search(placement="v", microbatches=MICROBATCHES, ranks=2, evaluations=50)
    folder = Path.cwd()
    if dist.get_rank() == 0:
        pipeplan.save(plan("zbv"), folder / "zbv.csv")
        pipeplan.save(searched, folder / "searched.json")
    dist.barrier()
    backwards = parse_schedule("0F1 0F0 0B1 0B0\n1F1 1F0 1B1 1B0")
    cases: dict[str, tuple[Any, Schedule]] = {
        "searched": (searched, searched.timeline.schedule),
        "timeline": (searched.timeline, searched.timeline.schedule),
        "simulated": (pipeplan.simulate("hanayo", ranks=2, microbatches=MICROBATCHES), plan("hanayo")),
        "csv": (folder / "zbv.csv", plan("zbv")),
        "json": (str(folder / "searched.json"), searched.timeline.schedule),
        "backwards": (backwards, backwards),
    }
    return {name: trained(source, schedule) for name, (source, schedule) in cases.items()}


class Careful(nn.Module):
    """Half of it leaves autocast, as sums of squares do: its backward must be in float32, too."""

    def __init__(self, module: Layer) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.module.up(self.module.norm(x)))
        with torch.autocast("cpu", enabled=False):
            return self.module.down(hidden.float()) + self.module.shift


def mixed_precision() -> Any:
    modules = lambda stages: [Careful(module) for module in layers(stages)]  # noqa: E731
    return {"zbv": trained("zbv", plan("zbv"), autocast=True, modules=modules)}


def clipped() -> Any:
    return {
        kind: trained("zbv", plan("zbv"), clip=limit, norm_type=kind)
        for kind, limit in ((2.0, 0.1), (float("inf"), 0.01))
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
    return {"zbv": trained("zbv", plan("zbv"), modules=modules)}


def compiled() -> Any:
    """Stages through torch.compile, under a schedule of full backwards."""
    modules = lambda stages: [Compiled(module) for module in layers(stages)]  # noqa: E731
    return {"1f1b": trained("1f1b", plan("1f1b"), modules=modules)}


class Compiled(nn.Module):
    """Compiled when it first runs."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Tensor) -> Tensor:
        if not hasattr(self, "run"):
            object.__setattr__(self, "run", torch.compile(self.module, backend="eager"))
        return self.run(x)


def bare(stages: int, without: tuple[int, ...]) -> list[nn.Module]:
    """Stages, some of them without parameters."""
    result = layers(stages)
    for stage in without:
        wide_in, wide_out = WIDTHS[stage], WIDTHS[stage + 1]
        result[stage] = Padded(wide_in, wide_out)
    return result


class Padded(nn.Module):
    """No parameters: columns are repeated or left out."""

    def __init__(self, wide_in: int, wide_out: int) -> None:
        super().__init__()
        self.columns = [column % wide_in for column in range(wide_out)]

    def forward(self, x: Tensor) -> Tensor:
        return x[:, self.columns].sin()


def without_parameters() -> Any:
    """The first stage, one in the middle, the last."""
    result = {}
    for name in ("interleaved-1f1b", "zbv"):
        stages = plan(name).stages
        for without in {(0,), (stages // 2,), (stages - 1,)}:
            modules = partial(bare, without=without)
            result[name, without] = trained(name, plan(name), modules=modules)
    return result


def frozen() -> Any:
    """As where only adapters train: the first stage not at all, the others in part."""

    def modules(stages: int) -> list[nn.Module]:
        result = layers(stages)
        result[0].requires_grad_(False)
        for layer in result[1:]:
            layer.up.requires_grad_(False)
        return result

    return {name: trained(name, plan(name), modules=modules) for name in ("zb-h1", "zbv")}


def resumed() -> Any:
    """Two steps, a checkpoint, two more; and the last two again from the checkpoint, by another schedule, too."""
    folder, rank = Path.cwd(), dist.get_rank()

    def built(name: str, seed: int) -> tuple[Pipeline, torch.optim.Optimizer]:
        modules = layers(4)
        torch.manual_seed(seed)
        for module in modules:
            for parameter in module.parameters():
                nn.init.normal_(parameter, std=0.2)
        pipeline = Pipeline(name, list(mine(plan(name), modules).values()), loss, microbatches=MICROBATCHES)
        return pipeline, torch.optim.AdamW(pipeline.parameters(), lr=1e-2)

    def train(pipeline: Pipeline, optimizer: torch.optim.Optimizer, some: Any) -> list[list[float]]:
        losses = []
        for inputs, targets in some:
            losses.append(pipeline.broadcast(pipeline.step(inputs, targets)).tolist())
            optimizer.step()
            optimizer.zero_grad()
        return losses

    steps = data(4, 4)
    pipeline, optimizer = built("zbv", 1)
    train(pipeline, optimizer, steps[:2])
    torch.save({"model": pipeline.state_dict(), "optimizer": optimizer.state_dict()}, folder / f"checkpoint{rank}.pt")
    expected = train(pipeline, optimizer, steps[2:])
    result = {}
    for name in ("zbv", "dualpipev"):
        again, optimizer = built(name, 2 + rank)
        kept = torch.load(folder / f"checkpoint{rank}.pt")
        again.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        result[name] = train(again, optimizer, steps[2:])
    # Under another placement, from what all ranks wrote together.
    checkpoint_format.save(pipeline.state_dict(), checkpoint_id=str(folder / "shared"))
    moved, _ = built("interleaved-1f1b", 5 + rank)
    state = moved.state_dict()
    checkpoint_format.load(state, checkpoint_id=str(folder / "shared"))
    moved.load_state_dict(state)
    evaluated = [item.eval(*steps[0]) for item in (pipeline, moved)]
    return expected, result, [pipeline.broadcast(None if item is None else item.losses).tolist()
                             for pipeline, item in zip((pipeline, moved), evaluated, strict=True)]  # fmt: skip


class Busy(nn.Module):
    """A stage with dropout and running statistics."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(wide, wide), nn.BatchNorm1d(wide), nn.Dropout(0.5))

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(x)


def evaluated() -> Any:
    """Forwards between steps, of batches of another size, change nothing: neither training nor gradients half added."""
    torch.manual_seed(5)
    modules: list[nn.Module] = [Busy(6) for _ in range(4)]
    alone = nn.Sequential(*copy.deepcopy(modules))
    result = {}
    for name in ("zbv", "interleaved-1f1b"):
        own = copy.deepcopy(modules)
        pipeline = Pipeline(name, list(mine(plan(name), own).values()), loss, microbatches=MICROBATCHES)
        next(iter(pipeline.stages.values())).layers[2].eval()
        x, target = torch.randn(16, 6), torch.randn(16, 6)
        before = pipeline.eval(x, target)
        expected = alone.eval()(x).detach()
        if pipeline.is_last:
            assert before is not None
            torch.testing.assert_close(before.outputs, expected)
            assert not before.outputs.requires_grad
            parts = zip(expected.chunk(MICROBATCHES), target.chunk(MICROBATCHES), strict=True)
            torch.testing.assert_close(before.losses, torch.stack([loss(*part) for part in parts]))
        for size in (16, 7, 3):
            some = pipeline.eval(x[:size], target[:size])
            if some is not None:
                torch.testing.assert_close(some.outputs, expected[:size])
                pairs = zip(expected[:size].tensor_split(4), target[:size].tensor_split(4), strict=True)
                torch.testing.assert_close(some.losses, torch.stack([loss(*pair) for pair in pairs if len(pair[0])]))
        flags = [part.training for module in pipeline.stages.values() for part in module.modules()]
        pipeline.step(x[:8], target[:8])
        gradients = [p.grad.clone() for p in pipeline.parameters()]
        counted = [int(module.layers[1].num_batches_tracked) for module in pipeline.stages.values()]
        after = pipeline.eval(x)
        assert (after is None) == (before is None)
        assert after is None or after.losses is None
        same = all(torch.equal(a, p.grad) for a, p in zip(gradients, pipeline.parameters(), strict=True))
        result[name] = (flags.count(False), counted, same)
    return result


def recorded() -> Any:
    """Two of three steps are measured, on all ranks; and then no more."""
    folder = Path.cwd()
    schedule = plan("zbv")
    modules = layers(4)
    pipeline = Pipeline("zbv", list(mine(schedule, modules).values()), loss, microbatches=MICROBATCHES)
    steps = data(4, 4)
    pipeline.step(*steps[0])
    with pipeline.record() as recording:
        pipeline.step(*steps[1])
        pipeline.eval(*steps[1])
        pipeline.step(*steps[2])
        early = refused(lambda: recording.timeline)
        twice = refused(lambda: pipeline.record().__enter__())
    pipeline.step(*steps[3])
    for name in ("steps.json", "steps.trace.json"):
        recording.save(folder / name)
    unknown = refused(lambda: recording.save(folder / "steps.docx"))
    dist.barrier()
    back = pipeplan.read_timeline(folder / "steps.json")
    assert back.schedule == recording.timeline.schedule == pipeline.schedule
    assert [step.makespan for step in recording.steps] == pytest.approx([1e3 * s for s in recording.step_seconds])
    kept = read_run(folder / "steps.json")
    assert [step.makespan for step in kept.timelines] == pytest.approx([1e3 * s for s in recording.step_seconds])
    assert len(kept.pauses) == 1
    assert 0 < kept.pauses[0] < 1e4
    assert pipeplan.profile(source=folder / "steps.json").settings().forward_times is not None
    trace = (folder / "steps.trace.json").read_text()
    assert '"1F0"' in trace
    assert (recording.wait >= 0).all()
    return recording.timeline.start.tolist(), recording.step_seconds, (early, twice, unknown)


def scaled() -> Any:
    """A gradient that overflows on one rank: all ranks skip the step, and halve the scale."""
    schedule = plan("zbv")
    modules = layers(4)
    scaler = ShardedGradScaler(device="cpu", init_scale=8.0)
    pipeline = Pipeline("zbv", list(mine(schedule, modules).values()), loss, microbatches=MICROBATCHES, scaler=scaler)
    alone, result = Alone(layers(4)), Differences()
    optimizer = torch.optim.AdamW(pipeline.parameters(), lr=1e-2)
    kept = []
    for number, (inputs, targets) in enumerate(data(3, 4)):
        losses = pipeline.step(inputs, targets)
        overflows = number == 1
        if overflows and pipeline.rank == 1:
            next(pipeline.parameters()).grad.fill_(torch.inf)
        scaler.unscale_(optimizer)
        if not overflows:
            result.compare(pipeline, alone, losses, alone.gradients(inputs, targets))
        before = [parameter.detach().clone() for parameter in pipeline.parameters()]
        scaler.step(optimizer)
        scaler.update()
        kept.append(all(torch.equal(a, b) for a, b in zip(before, pipeline.parameters(), strict=True)))
        optimizer.zero_grad()
        if not overflows:
            alone.apply()
    return tuple(result)[:2], kept, scaler.get_scale()


class Two(nn.Module):
    """A stage of two tensors and a keyword."""

    def __init__(self, first: bool, last: bool) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.first, self.last = first, last

    def forward(self, x: Tensor, y: Tensor, *, mask: Tensor, scale: float) -> Any:
        mixed = self.linear(x * mask) * scale + y
        return mixed if self.last else (mixed, y.tanh())


def tuples() -> Any:
    """Several tensors between stages, keywords on all ranks, targets in a dictionary, a list of microbatches."""
    generator = torch.Generator().manual_seed(1)
    x, y, mask, wanted = (torch.randn(8, 6, generator=generator) for _ in range(4))

    def two_losses(output: Tensor, targets: dict[str, Tensor]) -> Tensor:
        return ((output - targets["wanted"]) ** 2).sum() + targets["weight"] * output.sum()

    result = {}
    for name in ("1f1b", "zbv"):
        torch.manual_seed(2)
        stages = plan(name).stages
        modules = [Two(stage == 0, stage == stages - 1) for stage in range(stages)]
        alone = copy.deepcopy(modules)
        pipeline = Pipeline(
            name,
            list(mine(plan(name), modules).values()),
            two_losses,
            microbatches=MICROBATCHES,
            reduction="sum",
        )
        targets = {"wanted": wanted, "weight": torch.tensor(0.5)}
        pipeline.step((x, y), targets, mask=mask, scale=0.7)
        passed: Any = (x, y)
        for module in alone:
            passed = module(*passed, mask=mask, scale=0.7)
        two_losses(passed, targets).backward()
        worst = 0.0
        for stage, module in pipeline.stages.items():
            for ours, theirs in zip(module.parameters(), alone[stage].parameters(), strict=True):
                worst = max(worst, float((ours.grad - theirs.grad).abs().max() / theirs.grad.abs().max()))
        pairs = list(zip(x.chunk(MICROBATCHES), y.chunk(MICROBATCHES), strict=True))
        lists = [dict(targets, wanted=part) for part in wanted.chunk(MICROBATCHES)]
        for parameter in pipeline.parameters():
            parameter.grad = None
        losses = pipeline.step(pairs, lists, mask=mask, scale=0.7)
        result[name] = worst, None if losses is None else list(losses.shape)
    return result


@contextmanager
def failing_once(pipeline: Pipeline) -> Iterator[None]:
    """Rank 1's first stage raises in its second forward."""
    calls = iter(range(100))

    def fail(*_: Any) -> None:
        if next(calls) == 1:
            raise RuntimeError("no forward")

    module = next(iter(pipeline.stages.values()))
    hook = module.register_forward_hook(fail) if dist.get_rank() == 1 else None
    yield
    if hook is not None:
        hook.remove()


def lengths() -> Any:
    """Microbatches of other lengths in each step: alike twice, different, beyond those before; and in an evaluation.

    The first stage is frozen, so that it gets zeros as gradients; and before the last step, one fails on rank 1.
    """
    generator = torch.Generator().manual_seed(4)
    steps = ((3, 3, 3, 3), (5, 5, 5, 5), (2, 9, 4, 7), (1, 12, 1, 6))
    result = {}
    for name in ("1f1b", "zb-h1", "zbv"):
        schedule = plan(name)
        modules = layers(schedule.stages)
        modules[0].requires_grad_(name == "1f1b")
        alone, differences = Alone(copy.deepcopy(modules)), Differences()
        pipeline = Pipeline(name, list(mine(schedule, modules).values()), loss, microbatches=4, varying_lengths=True)
        trainable = [parameter for parameter in pipeline.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(trainable or [torch.zeros(1, requires_grad=True)], lr=1e-2)
        for step, counts in enumerate(steps):
            inputs = [torch.randn(2, tokens, WIDTHS[0], generator=generator) for tokens in counts]
            targets = [torch.randn(2, tokens, WIDTHS[schedule.stages], generator=generator) for tokens in counts]
            passed = inputs if pipeline.is_first else None, targets if pipeline.is_last else None
            if step == len(steps) - 1:
                with failing_once(pipeline), pytest.raises((PipeplanError, RuntimeError), match="forward"):
                    pipeline.step(*passed)
                optimizer.zero_grad()
            losses = pipeline.step(*passed)
            expected = []
            for x, target in zip(inputs, targets, strict=True):
                one = loss(alone.model(x), target)
                (one / len(inputs)).backward()
                expected.append(float(one.detach()))
            differences.compare(pipeline, alone, losses, expected)
            optimizer.step()
            optimizer.zero_grad()
            alone.apply()
        after = pipeline.eval(inputs if pipeline.is_first else None)
        if after is not None:
            for output, x in zip(after.outputs, inputs, strict=True):
                torch.testing.assert_close(output, alone.model(x))
        differences.compare_weights(pipeline, alone)
        result[name] = tuple(differences)
    return result


def refused(what: Callable[[], Any]) -> str:
    """The error that something raises, in words."""
    try:
        what()
    except PipeplanError as error:
        return f"{type(error).__name__}: {error}"
    return "nothing was refused"


def refusals() -> Any:
    """What ranks cannot make a pipeline of: all of them are losses the same."""
    rank = dist.get_rank()
    one, two = nn.Linear(4, 4), nn.Linear(4, 4)
    mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "pp"))
    lonely = [dist.new_group([member]) for member in range(2)]

    def make(stages: Any, schedule: Any = "1f1b", microbatches: Any = 4, loss: Any = loss, **options: Any) -> str:
        return refused(lambda: Pipeline(schedule, stages, loss, microbatches=microbatches, **options))

    replica = DistributedDataParallel(nn.Linear(4, 4))
    layers_alone = nn.Sequential(fully_shard(nn.Linear(4, 4), mesh=mesh["dp"]))
    return {
        "on no rank": make({0: one} if rank == 0 else {}),
        "on two ranks": make({0: one} if rank == 0 else {0: one, 1: two}),
        "on the wrong rank": make({1: one} if rank == 0 else {0: two}),
        "no such stage": make({0: one, 7: two} if rank == 0 else {1: two}),
        "too many": make([one, two]),
        "twice": make([one, one], "zbv"),
        "no module": make([rank]),
        "ranks": make([one], plan("1f1b", 4), None),
        "unlike": make([one], "1f1b" if rank == 0 else "gpipe"),
        "microbatches missing": make([one], microbatches=None),
        "bidirectional": make([one, two], "dualpipe"),
        "loss": make([one], loss=None),
        "part in DDP": make([nn.Sequential(replica)]),
        "layers under FSDP": make([layers_alone]),
        "mesh": make([one], group=mesh),
        "mesh, pp": make([one], group=mesh["pp"]),
        "group": make([one], group=lonely[1 - rank]),
    }


def refused_steps() -> Any:
    """What a step cannot take, each on a pipeline of one rank."""
    alone = [dist.new_group([member]) for member in range(2)][dist.get_rank()]
    x, y = torch.randn(8, 4), torch.randn(8, 4)

    def pipeline(how: Any = loss) -> Pipeline:
        return Pipeline("1f1b", [nn.Linear(4, 4)], how, microbatches=4, group=alone)

    def without_gradients() -> None:
        with torch.no_grad():
            pipeline().step(x, y)

    class Worn(nn.Linear):
        """Fails in the second step."""

        calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            if self.calls > 5:
                raise ValueError("worn out")
            return super().forward(x)

    def note() -> str:
        worn = Pipeline("1f1b", [Worn(4, 4)], loss, microbatches=4, group=alone)
        worn.step(x, y)
        try:
            worn.step(x, y)
        except RuntimeError as error:
            return error.__notes__[0]
        return ""

    accepted = pipeline()
    accepted.step(x, y)
    accepted.forget_shapes()
    other = accepted.step(torch.randn(12, 4), torch.randn(12, 4))
    return {
        "vector": refused(lambda: pipeline(lambda output, target: (output - target).square()).step(x, y)),
        "number": refused(lambda: pipeline(lambda output, target: loss(output, target).item()).step(x, y)),
        "detached": refused(lambda: pipeline(lambda output, target: loss(output, target).detach()).step(x, y)),
        "division": refused(lambda: pipeline().step(x[:7], y[:7])),
        "no_grad": refused(without_gradients),
        "state": refused(lambda: pipeline().load_state_dict({"stages.1.weight": x})),
        "forgotten": None if other is None else list(other.shape),
        "note": note(),
    }


def replicated() -> Any:
    """Two pipelines of two ranks side by side, each on half the batch: DDP, FSDP2 around stages and their layers."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "pp"))
    replica, rank = mesh["dp"].get_local_rank(), mesh["pp"].get_local_rank()

    def ddp(module: nn.Module) -> nn.Module:
        return DistributedDataParallel(module, process_group=mesh["dp"].get_group())

    def fsdp(module: nn.Module) -> nn.Module:
        for part in module.children():
            if isinstance(part, nn.Linear):
                fully_shard(part, mesh=mesh["dp"])
        return fully_shard(module, mesh=mesh["dp"])

    result = {}
    for name in ("interleaved-1f1b", "zb-h1", "zbv"):
        schedule = plan(name, 2)
        for way, wrap in (("ddp", ddp), ("fsdp", fsdp)):
            modules = layers(schedule.stages)
            alone, compared = Alone(copy.deepcopy(modules)), Differences()
            own = {stage: wrap(module) for stage, module in mine(schedule, modules, rank).items()}
            pipeline = Pipeline(schedule, own, loss, group=mesh["pp"])
            optimizer = torch.optim.AdamW(pipeline.parameters(), lr=1e-2)
            for inputs, targets in data(2, schedule.stages, 16):
                step_losses = pipeline.step(inputs.chunk(2)[replica], targets.chunk(2)[replica])
                losses = alone.gradients(inputs, targets, 2 * MICROBATCHES)
                half = losses[replica * MICROBATCHES :][:MICROBATCHES]
                compared.compare(pipeline, alone, step_losses, half)
                norm = pipeline.clip_grad_norm_(0.1)
                expected = nn.utils.clip_grad_norm_(alone.model.parameters(), 0.1)
                assert abs(float(norm - expected)) <= 1e-5 * float(expected), (name, way, norm, expected)
                compared.compare(pipeline, alone, step_losses, half)
                optimizer.step()
                optimizer.zero_grad()
                alone.apply()
            compared.compare_weights(pipeline, alone)
            inputs, targets = data(1, schedule.stages, 16)[0]
            seen = pipeline.eval(inputs)
            if seen is not None:
                compared.losses = max(compared.losses, float((seen.outputs - alone.model(inputs).detach()).abs().max()))
            # Gradients of two steps, added up before the optimizer sees them.
            for inputs, targets in data(2, schedule.stages, 16):
                pipeline.step(inputs.chunk(2)[replica], targets.chunk(2)[replica])
                alone.gradients(inputs, targets, 2 * MICROBATCHES)
            compared.gradients = max(compared.gradients, apart(pipeline, alone))
            result[name, way] = tuple(compared), sorted(pipeline.state_dict())[0]
    return result


SCENARIOS: dict[str, Callable[[], Any]] = {
    function.__name__: function
    for function in (
        strategies,
        sources,
        mixed_precision,
        clipped,
        checkpointed,
        compiled,
        without_parameters,
        frozen,
        resumed,
        evaluated,
        recorded,
        scaled,
        tuples,
        lengths,
        refusals,
        refused_steps,
        replicated,
    )
}


def answers(scenarios: dict[str, Callable[[], Any]], folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Run scenarios on this rank, in a folder that all ranks share, and return their answers by name."""
    os.chdir(folder)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    done = {name: scenarios[name]() for name in names}
    dist.destroy_process_group()
    return done


def main(job: tuple[Path, tuple[str, ...]]) -> dict[str, Any]:
    return answers(SCENARIOS, *job)
