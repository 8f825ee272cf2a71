"""Measure one stage: time and memory of its ops, including recomputation and copies to the host."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pipeplan.costs import Spread
from pipeplan.extensions.training.runtime.clocks import Clock, clock_for
from pipeplan.extensions.training.runtime.offloading import Offloading, host_link
from pipeplan.extensions.training.runtime.saved_tensors import Recomputation, Staying
from pipeplan.extensions.training.runtime.torch_internals import Backward
from pipeplan.foundation.files import temporary_folder

_KEY = (0, 0)

Forward = Callable[[], tuple[Tensor, Tensor]]
"""Function that runs a forward on a fresh input, and returns the input and the output or loss."""


class SavingMeasurement:
    """Measurement of a stage's R, OFFLOAD and RELOAD, which run as in the runtime.

    Parameters
    ----------
    module
        Module of the stage.
    forward
        Function that runs its forward.
    clock
        Clock that takes the times.
    device
        Device of the stage.
    first
        True if it is the model's first stage, whose input belongs to the batch and stays on the device.
    """

    def __init__(self, module: nn.Module, forward: Forward, clock: Clock, device: torch.device, *, first: bool) -> None:
        self._forward, self._clock, self._first = forward, clock, first
        self._recomputation, self._staying = Recomputation(module, device), Staying(module, device)
        self._link = host_link(device)

    def recompute(self) -> float:
        """Return the milliseconds of an R."""
        with self._recomputation.first(0):
            self._forward()
        begin = self._clock.mark()
        with self._recomputation.again(0):
            self._forward()
        return float(np.diff(self._clock.times([begin, self._clock.mark()]))[0]) / 1e6

    def copies(self) -> tuple[float, float]:
        """Return the milliseconds of an OFFLOAD's copy and of a RELOAD's."""
        # One microbatch leaves and comes back, as in a step.
        offloading = Offloading([_KEY], self._link)
        passed = self._saved(offloading)
        offloading.forward_ended(_KEY, self._clock.mark)
        out = offloading.offload(_KEY)
        back = offloading.reload(_KEY, self._clock.mark)
        offloading.arrive(_KEY)
        times = self._clock.times([*out.marks(), *back.marks()])
        del passed
        leaving, _, coming = (np.diff(times) / 1e6).tolist()
        return leaving, coming

    def freed_bytes(self) -> int:
        """Return the bytes that OFFLOAD frees: the copied ones, and those of input and output that no backward needs."""
        offloading = Offloading([_KEY], self._link)
        inputs, output = self._saved(offloading)
        ends = [output] if self._first else [inputs, output]
        beside = sum(end.nbytes for end in ends if not offloading.holds(_KEY, end))
        stays = inputs.nbytes if self._first and offloading.holds(_KEY, inputs) else 0
        return offloading.device_bytes + beside - stays

    def _saved(self, offloading: Offloading) -> tuple[Tensor, Tensor]:
        self._staying.before(())
        with offloading.saving(_KEY, self._staying):
            return self._forward()


MIB = float(1 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageProfile:
    """Costs of one stage for one microbatch.

    Attributes
    ----------
    first_layer, stop_layer
        First layer of the stage, and one past its last.
    forward, backward, backward_input, backward_weight
        Milliseconds of F, B, I and W. On the model's first stage, I has nothing to do, and W is the whole backward.
    recompute
        Milliseconds of R.
    offload
        Milliseconds of a copy to the host, or back if that takes longer; on a CPU, within memory.
    activation_bytes
        Bytes held after F, including the input.
    weight_activation_bytes
        Bytes held after I, until W. PyTorch's split backward frees nothing at I, and keeps gradients for W.
    recompute_bytes
        Bytes held after an F that is recomputed: its input.
    offload_bytes
        Bytes freed by OFFLOAD. On the model's first stage, the input stays because it belongs to the caller.
    transient_bytes
        Most bytes that an op holds beyond those held before and after it; None on a CPU.
    static_bytes
        Bytes of parameters, gradients and AdamW's state.
    input_bytes
        Bytes of the tensor that the previous stage sends.
    """

    first_layer: int
    stop_layer: int
    forward: Spread
    backward: Spread
    backward_input: Spread
    backward_weight: Spread
    recompute: Spread
    offload: Spread
    activation_bytes: int
    weight_activation_bytes: int
    recompute_bytes: int
    offload_bytes: int
    transient_bytes: int | None
    static_bytes: int
    input_bytes: int

    def __str__(self) -> str:
        times = {
            "F": self.forward,
            "B": self.backward,
            "I": self.backward_input,
            "W": self.backward_weight,
            "R": self.recompute,
            "copy": self.offload,
        }
        held = {field.name: getattr(self, field.name) for field in fields(self) if field.name.endswith("_bytes")}
        sizes = (f"{name.removesuffix('_bytes')} {size / MIB:.5g}" for name, size in held.items() if size is not None)
        return (
            f"layers {self.first_layer} to {self.stop_layer - 1}: "
            + ", ".join(f"{kind} {spread}" for kind, spread in times.items())
            + f" ms; MiB: {', '.join(sizes)}"
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage, and an input to measure it with.

    Attributes
    ----------
    module
        Module of the stage, on its device.
    layers
        First layer of the stage, and one past its last.
    inputs
        Input of one microbatch.
    loss
        Function of the output on the model's last stage, else None.
    first
        True if it is the model's first stage.
    """

    module: nn.Module
    layers: tuple[int, int]
    inputs: Tensor
    loss: Callable[[Tensor], Tensor] | None
    first: bool

    def forward(self) -> tuple[Tensor, Tensor]:
        """Run a forward on a fresh input, and return the input and the output or loss."""
        inputs = self.inputs.clone()
        if not self.first:
            inputs.requires_grad_()
        output = self.module(inputs)
        return inputs, output if self.loss is None else self.loss(output)

    def backward(self, passed: tuple[Tensor, Tensor], gradient: Tensor | None) -> Backward:
        """Return the backward of the stage after a forward."""
        inputs, output = passed
        return Backward(self.module, inputs, output, gradient, first=self.first)


