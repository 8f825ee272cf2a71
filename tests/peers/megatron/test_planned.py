"""What a plan gives to paste, made a configuration of Megatron-core's with its layout by Megatron-core's own parser.

The parser of Megatron-LM's trainer is not in the package. Most of its flags are fields of the configuration, a dash for an
underscore, or as a field's metadata says; those that only its trainer has are written down here with what it makes of them
(``arguments.py``, ``core_transformer_config_from_args``).
"""

from argparse import ArgumentError, ArgumentParser
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, get_args

import pytest
import torch
import torch.nn.functional as functional
from megatron.core.activations import squared_relu
from megatron.core.fusions.fused_bias_geglu import quick_gelu
from megatron.core.transformer import MLATransformerConfig, TransformerConfig
from megatron.core.transformer.utils import is_layer_window_attention

from pipeplan.extensions.planning.trainers import flags_of
from pipeplan.formats import TrainerSettings
from tests.peers.megatron.expected import OF_THE_USER, expected, wrong
from tests.peers.plans import PLANS, plan
from tests.peers.planted import planted_flags
from tests.peers.shell import launched

SWITCHES = (
    "group-query-attention",
    "swiglu",
    "squared-relu",
    "quick-geglu",
    "use-rope-scaling",
    "untie-embeddings-and-output-weights",
    "grad-reduce-in-bf16",
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
    "rotary-seq-len-interpolation-factor",
    "yarn-original-max-position-embeddings",
)
FRACTIONS = (
    *("rotary-percent", "rope-scaling-factor", "rotary-scaling-factor", "mscale", "mscale-all-dim"),
    *("yarn-beta-fast", "yarn-beta-slow", "rotary-base"),
)
CHOICES = {
    "ckpt-format": ("torch_dist", "fsdp_dtensor"),
    "position-embedding-type": ("learned_absolute", "rope", "yarn", "none"),
    "data-parallel-sharding-strategy": ("no_shard", "optim", "optim_grads", "optim_grads_params"),
}
"""The flags that only the trainer has."""


def _underscored(flag: str) -> str:
    return flag.replace("-", "_")


OF_THE_TRAINER = {*map(_underscored, (*SWITCHES, *NUMBERS, *FRACTIONS, *CHOICES))}

PLANTED = ("latent attention", "on the host", "one rank, all sharded")
"""Plans in whose flags wrong values are planted."""

DEFAULTS = ("--normalization", "--no-gradient-accumulation-fusion")
"""Flags that say what Megatron-core's configuration assumes without them; Megatron-LM's trainer assumes something else."""

PATTERNS = ("window-size", "window-attn-skip-freq", "moe-layer-freq", "no-rope-freq")
"""Numbers, or lists as Python writes them."""

NEGATED = (
    *("no-gradient-accumulation-fusion", "no-bias-dropout-fusion", "no-bias-gelu-fusion"),
    "no-yarn-correction-range-round-to-int",
)
"""Switches that set the field of their name without ``no`` to false."""


def flags(name: str) -> TrainerSettings:
    return flags_of(*plan(name))["megatron"]


OF_LATENT = ("rotary_percent", "rotary_scaling_factor", "mscale", "mscale_all_dim", "rotary_base")
"""Numbers that are fields of the configuration of latent attention, and arguments of the model otherwise."""


def words_of(text: str) -> list[str]:
    """What the script gives Megatron-LM, without the user's flags, which are the last."""
    words = launched(text).after("pretrain_gpt.py")
    return list(words[: words.index("--data-path")])


def pattern(text: str) -> Any:
    """A number or a list of Megatron's: digits, brackets, sums and repetitions."""
    assert set(text) <= set("0123456789,[]()+*")
    return eval(text, {"__builtins__": {}})


def parser() -> ArgumentParser:
    made = ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for each in fields(MLATransformerConfig):
        if each.name.replace("_", "-") in FRACTIONS:
            continue
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
        made.add_argument(f"--{name}", action="store_true", default=MISSING)
    for name in NUMBERS:
        made.add_argument(f"--{name}", type=int, default=MISSING)
    for name in FRACTIONS:
        made.add_argument(f"--{name}", type=float, default=MISSING)
    for name, choices in CHOICES.items():
        made.add_argument(f"--{name}", choices=choices, default=MISSING)
    for name in NEGATED:
        field = name.removeprefix("no-").replace("-", "_")
        made.add_argument(f"--{name}", dest=field, action="store_false", default=MISSING)
    return made


