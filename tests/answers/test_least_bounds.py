"""The least lower bound of a comparison, and how often its schedules are simulated."""

from typing import Any

import pytest

import pipeplan
from pipeplan.answers.comparing.columns import COLUMNS
from pipeplan.answers.comparing.comparison import comparison_report
from pipeplan.simulation import simulator

SHAPE: dict[str, Any] = {"ranks": 4, "microbatches": 8}


def test_no_schedule_here_can_be_shorter_than_the_least_bound():
    comparison = pipeplan.compare("zbv", "zb-h1", **SHAPE, p2p_time=0.1)
    assert comparison.least.value == comparison["zbv"].lower_bound
    assert comparison["zbv"].least_gap == comparison["zbv"].gap
    gap = comparison["zb-h1"].least_gap
    assert gap == pytest.approx(comparison["zb-h1"].makespan / comparison["zbv"].bound.value - 1)
    assert COLUMNS["gap-any"].value(comparison["zb-h1"]) == gap != COLUMNS["gap"].value(comparison["zb-h1"])
    over = pipeplan.compare("gpipe", "v-min", **SHAPE, memory_limit="3act")
    assert over["gpipe"].least_gap is None


def test_a_gap_too_small_to_show_is_not_none(capsys):
    comparison = pipeplan.compare("zbv", "1f1b", ranks=3, microbatches=6, p2p_time=0.0004)
    assert "less than 0.1% above the bound" in comparison.headline
    comparison.print(verbose=True)
    assert "zbv is less than 0.1% above it" in " ".join(capsys.readouterr().out.split())


def test_a_comparison_simulates_each_schedule_once_and_an_answer_is_shown_without_simulating(monkeypatch, capsys):
    simulations = []

    class Counted(simulator.Simulation):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            simulations.append(self)

    monkeypatch.setattr(simulator, "Simulation", Counted)
    comparison = pipeplan.compare(**SHAPE)
    assert len(simulations) == len(comparison)
    for shown in (comparison, pipeplan.compare("zbv", "zb-h2", **SHAPE)):
        simulations.clear()
        shown.print()
        shown.to_dict()
        shown.to_frame()
        comparison_report(shown, shown._views())
        assert simulations == []
