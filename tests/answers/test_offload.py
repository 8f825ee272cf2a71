"""Stages that copy their activations to the host, asked for as a setting of any command."""

from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.foundation.errors import CostError, InputError
from pipeplan.model import Kind

SHAPE: Any = {"ranks": 4, "microbatches": 8, "activation_bytes": 8.0, "backward_times": 2.0}


def test_every_stage_with_copies_that_hide():
    kept = pipeplan.simulate("gpipe", **SHAPE)
    moved = pipeplan.simulate("gpipe", offload="all", offload_bandwidth=8.0, **SHAPE)
    assert moved.makespan == kept.makespan
    assert kept.memory.peak_activation.tolist() == [8.0] * 4
    assert moved.memory.peak_activation.max() <= 4.0
    assert moved.schedule.has(Kind.OFFLOAD)
    assert pipeplan.check(moved).valid


def test_nobody_said_how_long_a_copy_takes():
    with pytest.raises(CostError, match="gpipe offloads activations, but the time of a copy is unknown") as caught:
        pipeplan.simulate("gpipe", offload="all", **SHAPE)
    assert caught.value.field == "offload_bandwidth"


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
    answer = {what.change: what for what in back.what_ifs}
    assert answer["nothing offloaded"].peak_activation == 8
    assert answer["copies to the host and back free"].makespan < back.result.makespan
    assert any("copies" in sentence for sentence in back.sentences)


@pytest.mark.needs("search")
def test_the_shell_names_every_option_that_would_do(capsys):
    assert main(["search", "-p", "2", "--decide", "offload"]) == 2
    assert "set offload_times, or offload_bandwidth and activation_bytes" in capsys.readouterr().err
