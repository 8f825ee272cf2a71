import re
import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.api import trainer_settings
from pipeplan.errors import ShapeError
from pipeplan.formats import Training
from pipeplan.formats.megatron import megatron_layout
from pipeplan.model import Schedule, parse_schedule
from pipeplan.passes import insert_communication, split_backward
from pipeplan.strategies import STRATEGIES


def named(
    name: str, ranks: int, microbatches: int, chunks: int | None = None, group_size: int | None = None
) -> Schedule:
    strategy = STRATEGIES[name]
    return strategy(strategy.shape(ranks, microbatches, chunks, group_size=group_size))


def megatron_settings(schedule: Schedule, training: Training | None = None) -> str:
    return trainer_settings.megatron_settings(schedule, training or Training()).text


def flags(text: str) -> dict[str, str]:
    """The flags of a bash array, without its comment."""
    words = shlex.split(text.partition("PIPELINE_ARGS=(")[2].rpartition(")")[0])
    return dict(zip(words[::2], words[1::2], strict=True))


def test_1f1b():
    assert flags(megatron_settings(named("1f1b", 4, 8), Training(microbatch_size=2, data_parallel=3))) == {
        "--pipeline-model-parallel-size": "4",
        "--micro-batch-size": "2",
        "--global-batch-size": "48",
    }


def test_interleaved_in_groups():
    schedule = insert_communication(named("interleaved-1f1b", 2, 8, 3, group_size=4))
    assert flags(megatron_settings(schedule)) == {
        "--pipeline-model-parallel-size": "2",
        "--micro-batch-size": "1",
        "--global-batch-size": "8",
        "--num-virtual-stages-per-pipeline-rank": "3",
        "--microbatch-group-size-per-virtual-pipeline-stage": "4",
    }


def test_stages_of_different_size():
    found = flags(megatron_settings(named("interleaved-1f1b", 2, 4, 2), Training(layers=(1, 3, 12, 0))))
    assert found["--num-layers"] == "16"
    assert found["--pipeline-model-parallel-layout"] == "Et|t*3|t*12|L"
    assert "--num-virtual-stages-per-pipeline-rank" not in found


def unrolled(layout: str) -> list[str]:
    """What Megatron makes of a layout string: ``x*n`` is n times x, parts stand apart by ``|``."""
    return re.sub(r"(.)\*(\d+)", lambda found: found.group(1) * int(found.group(2)), layout).split("|")


@given(st.lists(st.integers(0, 30), min_size=2, max_size=6).filter(any))
def test_a_layout_string_says_every_layer(layers: list[int]):
    schedule = named("1f1b", len(layers), 4)
    parts = unrolled(megatron_layout(schedule, layers))
    assert [part.count("t") for part in parts] == layers
    assert (parts[0][0], parts[-1][-1]) == ("E", "L")


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.integers(2, 3), st.integers(0, 10), st.integers(0, 6))
def test_a_group_size_is_read_off_the_order(ranks: int, chunks: int, more: int, larger: int):
    microbatches = ranks + more
    group = min(ranks + larger, microbatches)
    try:
        schedule = named("interleaved-1f1b", ranks, microbatches, chunks, group_size=group)
        found = flags(megatron_settings(schedule))
    except ShapeError as error:
        assert ranks == 1 or re.search("deadlock|no last group smaller", str(error))  # noqa: PT017
        return
    assert found["--microbatch-group-size-per-virtual-pipeline-stage"] == str(group)


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (named("zbv", 2, 4), r"zbv \(v\) is neither"),
        (named("zb-h1", 2, 4), "full forwards and backwards; zb-h1"),
        (split_backward(named("1f1b", 2, 4)), "is neither"),
        (named("seq1f1b", 2, 4), "is neither"),
        (named("gpipe", 2, 4), "gpipe is not the order in which Megatron-LM runs 1F1B"),
        (
            named("looped-bfs", 2, 4),
            "looped-bfs is not the order in which Megatron-LM runs interleaved 1F1B in groups of 4",
        ),
        (parse_schedule("0F0 1F0 1B0 0B0"), "interleaves on two ranks or more"),
    ],
)
def test_what_megatron_does_not_run(schedule: Schedule, message: str):
    with pytest.raises(ShapeError, match=message):
        megatron_settings(schedule)


def test_layers_that_are_no_layout():
    with pytest.raises(ShapeError, match="layers must be 2 numbers of at least 0"):
        megatron_settings(named("1f1b", 2, 4), Training(layers=(1,)))
