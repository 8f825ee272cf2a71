"""Megatron-core's schedule functions without a GPU: what they ask of CUDA lands on the CPU.

They make one tensor on ``"cuda"``, receive into ``torch.cuda.current_device()``, wait for the device, and for
overlapped pairs they name two streams, events on them and ranges for a profiler. Nothing of Megatron is changed.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

import torch


class Event:
    """An event of a device that does one thing after the other."""

    def record(self, stream: object = None) -> None:
        pass

    def wait(self, stream: object = None) -> None:
        pass

    def synchronize(self) -> None:
        pass


class Stream:
    """The only stream there is: whatever waits for it need not."""

    def __init__(self, **_: object) -> None:
        pass

    def record_event(self) -> Event:
        return Event()

    def synchronize(self) -> None:
        pass

    def wait_stream(self, stream: object) -> None:
        pass


@contextmanager
def on_cpu() -> Iterator[None]:
    """Within, CUDA is the CPU."""
    made = torch.zeros

    def zeros(*size: Any, device: Any = None, **how: Any) -> torch.Tensor:
        return made(*size, device=None if device == "cuda" else device, **how)

    stand_ins: dict[str, Any] = {
        "cuda.current_device": lambda: torch.device("cpu"),
        "cuda.synchronize": lambda *_: None,
        "cuda.current_stream": Stream,
        "cuda.Stream": Stream,
        "cuda.Event": Event,
        "cuda.stream": nullcontext,
        "cuda.nvtx.range": nullcontext,
        "cuda.nvtx.range_push": lambda *_: None,
        "cuda.nvtx.range_pop": lambda *_: None,
        "Tensor.cuda": lambda tensor, *_, **__: tensor,
        "Tensor.record_stream": lambda *_: None,
    }
    with patch.object(torch, "zeros", zeros):
        patches = [patch(f"torch.{name}", stand_in) for name, stand_in in stand_ins.items()]
        for each in patches:
            each.start()
        try:
            yield
        finally:
            for each in patches:
                each.stop()
