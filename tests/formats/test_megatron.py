import re
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeplan.errors import ShapeError
from pipeplan.formats import MegatronOrder, Training, megatron_flags
from pipeplan.formats.megatron import megatron_layout
from pipeplan.model import Schedule
from pipeplan.strategies import STRATEGIES


def schedule_of(ranks: int, chunks: int = 1) -> Schedule:
    strategy = STRATEGIES["1f1b" if chunks == 1 else "interleaved-1f1b"]
    return strategy(strategy.shape(ranks, 2 * ranks, chunks))


def unrolled(layout: str) -> list[str]:
    """What Megatron makes of a layout string: ``x*n`` is n times x, parts stand apart by ``|``."""
    return re.sub(r"(.)\*(\d+)", lambda found: found.group(1) * int(found.group(2)), layout).split("|")


@given(st.lists(st.integers(0, 30), min_size=2, max_size=6).filter(any), st.integers(0, 3))
def test_a_layout_string_says_every_layer(layers: list[int], further: int):
    parts = unrolled(megatron_layout(schedule_of(len(layers)), Training(layers=tuple(layers), mtp_layers=further)))
    assert [part.count("t") for part in parts] == layers
    assert parts[0].startswith("E")
    assert parts[-1].endswith("m" * further + "L")
    assert sum(part.count("m") for part in parts) == further


def test_a_layout_of_a_picture():
    assert megatron_layout(schedule_of(2, 2), Training(layers=(1, 3, 12, 0), mtp_layers=1)) == "Et|t*3|t*12|mL"
    assert megatron_layout(schedule_of(2), Training(layers=(0, 2), mtp_layers=2)) == "E|t*2m*2L"


def test_a_layout_needs_layers():
    with pytest.raises(ShapeError, match="a layout needs the layers of each stage"):
        megatron_layout(schedule_of(2), Training())


def test_a_layout_has_the_number_of_chunks():
    text = megatron_flags(
        schedule_of(2, 2), MegatronOrder(group_size=2), Training(layers=(1, 3, 12, 0), mtp_layers=1)
    ).text
    words = shlex.split(text.partition("PIPELINE_ARGS=(")[2].rpartition(")")[0])
    assert words[words.index("--num-layers") + 1] == "16"
    assert words[words.index("--mtp-num-layers") + 1] == "1"
    assert "--num-virtual-stages-per-pipeline-rank" not in words
    assert "Beside the layout" in text
    assert "must be a multiple of" not in text


def test_comments_stand_before_the_array_and_fit_on_lines():
    text = megatron_flags(
        schedule_of(2, 2), MegatronOrder(group_size=2, overlap=True, delayed_weights=True), Training()
    )
    lines = text.text.splitlines()
    start = lines.index("PIPELINE_ARGS=(")
    assert all(line.startswith("# ") and len(line) <= 120 for line in lines[:start])
    assert all(re.fullmatch(r"    --[\w-]+( \S+)?", line) for line in lines[start + 1 : -1])
    assert lines[-1] == ")"


def test_a_name_cannot_leave_its_comment():
    named = schedule_of(2).renamed("a\nrm -rf b")
    assert "\nrm" not in megatron_flags(named, MegatronOrder(), Training()).text


def test_processes_and_batch_count_replicas():
    text = megatron_flags(schedule_of(4), MegatronOrder(), Training(microbatch_size=2, data_parallel=3)).text
    assert "2 sequences x 8 microbatches x 3 replicas = 48; start 12 processes" in text
