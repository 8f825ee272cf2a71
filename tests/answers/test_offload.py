"""Stages that copy their activations to the host, asked for as a setting of any command."""

from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.foundation.errors import CostError, InputError
from pipeplan.model import HOST_KINDS, Kind

SHAPE: Any = {"ranks": 4, "microbatches": 8, "activation_bytes": 8.0, "backward_times": 2.0}


def test_every_stage_with_copies_that_hide():
    kept = pipeplan.simulate("gpipe", **SHAPE)
    moved = pipeplan.simulate("gpipe", offload="all", offload_bandwidth=8.0, **SHAPE)
    assert moved.makespan == kept.makespan
    assert kept.memory.peak_activation.tolist() == [8.0] * 4
    assert moved.memory.peak_activation.max() <= 4.0
    assert moved.schedule.has(Kind.OFFLOAD)
    assert pipeplan.check(moved).valid


def test_slower_copies_stand_further_apart_and_cost_time_and_memory():
    fast = pipeplan.simulate("gpipe", offload="all", offload_times=0.5, **SHAPE)
    slow = pipeplan.simulate("gpipe", offload="all", offload_times=3.0, **SHAPE)
    assert slow.makespan > fast.makespan
    assert slow.memory.peak_activation.max() > fast.memory.peak_activation.max()


def test_some_stages():
    result = pipeplan.simulate("gpipe", offload="1-2", offload_times=0.5, **SHAPE)
    stages = result.schedule.columns.stage[result.schedule.where(*HOST_KINDS)]
    assert set(stages.tolist()) == {1, 2}


def test_a_part_moves():
    result = pipeplan.simulate("gpipe", offload="all", offload_bandwidth=8.0, offload_bytes=4.0, **SHAPE)
    costs = result.costs.require_offload()
    assert costs.tolist() == [0.5] * 4
    assert result.memory.peak_activation.max() > 4.0


def test_nobody_said_how_long_a_copy_takes():
    with pytest.raises(CostError, match="gpipe offloads activations, but the time of a copy is unknown") as caught:
        pipeplan.simulate("gpipe", offload="all", **SHAPE)
    assert caught.value.field == "offload_bandwidth"


def test_what_recomputed_forwards_keep_is_held():
    nothing, some = (
        pipeplan.simulate("gpipe", recompute="all", recompute_bytes=kept, **SHAPE).memory.peak_activation.max()
        for kept in (0.0, 2.0)
    )
    assert (nothing, some) == (1.0, 7 * 0.25 + 1.0)


def test_the_shell(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gpipe = ["simulate", "gpipe", "-p", "2", "-m", "4", "-c", "offload.yaml"]
    for more, code in (("offload_times: 0.5", 0), ("", 2), ("offload_bandwidth: 0", 2)):
        (tmp_path / "offload.yaml").write_text(f"offload: all\n{more}\n")
        assert main(gpipe) == code, more
    assert main([*gpipe, "--offload-times", "0.5"]) == 2
    assert "set in a config file: write 'offload_times: VALUE'" in capsys.readouterr().err


def test_a_file_and_a_schedule_that_offloads():
    moved = pipeplan.simulate("gpipe", offload="all", offload_times=0.5, **SHAPE)
    again = pipeplan.simulate(moved.schedule, offload_times=0.5, backward_times=2.0)
    assert again.makespan == moved.makespan
    with pytest.raises(InputError):
        pipeplan.simulate(moved.schedule, backward_times=2.0)


def test_it_is_tried_where_memory_is_short():
    over = pipeplan.explain("gpipe", memory_limit="4act", offload_times=0.5, **SHAPE)
    (moved,) = (what for what in over.what_ifs if what.kind == "offload")
    assert (moved.change, moved.fits) == ("all stages offloaded", True)
    assert moved.peak_activation <= 4
    back = pipeplan.explain("gpipe", offload="all", offload_times=3.0, **SHAPE)
    found = {what.change: what for what in back.what_ifs}
    assert found["nothing offloaded"].peak_activation == 8
    assert found["copies to the host and back free"].makespan < back.result.makespan
    assert any("copies" in sentence for sentence in back.sentences)


def test_the_shell_names_every_option_that_would_do(capsys):
    assert main(["search", "-p", "2", "--decide", "offload"]) == 2
    assert "set offload_times, or offload_bandwidth and activation_bytes" in capsys.readouterr().err
