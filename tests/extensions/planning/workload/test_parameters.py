"""Parameters against published exact counts, closed forms of papers, and themselves."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import (
    Execution,
    ModelShape,
    attention_parts,
    from_dict,
    layer_parts,
    layers_of,
    model,
    padded_vocabulary,
    parameter_counts,
)
from pipeplan.extensions.planning.workload.parameters import form_parts
from pipeplan.foundation.errors import InputError
from tests.extensions.planning.workload.shapes import hybrids, shapes
from tests.planning_data import planning

PUBLISHED: dict[str, int] = json.loads((Path(__file__).parent / "parameter_counts.json").read_text())["presets"]
"""Of the published weights, as the hub counts them or its library's models have them; of other presets, the counts stand
beside their files."""

GPT = ["megatron-1.7b", "megatron-22b", "megatron-145.6b", "megatron-1008b", "zero-bubble-28.3b"]


def test_counts_are_those_of_the_published_weights():
    """A hub's file of GLM-4.5 with its MTP layer has embedding and head once more."""
    for name, count in PUBLISHED.items():
        assert parameter_counts(model(name)).total == count, name
    counts = parameter_counts(model("glm-4.5"))
    assert counts.total_with_mtp + counts.embedding + counts.head == 358_337_791_296
    rows = [row["model"] for row in planning("published_runs.json")["rows"] if "parameters" in row["model"]]
    assert len(rows) > 300
    assert [row for row in rows if parameter_counts(from_dict(row)).total != row["parameters"]] == []


def test_all_counts_of_the_shared_presets():
    for name, published in planning("presets.json")["models"].items():
        counts = parameter_counts(model(name))
        expected = published.get("parameters", {})
        result = {
            "total_without_mtp": counts.total,
            "active_with_both_embeddings": counts.active,
            "mtp_layer_extra": counts.mtp_layer,
            "per_dense_layer": counts.dense_layer,
            "per_moe_layer": counts.moe_layer,
            "per_moe_layer_active": counts.moe_layer_active,
            "attention_per_layer": counts.attention,
            "embedding": counts.embedding,
            "output_head": counts.head,
        }
        assert {key: result[key] for key in expected} == expected, name


def test_a_layer_of_deepseek_v3_part_by_part():
    """The shapes of arXiv 2412.19437 section 4.2, one after the other."""
    parts = {part.name: (part.count, part.split) for part in layer_parts(model("deepseek-v3"), experts=True)}
    assert parts == {
        "query down": (7168 * 1536, "replicated"),
        "query up": (1536 * 128 * 192, "tensor"),
        "key and value down": (7168 * 576, "replicated"),
        "key and value up": (512 * 128 * 256, "tensor"),
        "attention output": (128 * 128 * 7168, "tensor"),
        "compression norms": (1536 + 512, "replicated"),
        "routed experts": (256 * 3 * 7168 * 2048, "expert"),
        "router": (256 * 7168, "replicated"),
        "router bias": (256, "replicated"),
        "shared experts": (3 * 7168 * 2048, "tensor"),
        "norms": (2 * 7168, "replicated"),
    }


def test_a_layer_that_a_model_does_not_have():
    with pytest.raises(InputError, match="no layers with experts"):
        layer_parts(model("llama3-8b"), experts=True)
    with pytest.raises(InputError, match="no dense layers"):
        layer_parts(model("mixtral-8x7b"), experts=False)


@settings(max_examples=40)
@given(shapes() | hybrids())
def test_a_model_is_the_sum_of_its_layers(drawn: ModelShape):
    counts = parameter_counts(drawn)
    layers = [sum(part.count for part in form_parts(drawn, form)) for form in drawn.forms]
    assert counts.total == sum(layers) + counts.embedding + counts.positions + counts.final_norm + counts.head
    assert counts.active <= counts.total <= counts.total_with_mtp
    assert counts.attention == sum(part.count for part in attention_parts(drawn))


def of_one_rank(shape: ModelShape) -> int:
    layers = layers_of(shape, Execution())
    return sum(layer.count * (layer.parameters.dense + layer.parameters.expert) for layer in layers)


@settings(max_examples=40)
@given(shapes() | hybrids())
def test_what_one_rank_holds_is_the_model_with_a_padded_vocabulary(drawn: ModelShape):
    padded = replace(drawn, vocabulary=padded_vocabulary(drawn.vocabulary))
    assert of_one_rank(drawn) == parameter_counts(padded).total_with_mtp


@settings(max_examples=40)
@given(shapes())
def test_experts_that_all_meet_a_token_are_all_active(drawn: ModelShape):
    assume(drawn.experts is not None)
    assert drawn.experts is not None
    everyone = replace(drawn, experts=replace(drawn.experts, top_k=drawn.experts.count))
    counts = parameter_counts(everyone)
    assert counts.active == counts.total == parameter_counts(drawn).total


@given(st.integers(1, 300_000), st.sampled_from([1, 2, 4, 8]), st.sampled_from([64, 128]))
def test_padding_is_the_least_that_all_ranks_share(words: int, tensor: int, multiple: int):
    padded = padded_vocabulary(words, tensor, multiple=multiple)
    assert padded % (multiple * tensor) == 0
    assert 0 <= padded - words < multiple * tensor
    assert (padded_vocabulary(50257), padded_vocabulary(50257, 8)) == (50304, 51200), "GPT-2 in Megatron-LM"
