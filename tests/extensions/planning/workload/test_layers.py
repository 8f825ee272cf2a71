"""What a layer asks of a rank, against published tables and against the counts of parameters and FLOPs."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.extensions.planning.workload import (
    AttentionCore,
    Collective,
    Execution,
    Gemm,
    GroupedGemm,
    LayerWork,
    MemoryPass,
    ModelShape,
    Work,
    layers_of,
    model,
)
from pipeplan.foundation.errors import ShapeError
from tests.extensions.planning.workload.shapes import hybrids, shapes

H, A, S, B = 1024, 16, 2048, 2
GPT = ModelShape(
    name="gpt",
    layers=4,
    hidden=H,
    heads=A,
    vocabulary=51200,
    ffn=4 * H,
    gated=False,
    norm="layer",
    bias_all=True,
    learned_positions=S,
)
"""Of the kind of arXiv 2205.05198."""

AS_H = A * S / H


def of_2022(**chosen: object) -> Execution:
    settings = {"microbatch_size": B, "sequence": S, "attention": "unfused", "dropout": True, "fused_loss": False}
    return Execution(**{**settings, **chosen})  # type: ignore[arg-type]


def layer(shape: ModelShape, execution: Execution, kind: str = "dense") -> LayerWork:
    return next(item for item in layers_of(shape, execution) if item.kind == kind)


def flops(works: tuple[Work, ...]) -> float:
    return sum(item.flops for item in works if isinstance(item, (Gemm, GroupedGemm, AttentionCore)))


def sent(works: tuple[Work, ...], group: str) -> list[tuple[str, float]]:
    return [(item.operation, item.bytes) for item in works if isinstance(item, Collective) and item.group == group]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({}, 34 + 5 * AS_H),
        ({"tensor": 8}, 10 + 24 / 8 + 5 * AS_H / 8),
        ({"tensor": 8, "sequence_parallel": True}, (34 + 5 * AS_H) / 8),
        ({"tensor": 8, "recompute": frozenset({"core_attn"})}, 10 + 24 / 8),
        ({"tensor": 8, "sequence_parallel": True, "recompute": frozenset({"core_attn"})}, 34 / 8),
        ({"recompute": frozenset({"full"})}, 2),
        ({"tensor": 8, "sequence_parallel": True, "recompute": frozenset({"full"})}, 2 / 8),
    ],
)
def test_kept_bytes_of_table_2(chosen: dict[str, object], expected: float):
    """arXiv 2205.05198 Table 2, in units of s b h bytes."""
    assert layer(GPT, of_2022(**chosen)).kept_bytes == pytest.approx(expected * S * B * H, rel=1e-12)


def test_what_a_split_backward_holds_and_latent_attention_keeps():
    """Between I and W 32 s b h: inputs and output gradients of all products (arXiv 2401.10241 section 2).

    DeepSeek-V3: queries, keys and values of 128 heads are 2 x 128 x (192 + 192 + 128) bytes a token.
    """
    assert layer(GPT, of_2022()).bytes_until_weight == pytest.approx(32 * S * B * H)
    kept = {tensor.name: tensor.bytes / S for tensor in layer(model("deepseek-v3"), Execution(sequence=S)).kept}
    assert kept["queries"] + kept["keys"] + kept["values"] == 131_072
    assert kept["attention output"] == 2 * 128 * 128
    assert kept["normed query compression"] + kept["normed key and value compression"] == 2 * (1536 + 512)


def test_a_modern_decoder_keeps():
    """8h + 4q + 4kd + 6f + 4a bytes a token with a fused core and no masks; all of it over t with sequence parallelism."""
    shape = model("llama3-70b")
    h, q, kd, f, a = 8192, 8192, 1024, 28672, 64
    expected = 8 * h + 4 * q + 4 * kd + 6 * f + 4 * a
    for t in (1, 8):
        result = layer(shape, Execution(sequence=S, tensor=t, sequence_parallel=t > 1))
        assert result.kept_bytes == pytest.approx(expected * S / t)


@pytest.mark.parametrize("e", [1, 8])
def test_expert_parallelism_does_not_lower_what_experts_keep(e: int):
    result = layer(model("qwen3-30b-a3b"), Execution(sequence=S, expert=e), "moe")
    kept = {item.name: item.bytes / S for item in result.kept}
    k, h, f = 8, 2048, 768
    assert kept["experts' input"] == 2 * k * h
    assert kept["experts' activation input"] == 4 * k * f
    assert kept["experts' activation output"] == 2 * k * f
    assert kept["router logits"] == 4 * 128


@settings(max_examples=40)
@given(
    shapes() | hybrids(),
    st.booleans(),
    st.sampled_from(["bf16", "fp8", "mxfp8", "nvfp4"]),
    st.sampled_from(["flash", "unfused"]),
)
def test_every_layer_of_any_shape(shape: ModelShape, dropout: bool, precision: str, attention: str):
    execution = Execution(
        sequence=32,
        dropout=dropout,
        precision=precision,  # type: ignore[arg-type]
        attention=attention,  # type: ignore[arg-type]
    )
    for result in layers_of(shape, execution):
        names = [item.name for item in result.kept]
        assert len(set(names)) == len(names), "a recompute choice names tensors"
        assert all(item.bytes >= 0 and item.gradient_bytes >= 0 for item in result.kept)
        for module in result.recomputable.values():
            assert module.drops <= set(names)
        works = (*result.forward, *result.backward_input, *result.backward_weight)
        assert all(item.bytes > 0 for item in works if isinstance(item, (MemoryPass, Collective)))
        assert all(item.flops > 0 for item in works if not isinstance(item, (MemoryPass, Collective)))


def cores(works: tuple[Work, ...]) -> float:
    return sum(work.flops for work in works if isinstance(work, AttentionCore))


@pytest.mark.parametrize("name", ["llama3-8b", "deepseek-v3", "gpt3-175b"])
def test_both_halves_of_the_backward_and_tensor_ranks(name: str):
    """I and W take F's products each; the fused core takes 5 products in I for 2 in F, and none in W; t ranks share all."""
    for whole in layers_of(model(name), Execution(sequence=4096)):
        products = flops(whole.forward) - cores(whole.forward)
        assert flops(whole.backward_weight) == pytest.approx(products)
        assert flops(whole.backward_input) - cores(whole.backward_input) == pytest.approx(products)
    one, two = (layer(model(name), Execution(tensor=t, sequence_parallel=t > 1)) for t in (1, 2))
    if model(name).latent is None:
        assert cores(one.backward_input) == 2.5 * cores(one.forward)
        assert flops(one.backward_weight) == pytest.approx(2 * flops(two.backward_weight))
    assert cores(one.forward) == pytest.approx(2 * cores(two.forward))


