"""Memory at the peak: against printed figures, measured runs, and a plain walk of the schedule."""

from collections import Counter
from dataclasses import replace
from statistics import mean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from benchmarks.published_runs.rows import RunRow, row_from
from pipeplan.extensions.planning import Configuration, GpuMemory, estimate
from pipeplan.extensions.planning.estimates.memory import rank_memory as memory_of_ranks
from pipeplan.extensions.planning.estimates.memory_rules import memory_rules
from pipeplan.extensions.planning.estimates.running import run
from pipeplan.extensions.planning.estimates.stages import stage_costs
from pipeplan.extensions.planning.hardware import cluster
from pipeplan.extensions.planning.workload import (
    Execution,
    Kept,
    LayerWork,
    ModelShape,
    Precision,
    RankParameters,
    layers_of,
    model,
)
from pipeplan.foundation.files import GIBIBYTE
from pipeplan.model import Kind, Schedule
from pipeplan.strategies import strategy
from tests.planning_data import planning


def rank_memory(*arguments: Any) -> tuple[GpuMemory, ...]:
    """Return the peak memory of every rank, here in bytes."""
    return tuple(
        GpuMemory(**{name: size * GIBIBYTE for name, size in asdict(rank).items()})
        for rank in memory_of_ranks(*arguments)
    )


GIB = 2**30


def scheduled(name: str, ranks: int, microbatches: int, chunks: int = 1) -> Schedule:
    result = strategy(name)
    return result(result.shape(ranks, microbatches, chunks))


def evenly(layers: tuple[LayerWork, ...], stages: int) -> list[list[LayerWork]]:
    """Transformer layers shared out evenly, the ends on the first and the last stage."""
    single = [replace(layer, count=1) for layer in layers for _ in range(layer.count)]
    body = [layer for layer in single if layer.kind in {"dense", "moe"}]
    size = len(body) // stages
    split = [body[stage * size : (stage + 1) * size] for stage in range(stages)]
    split[0].insert(0, single[0])
    split[-1].extend(layer for layer in single[1:] if layer.kind not in {"dense", "moe"})
    return split


FIGURE_1 = [
    ("22b", (48, 6144, 64, 4, 1, 1), 59.3, 9.6),
    ("175b", (96, 12288, 96, 1, 8, 3), 66.8, 12.4),
    ("530b", (105, 20480, 128, 1, 35, 3), 114, 23.1),
    ("1t", (128, 25600, 160, 1, 64, 1), 131, 26.6),
]
"""arXiv 2205.05198 Figure 1: layers, h, a, b, p, v; GiB of activations without anything, and with sequence parallelism and
the attention core computed again, as read from the figure."""


@pytest.mark.parametrize(("name", "sizes", "plain", "selective"), FIGURE_1)
def test_activations_of_figure_1(name: str, sizes: tuple[int, ...], plain: float, selective: float):
    layers, h, a, b, p, v = sizes
    shape = ModelShape(
        name=name,
        layers=layers,
        hidden=h,
        heads=a,
        vocabulary=51200,
        ffn=4 * h,
        gated=False,
        norm="layer",
        bias_all=True,
        learned_positions=2048,
    )
    schedule = scheduled("interleaved-1f1b" if v > 1 else "1f1b", p, 2 * p, v)
    for parallel, modules, expected in ((False, set(), plain), (True, {"core_attn"}, selective)):
        execution = Execution(
            microbatch_size=b,
            sequence=2048,
            tensor=8,
            sequence_parallel=parallel,
            attention="unfused",
            dropout=True,
            fused_loss=False,
            recompute=frozenset(modules),
        )
        configuration = Configuration(
            sequence=2048, global_batch=2 * p * b, microbatch_size=b, tensor=8, pipeline=p, software="megatron-lm-2021"
        )
        first = rank_memory(evenly(layers_of(shape, execution), p * v), schedule, configuration)[0]
        assert first.activations / GIB == pytest.approx(expected, rel=0.03)


def _one_microbatch(configuration: Configuration) -> Configuration:
    return replace(configuration, global_batch=configuration.data * configuration.microbatch_size)


