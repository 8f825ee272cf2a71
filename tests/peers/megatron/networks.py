"""What Megatron-LM must build of a published config.json, derived from the file alone; and the size of what it builds.

Names are those of Megatron-LM's arguments. Families state what no field does, as Transformers' modules have it: the kinds of
gates, norms and positions.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Any
from unittest.mock import patch

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_decoder_layer_specs
from megatron.core.models.gpt.gpt_model import GPTModel
from megatron.core.transformer import TransformerConfig, multi_latent_attention
from megatron.core.transformer.torch_norm import WrappedTorchNorm
from megatron.core.transformer.transformer_block import TransformerBlockSubmodules

from tests.peers.stand_ins import ranks_of

UNGATED = ("gpt2", "gpt_bigcode", "gpt_neox", "falcon", "opt", "starcoder2", "nemotron", "mpt")
LEARNED = ("gpt2", "gpt_bigcode", "opt")
LAYER_NORMS = (*UNGATED, "cohere", "cohere2", "dbrx")
GELU_GATES = ("gemma", "gemma2", "gemma3_text", "grok-1")
CENTERED = ("gemma", "gemma2", "gemma3_text", "nemotron")
SHARES = {"glm": 0.5, "glm4": 0.5, "glm4_moe": 0.5, "nemotron": 0.5, "gpt_neox": 0.25, "mimo_v2_flash": 0.334}
HEAD_NORMS = ("qwen3", "qwen3_moe", "gemma3_text", "dots1", "hy_v3", "exaone_moe", "afmoe", "laguna")
EXACT_GELU = ("gelu",)
SKIPPED = {"llama4_text": 4, "smollm3": 4, "cohere2": 4, "exaone_moe": 4, "afmoe": 4}


def wanted(config: dict[str, Any]) -> dict[str, Any]:
    """The arguments of Megatron-LM that the language model of a file decides; None: the default."""
    config = next((config[part] for part in ("text_config", "language_config") if part in config), config)
    kind = config["model_type"]
    oss = kind == "gpt_oss"
    activation = next(
        (config[name] for name in ("hidden_act", "activation_function", "activation") if name in config), ""
    )
    gated = kind not in UNGATED
    quick = oss or kind in GELU_GATES
    biased = oss or kind in ("gpt2", "gpt_bigcode", "gpt_neox", "opt") or config.get("use_bias") is True
    latent = "kv_lora_rank" in config
    return {
        "swiglu": gated and not quick,
        "quick_geglu": gated and quick,
        "squared_relu": activation == "relu2",
        "glu_linear_offset": 1.0 if oss else None,
        "activation_func_clamp_value": config["swiglu_limit"] if oss else None,
        "bias_gelu_fusion": False if biased and not gated and activation in EXACT_GELU else None,
        "bias_dropout_fusion": False if oss else None,
        "normalization": "LayerNorm" if kind in LAYER_NORMS else "RMSNorm",
        "layernorm_zero_centered_gamma": True if kind in CENTERED else None,
        "add_bias_linear": biased,
        "qk_layernorm": latent
        or (kind in HEAD_NORMS and config.get("use_qk_norm", True))
        or config.get("use_qk_norm") is True
        if kind not in ("llama4_text", "minimax_m2", "cohere")
        else None,
        "qk_l2_norm": True if kind == "llama4_text" and config.get("use_qk_norm") else None,
        **_positions(config, kind, latent),
    }


def _positions(config: dict[str, Any], kind: str, latent: bool) -> dict[str, Any]:
    scaling = config.get("rope_scaling") or config.get("rope_parameters") or {}
    form = scaling.get("rope_type") or scaling.get("type") or "default"
    rotary = kind not in (*LEARNED, "mpt")
    yarn = form == "yarn"
    share = config.get("partial_rotary_factor", config.get("rotary_pct", scaling.get("partial_rotary_factor")))
    if "rotary_dim" in config:
        share = config["rotary_dim"] / config["head_dim"]
    share = share or (scaling.get("full_attention") or {}).get("partial_rotary_factor") or SHARES.get(kind, 1.0)
    return {
        "position_embedding_type": (
            ("yarn" if yarn and not latent else "rope") if rotary else {"mpt": "none"}.get(kind, "learned_absolute")
        ),
        "rotary_percent": share if rotary and share != 1 else None,
        "use_rope_scaling": True if form == "llama3" else None,
        "rope_scaling_factor": scaling["factor"] if form == "llama3" else None,
        "rotary_seq_len_interpolation_factor": scaling["factor"] if form == "linear" else None,
        "rotary_scaling_factor": scaling["factor"] if yarn else None,
        "mscale": scaling.get("mscale") if yarn else None,
        "mscale_all_dim": scaling.get("mscale_all_dim") if yarn else None,
        "no_rope_freq": SKIPPED.get(kind),
    }


@dataclass(frozen=True)
class Size:
    """A configuration of Megatron-core's on one rank, and what its model has beside."""

    config: TransformerConfig
    vocabulary: int
    positions: int
    kind: str
    tied: bool


@dataclass(frozen=True)
class Parts:
    """Number of parameters of each layer's kind, how often it occurs, and of embeddings, final norm and head."""

    layers: tuple[tuple[int, int], ...]
    others: int

    @property
    def total(self) -> int:
        return self.others + sum(count * size for count, size in self.layers)


def sizes(cases: dict[str, Size]) -> Iterator[tuple[str, Parts]]:
    """Parameters of Megatron's own modules, built without memory: one layer of each kind."""
    with (
        ranks_of(1),
        patch("torch.cuda.current_device", lambda: torch.device("meta")),
        # It asks for a class of Transformer Engine, which is not here.
        patch.object(multi_latent_attention, "HAVE_TE", False),
    ):
        parallel_state.initialize_model_parallel(create_gloo_process_groups=False)
        for name, case in cases.items():
            with torch.device("meta"):
                yield name, counted(case)
        parallel_state.destroy_model_parallel()


class Core(torch.nn.Module):
    """Attention between projections, which has no parameters; the one without Transformer Engine refuses latents."""

    def __init__(self, **_: Any) -> None:
        super().__init__()


def counted(case: Size) -> Parts:
    config = case.config
    specs = get_gpt_decoder_layer_specs(
        config, use_transformer_engine=False, normalization=config.normalization, qk_l2_norm=config.qk_l2_norm
    )
    kinds = Counter(id(spec) for spec in specs)
    distinct = [next(spec for spec in specs if id(spec) == kind) for kind in kinds]
    config.num_layers = len(distinct)
    for spec in distinct if config.multi_latent_attention else ():
        spec.submodules.self_attention.submodules.core_attention = Core
    model = GPTModel(
        config,
        TransformerBlockSubmodules(layer_specs=distinct, layer_norm=WrappedTorchNorm),
        vocab_size=case.vocabulary,
        max_sequence_length=case.positions,
        position_embedding_type=case.kind,
        share_embeddings_and_output_weights=case.tied,
    )
    layers = [numbers(layer) for layer in model.decoder.layers]
    return Parts(tuple(zip(kinds.values(), layers, strict=True)), numbers(model) - sum(layers))


def numbers(module: torch.nn.Module) -> int:
    """Parameters, and the biases that select experts, which are buffers."""
    biases = sum(prod(each.shape) for name, each in module.named_buffers() if name.endswith("expert_bias"))
    return sum(prod(each.shape) for each in module.parameters()) + biases
