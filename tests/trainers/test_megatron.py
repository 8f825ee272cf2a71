"""Megatron-LM's settings of a schedule: its layouts, its orders, and what it refuses."""

from __future__ import annotations

import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.formats import TrainerSettings, Training
from pipeplan.foundation.errors import PipeplanError, ShapeError
from pipeplan.model import Schedule, parse_schedule
from pipeplan.passes import insert_offload, insert_recompute, split_backward
from pipeplan.strategies import STRATEGIES
from pipeplan.trainers import megatron


def test_a_layout_has_the_number_of_chunks():
    text = megatron_settings(named("interleaved-1f1b", 2, 4, 2), Training(layers=(1, 3, 12, 0), mtp_layers=1)).text
    words = shlex.split(text.partition("PIPELINE_ARGS=(")[2].rpartition(")")[0])
    assert words[words.index("--num-layers") + 1] == "16"
    assert words[words.index("--mtp-num-layers") + 1] == "1"
    assert "--num-virtual-stages-per-pipeline-rank" not in words
    assert "The layout implies the chunks" in text
    assert "must be a multiple of" not in text


def named(
    name: str, ranks: int, microbatches: int, chunks: int | None = None, group_size: int | None = None
) -> Schedule:
    strategy = STRATEGIES[name]
    return strategy(strategy.shape(ranks, microbatches, chunks, group_size=group_size))


def megatron_settings(schedule: Schedule, training: Training | None = None) -> TrainerSettings:
    return megatron.megatron_settings(schedule, training or Training())


def flags(schedule: Schedule, training: Training | None = None) -> dict[str, str]:
    """The flags of the bash array, those without a value with an empty one."""
    text = megatron_settings(schedule, training).text
    words = shlex.split(text.partition("PIPELINE_ARGS=(")[2].rpartition(")")[0])
    return {
        word: "" if following.startswith("--") else following
        for word, following in zip(words, [*words[1:], "--"], strict=True)
        if word.startswith("--")
    }


INTERLEAVED = named("interleaved-1f1b", 2, 8, 3, group_size=4)
OVERLAPPED = named("interleaved-1f1b-overlap", 2, 4, 2)


def test_flags_are_those_of_the_order():
    assert flags(named("1f1b", 4, 8), Training(microbatch_size=2, data_parallel=3)) == {
        "--pipeline-model-parallel-size": "4",
        "--micro-batch-size": "2",
        "--global-batch-size": "48",
    }
    interleaved = flags(INTERLEAVED)
    assert interleaved == {
        "--pipeline-model-parallel-size": "2",
        "--micro-batch-size": "1",
        "--global-batch-size": "8",
        "--num-virtual-stages-per-pipeline-rank": "3",
        "--microbatch-group-size-per-virtual-pipeline-stage": "4",
    }
    assert flags(insert_recompute(INTERLEAVED)) == interleaved | {
        "--recompute-granularity": "full",
        "--recompute-method": "uniform",
        "--recompute-num-layers": "1",
    }
    overlapped = flags(OVERLAPPED)
    assert overlapped == flags(named("interleaved-1f1b", 2, 4, 2)) | {"--overlap-moe-expert-parallel-comm": ""}
    assert flags(split_backward(OVERLAPPED)) == overlapped | {"--delay-wgrad-compute": ""}
    assert "--overlap-moe-expert-parallel-comm" in flags(named("1f1b-overlap", 1, 4))


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(["interleaved-1f1b", "interleaved-1f1b-overlap"]),
    st.integers(1, 4),
    st.integers(2, 3),
    st.integers(0, 10),
    st.integers(0, 6),
)
def test_a_group_size_is_read_off_the_order(name: str, ranks: int, chunks: int, more: int, larger: int):
    microbatches = ranks + more
    group = min(ranks + larger, microbatches)
    try:
        result = flags(named(name, ranks, microbatches, chunks, group_size=group))
    except ShapeError as error:
        assert ranks == 1 or re.search("deadlock|leaves a last group", str(error))  # noqa: PT017
        return
    assert result["--microbatch-group-size-per-virtual-pipeline-stage"] == str(group)