def _measured(words: str) -> list[tuple[RunRow, tuple[GpuMemory, ...]]]:
    """Runs of a source whose peak is known, one of those that differ in the number of microbatches only."""
    result: dict[object, tuple[RunRow, tuple[GpuMemory, ...]]] = {}
    for document in planning("published_runs.json")["rows"]:
        if words not in document["source"]["title"]:
            continue
        row = row_from(document)
        if row.measured.peak_bytes is None or row.model is None or row.cluster is None or row.configuration is None:
            continue
        key = _one_microbatch(row.configuration), row.model, row.configuration.microbatches < 16
        if key in result:
            continue
        stages = stage_costs(row.model, row.cluster, row.configuration)
        ran = run(stages, row.configuration)
        layers = [[entry.layer for entry in stage] for stage in stages.layers]
        result[key] = row, rank_memory(layers, ran.schedule, row.configuration)
    return list(result.values())


def _errors(words: str) -> list[float]:
    errors = []
    for row, memory in _measured(words):
        assert row.measured.peak_bytes is not None
        totals = [entry.total for entry in memory]
        rank = row.measured.peak_rank
        errors.append((max(totals) if rank is None else totals[rank]) / row.measured.peak_bytes - 1)
    return errors


@pytest.mark.parametrize(
    ("words", "most"),
    [
        ("SimuMax", 0.03),
        ("Zero Bubble", 0.05),
        ("torchtitan", 0.1),
        ("Primus-Pipeline", 0.2),
        ("functional release", 0.1),
    ],
)
def test_measured_peaks(words: str, most: float):
    """Primus: neither its microbatches nor the precision of its gradients are printed."""
    errors = _errors(words)
    assert errors
    assert mean(abs(error) for error in errors) < most


def test_measured_peaks_of_every_rank():
    for row, memory in _measured("SimuMax"):
        for result, measured in zip(memory, row.measured.peak_by_rank, strict=True):
            assert result.total == pytest.approx(measured, rel=0.03), row.id


def test_runs_that_ran_are_not_said_to_need_more_than_their_gpu_has():
    """Of rows that say what they computed again; 5 % are left for what is not known of them."""
    over, seen = [], set[object]()
    for document in planning("published_runs.json")["rows"]:
        row = row_from(document)
        if row.model is None or row.cluster is None or row.configuration is None:
            continue
        few = 2 * row.configuration.pipeline * row.configuration.data * row.configuration.microbatch_size
        key = _one_microbatch(row.configuration), row.model
        if key in seen or not str(document.get("recompute")).startswith(("none", "full", "selective")):
            continue
        seen.add(key)
        configuration = replace(row.configuration, global_batch=min(few, row.configuration.global_batch))
        stages = stage_costs(row.model, row.cluster, configuration)
        ran = run(stages, configuration)
        memory = rank_memory([[entry.layer for entry in stage] for stage in stages.layers], ran.schedule, configuration)
        if max(entry.total for entry in memory) > 1.05 * row.cluster.gpu.memory_bytes:
            over.append(row.id)
    assert len(seen) > 100
    assert over == []


def small_layer(kept: float, until_weight: float, *, transient: float = 0.0, kind: str = "dense") -> LayerWork:
    return LayerWork(
        kind=kind,  # type: ignore[arg-type]
        name="layer",
        forward=(),
        backward_input=(),
        backward_weight=(),
        kept=(Kept(name="a", bytes=kept - until_weight), Kept(name="b", bytes=until_weight, until="W")),
        transient_bytes=transient,
        parameters=RankParameters(dense=1000),
    )


def plainly(schedule: Schedule, rank: int, stages: list[list[LayerWork]]) -> float:
    """The peak by a plain walk: all that is held, and in a backward its transient besides."""
    held, peak = Counter[tuple[int, int]](), 0.0
    for op in schedule[rank]:
        layers = stages[op.stage]
        kept, weight = sum(entry.kept_bytes for entry in layers), sum(entry.bytes_until_weight for entry in layers)
        transient, behind = 0.0, 0.0
        for entry in reversed(layers):
            transient, behind = max(transient, entry.transient_bytes - behind), behind + entry.kept_bytes
        key = op.stage, op.microbatch
        if op.kind == Kind.F:
            held[key] = kept  # type: ignore[assignment]
        elif op.kind == Kind.I:
            peak = max(peak, sum(held.values()) + transient)
            held[key] = weight  # type: ignore[assignment]
        elif op.kind == Kind.B:
            peak = max(peak, sum(held.values()) + transient)
            del held[key]
        elif op.kind == Kind.W:
            del held[key]
        peak = max(peak, sum(held.values()))
    return peak


