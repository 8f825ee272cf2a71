"""Megatron-Bridge's own ``ConfigContainer`` and its ``validate``, in a process of their own, without a GPU.

Its packages are imported without their ``__init__``, which import every model. Stand-ins replace what is missing here (data
sets, tokenizers, Triton): none of it reads a setting. The recipe is a container of its own classes with the planned model;
``pretrain`` is replaced by finalizing and validating, which are its first steps.
"""

import os
import re
import sys
import typing
from dataclasses import dataclass, fields
from enum import Enum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import torch
import torch.utils.flop_counter  # Asks for Triton when it is imported: before there is a stand-in.
import typing_extensions
from packaging.version import Version

from tests.peers.bridge import import_bare
from tests.peers.stand_ins import StandIn, StandIns, gpu

OTHERS = (
    "datasets",
    "omegaconf",
    "regex",
    "safetensors",
    "six",
    "transformers",
    "triton",
    "hydra",
    "megatron.energon",
    "webdataset",
)
"""Packages that stand-ins replace where they are not installed."""

PACKAGES = (
    *("bridge", "bridge.models", "bridge.models.gpt", "bridge.models.hybrid", "bridge.models.mamba"),
    *("bridge.models.conversion", "bridge.models.hf_pretrained"),
    *("bridge.models.megatron_mimo", "bridge.data", "bridge.data.builders", "bridge.peft", "bridge.training"),
    *("bridge.utils", "training"),
)
"""Packages below ``megatron`` that are imported without their ``__init__``."""

GLOBALS = ("get_args", "get_timers", "get_adlr_autoresume")
"""Functions of the ``__init__`` of ``megatron.training``, whose models newer releases use."""


@dataclass(frozen=True)
class Case:
    """A script's Python code, the recipe's model, the values that it must set, and the GPUs."""

    code: str
    variables: dict[str, str]
    model: dict[str, Any]
    wanted: dict[str, Any]
    gpus: int
    gpu: str
    generation: str


@dataclass(frozen=True)
class Job:
    """Cases by name, for the installed Megatron-Bridge or the one in these folders, with their Megatron-core."""

    sources: tuple[str, ...]
    cases: dict[str, Case]


class WithClasses(StandIn):
    """A module that has any name: a class, a decorator or a function."""

    def __getattr__(self, name: str) -> object:
        return type(name, (), {}) if name[0].isupper() and self.__name__ != "triton" else super().__getattr__(name)


def main(job: Job) -> dict[str, dict[str, str]]:
    """What of each case is not as planned, by field; a refusal stands under the name of its error."""
    sys.path[:0] = job.sources
    with mock.patch.object(torch, "compile", lambda function, **_: function):
        config = imported()
    return {name: judged(config, case) for name, case in job.cases.items()}


def imported() -> ModuleType:
    """``megatron.bridge.training.config``."""
    if not hasattr(typing, "override"):
        typing.override = typing_extensions.override  # type: ignore[attr-defined]
    missing = tuple(name for name in OTHERS if "." in name or find_spec(name) is None)
    sys.meta_path.insert(0, StandIns(missing, WithClasses))
    for package in PACKAGES:
        import_bare(f"megatron.{package}")
    training: Any = sys.modules["megatron.training"]
    if any(Path(folder, "config").is_dir() for folder in training.__path__):
        variables = import_module("megatron.training.global_vars")
        vars(training).update({name: getattr(variables, name) for name in GLOBALS})
        import_module("megatron.training.config")
    models: Any = sys.modules["megatron.bridge.models"]
    models.T5ModelProvider = type("T5ModelProvider", (), {})
    models.GPTModelProvider = import_module("megatron.bridge.models.gpt_provider").GPTModelProvider
    utils: Any = import_module("megatron.core.utils")
    utils._te_version = Version("2.10.0")
    overlap: Any = import_module("megatron.bridge.training.comm_overlap")
    overlap.HAVE_TE = True
    return import_module("megatron.bridge.training.config")


