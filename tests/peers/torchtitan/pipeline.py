"""torchtitan's own ``pipeline_llm`` on its llama3 debug model, without weights and in one process."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torchtitan.components.loss import CrossEntropyLoss
from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed import ParallelDims
from torchtitan.distributed.pipeline_parallel import pipeline_llm
from torchtitan.models.llama3 import llama3_configs


@dataclass(frozen=True, slots=True)
class Built:
    """A rank's schedule object, and the names of the modules of each of its stages."""

    schedule: Any
    stages: dict[int, list[str]]


def built(parallelism: ParallelismConfig, training: TrainingConfig, layers: int) -> Built:
    """The pipeline of this rank, in a model of so many layers."""
    config = of_layers(layers)
    schedule, parts, _, _ = pipeline_llm(
        model_of(layers),
        parallel_dims=ParallelDims.from_config(parallelism, dist.get_world_size()),
        training=training,
        parallelism=parallelism,
        compile_config=CompileConfig(),
        ac_config=None,
        dump_folder="",
        device=torch.device("cpu"),
        model_config=config,
        parallelize_fn=lambda part, **_: part,
        loss_fn=CrossEntropyLoss.Config().build(),
    )
    return Built(schedule, {stage: modules(part) for stage, part in zip(stages_of(schedule), parts, strict=True)})


def of_layers(number: int) -> Any:
    """torchtitan's debug model with so many layers."""
    debug = llama3_configs["debugmodel"](attn_backend="flex")
    return replace(debug, layers=[debug.layers[0]] * number)


@cache
def model_of(layers: int) -> torch.nn.Module:
    """The model, which pipelines copy their stages from."""
    with torch.device("meta"):
        model: torch.nn.Module = of_layers(layers).build()
    return model


def stages_of(schedule: Any) -> list[int]:
    """The stages of this rank; a schedule for one stage a rank has it under another name."""
    stages = schedule._stages if hasattr(schedule, "_stages") else [schedule._stage]
    return [stage.stage_index for stage in stages]


def modules(part: torch.nn.Module) -> list[str]:
    """What a part of the model holds, as torchtitan's settings name it."""
    names = [name.split(".") for name, _ in part.named_parameters()]
    return list(dict.fromkeys(".".join(name[: 2 if name[0] == "layers" else 1]) for name in names))
