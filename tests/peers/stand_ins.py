"""What stands in for what is missing here: modules, a GPU, and the other ranks of a process group."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from unittest import mock

import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore


class StandIn(ModuleType):
    """A module that has any name."""

    __version__ = "99.0"

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return mock.MagicMock(name=name)


class StandIns(MetaPathFinder, Loader):
    """Finds stand-ins for modules of these names, and for the modules below them."""

    def __init__(self, names: tuple[str, ...], module: type[StandIn] = StandIn) -> None:
        self.names, self.module = names, module

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if any(name == missing or name.startswith(f"{missing}.") for missing in self.names):
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


CAPABILITIES = {"ampere": 8, "hopper": 9, "blackwell": 10}
"""Major number of the compute capability by the generation of a GPU."""


@contextmanager
def gpu(name: str, generation: str, gib: int = 80) -> Iterator[None]:
    """Within, PyTorch names a GPU of this generation."""
    major = CAPABILITIES[generation]
    properties = SimpleNamespace(major=major, minor=0, name=name, total_memory=gib << 30)
    with (
        mock.patch.object(torch.cuda, "get_device_properties", return_value=properties),
        mock.patch.object(torch.cuda, "get_device_capability", return_value=(major, 0)),
    ):
        yield


@contextmanager
def ranks_of(number: int, rank: int = 0) -> Iterator[None]:
    """A process group of ``number`` ranks of which this process is one and the others are nobody."""
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=number)
    try:
        yield
    finally:
        dist.destroy_process_group()