@given(
    st.sampled_from([("gpipe", 1), ("1f1b", 1), ("zb-h1", 1), ("zbv", 2), ("interleaved-1f1b", 2)]),
    st.integers(2, 4),
    st.integers(1, 3),
    st.data(),
)
def test_a_plain_walk_finds_the_same_peak(named: tuple[str, int], ranks: int, times: int, data: st.DataObject):
    name, chunks = named
    schedule = scheduled(name, ranks, 2 * ranks * times, chunks)
    size = st.integers(1, 100)
    stages = [
        [
            small_layer(kept, data.draw(st.integers(0, kept)), transient=data.draw(st.integers(0, 300)))
            for kept in data.draw(st.lists(size, min_size=1, max_size=2))
        ]
        for _ in range(ranks * chunks)
    ]
    configuration = Configuration(
        sequence=1, global_batch=1, pipeline=ranks, chunks=chunks, software="megatron-lm-2021"
    )
    for rank, memory in enumerate(rank_memory(stages, schedule, configuration)):
        assert memory.activations + memory.transient == pytest.approx(plainly(schedule, rank, stages))


def test_the_embedding_is_held_again_where_it_is_needed_again():
    """Tied: the last rank holds a copy, one rank alone does not; so for a further token's layer."""
    tied = replace(model("llama3.2-1b"), layers=4)
    rows = 128_256 * 2048
    layers = layers_of(tied, Execution())
    plain = layers_of(replace(tied, tied_embeddings=False), Execution())
    for p, copies in ((1, -1), (2, 0)):
        configuration = Configuration(sequence=4096, global_batch=4, pipeline=p)
        weights, untied = (
            sum(entry.weights for entry in rank_memory(evenly(of, p), scheduled("1f1b", p, 4), configuration))
            for of in (layers, plain)
        )
        assert weights - untied == 2 * rows * copies


def test_sharding():
    """Optimizer state over d c; with 32-bit parameters sharded, ends and two layers gathered; beside a pipeline, all.

    The ends are gathered into a buffer of their size. torchtitan's peak is what is reserved, 5% more.
    """
    shape = replace(model("llama3-8b"), layers=4)
    layers = layers_of(shape, Execution())
    count = sum(entry.parameters.dense * entry.count for entry in layers)
    ends, layer = 2 * 128_256 * 4096 + 4096, layers[1].parameters.dense

    def result(**chosen: object) -> tuple[GpuMemory, ...]:
        configuration = Configuration(sequence=4096, global_batch=16, **chosen)  # type: ignore[arg-type]
        p = configuration.pipeline
        return rank_memory(evenly(layers, p), scheduled("1f1b", p, 2), configuration)

    (one,) = result(data=2, context=2)
    assert (one.weights, one.gradients, one.optimizer) == (2 * count, 4 * count, 3 * count)
    (sharded,) = result(data=4, zero=3, software="torchtitan")
    assert (sharded.weights, sharded.gradients, sharded.optimizer) == (count, count, 2 * count)
    workspace = 32 * 2**20
    assert sharded.gathered == 2 * (2 * ends + 2 * layer)
    others = sharded.total - sharded.buffers
    assert sharded.buffers == pytest.approx(workspace + memory_rules("torchtitan").reserved * (others + workspace))
    beside = result(data=4, zero=3, pipeline=2, software="torchtitan")
    assert sum(entry.gradients for entry in beside) == 4 * count + count
    assert sum(entry.weights for entry in beside) == 2 * count + count
    gradients = result(data=4, zero=2, pipeline=2, software="torchtitan")
    assert sum(entry.gradients for entry in gradients) == 4 * count + count


@pytest.mark.parametrize(("tensor", "replicas", "measured"), [(1, 4, 61.1), (1, 32, 51.3), (4, 2, 32.7), (4, 8, 27.6)])
def test_gradients_that_are_summed_before_they_are_reduced_stay_whole(tensor: int, replicas: int, measured: float):
    """KempnerForge's 7B on H200, 4 x 4096 tokens: 32-bit gradients of all weights, and logits of the whole vocabulary."""
    requested = Configuration(
        sequence=4096,
        global_batch=8 * replicas,
        microbatch_size=4,
        tensor=tensor,
        sequence_parallel=tensor > 1,
        data=replicas,
        zero=3,
        recompute=("full",),
        software="kempnerforge",
    )
    machines = cluster(f"h200-sxm:4x{tensor * replicas // 4}")
    result = estimate(model("llama3-8b"), machines, requested, with_error_bar=False)
    assert result.peak_memory_gib == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    ("name", "changes", "measured"),
    [
        ("llama3.2-3b", {"software": "torchtitan-eager+fused-norms", "microbatch_size": 2}, 60.0),
        ("llama3.2-3b", {"software": "torchtitan+chunked-loss", "microbatch_size": 2}, 42.9),
        (
            "llama3-8b",
            {"lora_rank": 16, "data": 4, "zero": 3, "software": "torchtitan-eager+fused-norms+overwritten-logits"},
            25.7,
        ),
    ],
)
def test_peaks_of_pure_16_bit_training(name: str, changes: dict[str, Any], measured: float):
    """torchtune's README on one A100, and IBM's fms-acceleration on four: what is allocated, with states in 16 bits."""
    changes["software"] += "+16-bit-states+allocated-peaks"
    data, size = changes.get("data", 1), changes.setdefault("microbatch_size", 4)
    recompute = ("full",) if "lora_rank" in changes else ()
    requested = Configuration(sequence=4096, global_batch=data * size, recompute=recompute, **changes)
    result = estimate(model(name), cluster(f"a100:{data}x1"), requested, with_error_bar=False)
    assert result.peak_memory_gib == pytest.approx(measured, rel=0.08)


