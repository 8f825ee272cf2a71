"""Users' own training loops in which one rank fails; a job as ``own_loop`` is one."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pipeplan.passes import insert_recompute
from pipeplan.runtime import Pipeline
from tests.extensions.training.runtime.kept_otherwise import offloaded
from tests.extensions.training.runtime.own_loop import answers, data, layers, loss, mine, plan


class Worn(nn.Module):
    """A stage that raises in one of its forwards, or in a backward."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module
        self.calls = 0
        self.forward_fails = self.backward_fails = -1

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        if self.calls == self.forward_fails:
            raise ValueError("worn out\nentirely")
        output: Tensor = self.module(x)
        if 0 < self.backward_fails <= self.calls and output.requires_grad:
            self.backward_fails = -1
            output.register_hook(self.fail)
        return output

    def fail(self, _: Tensor) -> None:
        raise ValueError("worn out\nentirely")


def outcome(work: Callable[[], Any]) -> tuple[str, list[str], bool]:
    """The error in words with its notes, and whether it came within seconds."""
    begin = time.monotonic()
    try:
        work()
    except Exception as error:
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        return f"{type(error).__name__}: {cause}", getattr(error, "__notes__", []), time.monotonic() - begin < 30
    return "nothing was raised", [], True


def modules_that_raise() -> Any:
    """In the look-ahead, in a forward and in a backward, on each rank; then the same step succeeds."""
    result = {}
    kept = plan("zbv")
    schedules = {name: plan(name) for name in ("1f1b", "zb-h1", "interleaved-1f1b", "zbv")}
    schedules |= {"recomputed": insert_recompute(kept), "offloaded": offloaded(kept, range(kept.stages))}
    for name, schedule in schedules.items():
        again = Pipeline(schedule, mine(schedule, layers(schedule.stages)), loss)
        (batch,) = data(1, schedule.stages)
        expected = again.broadcast(again.step(*batch))
        for rank in range(2):
            for way, call in (("forward", 1), ("forward", 4), ("backward", 3)):
                worn = [Worn(module) for module in layers(schedule.stages)]
                pipeline = Pipeline(schedule, mine(schedule, worn), loss)
                setattr(worn[schedule.placement.stages_on(rank)[-1]], f"{way}_fails", call)
                first = outcome(lambda: pipeline.step(*batch))  # noqa: B023
                for parameter in pipeline.parameters():
                    parameter.grad = None
                losses = pipeline.broadcast(pipeline.step(*batch))
                same = torch.equal(losses, expected) and all(
                    torch.equal(ours.grad, theirs.grad)
                    for ours, theirs in zip(pipeline.parameters(), again.parameters(), strict=True)
                )
                result[name, rank, way, call] = (*first, same)
    return result


def inputs_that_differ() -> Any:
    """What one rank alone passes wrongly is raised on both; and the next batch trains."""
    schedule, rank = plan("1f1b"), dist.get_rank()
    pipeline = Pipeline(schedule, mine(schedule, layers(2)), loss)
    ((x, y),) = data(1, 2)
    bad = Pipeline(schedule, mine(schedule, layers(2)), lambda output, target: output - target)
    pipeline.step(x, y)

    def shown(work: Callable[[], Any]) -> str:
        return outcome(work)[0]

    return {
        "inputs": shown(lambda: pipeline.step(None, y)),
        "targets": shown(lambda: pipeline.step(x)),
        "shapes": shown(lambda: pipeline.step(x[:4], y[:4])),
        "keyword": shown(lambda: pipeline.step(x, y, **({"mask": x} if rank else {}))),
        "passes": shown(lambda: pipeline.step(x, y) if rank else pipeline.eval(x, y)),
        "no gradients": shown(torch.no_grad()(lambda: pipeline.step(x, y)) if rank else lambda: pipeline.step(x, y)),
        "loss": shown(lambda: bad.step(x, y)),
        "loss of an evaluation": shown(lambda: bad.eval(x, y)),
        "accepted": shown(lambda: pipeline.step(x, y)),
        "evaluated": shown(lambda: pipeline.eval(x[:3])),
    }


SCENARIOS: dict[str, Callable[[], Any]] = {
    function.__name__: function for function in (modules_that_raise, inputs_that_differ)
}


def main(job: tuple[Path, tuple[str, ...]]) -> dict[str, Any]:
    return answers(SCENARIOS, *job)
