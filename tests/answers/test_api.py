import json
from typing import Any

import numpy as np
import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.costs import Setting, check_value
from pipeplan.foundation.errors import (
    DeadlockError,
    InfeasibleError,
    InvalidScheduleError,
    ShapeError,
)
from pipeplan.model import format_cells

DEADLOCK = "0F0 0B0 0F1 0B1\n1F0 1F1 1B0 1B1"


def write(tmp_path, text: str, name="plan.csv"):
    path = tmp_path / name
    path.write_text(text.replace(" ", ",") + "\n")
    return path


@pytest.mark.parametrize(
    ("stages", "microbatches", "p2p_time", "over_ideal"),
    [(4, 10, 0, 0.3), (4, 8, 0, 0.375), (4, 4, 0, 0.75), (4, 8, 0.1, 0.4417)],
)
def test_the_figures_of_the_first_simulator(stages, microbatches, p2p_time, over_ideal):
    result = pipeplan.simulate(stages=stages, microbatches=microbatches, p2p_time=p2p_time)
    assert result.timeline.bubble.over_ideal == pytest.approx(over_ideal, abs=5e-5)


def test_the_json_of_one_result():
    result = pipeplan.simulate("1f1b", ranks=2, microbatches=2, activation_bytes=100, static_bytes=10)
    assert result.to_dict() == {
        "headline": "1f1b takes 9 for 2 microbatches on 2 ranks; its ranks idle 33.3% of that time, and no order on this "
        "placement is more than 22.2% shorter",
        "schedule": "1f1b",
        "ranks": 2,
        "chunks": 1,
        "stages": 2,
        "microbatches": 2,
        "slices": 1,
        "placement": [0, 1],
        "needs": [],
        "ops": 8,
        "time_unit": "",
        "makespan": 9.0,
        "spans": [9.0, 6.0],
        "work": [6.0, 6.0],
        "idle": [3.0, 3.0],
        "bubble": {"idle_over_total": pytest.approx(1 / 3), "over_ideal": 0.5, "span": pytest.approx(1 / 3)},
        "peak_activation": [2.0, 1.0],
        "peak_bytes": [210.0, 110.0],
        "fits": True,
        "lower_bound": result.bound.value,
        "bound_reason": "the work of rank 0",
        "bound_covers": "schedules on this placement, without slices",
        "gap": 9.0 / result.bound.value - 1,
        "over": None,
        "notes": list(result.notes),
        "warnings": [],
    }


@pytest.mark.parametrize(
    ("name", "settings", "ranks"),
    [
        ("1f1b", {"stages": 4}, 4),
        ("interleaved-1f1b", {"stages": 8}, 4),
        ("interleaved-1f1b", {"stages": 12, "chunks": 3}, 4),
        ("zbv", {"stages": 8, "ranks": 4}, 4),
        ("1f1b", {}, 4),
    ],
)
def test_stages_are_ranks_times_chunks(name, settings, ranks):
    assert pipeplan.simulate(name, **settings).schedule.ranks == ranks


def test_lists_are_padded_where_asked_with_a_warning():
    result = pipeplan.simulate(ranks=3, forward_times=[1, 2], backward_times=np.array([1, 2, 3, 4]), pad_times=True)
    assert result.costs.forward.tolist() == [1, 2, 2]
    assert result.warnings == (
        "forward times: 2 values for 3 stages; the last one is repeated",
        "backward times: 4 values for 3 stages; the rest is left out",
    )


def test_a_schedule_from_a_file(tmp_path):
    path = write(tmp_path, "0F0 0B0\n1F0 1B0")
    for source in (path, str(path), pipeplan.read_schedule(path)):
        assert pipeplan.simulate(source).makespan == 6.0
    with pytest.raises(ShapeError, match="the schedule plan has 2 ranks, not 4"):
        pipeplan.simulate(path, ranks=4)


@pytest.mark.parametrize(
    ("text", "error", "marked"),
    [
        (DEADLOCK, DeadlockError, "1F1 on rank 1 waits for 0F1"),
        ("0B0 0F0\n1F0 1B0", InvalidScheduleError, ">0B0<"),
        ("0F0 0B0\n1F0", InvalidScheduleError, "1B0 is missing"),
    ],
)
def test_wrong_orders_are_not_simulated(tmp_path, text, error, marked):
    with pytest.raises(error, match=marked):
        pipeplan.simulate(write(tmp_path, text))