def test_tensor_collectives():
    """arXiv 2205.05198 section 4.2.2: 2 all-reduces in F and in I; with sequence parallelism 2 gathers and 2 scatters in
    each, and 2 gathers in W."""
    whole = 2.0 * S * 8192
    plain = layer(model("llama3-70b"), Execution(sequence=S, tensor=4))
    assert sent(plain.forward, "tensor") == [("all_reduce", whole)] * 2
    assert sent(plain.backward_input, "tensor") == [("all_reduce", whole)] * 2
    assert sent(plain.backward_weight, "tensor") == []
    split = layer(model("llama3-70b"), Execution(sequence=S, tensor=4, sequence_parallel=True))
    expected = [("all_gather", whole)] * 2 + [("reduce_scatter", whole)] * 2
    assert sorted(sent(split.forward, "tensor")) == sorted(sent(split.backward_input, "tensor")) == expected
    assert sent(split.backward_weight, "tensor") == [("all_gather", whole)] * 2


def test_context_ranks_pass_keys_and_values_or_exchange_heads():
    """A ring passes keys and values c - 1 times, with gradients in I; the exchange's own copy of the output is kept."""
    c, n, q, kd = 4, S / 4, 8192, 1024
    ring, exchange, gather = (
        layer(model("llama3-70b"), Execution(sequence=S, context=c, context_method=method))
        for method in ("ring", "all_to_all", "gather")
    )
    assert sent(ring.forward, "context") == [("ring", 2 * 2 * n * kd)]
    assert sent(ring.backward_input, "context") == [("ring", 2 * 2 * 2 * n * kd)]
    assert [work.steps for work in ring.forward if isinstance(work, Collective)] == [c - 1]
    assert sent(exchange.forward, "context") == [("all_to_all", 2 * n * (2 * q + 2 * kd))]
    assert exchange.kept_bytes - ring.kept_bytes == 2 * n * q
    # PyTorch gathers keys and values of all query heads, also in I, and passes on their 32-bit gradients.
    assert sent(gather.forward, "context") == [("all_gather", c * 2 * n * 2 * q)]
    assert sorted(sent(gather.backward_input, "context")) == [
        ("all_gather", c * 2 * n * 2 * q),
        ("ring", 4 * n * 2 * q),
    ]