def measure(stage: Stage, *, repeats: int, warmup: int, meet: Callable[[], None] = lambda: None) -> StageProfile:
    """Measure time and memory of a stage.

    Parameters
    ----------
    stage
        The stage with its input.
    repeats, warmup
        Numbers of measured rounds, and of rounds before them. A round is F, B, F, I, W, then an F with its R, then an F with
        its copies.
    meet
        Function that is called before every round, so that ranks that share a host measure at the same time.
    """
    gradient = None if stage.loss is not None else torch.randn_like(stage.forward()[1].detach())
    clock = clock_for(stage.inputs.device)
    device = stage.inputs.device
    saving = SavingMeasurement(stage.module, stage.forward, clock, device, first=stage.first)
    rounds = [_round(stage, gradient, clock, saving, meet) for _ in range(warmup + repeats)][warmup:]
    forward, backward, inputs, weights, recompute, copies = zip(*rounds, strict=True)
    held, kept, transient = _sizes(stage, gradient)
    return StageProfile(
        first_layer=stage.layers[0],
        stop_layer=stage.layers[1],
        forward=Spread.of(time for pair in forward for time in pair),
        backward=Spread.of(backward),
        backward_input=Spread.of(inputs),
        backward_weight=Spread.of(weights),
        recompute=Spread.of(recompute),
        offload=max((Spread.of(way) for way in zip(*copies, strict=True)), key=lambda spread: spread.median),
        activation_bytes=held,
        weight_activation_bytes=kept,
        recompute_bytes=min(stage.inputs.nbytes, held),
        offload_bytes=min(saving.freed_bytes(), held),
        transient_bytes=transient,
        static_bytes=_static_bytes(stage.module),
        input_bytes=stage.inputs.nbytes,
    )


Round = tuple[tuple[float, float], float, float, float, float, tuple[float, float]]