def test_pytorch_keeps_messages_of_every_microbatch_and_of_2024_their_logits():
    """Two ranks with 8 microbatches: each receives one message of each; the last one keeps 16-bit logits of each."""
    shape, message = replace(model("llama3-8b"), layers=4), 2.0 * 4096 * 4096
    layers = evenly(layers_of(shape, Execution()), 2)
    now, before = (
        [
            [entry.buffers for entry in rank_memory(layers, scheduled("1f1b", 2, 8), configuration, size)]
            for size in (0.0, message)
        ]
        for configuration in (
            Configuration(sequence=4096, global_batch=8, pipeline=2, zero=3, software=name)
            for name in ("torchtitan", "torchtitan-2024")
        )
    )
    reserved = 1 + memory_rules("torchtitan").reserved
    assert [with_messages - without for without, with_messages in zip(*now, strict=True)] == [
        pytest.approx(reserved * 8 * message)
    ] * 2
    head, no_head = before[0][1] - now[0][1], before[0][0] - now[0][0]
    assert no_head == 0
    assert head == pytest.approx(reserved * 8 * 2 * 4096 * 128_256)


def test_offload_and_recompute_lower_activations():
    shape = model("llama3-8b")
    schedule = scheduled("1f1b", 4, 8)

    def memory(share: float = 0.0, *modules: str) -> GpuMemory:
        layers = layers_of(shape, Execution(recompute=frozenset(modules)))
        configuration = Configuration(sequence=4096, global_batch=8, pipeline=4, offload=share)
        return rank_memory(evenly(layers, 4), schedule, configuration)[0]

    layer = layers_of(shape, Execution())[1]
    assert memory(0.5).activations == pytest.approx(0.5 * memory().activations)
    back = memory(0.5).transient - memory().transient
    assert back == pytest.approx(0.5 * layer.kept_bytes), "a layer is back for its backward"
    assert memory(0.0, "full").activations < memory(0.0, "mlp").activations < memory().activations


@pytest.mark.parametrize(
    ("name", "precision", "expected"),
    [
        ("megatron-core", "fp8", 4),
        ("megatron-core", "mxfp8", 4 + 1 / 16),
        ("megatron-bridge", "nvfp4", 3 + 1 / 8),
        ("torchtitan", "fp8", 4),
    ],
)
def test_copies_of_small_weights(name: str, precision: Precision, expected: float):
    """Bytes of a layer's parameter; Transformer Engine: along rows and along columns, beside 16-bit ones or instead."""
    shape = replace(model("llama3-8b"), layers=2)
    configuration = Configuration(sequence=4096, global_batch=1, precision=precision, software=name)
    (layer,) = (entry for entry in layers_of(shape, Execution(precision=precision)) if entry.kind == "dense")
    (result,) = rank_memory([[layer]], scheduled("1f1b", 1, 1), configuration)
    assert result.weights == expected * 2 * layer.parameters.dense


def test_placeholders_of_gradients():
    """Transformer Engine holds a 16-bit tensor of each shape of a layer's weights, once for all layers."""
    shape = model("llama3-8b")
    h, f = 4096, 14336
    result = [
        rank_memory(
            [[replace(layers_of(shape, Execution())[1], count=count)]],
            scheduled("1f1b", 1, 1),
            Configuration(sequence=4096, global_batch=1, software=name),
        )[0]
        for name, count in (("megatron-core", 2), ("megatron-lm-2021", 2))
    ]
    assert result[0].transient - result[1].transient == 2 * (h * 6144 + h * h + h * 2 * f + f * h)