def test_a_sparse_core_reads_the_keys_of_each_query_and_adds_up_their_gradients():
    """DeepSeek-V3.2's core has the compressed keys of 512 and 64 numbers for all of its 128 heads."""
    shape = model("deepseek-v3.2")
    result = layer(shape, Execution(sequence=S), "moe")
    (core,) = (work for work in result.forward if work.name == "attention core")
    assert isinstance(core, AttentionCore)
    assert (core.heads, core.kv_heads, core.score_dim, core.value_dim) == (128, 1, 576, 512)
    assert core.gathered == pytest.approx(2 * S * core.keys * 576)
    (added,) = (work for work in result.backward_input if work.name == "gradients of selected keys")
    assert isinstance(added, MemoryPass)
    assert added.bytes == pytest.approx(4 * core.gathered)


def test_dispatch_and_combine():
    """n k h 2 / t bytes each way, whatever e is; the reverse in I."""
    result = layer(model("deepseek-v3"), Execution(sequence=S, expert=64, tensor=2, sequence_parallel=True), "moe")
    exchange = ("all_to_all", 2.0 * S * 8 * 7168 / 2)
    assert sent(result.forward, "expert") == sent(result.backward_input, "expert") == [exchange] * 2
    eight = layer(model("deepseek-v3"), Execution(sequence=S, expert=64, dispatch_bytes=1), "moe")
    assert [size for _, size in sent(eight.forward, "expert")] == [S * 8 * 7168, 2 * S * 8 * 7168]


def test_sliding_windows_follow_their_pattern():
    layers = [item for item in layers_of(model("gpt-oss-120b"), Execution(sequence=4096)) if item.kind == "moe"]
    assert [item.count for item in layers] == [1] * 36
    keys = [next(w.keys for w in item.forward if isinstance(w, AttentionCore)) for item in layers]
    assert keys[:3] == [128 - 128**2 / 8192, 2048, 128 - 128**2 / 8192]


def test_biases_of_experts_are_added_in_32_bits():
    """The clamp reads and writes gate and up twice; the bias takes as long as 44.4 bytes of each number of the output."""
    whole = layer(model("gpt-oss-120b"), Execution(sequence=S), "moe")
    passes = {item.name: item.bytes for item in whole.forward if isinstance(item, MemoryPass)}
    rows, h = 4 * S, 2880
    assert passes["experts' clamp"] == 8 * rows * 2 * h
    assert passes["experts' bias"] == pytest.approx((2 * (4 + 10) + 8 + 1.4 * 6) * rows * h)


@pytest.mark.parametrize(("precision", "passes"), [("bf16", 0), ("fp8", 2), ("mxfp8", 0)])
def test_fp8_experts_get_padded_rows(precision: str, passes: int):
    """Megatron copies their input and their output to pad them; with block scaling, the router pads."""
    run = Execution(precision=precision, expert=8, sequence=4096)  # type: ignore[arg-type]
    moe = layer(model("qwen3-30b-a3b"), run, "moe")
    for works in (moe.forward, moe.backward_input):
        padding = sum(item.bytes for item in works if isinstance(item, MemoryPass) and item.name == "experts' padding")
        assert padding == passes * 4 * 8 * 4096 * 2048


