"""FLOPs of a token against printed ones, closed forms of papers, and themselves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import (
    AttentionCore,
    AttentionKernel,
    Execution,
    Gemm,
    GroupedGemm,
    MemoryPass,
    ModelShape,
    from_dict,
    layers_of,
    model,
    model_names,
    padded_vocabulary,
    parameter_counts,
    token_flops,
)
from tests.extensions.planning.workload.shapes import shapes
from tests.planning_data import planning

PRINTED = [
    ("llama3-8b", 8192, 51.5, 51.5),
    ("llama3-70b", 8192, 439, 453),
    ("llama3.1-405b", 8192, 2481, 2556),
    ("qwen3-30b-a3b", 4096, 22.8, 23.1),
    ("qwen3-235b-a22b", 4096, 147.7, 148.3),
    ("deepseek-v3", 4096, 259.6, 260.6),
    ("kimi-k2", 4096, 204.2, 204.6),
    ("gpt-oss-120b", 4096, 32.6, 32.6),
]
"""Least and most GFLOP a token that Megatron-Bridge's pages print: TFLOP/s over tokens/s, both rounded."""

CLOSED = ["megatron-1.7b", "megatron-22b", "megatron-175b", "megatron-530b", "megatron-1t", "gpt3-175b"]


def test_printed_counts():
    """Also of DeepSeek-V3 without its MTP layer on the page of release 25.11, and of pages that count all keys."""
    for name, sequence, least, most in PRINTED:
        assert 0.995 * least <= token_flops(model(name), sequence).training / 1e9 <= 1.005 * most, name
    without = token_flops(model("deepseek-v3"), 4096, mtp=False).training
    assert 0.995 * 249.1e9 <= without <= 1.005 * 249.7e9
    assert without == token_flops(replace(model("deepseek-v3"), mtp_layers=0), 4096).training
    for name, sequence, printed in (("llama3-70b", 8192, 481.4), ("nemotron4-15b", 4096, 94.0)):
        assert token_flops(model(name), sequence, causal=False).training / 1e9 == pytest.approx(printed, rel=1e-3), name


def test_closed_forms_of_gpt():
    """72 L h^2 (1 + s / (6 h) + V / (12 h L)), arXiv 2205.05198 equation 7 over the tokens; all keys are counted.

    With layers computed again, 96 L h^2 (1 + s / (6 h) + V / (16 L h)), arXiv 2104.04473 equation 3: a fourth forward of all
    but the head.
    """
    for name in CLOSED:
        shape = model(name)
        sequence = shape.trained_sequence or 0
        layers, hidden, words = shape.layers, shape.hidden, shape.vocabulary
        flops = token_flops(shape, sequence, causal=False)
        closed = 72 * layers * hidden**2 * (1 + sequence / (6 * hidden) + words / (12 * hidden * layers))
        assert flops.training == pytest.approx(closed, rel=1e-12), name
        again = 96 * layers * hidden**2 * (1 + sequence / (6 * hidden) + words / (16 * layers * hidden))
        assert flops.training + flops.forward - flops.head == pytest.approx(again, rel=1e-12), name


def test_each_row_of_megatron_bridge():
    """Within 0.5 %, or within what the row's own rounding leaves: some pages round tokens/s to multiples of 128 or more."""
    rows = [
        row for row in planning("published_runs.json")["rows"] if row["source"]["title"].startswith("Megatron Bridge")
    ]
    rows = [row for row in rows if "flops_per_token" in row["measured"]]
    rounded = []
    for row in rows:
        shape = from_dict(row["model"])
        result = token_flops(shape, shape.trained_sequence or 0).training
        error = abs(result / row["measured"]["flops_per_token"] - 1)
        if error > 0.005:
            tokens = int(row["measured"]["tokens_per_s_per_gpu"])
            step = tokens & -tokens
            assert step >= 128, row["id"]
            assert error < step / 2 / tokens, row["id"]
            rounded.append(row["id"])
    assert len(rows) == 100
    assert len(rounded) == 5


@given(shapes(), st.integers(1, 512))
def test_matrices_cost_two_flops_a_parameter(drawn: ModelShape, sequence: int):
    """All that is no core is 2 FLOPs for each active parameter of a matrix; biases and norms are what is left."""
    plain = replace(
        drawn, mtp_layers=0, bias_qkv=False, bias_out=False, bias_all=False, qk_norm=False, qk_norm_whole=False
    )
    flops = token_flops(plain, sequence)
    counts = parameter_counts(plain)
    vectors = counts.final_norm + counts.positions
    matrices = counts.active - vectors - counts.embedding + (counts.embedding if plain.tied_embeddings else 0)
    counted = (flops.forward - flops.core + flops.router) / 2
    assert counted <= matrices
    norms = 4 * 2 * plain.hidden + plain.heads + (0 if plain.experts is None else plain.experts.count)
    compressions = 2 * (64 + 64)
    biases = 0
    if plain.experts is not None and plain.experts.expert_bias:
        reads = max(plain.hidden, plain.experts.latent_width or 0)
        biases = plain.experts.top_k * (2 * plain.experts.width + reads)
    assert matrices - counted <= plain.layers * (norms + compressions + biases)


@given(shapes(), st.integers(1, 512))
def test_masked_keys_cost_no_more_than_all(drawn: ModelShape, sequence: int):
    causal, full = token_flops(drawn, sequence), token_flops(drawn, sequence, causal=False)
    assert causal.core <= full.core
    assert (causal.attention, causal.ffn, causal.head) == (full.attention, full.ffn, full.head)
    assert causal.training == 3 * causal.forward


def forward_of_layers(shape: ModelShape, sequence: int, attention: AttentionKernel) -> float:
    layers = layers_of(shape, Execution(sequence=sequence, attention=attention))
    products = (Gemm, GroupedGemm, AttentionCore, MemoryPass)
    return sum(layer.count * work.flops for layer in layers for work in layer.forward if isinstance(work, products))


def forward_of_tokens(shape: ModelShape, sequence: int, *, causal: bool) -> float:
    padded = replace(shape, vocabulary=padded_vocabulary(shape.vocabulary))
    flops = token_flops(padded, sequence, causal=causal)
    return sequence * (flops.forward + flops.router)


def test_a_sequences_products_layer_by_layer():
    """The work that layers ask of one rank is the same number: with a padded vocabulary and routers.

    Kernels compute recurrences in chunks, which takes about as many operations as token by token, and sparse attention over
    compressed keys, which takes more.
    """
    for name in model_names():
        shape = model(name)
        tokens, layers = forward_of_tokens(shape, 4096, causal=True), forward_of_layers(shape, 4096, "flash")
        if shape.sparse is not None:
            assert tokens < layers, name
        else:
            assert layers == pytest.approx(tokens, rel=0.01 if shape.mixers else 1e-12), name
    all_keys = forward_of_tokens(model("llama3-8b"), 4096, causal=False)
    assert forward_of_layers(model("llama3-8b"), 4096, "unfused") == pytest.approx(all_keys, rel=1e-12)


@given(shapes(), st.integers(1, 512))
def test_any_shapes_products_layer_by_layer(drawn: ModelShape, sequence: int):
    assert forward_of_layers(drawn, sequence, "flash") == pytest.approx(
        forward_of_tokens(drawn, sequence, causal=True), rel=1e-12
    )
