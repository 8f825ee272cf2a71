"""Configurations of models whose flags are given to the trainers' own parsers: every kind of what a plan can say."""

from collections.abc import Iterator
from dataclasses import fields, replace
from random import Random
from typing import Any

from pipeplan.extensions.planning import Configuration, default_limit
from pipeplan.extensions.planning.choice.legality import RULES
from pipeplan.extensions.planning.choice.request import PlanRequest
from pipeplan.extensions.planning.hardware import Cluster, cluster
from pipeplan.extensions.planning.workload import ModelShape, model, model_names
from pipeplan.model import Schedule
from pipeplan.strategies import STRATEGIES

DENSE = Configuration(sequence=4096, global_batch=64, tensor=4, pipeline=4, data=4, sequence_parallel=True)
EXPERTS = Configuration(
    sequence=4096, global_batch=128, pipeline=8, data=8, expert=8, chunks=2, schedule="interleaved-1f1b"
)
H100S = cluster("h100-sxm:8x8")

PLANS: dict[str, tuple[str, Configuration]] = {
    "even": ("llama-3-70b", DENSE),
    "two sequences": ("llama-3-70b", replace(DENSE, microbatch_size=2)),
    "uneven": ("llama-3-70b", replace(DENSE, layers=(22, 21, 20, 17))),
    "interleaved": ("llama-3-70b", replace(DENSE, schedule="interleaved-1f1b", chunks=4)),
    "interleaved on two ranks": (
        "llama-3-70b",
        replace(DENSE, pipeline=2, data=8, schedule="interleaved-1f1b", chunks=2),
    ),
    "interleaved by groups": (
        "llama-3-70b",
        replace(DENSE, schedule="interleaved-1f1b", chunks=2, group_size=8),
    ),
    "zero-bubble": ("llama-3-70b", replace(DENSE, schedule="zb-h1")),
    "on a V": ("llama-3-70b", replace(DENSE, schedule="zbv", chunks=2)),
    "recomputed": ("llama-3-70b", replace(DENSE, recompute=("full",))),
    "recomputed in part": ("llama-3-70b", replace(DENSE, recompute=("layernorm", "mlp"))),
    "recomputed by stage": ("llama-3-70b", replace(DENSE, recompute_by_stage=(("full",), ("mlp",), (), ()))),
    "by op": ("llama-3-70b", replace(DENSE, recompute=("selective-op",))),
    "on the host": ("llama-3-70b", replace(DENSE, offload=0.3)),
    "long": ("llama-3-70b", replace(DENSE, context=2, data=2, sequence=32768)),
    "without sequence parallelism": ("llama-3-70b", replace(DENSE, sequence_parallel=False)),
    "fp8": ("llama-3-70b", replace(DENSE, precision="fp8")),
    "asynchronous": ("llama-3-70b", replace(DENSE, software="torchtitan+hidden-tensor")),
    "one rank": ("llama-3-70b", replace(DENSE, pipeline=1, data=16, zero=2)),
    "one rank, all sharded": ("llama-3-70b", replace(DENSE, pipeline=1, data=16, zero=3)),
    "replicated": ("llama-3-8b", replace(DENSE, zero=0)),
    "learned positions": ("gpt2-xl", replace(DENSE, tensor=1, data=16, sequence_parallel=False, sequence=1024)),
    "biases of queries": ("qwen2.5-72b", DENSE),
    "experts": ("qwen3-235b-a22b", replace(EXPERTS, chunks=1, schedule="1f1b")),
    "experts on the host": ("qwen3-235b-a22b", replace(EXPERTS, chunks=1, schedule="1f1b", offload=0.6)),
    "experts' tensors split": (
        "mixtral-8x7b",
        replace(EXPERTS, pipeline=4, tensor=2, expert_tensor=2, expert=4, sequence_parallel=True),
    ),
    "latent attention": ("deepseek-v3", replace(EXPERTS, recompute=("mla_up_proj", "moe_act"))),
    "windows and sinks": ("gpt-oss-120b", replace(EXPERTS, pipeline=4, data=16, chunks=1, schedule="1f1b")),
}
"""By what they are about: a model's name, and how it is trained on 64 GPUs."""


Planned = tuple[ModelShape, Cluster, Configuration]
"""What ``flags_of`` takes."""


def plan(name: str) -> Planned:
    """One of them, as ``flags_of`` takes it."""
    shape, configuration = PLANS[name]
    return model(shape), H100S, configuration


def published(name: str, ranks: int, microbatches: int, chunks: int | None = None) -> Schedule:
    """A strategy's schedule."""
    return STRATEGIES[name](STRATEGIES[name].shape(ranks, microbatches, chunks))


VALUES: dict[str, tuple[Any, ...]] = {
    "sequence": (2048, 4096, 8192, 32768),
    "global_batch": (64, 256, 1024),
    "microbatch_size": (1, 1, 2),
    "tensor": (1, 2, 4, 8),
    "pipeline": (1, 2, 4, 8),
    "context": (1, 1, 1, 2),
    "data": (2, 4, 8, 16, 32, 64),
    "expert": (1, 2, 4, 8, 16),
    "expert_tensor": (1, 1, 2),
    "chunks": (1, 1, 2, 3),
    "schedule": ("1f1b", "interleaved-1f1b"),
    "sequence_parallel": (True, True, False),
    "zero": (0, 1, 1, 2, 3),
    "precision": ("bf16", "bf16", "fp8", "mxfp8", "nvfp4"),
    "recompute": (
        *((), (), ("full",), ("selective-op",), ("core_attn",), ("layernorm", "mlp"), ("mla_up_proj",)),
        *(("moe_act", "layernorm"), ("moe",), ("core_attn", "moe_act"), ("shared_experts",)),
    ),
    "offload": (0.0, 0.0, 0.0, 0.2, 0.5),
}
"""Values of each field that configurations are drawn from; a repeated one is drawn more often."""

CLUSTERS = ("a100-80gb:8x8", "h100-sxm:8x8", "b200:8x8", "gb200:4x16")


def drawn(count: int, software: tuple[str, ...], seed: int = 0) -> dict[str, Planned]:
    """Valid configurations of every model and of four clusters, by a name that says what they are."""
    names = list(model_names())
    plans: dict[str, Planned] = {}
    for number, configuration in enumerate(_valid(count, software, Random(seed), names)):
        shape, machines, chosen = configuration
        plans[f"{number}: {shape.name} on {machines.gpu.name}"] = (shape, machines, chosen)
    return plans


def _valid(count: int, software: tuple[str, ...], random: Random, names: list[str]) -> Iterator[Planned]:
    others: dict[str, Any] = {field.name: field.default for field in fields(Configuration)}
    clusters = {name: cluster(name) for name in CLUSTERS}
    for place in range(count):
        shape = model(names[place * len(names) // count])
        while True:
            machines = clusters[random.choice(CLUSTERS)]
            draft = others | {name: random.choice(values) for name, values in VALUES.items()}
            draft["software"] = random.choice(software)
            if draft["tensor"] * draft["context"] * draft["pipeline"] * draft["data"] != machines.gpus:
                continue  # nearly all, for which the request below need not be made
            request = PlanRequest(
                model=shape,
                cluster=machines,
                global_batch=draft["global_batch"],
                sequence=draft["sequence"],
                memory_limit=default_limit(machines),
            )
            if all(rule.holds(request, draft) for rule in RULES):
                yield shape, machines, Configuration(**draft)
                break
