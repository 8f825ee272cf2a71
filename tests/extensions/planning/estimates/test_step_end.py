from dataclasses import replace
from math import ceil

import numpy as np
import pytest

from pipeplan.extensions.planning.estimates.estimating import step_end
from pipeplan.extensions.planning.estimates.running import placed
from pipeplan.extensions.planning.estimates.seconds import exposed
from pipeplan.extensions.planning.estimates.software import software
from pipeplan.extensions.planning.estimates.stages import format_peak, stage_costs
from pipeplan.extensions.planning.hardware import cluster, collective_time, gpu, memory_time, optimizer_time
from tests.extensions.planning.configurations import H100, LLAMA, configuration


def end_of(**changes):
    requested = configuration(**changes)
    stages = stage_costs(LLAMA, H100, requested)
    return requested, stages, step_end(LLAMA, H100, requested, stages, table=placed(requested).table)


def parameters(stages, rank, ranks):
    return sum(
        entry.layer.parameters.dense
        for stage, layers in enumerate(stages.layers)
        if stage % ranks == rank
        for entry in layers
    )


def test_without_overlap_every_rank_reduces_scatters_and_gathers_its_own():
    requested, stages, result = end_of(software="megatron-core-plain")
    for rank in range(4):
        held = parameters(stages, rank, 4)
        group = (requested.data * requested.context, requested.tensor)
        assert result.reduce[rank] == pytest.approx(collective_time(H100, "reduce_scatter", 4.0 * held, *group))
        assert result.gather[rank] == pytest.approx(collective_time(H100, "all_gather", 2.0 * held, *group))


def test_copies_of_a_sharded_state_sum_their_gradients():
    requested, stages, result = end_of(software="megatron-core-plain", replicate=2)
    held, tensor = parameters(stages, 0, 4), requested.tensor
    scattered = collective_time(H100, "reduce_scatter", 4.0 * held, 2, tensor)
    summed = collective_time(H100, "all_reduce", 4.0 * held / 2, 2, 2 * tensor)
    assert result.reduce[0] == pytest.approx(scattered + summed)
    assert result.gather[0] == pytest.approx(collective_time(H100, "all_gather", 2.0 * held, 2, tensor))


def test_the_optimizer_updates_a_share_and_clears_all_gradients():
    requested, stages, result = end_of()
    held = parameters(stages, 0, 4)
    update = optimizer_time(H100.gpu, held / 4, bytes_each=software(requested.software).update_bytes)
    assert result.optimizer[0] == pytest.approx(update + memory_time(H100.gpu, 4.0 * held))


def test_all_but_the_last_bucket_of_gradients_is_hidden_behind_the_last_backward():
    requested, stages, result = end_of(software="megatron-core")
    backward = (stages.backward_input + stages.backward_weight)[::4].sum()
    held = parameters(stages, 0, 4)
    buckets = max(requested.chunks, ceil(held / 40e6))
    bucket = collective_time(H100, "reduce_scatter", 4.0 * held / buckets, 4, requested.tensor)
    assert result.reduce[0] == pytest.approx(bucket + exposed((buckets - 1) * bucket, backward))
    plain = end_of(software="megatron-core-plain")[2]
    assert (result.reduce < plain.reduce).all()


def test_many_replicas_reduce_gradients_in_large_buckets():
    """Megatron Core's buckets have at least 1M parameters per replica: the last of them is exposed."""
    many = cluster("h100:8x1024")
    requested = configuration(data=256, global_batch=16384)
    stages = stage_costs(LLAMA, many, requested)
    result = step_end(LLAMA, many, requested, stages, table=placed(requested).table)
    held = parameters(stages, 0, 4)
    buckets = max(requested.chunks, ceil(held / 256e6))
    alone = collective_time(many, "all_gather", 2.0 * held / buckets, 512, requested.tensor)
    assert result.gather[0] > alone > 0.01


def test_without_sharding_gradients_are_all_reduced_and_nothing_is_gathered():
    _, stages, result = end_of(software="megatron-lm-2021", zero=0)
    held = parameters(stages, 1, 4)
    assert result.reduce[1] == pytest.approx(collective_time(H100, "all_reduce", 4.0 * held, 4, 4))
    assert not result.gather.any()


def test_tied_embeddings_are_added_on_both_ends():
    requested = configuration(software="megatron-core-plain")
    tied = replace(LLAMA, tied_embeddings=True)
    stages = stage_costs(tied, H100, requested)
    table = placed(requested).table
    more = step_end(tied, H100, requested, stages, table=table).reduce
    plain = step_end(LLAMA, H100, requested, stages, table=table).reduce
    added = more - plain
    assert added[0] == pytest.approx(added[-1])
    assert added[0] > 0
    assert np.allclose(added[1:-1], 0)


def test_peaks_of_formats():
    h100, a100, b200 = (gpu(name) for name in ("h100-sxm", "a100-sxm-80gb", "b200-sxm"))
    assert format_peak(h100, "fp16") == h100.peak["bf16"]
    assert format_peak(h100, "mxfp8") == h100.peak["fp8"]
    assert format_peak(h100, "nvfp4") == h100.peak["fp8"]
    assert format_peak(a100, "fp8") == a100.peak["bf16"]
    assert format_peak(b200, "nvfp4") == b200.peak["fp4"]
