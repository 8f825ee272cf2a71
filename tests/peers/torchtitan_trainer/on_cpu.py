"""The device queries that torchtitan asks of its device and PyTorch's CPU does not answer."""

from types import SimpleNamespace
from typing import Any

import torch


def answer_for_the_cpu() -> None:
    """Make the CPU the device that torchtitan finds; to be called before any of its modules is imported."""
    cpu: Any = torch.cpu
    torch._utils._get_available_device_type = lambda: "cpu"
    cpu.get_device_name = lambda device=None: "CPU"
    cpu.get_device_properties = lambda device=None: SimpleNamespace(total_memory=1 << 40)
    cpu.memory_stats = lambda device=None: {}
    cpu.reset_peak_memory_stats = lambda device=None: None
    cpu.empty_cache = lambda: None
    cpu.current_device = lambda: 0
