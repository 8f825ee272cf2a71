"""Batches of steps and evaluations, on a pipeline of one rank in this process."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
import torch.distributed as dist
from torch import Tensor, nn

from pipeplan.foundation.errors import InputError
from pipeplan.runtime import Pipeline


@pytest.fixture(autouse=True)
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Scaled(nn.Module):
    """A stage that takes keywords."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor, *, mask: Tensor | None = None, scale: float = 1.0) -> Tensor:
        return self.linear(x if mask is None else x * mask).tanh() * scale


def pipeline() -> tuple[Pipeline, Callable[..., Tensor]]:
    """Two stages on one rank, four microbatches; and the same stages one after the other."""
    torch.manual_seed(1)
    stages = [Scaled(), Scaled()]

    def alone(x: Tensor, **keywords: Any) -> Tensor:
        return stages[1](stages[0](x, **keywords), **keywords).detach()

    made = Pipeline("interleaved-1f1b", stages, nn.functional.mse_loss, microbatches=4)
    return made, alone


def test_an_evaluation_takes_a_batch_of_any_size() -> None:
    """Larger and smaller than the one before, odd, and of fewer samples than microbatches; keywords are cut alike."""
    made, alone = pipeline()
    x, y, mask = torch.randn(3, 16, 4)
    for size in (16, 8, 7, 3, 1, 10, 16):
        result = made.eval(x[:size], y[:size], mask=mask[:size], scale=0.5)
        assert result is not None
        expected = alone(x[:size], mask=mask[:size], scale=0.5)
        torch.testing.assert_close(result.outputs, expected)
        parts = zip(expected.tensor_split(4), y[:size].tensor_split(4), strict=True)
        losses = [nn.functional.mse_loss(*part) for part in parts if len(part[0])]
        torch.testing.assert_close(result.losses, torch.stack(losses))
        assert made.eval(x[:size], mask=mask[:size]).losses is None  # type: ignore[union-attr]
    longer = [torch.randn(5, 4) for _ in range(4)]
    torch.testing.assert_close(made.eval(longer).outputs, alone(torch.cat(longer)))  # type: ignore[union-attr]
    with pytest.raises(InputError, match="the inputs hold 6 samples and the targets 7: pass as many"):
        made.eval(x[:6], y[:7])
    with pytest.raises(InputError, match="the inputs hold 0 samples"):
        made.eval(x[:0])


def test_steps_between_evaluations_keep_their_shapes() -> None:
    made, _ = pipeline()
    x, y = torch.randn(2, 16, 4)
    for size in (8, 5):
        made.step(x[:8], y[:8])
        made.eval(x[:size], y[:size])
    with pytest.raises(
        InputError, match=r"this batch has other shapes or types than before \(\(4, 4\) of float32 after \(2, 4\)"
    ):
        made.step(x, y)
    made.forget_shapes()
    assert made.step(x, y).shape == (4,)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({}, {"mask": 8}, "comes with the keywords mask and the ones before it with none"),
        (
            {"mask": 8},
            {"mask": (8, 1)},
            r"the keyword mask of this batch has other shapes or types than before \(\(2, 1\) of float32",
        ),
        ({"mask": 8}, {"mask": 7}, r"the keywords 'mask' hold 7 samples, which do not divide into 4 microbatches"),
    ],
)
def test_a_keyword_of_a_later_step_is_named(before: Any, after: Any, message: str) -> None:
    made, _ = pipeline()
    x, y = torch.randn(2, 8, 4)
    made.step(x, y, **{name: torch.ones(size, 4) for name, size in before.items()})
    later = {name: torch.ones(*(size if isinstance(size, tuple) else (size, 4))) for name, size in after.items()}
    with pytest.raises(InputError, match=message):
        made.step(x, y, **later)
    made.forget_shapes()
    if after.get("mask") != 7:
        made.step(x, y, **later)


def test_a_pipeline_is_described_in_a_sentence() -> None:
    made, _ = pipeline()
    text = "<Pipeline of interleaved-1f1b: rank 0 of 1 trains stages 0 and 1 of 2 in 4 microbatches on cpu>"
    assert repr(made) == text
    assert repr(Pipeline("1f1b", [nn.Linear(2, 2)], print, microbatches=2)) == (
        "<Pipeline of 1f1b: rank 0 of 1 trains stage 0 of 1 in 2 microbatches on cpu>"
    )


def test_tied_parameters_on_one_rank_get_the_sum_of_their_gradients() -> None:
    """Two tensors train as one; what two steps accumulate and its norm are those of one tensor."""
    torch.manual_seed(2)
    apart = [nn.Linear(4, 4), nn.Linear(4, 4)]
    one = nn.Linear(4, 4)
    one.load_state_dict(apart[0].state_dict())
    ties = [("0.weight", "1.weight"), ("0.bias", "1.bias")]
    made = Pipeline("interleaved-1f1b", apart, nn.functional.mse_loss, microbatches=2, tied=ties)
    assert torch.equal(apart[1].weight, one.weight)
    for x, y in torch.randn(2, 2, 8, 4):
        made.step(x, y)
        nn.functional.mse_loss(one(one(x)), y).backward()
    for module in apart:
        torch.testing.assert_close(module.weight.grad, one.weight.grad)
        torch.testing.assert_close(module.bias.grad, one.bias.grad)
    torch.testing.assert_close(made.clip_grad_norm_(0.1), nn.utils.clip_grad_norm_(one.parameters(), 0.1))
    torch.testing.assert_close(apart[1].weight.grad, one.weight.grad)
