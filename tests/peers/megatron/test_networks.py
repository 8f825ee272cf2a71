"""The network that Megatron-core builds of a plan's flags, against the published config.json and against its parameters."""

import json
import shlex
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as functional
from megatron.core.transformer import MLATransformerConfig

from pipeplan.extensions.planning.flags.megatron_hybrid import is_hybrid
from pipeplan.extensions.planning.flags.megatron_model import model_flags
from pipeplan.extensions.planning.flags.network import without_flag
from pipeplan.extensions.planning.workload import ModelShape, model, model_names, parameter_counts, read_config
from pipeplan.trainers.megatron import TRAINER
from tests.extensions.planning.workload.test_config_json import CONFIGS
from tests.peers.megatron.networks import Size, sizes, wanted
from tests.peers.megatron.test_planned import configured, set_by

FILES = {path.stem: shape for path in sorted(CONFIGS.glob("*.json")) if not is_hybrid(shape := read_config(path))}

PARAMETERS = (
    *(
        "norm per layer",
        "norms per layer",
        "LayerNorm without bias",
        "norms over all heads",
        "a bias of the attention's output",
    ),
    *(
        "other heads in windowed layers",
        "values of another width",
        "gates of the attention's output",
        "residual streams",
    ),
    *("biases of experts alone", "biases that select experts", "indices of another layer's indexer"),
)
"""Parts without a flag that have parameters: Megatron's model then has others, which a warning says."""

ELSEWHERE = ("--experimental-attention-variant", "--window-attn-skip-freq '")
"""Flags of layers that only Transformer Engine's modules have, or only newer releases."""


TOO_NEW = () if hasattr(MLATransformerConfig, "dsa_indexer_rope_interleaved") else ("--dsa-indexer-rope-interleaved",)
"""Flags that the installed release does not have: Python 3.11 takes an older one."""


def words(shape: ModelShape) -> list[str]:
    positions = ["--max-position-embeddings", str(max(1024, shape.learned_positions or 0))]
    flags = [word for flag in model_flags(shape) for word in shlex.split(flag) if flag not in TOO_NEW]
    return [*flags, "--num-layers", str(shape.layers), *positions]


def test_a_network_is_that_of_its_config(ran: Callable[[str], None]):
    """As Megatron-core's own configuration has it, made of the flags; the file is not read by what wrote them."""
    faults = {}
    for name, shape in FILES.items():
        parsed = set_by(words(shape))
        expected = wanted(json.loads((CONFIGS / f"{name}.json").read_text()))
        switches = ("swiglu", "quick_geglu", "squared_relu")
        parsed = dict.fromkeys(switches, False) | {"add_bias_linear": True} | parsed
        for field, value in expected.items():
            have = parsed.get(field)
            if (have or None) != (value or None):
                faults[f"{name}: {field}"] = f"{have!r}, in the file {value!r}"
    assert faults == {}
    ran(f"flags of {len(FILES)} published config files")


def test_activations_are_those_of_the_config():
    """The functions of Megatron-core's configuration, by the name of the activation in the file."""
    found = {
        name: configured(set_by(words(FILES[name]))) for name in ("Meta-Llama-3-8B", "gemma-2b", "gpt2", "gpt-oss-20b")
    }
    x = torch.linspace(-3, 3, 64)
    gates = {name: config.activation_func(x) for name, config in found.items()}
    assert [config.gated_linear_unit for config in found.values()] == [True, True, False, True]
    assert torch.equal(gates["Meta-Llama-3-8B"], functional.silu(x))
    assert torch.equal(gates["gpt-oss-20b"], x * torch.sigmoid(1.702 * x))
    assert torch.allclose(gates["gemma-2b"], functional.gelu(x), atol=0.025)
    nemotron = configured(set_by(words(FILES["Nemotron-4-340B-Base-hf"])))
    assert torch.equal(nemotron.activation_func(x), functional.relu(x) ** 2)


def size(shape: ModelShape) -> Size:
    explicit: dict[str, Any] = set_by(words(shape))
    config = configured(explicit)
    # What changes no parameter, and needs Transformer Engine or a GPU.
    config.moe_grouped_gemm = config.persist_layer_norm = config.layernorm_zero_centered_gamma = False
    config.perform_initialization = config.apply_rope_fusion = config.gradient_accumulation_fusion = False
    config.window_size = config.mtp_num_layers = None
    assert isinstance(config, MLATransformerConfig) == (shape.latent is not None)
    kind = explicit["position_embedding_type"]
    tied = not explicit.get("untie_embeddings_and_output_weights", False)
    return Size(
        config, explicit["vocab_size"], explicit["max_position_embeddings"], "rope" if kind == "yarn" else kind, tied
    )


def test_every_preset_has_its_parameters(ran: Callable[[str], None]):
    """Megatron's own modules have the parameters of each published model, except where a part without a flag has some."""
    shapes = {name: model(name) for name in model_names()} | FILES
    shapes = {
        name: shape
        for name, shape in shapes.items()
        if not is_hybrid(shape)
        # Without Transformer Engine, latent attention whose queries are not compressed is refused from 0.17 on.
        and not (shape.latent is not None and not shape.latent.query_rank)
        and not any(
            mark in part for part in without_flag(shape, TRAINER.latest, TRAINER.releases) for mark in PARAMETERS
        )
        and not any(flag.startswith(ELSEWHERE) for flag in model_flags(shape))
    }
    built = dict(sizes({name: size(shape) for name, shape in shapes.items()}))
    assert {
        name: (parts.total, parameter_counts(shapes[name]).total)
        for name, parts in built.items()
        if parts.total != parameter_counts(shapes[name]).total
    } == {}
    assert len(built) > 140
    ran(f"parameters of {len(built)} models of its own modules")