def judged(config: Any, case: Case) -> dict[str, str]:
    """What is not as planned once the script has called ``pretrain``."""
    containers: list[Any] = []
    get_precision = config.get_mixed_precision_config
    stand_ins: dict[str, dict[str, Any]] = {
        "recipes": {"recipe": lambda: recipe(config, case)},
        "training.gpt_step": {"forward_step": None},
        "training.pretrain": {"pretrain": lambda container, _: containers.append(container)},
    }
    for name, members in stand_ins.items():
        module = ModuleType(f"megatron.bridge.{name}")
        vars(module).update(members)
        sys.modules[module.__name__] = module
    sys.modules["megatron.bridge"].recipes = sys.modules["megatron.bridge.recipes"]  # type: ignore[attr-defined]
    users = {"WORLD_SIZE": str(case.gpus), "RANK": "0", "LOCAL_RANK": "0"}
    with mock.patch.dict(os.environ, case.variables | users), gpu(case.gpu, case.generation):
        try:
            exec(case.code, {"__name__": "__main__"})
            [container] = containers
            unknown = without_field(container, case.code)
            # The first steps of its ``pretrain``.
            precision = container.mixed_precision = get_precision(container.mixed_precision)
            precision.finalize()
            precision.setup(container.model, container.optimizer, container.ddp)
            container.set_data_parallel_size()
            container.comm_overlap.finalize()
            container.comm_overlap.setup(container.model, container.optimizer, container.ddp)
            container.validate()
        except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError) as error:
            return {type(error).__name__: str(error)}
    return unknown | differing(container, case.wanted)


def without_field(container: Any, code: str) -> dict[str, str]:
    """The assignments to names that no field has."""
    faults = {}
    for part, name in re.findall(r"^ *cfg\.(\w+)\.(\w+) = ", code, re.MULTILINE):
        kind = type(getattr(container, part))
        if name not in names_of(kind) and not hasattr(kind, name):
            faults[f"{part}.{name}"] = "not a field"
    return faults


def differing(container: Any, wanted: dict[str, Any]) -> dict[str, str]:
    faults = {}
    for path, value in wanted.items():
        part, _, name = path.partition(".")
        have = plain(getattr(getattr(container, part), name))
        planned = set(value) if isinstance(have, set) and value is not None else value
        if have != planned:
            faults[path] = f"{have!r}, planned: {planned!r}"
    return faults


def plain(value: Any) -> Any:
    """A value in the form of the planned ones: stages as lists of names, modules as sets, names in place of enums."""
    if hasattr(value, "flatten_layout"):
        stages = value.layout
        return [[part.name for part in rank[chunk]] for chunk in range(len(stages[0])) for rank in stages]
    if isinstance(value, Enum):
        return value.value
    return set(value) if isinstance(value, list) and value and isinstance(value[0], str) else value


def recipe(config: Any, case: Case) -> Any:
    """A container of the classes of this release, with the planned model and other settings that a recipe may have."""
    optimizer = getattr(config, "OptimizerConfig", None) or config.MCoreOptimizerConfig
    ddp = getattr(config, "DistributedDataParallelConfig", None) or config.MCoreDistributedDataParallelConfig
    checks = {"create_attention_mask": False} if "create_attention_mask" in names_of(config.GPTDatasetConfig) else {}
    return config.ConfigContainer(
        model=sys.modules["megatron.bridge.models"].GPTModelProvider(
            **case.model, num_layers_in_first_pipeline_stage=1, recompute_granularity="selective"
        ),
        train=config.TrainingConfig(micro_batch_size=1, global_batch_size=8, train_iters=1),
        optimizer=optimizer(lr=1.0, use_distributed_optimizer=True, bf16=True),
        ddp=ddp(use_distributed_optimizer=True, overlap_grad_reduce=True, overlap_param_gather=True),
        scheduler=config.SchedulerConfig(),
        dataset=config.GPTDatasetConfig(
            random_seed=1,
            reset_attention_mask=False,
            reset_position_ids=False,
            eod_mask_loss=False,
            seq_length=64,
            split="9999,8,2",
            dataloader_type="single",
            **checks,
        ),
        logger=config.LoggerConfig(),
        tokenizer=config.TokenizerConfig(),
        checkpoint=config.CheckpointConfig(),
        mixed_precision="bf16_mixed",
    )


def names_of(kind: Any) -> set[str]:
    return {field.name for field in fields(kind)}