def set_by(words: list[str]) -> dict[str, Any]:
    """What flags set, by the names of arguments."""
    return {key: value for key, value in vars(parser().parse_args(words)).items() if value is not MISSING}


def configured(explicit: dict[str, Any]) -> TransformerConfig:
    """The configuration that a plan's flags ask for."""
    fields_ = {key: value for key, value in explicit.items() if key not in OF_THE_TRAINER}
    experts, gated = explicit.get("num_experts"), explicit.get("swiglu", False) or explicit.get("quick_geglu", False)
    named = {"squared_relu": squared_relu, "quick_geglu": quick_gelu, "swiglu": functional.silu}
    layout = explicit.get("pipeline_model_parallel_layout")
    chunks = len(layout.split("|")) // explicit["pipeline_model_parallel_size"] if layout else 1
    fields_ |= {
        "num_moe_experts": experts,
        "gated_linear_unit": gated,
        "activation_func": next((named[name] for name in named if explicit.get(name)), functional.gelu),
        **{name: explicit[name] for name in OF_LATENT if name in explicit},
        "q_lora_rank": explicit.get("q_lora_rank"),
        "params_dtype": torch.bfloat16,
        "pipeline_dtype": torch.bfloat16,
        "virtual_pipeline_model_parallel_size": chunks if chunks > 1 else None,
        "overlap_p2p_comm": chunks > 1,
        "batch_p2p_comm": chunks == 1,
    }
    if experts is not None and "ffn_hidden_size" not in explicit:
        fields_["ffn_hidden_size"] = explicit["moe_ffn_hidden_size"]
    kind = MLATransformerConfig if explicit.get("multi_latent_attention") else TransformerConfig
    return kind(**{each.name: fields_[each.name] for each in fields(kind) if each.name in fields_})


def wrong_in(name: str, words: list[str]) -> dict[str, str]:
    """What is not as a plan of this name has it in the configuration that flags make."""
    explicit = set_by(words)
    config = configured(explicit)
    trainers = dict.fromkeys(map(_underscored, SWITCHES), False) | {
        key: value for key, value in explicit.items() if key in OF_THE_TRAINER
    }
    parsed = explicit | {each.name: getattr(config, each.name) for each in fields(config)} | trainers
    planned = {key: value for key, value in expected(*plan(name)).items() if key not in OF_THE_USER}
    return wrong(planned, parsed, set(explicit))


@pytest.mark.parametrize("name", PLANS)
def test_every_value_is_the_planned_one(name: str):
    assert wrong_in(name, words_of(flags(name).text)) == {}


@pytest.mark.parametrize("name", PLANTED)
def test_every_planted_value_is_found(name: str, ran: Callable[[str], None]):
    missed, count = [], 0
    for flag, words in planted_flags(words_of(flags(name).text)):
        count += 1
        try:
            if not wrong_in(name, [*words]):
                missed += [flag] if flag not in DEFAULTS else []
        except (AssertionError, ArgumentError, KeyError, TypeError, ValueError):
            pass  # refused
    assert missed == []
    ran(f"{count} wrong values planted in the flags of one plan")


def test_windows_are_where_they_were(ran: Callable[[str], None]):
    shape, _, _ = plan("windows and sinks")
    config = configured(set_by(words_of(flags("windows and sinks").text)))
    found = [
        is_layer_window_attention(config.window_size, config.window_attn_skip_freq, layer + 1)
        for layer in range(shape.layers)
    ]
    assert found == [shape.is_windowed(layer) for layer in range(shape.layers)]
    ran(f"its configuration and layout parser on the flags of {len(PLANS)} plans")


def test_a_flag_that_is_none_is_refused():
    with pytest.raises(SystemExit):
        parser().parse_args(["--hidden-sizes", "8"])
