from dataclasses import replace

import pytest

from pipeplan.extensions.planning import Configuration
from pipeplan.extensions.planning.estimates.properties import ASYNC_SHARE, CORES, EXPERT_LAUNCH, ROW_WISE
from pipeplan.extensions.planning.estimates.seconds import GRACE, KINDS, SHARE, WorkMachine, work_seconds
from pipeplan.extensions.planning.estimates.software import SOFTWARE, software
from pipeplan.extensions.planning.estimates.stages import execution_of, layer_sums
from pipeplan.extensions.planning.hardware import cluster, memory_time
from pipeplan.extensions.planning.workload import (
    AttentionCore,
    Collective,
    Gemm,
    GroupedGemm,
    MemoryPass,
    Precision,
    model,
)
from pipeplan.foundation.errors import UnknownNameError
from tests.extensions.planning.configurations import H100, configuration


def seconds(name, works, **changes):
    requested = configuration(software=name, **changes)
    result = work_seconds(WorkMachine(H100, software(name), execution_of(requested)), works, "dense")
    return dict(zip(KINDS, result.tolist(), strict=True))


PRODUCT = Gemm(name="product", rows=8192, columns=8192, inner=8192)
GATHER = Collective(name="gather", operation="all_gather", group="tensor", bytes=2.0**27, beside="gemm")
RING = Collective(name="ring", operation="ring", group="context", bytes=2.0**20, beside="core")
CORE = AttentionCore(
    name="core", queries=8192, keys=4096, heads=16, kv_heads=2, score_dim=128, value_dim=128, backward=False
)


def test_every_trainer_says_where_it_is_from():
    assert len(SOFTWARE) > 15
    for name, entry in SOFTWARE.items():
        assert entry.name == name
        assert entry.source
        assert entry.core in CORES
        assert 0 <= entry.reserved < 1
    with pytest.raises(UnknownNameError, match="did you mean 'nemo'"):
        software("nemoo")


def test_gathering_beside_a_product_is_hidden_but_for_its_first_piece():
    alone = seconds("megatron-core", (PRODUCT, GATHER))["tensor"]
    beside = seconds("nemo", (PRODUCT, GATHER))["tensor"]
    assert beside == pytest.approx(alone / 4 + SHARE * alone * 3 / 4)


def test_a_ring_hides_behind_its_core():
    alone = seconds("megatron-core", (RING,))["context"]
    assert alone > 0
    beside = seconds("megatron-core", (CORE, RING))["context"]
    assert beside == pytest.approx(SHARE * alone)


def test_launches_that_take_longer_than_kernels_are_the_hosts():
    small = (MemoryPass(name="norm", bytes=1e3, kernels=100),)
    assert seconds("megatron-core", small)["host"] > 0
    assert seconds("megatron-bridge", small)["host"] == 0
    large = (MemoryPass(name="norm", bytes=1e11, kernels=100),)
    assert seconds("megatron-core", large)["host"] == 0


def test_libraries_of_attention_differ_since_hopper():
    best = seconds("megatron-core", (CORE,))["attention"]
    assert seconds("torchtitan", (CORE,))["attention"] == pytest.approx(best / CORES["flash-2"].ported)
    triton = CORES["triton"]
    assert seconds("llm-foundry", (CORE,))["attention"] == pytest.approx(best / (triton.forward * triton.ported))
    back = replace(CORE, backward=True)
    ratio = seconds("llm-foundry", (back,))["attention"] / seconds("megatron-core", (back,))["attention"]
    assert ratio == pytest.approx(1 / (triton.backward * triton.ported))


def test_reserved_multiprocessors_slow_products_and_not_passes():
    passes = MemoryPass(name="norm", bytes=1e9)
    plain, reserved = (seconds(name, (PRODUCT, passes)) for name in ("megatron-core", "hai-llm"))
    assert reserved["gemm"] == pytest.approx(plain["gemm"] / (1 - 20 / 132))
    assert reserved["memory"] == plain["memory"]


@pytest.mark.parametrize(("precision", "bytes_each"), [("fp8", ROW_WISE), ("bf16", 0.0)])
def test_rows_are_scaled_in_further_passes_in_eight_bits_only(precision: Precision, bytes_each: float):
    machine = cluster("h100-sxm:8")
    plain, rows = (
        layer_sums(
            model("llama3-8b"),
            machine,
            Configuration(sequence=4096, global_batch=8, data=8, zero=3, precision=precision, software=name),
        ).layers[1]
        for name in ("torchtitan", "torchtitan-row-wise")
    )
    passes = 4 * memory_time(machine.gpu, bytes_each * 4096 * 4096 / 4)
    assert (rows.seconds - plain.seconds)[:, KINDS.index("memory")].sum() == pytest.approx(passes)


def test_pytorch_copies_what_it_gathers_and_hides_a_part_of_it():
    megatron, plain, beside = (
        seconds(name, (PRODUCT, GATHER))["tensor"]
        for name in ("megatron-core", "torchtitan", "torchtitan+hidden-tensor")
    )
    assert plain - megatron == pytest.approx(memory_time(H100.gpu, 2 * GATHER.bytes))
    assert beside == pytest.approx(plain - (1 - SHARE) * ASYNC_SHARE * plain * 3 / 4)


def test_a_token_goes_once_to_a_rank_of_several_of_its_experts():
    exchange = Collective(name="dispatch", operation="all_to_all", group="expert", bytes=2.0**27, copies=8)
    degrees = {"expert": 2, "context": 1, "data": 4}
    by_experts, by_ranks = (
        seconds(name, (exchange,), **degrees)["expert"] for name in ("megatron-core", "megatron-bridge")
    )
    reached = 2 * (1 - 0.5**8)
    assert by_ranks < by_experts
    assert by_ranks / by_experts == pytest.approx(reached / 8, rel=0.15)


def test_experts_that_are_not_fused_are_launched_one_by_one():
    products = [GroupedGemm(name="up", groups=groups, rows=2**16, columns=4096, inner=4096) for groups in (1, 33)]
    one, many = (seconds("megatron-core", (product,))["grouped_gemm"] for product in products)
    alone, fused = (seconds("megatron-bridge", (product,))["grouped_gemm"] for product in products)
    assert many - one == pytest.approx(fused - alone + 32 * EXPERT_LAUNCH)


def test_a_grace_processor_launches_slowly():
    works = (MemoryPass(name="norm", bytes=1e3, kernels=100),)
    x86, grace = (
        sum(work_seconds(WorkMachine(each, software("nemo"), execution_of(configuration())), works, "dense"))
        for each in (cluster("b200-sxm:8"), cluster("gb200:8"))
    )
    assert grace == pytest.approx(GRACE * x86)


def test_a_token_whose_experts_are_neighbours_goes_to_their_ranks():
    """Eight experts beside each other are on two ranks of four, so that each token is sent twice instead of 2.9 times."""
    exchange = Collective(
        name="dispatch", operation="all_to_all", group="expert", bytes=2.0**30, copies=8, experts=4, beside="batch"
    )
    degrees = {"expert": 8, "context": 1, "data": 8, "tensor": 1}
    random, beside = (
        seconds(name, (exchange,), **degrees)["expert"] for name in ("automodel", "automodel+tokens-to-neighbours")
    )
    assert beside / random == pytest.approx(2 / (8 * (1 - (7 / 8) ** 8)), rel=0.02)
