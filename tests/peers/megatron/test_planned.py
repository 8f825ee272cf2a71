"""What a plan gives to paste, made a configuration of Megatron-core's with its layout by Megatron-core's own parser.

The parser of Megatron-LM's trainer is not in the package. Most of its flags are fields of the configuration, a dash for an
underscore, or as a field's metadata says; those that only its trainer has are written down here with what it makes of them
(``arguments.py``, ``core_transformer_config_from_args``).
"""

import shlex
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as functional
from megatron.core.transformer import MLATransformerConfig, TransformerConfig
from megatron.core.transformer.enums import AttnBackend, LayerType
from megatron.core.transformer.pipeline_parallel_layer_layout import PipelineParallelLayerLayout
from megatron.core.transformer.utils import is_layer_window_attention

from pipeplan.planner import TrainerFlags, flags_of
from tests.peers.plans import PLANS, plan

ARRAYS = ("MODEL_ARGS", "PARALLEL_ARGS", "RUN_ARGS", "PIPELINE_ARGS")

SWITCHES = (
    "group-query-attention",
    "swiglu",
    "untie-embeddings-and-output-weights",
    "use-distributed-optimizer",
    "overlap-grad-reduce",
    "overlap-param-gather",
    "use-megatron-fsdp",
)
NUMBERS = (
    "vocab-size",
    "seq-length",
    "max-position-embeddings",
    "micro-batch-size",
    "global-batch-size",
    "num-experts",
)
CHOICES = {
    "position-embedding-type": ("learned_absolute", "rope"),
    "data-parallel-sharding-strategy": ("no_shard", "optim", "optim_grads", "optim_grads_params"),
}
"""The flags that only the trainer has."""

PATTERNS = ("window-size", "window-attn-skip-freq", "moe-layer-freq")
"""Numbers, or lists as Python writes them."""

NEGATED = ("no-gradient-accumulation-fusion",)
"""Switches that set the field of their name without ``no`` to false."""


def flags(name: str) -> TrainerFlags:
    return flags_of(*plan(name))["megatron"]


def words_of(text: str) -> list[str]:
    found = []
    for name in ARRAYS:
        assert f"\n{name}=(\n" in text, f"no {name}"
        found += shlex.split(text.partition(f"\n{name}=(\n")[2].partition("\n)")[0])
    return found


def pattern(text: str) -> Any:
    """A number or a list of Megatron's: digits, brackets, sums and repetitions."""
    assert set(text) <= set("0123456789,[]()+*")
    return eval(text, {"__builtins__": {}})


def parser() -> ArgumentParser:
    made = ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for each in fields(MLATransformerConfig):
        flag = each.name.replace("_", "-")
        names = each.metadata.get("argparse_meta", {}).get("arg_names", [f"--{flag}"])
        kinds = [kind for kind in (*get_args(each.type), each.type) if kind in (int, float)]
        if flag in PATTERNS:
            made.add_argument(*names, dest=each.name, type=pattern, default=MISSING)
        elif each.type is bool:
            value = "store_false" if names[0].startswith("--disable") else "store_true"
            made.add_argument(*names, dest=each.name, action=value, default=MISSING)
        elif flag.endswith("-modules"):
            made.add_argument(*names, dest=each.name, nargs="+", default=MISSING)
        else:
            made.add_argument(*names, dest=each.name, type=kinds[0] if kinds else str, default=MISSING)
    for name in SWITCHES:
        made.add_argument(f"--{name}", action="store_true")
    for name in NUMBERS:
        made.add_argument(f"--{name}", type=int)
    for name, choices in CHOICES.items():
        made.add_argument(f"--{name}", choices=choices)
    for name in NEGATED:
        made.add_argument(f"--{name}", dest=name.removeprefix("no-").replace("-", "_"), action="store_false")
    return made


