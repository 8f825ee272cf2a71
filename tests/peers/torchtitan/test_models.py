"""The models that torchtitan's packages configure, against ours of the same name: a plan's script takes one of them."""

from collections.abc import Callable
from importlib import import_module
from math import prod

import torch

from pipeplan.extensions.planning.workload import model, parameter_counts

FLAVORS = {
    "llama3.1-8b": ("llama3", "8B"),
    "llama3.1-70b": ("llama3", "70B"),
    "llama3.1-405b": ("llama3", "405B"),
    "llama3.2-1b": ("llama3", "1B"),
    "llama3.2-3b": ("llama3", "3B"),
    "qwen3-0.6b": ("qwen3", "0.6B"),
    "qwen3-1.7b": ("qwen3", "1.7B"),
    "qwen3-4b": ("qwen3", "4B"),
    "qwen3-8b": ("qwen3", "8B"),
    "qwen3-14b": ("qwen3", "14B"),
    "qwen3-32b": ("qwen3", "32B"),
    "qwen3-30b-a3b": ("qwen3", "30B-A3B"),
    "qwen3-235b-a22b": ("qwen3", "235B-A22B"),
    "deepseek-v2-lite": ("deepseek_v3", "16B"),
    "deepseek-v2": ("deepseek_v3", "236B"),
    "deepseek-v3": ("deepseek_v3", "671B"),
    "gpt-oss-20b": ("gpt_oss", "20b"),
    "gpt-oss-120b": ("gpt_oss", "120b"),
}
"""Package and flavor of each published model; Llama's have the scaled rotary positions of Llama 3.1 in all sizes."""

SELECTED = ("deepseek-v3",)
"""Models with a bias that selects experts; torchtitan has this buffer in all its mixtures that balance their loads."""


def test_parameters_are_those_of_the_published_models(ran: Callable[[str], None]) -> None:
    built = {}
    for name, (package, flavor) in FLAVORS.items():
        spec = import_module(f"torchtitan.models.{package}").model_registry(flavor)
        with torch.device("meta"):
            network = spec.model.build()
        biases = sum(prod(each.shape) for key, each in network.named_buffers() if key.endswith("expert_bias_E"))
        built[name] = sum(prod(each.shape) for each in network.parameters()) + (biases if name in SELECTED else 0)
    assert built == {name: parameter_counts(model(name)).total for name in FLAVORS}
    ran(f"parameters of {len(FLAVORS)} models of its packages")
