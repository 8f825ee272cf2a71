"""torchtitan beside us, on a CPU.

One module of its experts is written in Triton, which PyTorch's builds for CPUs lack; nothing here runs it, so a module of
any names stands in for it. Which device there is torchtitan asks when it is imported.
"""

import sys
from importlib.util import find_spec
from unittest import mock

import torch

from tests.peers.stand_ins import StandIn

KERNELS = "torchtitan.distributed.minimal_async_ep.kernels"


if find_spec("triton") is None:
    sys.modules.setdefault(KERNELS, StandIn(KERNELS))
with mock.patch.object(torch._utils, "_get_available_device_type", return_value="cpu"):
    import torchtitan.tools.utils  # noqa: F401
