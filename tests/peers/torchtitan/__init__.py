"""torchtitan beside us, on a CPU.

One module of its experts is written in Triton, which PyTorch's builds for CPUs lack; nothing here runs it, so a module of
any names stands in for it. Which device there is torchtitan asks when it is imported.
"""

import sys
from importlib.util import find_spec
from types import ModuleType
from unittest import mock

import torch

KERNELS = "torchtitan.distributed.minimal_async_ep.kernels"


class StandIn(ModuleType):
    """A module that has any name."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.Mock(name=name)


if find_spec("triton") is None:
    sys.modules.setdefault(KERNELS, StandIn(KERNELS))
with mock.patch.object(torch._utils, "_get_available_device_type", return_value="cpu"):
    import torchtitan.tools.utils  # noqa: F401