def _round(
    stage: Stage, gradient: Tensor | None, clock: Clock, saving: SavingMeasurement, meet: Callable[[], None]
) -> Round:
    """Return the milliseconds of both Fs, of B, I, W and R, and of the copies to the host and back."""
    gc.collect()
    gc.disable()
    meet()
    clock.restart()
    marks: list[Any] = [clock.mark()]

    def timed(work: Callable[[], Any]) -> Any:
        answer = work()
        marks.append(clock.mark())
        return answer

    # A full backward, then a split one: each needs its own forward.
    passed = stage.backward(timed(stage.forward), gradient)
    timed(passed.full)
    passed = stage.backward(timed(stage.forward), gradient)
    timed(passed.input)
    timed(passed.weight)
    times = clock.times(marks)
    recompute, copies = saving.recompute(), saving.copies()
    gc.enable()
    first, full, second, inputs, weights = (np.diff(times) / 1e6).tolist()
    return (first, second), full, inputs, weights, recompute, copies


def _sizes(stage: Stage, gradient: Tensor | None) -> tuple[int, int, int | None]:
    """Return the bytes held after F and after I, and the most beyond that."""
    on_gpu = stage.inputs.device.type == "cuda"
    levels = (_levels_on_gpu if on_gpu else _levels_on_cpu)(partial(_split_pass, stage, gradient))
    held, kept = levels.after
    return held, kept, levels.transient


@dataclass(frozen=True, slots=True)
class _Levels:
    after: tuple[int, int]
    transient: int | None


Pass = Callable[[Callable[[], None]], None]


def _split_pass(stage: Stage, gradient: Tensor | None, mark: Callable[[], None]) -> None:
    """Run F, I and W, with a mark before, between and after them."""
    mark()
    passed = stage.backward(stage.forward(), gradient)
    mark()
    passed.input()
    mark()
    passed.weight()
    mark()


def _levels_on_gpu(run: Pass) -> _Levels:
    levels: list[int] = []
    peaks: list[int] = []

    def mark() -> None:
        levels.append(torch.cuda.memory_allocated())
        peaks.append(torch.cuda.max_memory_allocated())
        torch.cuda.reset_peak_memory_stats()

    run(mark)
    before = levels[0]
    # Between two marks, the peak minus the higher of the two levels is transient.
    beyond = (peak - max(a, b) for (a, b), peak in zip(pairwise(levels), peaks[1:], strict=True))
    return _Levels((levels[1] - before, levels[2] - before), max(beyond))


def _levels_on_cpu(run: Pass) -> _Levels:
    """Return levels from the allocations that PyTorch's profiler records: a CPU has no counter of allocated memory."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, profile_memory=True) as profile:
        run(_annotate)
    with temporary_folder() as folder:
        path = folder / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    # Sum the changes of memory between consecutive marks: F, then I.
    marks = sorted(event["ts"] for event in events if event.get("name") == _MARK)
    changes = [(event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]"]
    forward, inputs = (
        sum(change for when, change in changes if first <= when < stop) for first, stop in list(pairwise(marks))[:2]
    )
    return _Levels((forward, forward + inputs), None)


_MARK = "pipeplan: mark"


def _annotate() -> None:
    with torch.profiler.record_function(_MARK):
        pass


def _static_bytes(module: nn.Module) -> int:
    """Return the bytes of parameters, gradients and the state after a step of AdamW."""
    parameters = [parameter for parameter in module.parameters() if parameter.grad is not None]
    total = sum(parameter.nbytes for parameter in module.parameters())
    if not parameters:
        return total
    # A step with learning rate 0 creates the optimizer's state and changes no weight.
    optimizer = torch.optim.AdamW(parameters, lr=0.0, weight_decay=0.0)
    optimizer.step()
    state = (value for values in optimizer.state.values() for value in values.values() if isinstance(value, Tensor))
    return total + sum(parameter.nbytes for parameter in parameters) + sum(value.nbytes for value in state)
