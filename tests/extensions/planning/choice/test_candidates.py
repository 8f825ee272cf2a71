"""The enumeration of valid configurations."""

from collections import Counter
from dataclasses import replace
from itertools import islice, product

from pipeplan.extensions.planning import software
from pipeplan.extensions.planning.choice.candidates import (
    LEAST_TOKENS,
    LEFT_OUT,
    MOST_TOKENS,
    configurations,
    covers,
    divisors,
    frames,
    left_out,
)
from pipeplan.extensions.planning.choice.legality import UNUSUAL
from pipeplan.extensions.planning.choice.request import software_of_plans
from pipeplan.trainers import TRAINERS
from tests.extensions.planning.requests import as_draft, broken_rule, request


def test_everything_enumerated_is_legal_and_there_once():
    for requested in (request(), request("deepseek-v2-lite", "h100-sxm:8x2", global_batch=32)):
        result = list(islice(configurations(requested), 5000))
        assert len(result) > 100
        assert len(set(result)) == len(result)
        assert [broken_rule(requested, as_draft(item)) for item in result] == [None] * len(result)


def test_degrees_are_those_that_a_product_of_all_finds():
    requested = request("mixtral-8x7b", "h100-sxm:8x2", global_batch=32, sequence=8192)
    names = ("tensor", "context", "pipeline", "data", "expert", "expert_tensor", "microbatch_size")
    result = {tuple(frame[name] for name in names) for frame in frames(requested) if frame["zero"] == 1}
    expected = set()
    for t, c, p, d, e, etp in product(divisors(16), divisors(16), divisors(16), divisors(16), divisors(8), divisors(8)):
        draft = {
            "software": "megatron-core",
            "precision": "bf16",
            "sequence_parallel": t > 1,
            "zero": 1,
            "replicate": 1,
            **dict(zip(names, (t, c, p, d, e, etp), strict=False)),
        }
        tried_context = c == 1 or requested.sequence // c >= LEAST_TOKENS
        if broken_rule(requested, draft) is None and etp in (1, t) and tried_context:
            most = max(1, MOST_TOKENS // requested.sequence)
            sizes = [b for b in range(1, most + 1) if requested.global_batch % (d * b) == 0]
            expected |= {(t, c, p, d, e, etp, b) for b in sizes}
    assert result == expected


def test_torchtitan_may_shard_within_nodes():
    """Hybrid sharding: a copy of the sharded state on each node; other trainers have one copy."""
    requested = request("llama-3-8b", "h100-sxm:8x4", global_batch=32, fix={"tp": "1,2", "pp": 1, "cp": 1, "zero": 3})
    tried = {(frame["software"], frame["tensor"], frame["replicate"]) for frame in frames(requested)}
    for name, copies in (("torchtitan", {1, 4}), ("megatron", {1})):
        trainer = software_of_plans(TRAINERS[name], requested.cluster.gpu)
        assert {entry[1:] for entry in tried if entry[0] == trainer} == {(t, c) for t in (1, 2) for c in copies}
    fixed = {**requested.fixed, "software": (TRAINERS["bridge"].software,), "replicate": (4,)}
    refusals: Counter[str] = Counter()
    assert not [*frames(replace(requested, fixed=fixed), refusals)]
    assert refusals["copies"]


def test_what_is_left_out_is_said_unless_it_is_fixed_or_there_is_nothing_to_choose():
    moe = request("mixtral-8x7b", "h100-sxm:8x2", global_batch=32)
    allowable = [f"(allow {name})" for name in UNUSUAL]
    with_pairs = {**LEFT_OUT, "schedule": f"{LEFT_OUT['schedule']}, 1f1b-overlap, interleaved-1f1b-overlap"}
    assert left_out(moe)[: len(LEFT_OUT)] == tuple(with_pairs.values())
    assert all(words.endswith(name) for words, name in zip(left_out(moe)[len(LEFT_OUT) :], allowable, strict=True))
    assert left_out(replace(moe, allowed=frozenset(UNUSUAL))) == tuple(with_pairs.values())
    assert LEFT_OUT["expert_tensor"] not in left_out(request())
    fixed = request(fix={"zero": 0, "recompute": "mlp"})
    assert not {LEFT_OUT["zero"], LEFT_OUT["recompute"]} & set(left_out(fixed))
    assert not {LEFT_OUT["chunks"], LEFT_OUT["schedule"]} & set(left_out(request(fix={"pp": 1})))
    assert not any("chunks" in words or "schedules" in words for words in left_out(request(machines="h100-sxm:1x1")))
    assert not any(words.endswith("(allow offload)") for words in left_out(request(fix={"offload": 0})))


def test_a_software_that_another_covers_is_not_searched_by_itself():
    """Megatron-Bridge overlaps what Megatron-LM overlaps, and reduces gradients in 16 bits."""
    bridge, megatron = (software(TRAINERS[name].software) for name in ("bridge", "megatron"))
    assert covers(bridge, megatron)
    assert not covers(megatron, bridge)
    requested = request("mixtral-8x7b", "h100-sxm:8x2", global_batch=32)
    searched = {frame["software"] for frame in frames(requested)}
    # In plans both reduce in 32 bits, and each covers the other: the first one is searched.
    assert searched == {megatron.name, TRAINERS["torchtitan"].software}
    assert {frame["software"] for frame in frames(replace(requested, fixed={"software": (megatron.name,)}))} == {
        megatron.name
    }
    for configuration in islice(
        configurations(replace(requested, fixed={"micro": (1,), "software": (megatron.name,)})), 0, 400, 57
    ):
        slow = requested.estimate(configuration)
        fast = requested.estimate(replace(configuration, software=bridge.name))
        assert fast.step_time <= slow.step_time
        assert fast.peak_bytes <= slow.peak_bytes
