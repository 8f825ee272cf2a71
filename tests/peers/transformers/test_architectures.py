"""Parameters of every decoder of the library: those that are read are right, and the others are refused in a sentence.

A model is built from its configuration on the meta device, with the library's default sizes and with smaller ones.
"""

import json
import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING,
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
)

from pipeplan.extensions.planning.workload import ModelShape, architecture_names, parameter_counts, read_config
from pipeplan.foundation.errors import InputError

SELECTION = ("e_score_correction_bias", "expert_bias")
"""Buffers that select experts, which count as parameters here."""

HALVED = ("moe_intermediate_size", "num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")
"""Sizes that the smaller models have half of."""

COMPLETED: dict[str, dict[str, Any]] = {
    "deepseek_v2": {"num_experts_per_tok": 6, "topk_method": "greedy"},
    "dots1": {"n_routed_experts": 128, "num_experts_per_tok": 6},
    "glm4_moe": {"head_dim": 128},
    "hunyuan_v1_dense": {"head_dim": 128},
    "hunyuan_v1_moe": {"head_dim": 128, "num_experts": 16, "moe_topk": 2},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 16},
    "ministral": {"head_dim": 128},
    "nemotron": {"num_key_value_heads": 8},
}
"""Fields without which the library builds no model, or which all published files state."""


@cache
def text_configs() -> dict[str, Any]:
    """Configurations with the library's sizes, by type: of decoders, and of the language models in multimodal models."""
    found: dict[str, Any] = {}
    for kind in (*MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES):
        try:
            whole = AutoConfig.for_model(kind, **COMPLETED.get(kind, {}))
            config = whole.get_text_config(decoder=True)
        except Exception:  # two language models in one, or no valid default
            continue
        if not config.is_encoder_decoder and not config.sub_configs:
            found[config.model_type] = config if config is whole else found.get(config.model_type, config)
    return found


def document(config: Any) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(config.to_json_string(use_diff=False))
    return fields


def sizes(kind: str) -> Iterator[Any]:
    """Eight layers with the default widths, and four with half the experts of half the width, and an odd FFN.

    The library refuses some of these; an architecture without any has its default sizes.
    """
    default = document(text_configs()[kind])
    halves = {field: default[field] // 2 for field in HALVED if isinstance(default.get(field), int)}
    width = default.get("intermediate_size")
    ffn = {"intermediate_size": width + 64} if isinstance(width, int) else {}
    completed, valid = COMPLETED.get(kind, {}), 0
    for changes in ({"num_hidden_layers": 8}, {"num_hidden_layers": 4, **halves, **ffn}):
        try:
            config = AutoConfig.for_model(kind, **completed | changes)
        except Exception:  # the library's validation of single architectures
            continue
        valid += 1
        yield config
    if not valid:
        yield text_configs()[kind]


def built(config: Any) -> int | None:
    """Parameters of the library's model; None if it does not build it."""
    head = 0
    with torch.device("meta"):
        try:
            if type(config) in MODEL_FOR_CAUSAL_LM_MAPPING:
                model = AutoModelForCausalLM.from_config(config)
            else:  # the language model of a multimodal model
                model = AutoModel.from_config(config)
                head = 0 if getattr(config, "tie_word_embeddings", False) else config.vocab_size * config.hidden_size
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
    biases = sum(math.prod(buffer.shape) for name, buffer in model.named_buffers() if name.endswith(SELECTION))
    return head + biases + sum(math.prod(each.shape) for each in model.parameters())


def read(fields: dict[str, Any], *, approximate: bool = False) -> ModelShape | None:
    """Our shape; None for a refusal, which is one sentence."""
    try:
        return read_config(fields, approximate=approximate)
    except InputError as error:
        message = str(error)
    assert 10 < len(message) < 700
    assert "\n" not in message
    return None


def test_every_decoder_has_the_parameters_of_the_librarys_model_or_is_refused(ran: Callable[[str], None]) -> None:
    """Within 0.1 % if it is read, within 5 % if it is approximated."""
    wrong: dict[tuple[str, object], str] = {}
    exact: set[str] = set()
    near: set[str] = set()
    for kind in text_configs():
        for config in sizes(kind):
            shape, limit = read(document(config)), 0.001
            if shape is None:
                shape, limit = read(document(config), approximate=True), 0.05
            theirs = built(config) if shape is not None else None
            if shape is None or theirs is None:
                continue
            (exact if limit == 0.001 else near).add(kind)
            error = parameter_counts(shape).total / theirs - 1
            if abs(error) > limit:
                wrong[kind, config.num_hidden_layers] = f"{100 * error:+.2f} %"
    assert not wrong, wrong
    assert len(exact) >= 110
    ran(f"{len(text_configs())} decoders: {len(exact)} are read, {len(near)} approximated, the others refused")


@pytest.mark.parametrize("read_kinds", [True, False])
def test_a_size_that_a_file_leaves_out_is_the_librarys_default_or_refused(read_kinds: bool) -> None:
    """Of decoders that are read within 0.1 %, of unknown ones, approximated, within 5 %; the library's model is the same."""
    wrong, names = {}, architecture_names()
    kinds = [kind for kind in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES if kind in text_configs()]
    for kind in (kind for kind in kinds if (kind in names) == read_kinds):
        fields, limit = document(text_configs()[kind]), 0.001 if read_kinds else 0.05
        whole = read(fields, approximate=True)
        if whole is None:
            continue
        count = parameter_counts(whole).total
        for left_out in fields.keys() - {"model_type", *COMPLETED.get(kind, {})}:
            shape = read({name: value for name, value in fields.items() if name != left_out}, approximate=True)
            if shape is not None and abs(parameter_counts(shape).total / count - 1) > limit:
                wrong[kind, left_out] = f"{100 * (parameter_counts(shape).total / count - 1):+.2f} %"
    assert not wrong, wrong