def test_eight_bit_products():
    """Inputs are kept in a byte, and cast: the norm writes its output so, other inputs and all gradients in a pass.

    The core keeps its output in 16 bits beside the byte that the product behind it keeps.
    """
    wide, narrow = (
        layer(model("llama3-8b"), Execution(sequence=S, precision=precision)) for precision in ("bf16", "fp8")
    )
    h, q, f = 4096, 4096, 14336
    assert wide.kept_bytes - narrow.kept_bytes == S * (2 * h + q + f - 2 * q)
    casts = [item.name for item in narrow.forward if item.name.startswith("quantise")]
    assert casts == ["quantise attention output input", "quantise down input"]
    assert sum(item.name.startswith("quantise") for item in narrow.backward_input) == 4
    assert all(item.precision == "fp8" for item in narrow.forward if isinstance(item, Gemm))
    in_16 = layer(model("llama3-8b"), Execution(sequence=S, precision="fp8", small_inputs=False))
    assert in_16.kept_bytes == wide.kept_bytes
    kept = [
        {
            tensor.name: tensor.bytes / S
            for tensor in layer(model("deepseek-v3"), Execution(sequence=S, precision=p), "moe").kept
        }
        for p in ("bf16", "fp8")
    ]
    assert [kept[0][name] for name in ("attention input", "ffn input")] == [2 * 7168] * 2
    assert kept[1]["attention input"] + kept[1]["query compression's input"] == 2 * 7168, "each product keeps its own"
    assert kept[1]["ffn input"] + kept[1]["shared ffn input"] == 3 * 7168


@pytest.mark.parametrize(
    ("name", "chosen", "message"),
    [
        (
            "llama3-8b",
            {"tensor": 3},
            "the tensor degree 3 does not divide 32 heads of llama3-8b; nearest valid degree: 2",
        ),
        (
            "mixtral-8x7b",
            {"expert": 16},
            "the expert degree 16 does not divide 8 experts of mixtral-8x7b; nearest valid degree: 8",
        ),
        ("llama3-8b", {"context": 3}, "the context degree 3 does not divide 4,096 tokens of a sequence"),
    ],
)
def test_degrees_that_do_not_divide(name: str, chosen: dict[str, int], message: str):
    with pytest.raises(ShapeError, match=re.escape(message)) as caught:
        layers_of(model(name), Execution(**chosen))  # type: ignore[arg-type]
    assert caught.value.field == next(iter(chosen))


def test_ends():
    shape, t = model("llama3-8b"), 4
    first, *_, head, loss = layers_of(shape, Execution(sequence=S, tensor=t, sequence_parallel=True))
    assert (first.kind, head.kind, loss.kind) == ("embedding", "head", "loss")
    rows = 128_512 // t  # 128,256 padded to a multiple of 128 t
    assert first.parameters.dense == rows * 4096
    assert head.parameters.dense == rows * 4096 + 4096
    assert flops(head.forward) == 2 * S * 4096 * rows
    assert [operation for operation, _ in sent(loss.forward, "tensor")] == ["all_reduce"] * 3
    assert loss.kept_bytes == 2 * S * rows
    unfused = layers_of(shape, Execution(sequence=S, tensor=t, sequence_parallel=True, fused_loss=False))[-1]
    assert unfused.kept_bytes == 4 * S * rows
    assert unfused.kept_bytes + unfused.transient_bytes == 6 * S * rows


def test_a_layer_for_further_tokens():
    """DeepSeek-V3: a layer, a projection of 2h to h, a head and a loss more; its parameters without head and embedding."""
    shape = model("deepseek-v3")
    mtp = layer(shape, Execution(sequence=S), "mtp")
    moe = layer(shape, Execution(sequence=S), "moe")
    h, rows = 7168, 129_280
    assert flops(mtp.forward) == pytest.approx(flops(moe.forward) + 2 * S * 2 * h * h + 2 * S * h * rows)
    assert mtp.parameters.dense - moe.parameters.dense == 2 * h * h + 3 * h
    assert mtp.embedding_parameters == rows * h
    twice = layer(replace(shape, mtp_passes=2), Execution(sequence=S), "mtp")
    assert (flops(twice.forward), twice.kept_bytes) == (2 * flops(mtp.forward), 2 * mtp.kept_bytes)
    assert twice.parameters == mtp.parameters
