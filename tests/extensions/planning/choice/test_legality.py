"""Which configurations are legal, and why one is not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.choice.legality import RULES, UNUSUAL, takes_shape
from pipeplan.extensions.planning.choice.nothing_fits import refusal
from pipeplan.foundation.errors import PipeplanError
from pipeplan.strategies import STRATEGIES, strategy
from tests.extensions.planning.requests import as_draft, broken_rule, request

DENSE = request("llama3-70b", "h100-sxm:8x8", global_batch=128, sequence=8192)
LEGAL = Configuration(
    sequence=8192,
    global_batch=128,
    tensor=4,
    pipeline=4,
    context=2,
    data=2,
    chunks=5,
    schedule="interleaved-1f1b",
    sequence_parallel=True,
)
MIXTURE = request("deepseek-v2-lite", "h100-sxm:8x8", global_batch=128)
LEGAL_MIXTURE = Configuration(sequence=4096, global_batch=128, pipeline=2, data=32, expert=8)
GROUPED = request("qwen3-235b-a22b", "h100-sxm:8x8", global_batch=128)
TIED = request("gemma3-27b", "h100-sxm:8x8", global_batch=128)
PAIRED = request("deepseek-v2-lite", "h100-sxm:8x8", global_batch=128, fix={"trainer": "megatron"})
RECOMPUTED = request(
    "deepseek-v2-lite", "h100-sxm:8x8", global_batch=128, fix={"trainer": "megatron", "recompute": "full"}
)
BIASED = request("gpt-oss-20b", "h100-sxm:8x8", global_batch=128)


def test_published_configurations_are_legal():
    assert broken_rule(DENSE, as_draft(LEGAL)) is None
    assert broken_rule(MIXTURE, as_draft(LEGAL_MIXTURE)) is None
    pairs = replace(LEGAL_MIXTURE, chunks=2, schedule="interleaved-1f1b-overlap")
    alone = replace(LEGAL_MIXTURE, pipeline=1, data=64, schedule="1f1b-overlap")
    assert [broken_rule(PAIRED, as_draft(chosen)) for chosen in (pairs, alone)] == [None, None]


BROKEN = [
    ("GPUs", DENSE, {"data": 4}),
    ("heads", DENSE, {"tensor": 3, "data": 1}),
    ("context", DENSE, {"context": 8192}),
    ("stages", DENSE, {"pipeline": 96}),
    ("batch", DENSE, {"microbatch_size": 5}),
    ("dense", DENSE, {"expert": 2}),
    ("chunks", DENSE, {"chunks": 30}),
    ("layout", DENSE, {"layers": (4,) * 19 + (5,)}),
    ("one rank", DENSE, {"pipeline": 1, "data": 8}),
    ("interleaving", DENSE, {"chunks": 1}),
    ("whole groups", DENSE, {"microbatch_size": 32}),
    ("sharding and pipelines", DENSE, {"zero": 3}),
    ("modules", DENSE, {"recompute": ("moe_act",)}),
    ("recomputation", DENSE, {"software": "torchtitan", "recompute": ("mlp",)}),
    ("torchtitan's offload", DENSE, {"software": "torchtitan", "offload": 0.5}),
    ("torchtitan's tied embeddings", TIED, {"software": "torchtitan"}),
    ("schedule's shape", DENSE, {"schedule": "zbv", "chunks": 3}),
    ("made for a limit", DENSE, {"in_flight": 4.0}),
    ("groups", DENSE, {"group_size": 4, "schedule": "zb-h1", "chunks": 1}),
    ("format", DENSE, {"precision": "nvfp4"}),
    ("format", DENSE, {"precision": "mxfp8"}),
    ("experts", MIXTURE, {"expert": 5}),
    ("expert width", MIXTURE, {"expert_tensor": 3}),
    ("experts' biases", BIASED, {"expert_tensor": 2}),
    ("expert ranks", MIXTURE, {"expert": 64}),
    ("torchtitan's experts", MIXTURE, {"software": "torchtitan", "expert_tensor": 2}),
    ("torchtitan's experts", MIXTURE, {"software": "torchtitan", "expert": 1, "tensor": 2, "data": 16}),
    ("torchtitan's KV heads", GROUPED, {"software": "torchtitan", "tensor": 8, "data": 4}),
    ("torchtitan's microbatches", MIXTURE, {"software": "torchtitan", "pipeline": 8, "data": 8, "microbatch_size": 4}),
    ("fp8 sizes", MIXTURE, {"tensor": 8, "data": 4, "sequence_parallel": True, "precision": "fp8"}),
    ("experts' sequence", MIXTURE, {"tensor": 2, "data": 16}),
    ("pairs", MIXTURE, {"pipeline": 1, "chunks": 1, "schedule": "1f1b-overlap", "expert": 1, "data": 32}),
    ("pairs", PAIRED, {"chunks": 1, "schedule": "1f1b-overlap"}),
    ("pairs", PAIRED, {"expert": 1, "chunks": 2, "schedule": "interleaved-1f1b-overlap"}),
    ("pairs", RECOMPUTED, {"chunks": 2, "schedule": "interleaved-1f1b-overlap"}),
]


@pytest.mark.parametrize(("name", "requested", "changes"), BROKEN, ids=[row[0] for row in BROKEN])
def test_each_rule_refuses_what_breaks_it(name, requested, changes):
    rule = next(rule for rule in RULES if rule.name == name)
    draft = as_draft(replace(LEGAL if requested is DENSE else LEGAL_MIXTURE, **changes))
    assert not rule.holds(requested, draft)
    assert rule.sentence(requested)
    assert broken_rule(requested, draft) is not None


@given(
    st.sampled_from(sorted(set(STRATEGIES) - {"seq1f1b"})),
    st.integers(2, 5),
    st.integers(1, 12),
    st.integers(1, 4),
    st.none() | st.integers(1, 12),
)
def test_a_shape_is_taken_exactly_where_its_strategy_takes_it(name, ranks, microbatches, chunks, group):
    result = strategy(name)
    try:
        result(result.shape(ranks, microbatches, chunks, group_size=group))
        takes = True
    except PipeplanError:
        takes = False
    assert takes_shape(name, ranks, microbatches, chunks, group) == takes


@pytest.mark.parametrize(
    ("fix", "words"),
    [
        ({"tp": 3}, ("tp=3", "64 attention heads", "valid values of tp: 1, 2, 4, 8")),
        (
            {"trainer": "megatron", "schedule": "zbv"},
            ("the trainer must support the schedule", "valid values of schedule: 1f1b"),
        ),
        ({"layers": "40,40", "pp": 2}, ("joined by +",)),
    ],
)
def test_what_stands_in_the_way_is_named(fix, words):
    requested = request(
        "llama3-70b", "h100-sxm:8x4", global_batch=32, sequence=8192, fix=fix, allowed=frozenset(UNUSUAL)
    )
    error = refusal(requested)
    assert error is not None
    assert error.field == "fix"
    assert all(word in str(error) for word in words), str(error)


def test_a_batch_that_does_not_divide_comes_with_the_nearest_that_do():
    error = refusal(request("llama3.2-1b", "h100-sxm:8x4", global_batch=13, fix={"pp": 1, "tp": 1, "cp": 1}))
    assert error is not None
    assert "must divide the global batch 13; nearest valid batch: 32" in str(error)
    assert error.field == "global_batch"