def half_split(schedule: Schedule) -> Schedule:
    """Rank 0's backwards in two, those of the other ranks in one."""
    rows = [split_backward(schedule).row(0), *(schedule.row(rank) for rank in range(1, schedule.ranks))]
    return Schedule.from_rows(schedule.placement, schedule.microbatches, rows)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (named("zbv", 2, 4), r"not zbv \(v\)"),
        (named("seq1f1b", 2, 4), r"not seq1f1b \(linear, 2 slices per sequence\)"),
        (named("zb-h1", 2, 4), "weight backwards directly after input backwards; zb-h1 delays them further"),
        (
            split_backward(named("1f1b", 2, 4)),
            "only in overlapped pairs: merge the backwards",
        ),
        (half_split(OVERLAPPED), "splits all backwards or none"),
        (insert_recompute(named("1f1b", 2, 4), [1]), "they cannot select stages"),
        (insert_offload(named("1f1b", 2, 8), [(0, 1)]), "not single microbatches of a schedule"),
        (insert_recompute(OVERLAPPED), "does not combine full recomputation with overlapped"),
        (named("1f1b-overlap", 2, 4), "only with at least two chunks per rank"),
        (named("gpipe", 2, 4), "gpipe differs from the order that Megatron-LM generates for 1F1B"),
        (
            named("looped-bfs", 2, 4),
            "looped-bfs differs from the order that Megatron-LM generates for interleaved 1F1B in groups of 4",
        ),
        (parse_schedule("0F0 1F0 1B0 0B0"), "interleaves only on at least two ranks"),
        (
            named("interleaved-1f1b", 4, 2, 2),
            "2 microbatches are too few: Megatron-LM interleaves at least one per rank, 4",
        ),
        (named("interleaved-1f1b", 4, 10, 2, group_size=8), "a last group of 2 of 10 microbatches"),
        (
            named("interleaved-1f1b", 4, 8, 2, group_size=3),
            r"invalid group size 3: Megatron-LM needs 4 \(the ranks\) to 8",
        ),
    ],
)
def test_what_megatron_does_not_run(schedule: Schedule, message: str):
    with pytest.raises(ShapeError, match=message):
        megatron_settings(schedule)


@pytest.mark.parametrize(
    ("schedule", "training", "message", "field"),
    [
        (
            named("1f1b", 2, 4),
            Training(trainer_version="0.9.1"),
            "unsupported Megatron-core 0.9.1: expected 0.14, 0.15, 0.16, 0.17, 0.18 and 0.19",
            "trainer_version",
        ),
        (named("1f1b", 2, 4), Training(layers=(1,)), "layers per stage: 1 values for 2 stages", "layers_per_stage"),
        (OVERLAPPED, Training(mtp_layers=2), "at most one MTP layer", "mtp_layers"),
        (named("1f1b-overlap", 1, 4), Training(mtp_layers=1), "none on one rank, not 1 on 1", "mtp_layers"),
    ],
)
def test_what_is_said_beside_and_megatron_refuses(schedule: Schedule, training: Training, message: str, field: str):
    with pytest.raises(PipeplanError, match=message) as refused:
        megatron_settings(schedule, training)
    assert refused.value.field == field


def test_two_ranks_are_warned_of_batched_transfers():
    """In the text and beside it; more ranks, or one chunk a rank, tell the two directions apart."""
    warned = megatron_settings(named("interleaved-1f1b", 2, 4, 2))
    assert "--no-overlap-p2p-communication" in " ".join(warned.warnings)
    assert "gradients are wrong" in warned.text.replace("\n#  ", "")
    for safe in (named("1f1b", 2, 4), named("interleaved-1f1b", 4, 4, 2)):
        assert megatron_settings(safe).warnings == ()
