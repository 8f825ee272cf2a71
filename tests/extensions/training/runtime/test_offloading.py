"""Copies to the host and back, without a pipeline."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

import torch
from torch import Tensor, nn

from pipeplan.extensions.training.runtime.offloading import Moves, Offloading, ThreadLink
from pipeplan.extensions.training.runtime.saved_tensors import Staying, vacate

CPU = torch.device("cpu")
BYTES = 4 * 8 * 16


@dataclass
class Slow:
    """A link whose copies are done only when something waits for them."""

    started: list[str] = field(default_factory=list)

    def host_bytes(self, size: int) -> Tensor:
        return torch.empty(size, dtype=torch.uint8)

    def leave(self, moves: Moves, mark: Callable[[], Any]) -> Any:
        return self._later("out", moves)

    def come_back(self, moves: Moves, mark: Callable[[], Any]) -> Any:
        return self._later("back", moves)

    def _later(self, way: str, moves: Moves) -> Any:
        self.started.append(way)
        return Later(moves)


@dataclass
class Later:
    moves: Moves

    def wait(self) -> None:
        for to, source in self.moves:
            to.copy_(source)

    def marks(self) -> tuple[Any, Any]:
        return 0, 0


def forward(offloading: Offloading, key: tuple[int, int], module: nn.Module, x: Tensor) -> Tensor:
    staying = Staying(module, CPU)
    staying.before(())
    with offloading.saving(key, staying):
        output: Tensor = module(x)
    offloading.forward_ended(key, int)
    return output


def test_bytes_leave_the_device_and_come_back() -> None:
    torch.manual_seed(0)
    # The two activations that are saved are 8 x 16 numbers each, one of them by two ops; weights stay.
    module = nn.Sequential(nn.Linear(16, 16), nn.Sigmoid(), nn.Linear(16, 16), nn.Sigmoid())
    leaf = torch.randn(8, 16, requires_grad=True)
    module(leaf).sum().backward()
    expected = [leaf.grad, *(parameter.grad for parameter in module.parameters())]
    module.zero_grad()
    for link in (Slow(), ThreadLink()):
        x = leaf.detach().clone().requires_grad_()
        offloading = Offloading([(0, 0)], link)
        output = forward(offloading, (0, 0), module, x)
        assert offloading.device_bytes == 3 * BYTES
        offloading.offload((0, 0))
        assert offloading.device_bytes == 0
        vacate(output)
        vacate(x)
        offloading.reload((0, 0), int)
        assert offloading.device_bytes == 3 * BYTES
        offloading.arrive((0, 0))
        output.backward(torch.ones_like(output))
        assert offloading.device_bytes == 0
        for ours, theirs in zip([x.grad, *(p.grad for p in module.parameters())], expected, strict=True):
            assert torch.equal(ours, theirs)
        module.zero_grad()


def test_copies_begin_in_the_order_of_the_row() -> None:
    link, module = Slow(), nn.Sigmoid()
    offloading = Offloading([(0, 1), (0, 0)], link)
    x = torch.randn(4, requires_grad=True)
    outputs = [forward(offloading, (0, 0), module, x)]
    assert link.started == []
    outputs.append(forward(offloading, (0, 1), module, x))
    assert link.started == ["out", "out"]


def test_a_backward_before_its_reload_is_named() -> None:
    offloading = Offloading([(0, 0)], ThreadLink())
    output = forward(offloading, (0, 0), nn.Sigmoid(), torch.randn(4, requires_grad=True))
    offloading.offload((0, 0))
    with pytest.raises(RuntimeError, match="its RELOAD must come before it"):
        output.sum().backward()


def test_what_is_changed_in_place_is_refused_as_autograd_does() -> None:
    class Rash(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x.sigmoid()
            z = y.sin()
            y.mul_(2.0)
            return z

    offloading = Offloading([(0, 0)], ThreadLink())
    output = forward(offloading, (0, 0), Rash(), torch.randn(4, requires_grad=True))
    assert output.requires_grad
    with pytest.raises(RuntimeError, match="changed in place after it was saved"):
        offloading.offload((0, 0))


def test_weights_that_autocast_has_cast_stay() -> None:
    module = nn.Linear(16, 16)
    offloading = Offloading([(0, 0)], ThreadLink())
    x = torch.randn(8, 16, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        output = forward(offloading, (0, 0), module, x)
    assert output.requires_grad
    assert offloading.device_bytes == 8 * 16 * 2