def configured(name: str) -> tuple[TransformerConfig, dict[str, Any]]:
    """The configuration that a plan's flags ask for, and what the trainer keeps for itself."""
    said = {
        key: value
        for key, value in vars(parser().parse_args(words_of(flags(name).text))).items()
        if value is not MISSING
    }
    trainers = {key: said.pop(key) for key in [*map(_underscored, (*SWITCHES, *NUMBERS, *CHOICES))]}
    experts = trainers["num_experts"]
    layout = said.get("pipeline_model_parallel_layout")
    chunks = len(layout.split("|")) // said["pipeline_model_parallel_size"] if layout else 1
    said |= {
        "attention_backend": AttnBackend[said.get("attention_backend", "auto")],
        "num_moe_experts": experts,
        "gated_linear_unit": trainers["swiglu"],
        "activation_func": functional.silu if trainers["swiglu"] else functional.gelu,
        "params_dtype": torch.bfloat16,
        "pipeline_dtype": torch.bfloat16,
        "virtual_pipeline_model_parallel_size": chunks if chunks > 1 else None,
        "overlap_p2p_comm": chunks > 1,
        "batch_p2p_comm": chunks == 1,
    }
    if experts is not None and "ffn_hidden_size" not in said:
        said["ffn_hidden_size"] = said["moe_ffn_hidden_size"]
    kind = MLATransformerConfig if said.get("multi_latent_attention") else TransformerConfig
    return kind(**said), trainers


def _underscored(flag: str) -> str:
    return flag.replace("-", "_")


@pytest.mark.parametrize("name", PLANS)
def test_every_flag_is_one_and_together_they_make_a_configuration(name: str):
    shape, _, plan_ = plan(name)
    config, trainers = configured(name)
    assert (config.num_layers, config.hidden_size, config.ffn_hidden_size) == (
        shape.layers,
        shape.hidden,
        shape.ffn or (shape.experts.width if shape.experts else None),
    )
    assert config.tensor_model_parallel_size == plan_.tensor
    assert config.pipeline_model_parallel_size == plan_.pipeline
    assert config.context_parallel_size == plan_.context
    assert config.sequence_parallel == plan_.sequence_parallel
    assert trainers["global_batch_size"] == plan_.global_batch
    assert trainers["seq_length"] == plan_.sequence
    assert trainers["use_distributed_optimizer"] == (plan_.zero > 0)
    if shape.experts is not None:
        assert config.expert_model_parallel_size == plan_.expert
        assert config.expert_tensor_parallel_size == plan_.expert_tensor
        freq = config.moe_layer_freq
        pattern_ = freq if isinstance(freq, list) else [1] * shape.layers
        assert pattern_ == [int(shape.has_experts(layer)) for layer in range(shape.layers)]


@pytest.mark.parametrize("name", [name for name, (_, each) in PLANS.items() if each.pipeline > 1])
def test_the_layout_has_the_layers_that_were_planned(name: str):
    shape, _, plan_ = plan(name)
    layout = configured(name)[0].pipeline_model_parallel_layout
    assert isinstance(layout, PipelineParallelLayerLayout)
    stages = [rank[chunk] for chunk in range(len(layout.layout[0])) for rank in layout.layout]
    counts = [stage.count(LayerType.decoder) for stage in stages]
    assert sum(counts) == shape.layers
    assert stages[0][0] == LayerType.embedding
    assert stages[-1][-1] == LayerType.loss
    assert stages[-1].count(LayerType.mtp) == shape.mtp_layers
    if plan_.layers is not None:
        assert counts == list(plan_.layers)


@pytest.mark.parametrize(
    ("name", "granularity", "modules"),
    [
        ("recomputed", "full", None),
        ("recomputed by stage", "full", None),
        ("recomputed in part", "selective", {"layernorm", "mlp"}),
        ("latent attention", "selective", {"mla_up_proj", "moe_act"}),
        ("even", None, None),
    ],
)
def test_recomputation_is_asked_for(name: str, granularity: str | None, modules: set[str] | None):
    config, _ = configured(name)
    assert config.recompute_granularity == granularity
    if modules is not None:
        assert set(config.recompute_modules) == modules


def test_windows_are_where_they_were(ran: Callable[[str], None]):
    shape, _, _ = plan("windows and sinks")
    config, _ = configured("windows and sinks")
    found = [
        is_layer_window_attention(config.window_size, config.window_attn_skip_freq, layer + 1)
        for layer in range(shape.layers)
    ]
    assert found == [shape.is_windowed(layer) for layer in range(shape.layers)]
    assert config.softmax_type == "learnable"
    ran(f"its configuration and layout parser on the flags of {len(PLANS)} plans")


def test_a_flag_that_is_none_is_refused():
    with pytest.raises(SystemExit):
        parser().parse_args(["--hidden-sizes", "8"])