def test_blocking_communication_is_inserted_where_there_is_none(tmp_path):
    inserted = pipeplan.simulate("1f1b", ranks=2, microbatches=2, communication="blocking", p2p_time=0.5)
    assert "0SEND_F0" in format_cells(inserted.schedule[0])
    path = tmp_path / "sent.csv"
    path.write_text(pipeplan.export("1f1b", to="torch-csv-comms", ranks=2, microbatches=2).text)
    read = pipeplan.simulate(path, communication="blocking", p2p_time=0.5)
    assert read.makespan == inserted.makespan
    assert pipeplan.simulate("1f1b", ranks=1, communication="blocking").makespan == 24.0


def test_there_is_no_gap_over_the_memory_limit(tmp_path):
    result = pipeplan.simulate("1f1b", memory_limit="2act")
    assert result.makespan < result.bound.value
    assert result.gap is result.to_dict()["gap"] is None
    assert "over the memory limit" in repr(result)
    pipeplan.save(result, tmp_path / "over.json")
    assert json.loads((tmp_path / "over.json").read_text())["gap"] is None
    assert pipeplan.simulate(tmp_path / "over.json").makespan == result.makespan
    comparison = pipeplan.compare("1f1b", "v-min", memory_limit="2act")
    assert [one.gap is None for one in comparison] == [not one.fits for one in comparison] == [False, True]


def test_a_heuristic_keeps_its_limit_or_refuses():
    assert pipeplan.simulate("zb-auto", memory_limit="3act").fits
    with pytest.raises(InfeasibleError, match="rank 0 has room for 2 activations"):
        pipeplan.simulate("zbv-heuristic", memory_limit="2act")


def test_compared_schedules_have_the_same_ranks():
    comparison = pipeplan.compare("1f1b", "interleaved-1f1b", stages=8, chunks=4, slices=3)
    assert [(result.schedule.ranks, result.schedule.placement.chunks) for result in comparison] == [(2, 4), (2, 1)]


def test_compared_schedules_over_their_memory_come_last():
    comparison = pipeplan.compare("gpipe", "zbv", "v-min", ranks=4, microbatches=8, memory_limit="3act")
    assert [(result.name, result.fits) for result in comparison] == [("v-min", True), ("zbv", False), ("gpipe", False)]
    assert comparison.fits
    assert not pipeplan.compare("gpipe", memory_limit="3act").fits


@pytest.mark.parametrize(
    ("settings", "faulty"),
    [
        ({"memory_limit": "4act"}, []),
        ({"memory_limit": "3act"}, [0]),
        ({"memory_limit": 400.0, "activation_bytes": 100}, []),
        ({"memory_limit": 309.0, "activation_bytes": 100, "static_bytes": 10}, [0, 1]),
    ],
)
def test_checking_memory_agrees_with_simulating_it(settings, faulty):
    report = pipeplan.check("1f1b", **settings)
    assert report.schedule is not None
    ranks = [int(report.schedule.rank[problem.position]) for problem in report.problems]
    assert ranks == faulty
    assert pipeplan.simulate("1f1b", **settings).fits == (not faulty)


@pytest.mark.parametrize("chunks", [(), ("--chunks", "2")])
def test_settings_are_checked_once(monkeypatch, capsys, chunks):
    checked: list[str] = []

    def counted(setting: Setting, value: Any) -> None:
        checked.append(setting.name)
        check_value(setting, value)

    for module in ("pipeplan.costs.options", "pipeplan.costs.config", "pipeplan.costs"):
        monkeypatch.setattr(f"{module}.check_value", counted)
    # A value of the command line is checked where it is read, too, so that the message can name the option; a default never.
    for command in ("simulate", "compare"):
        checked.clear()
        main([command, "interleaved-1f1b", "-p", "2", "-m", "4", *chunks, "--json"])
        assert (command, checked.count("ranks"), checked.count("machine")) == (command, 2, 0)
    for ask in (pipeplan.simulate, pipeplan.compare):
        checked.clear()
        ask("1f1b", ranks=2, microbatches=4, forward_times=[2.0, 2.0])
        assert (checked.count("forward_times"), checked.count("machine")) == (1, 0)
