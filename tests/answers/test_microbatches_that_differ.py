"""Microbatches that differ, from settings to answers and files."""

from __future__ import annotations

import json
from typing import Any

import pytest

import pipeplan
from pipeplan.cli import main
from pipeplan.model import Placement

FACTORS = [1.0, 1.0, 2.3, 1.0, 0.5, 1.0, 1.0, 1.0]
SHAPE: dict[str, Any] = {"ranks": 4, "microbatch_factors": FACTORS}


def test_factors_multiply_times_bytes_and_messages():
    result = pipeplan.simulate(
        "gpipe", ranks=2, microbatch_factors=[1, 3], activation_bytes=10, p2p_bytes=2, p2p_bandwidth=1, p2p_time=1
    )
    timeline = result.timeline
    ends = {str(timeline.schedule.op(op)): timeline.end[op] for op in range(len(timeline.schedule))}
    assert result.microbatches == 2
    assert (ends["0F0"], ends["0F1"]) == (1, 4)
    assert (ends["1F0"], ends["1F1"]) == (1 + 3 + 1, 4 + 7 + 3)
    assert result.peak_bytes == [40, 40]
    assert result.peak_activation == [4, 4]


def test_lengths_are_linear_and_attention_quadratic():
    """Two documents of 500 tokens attend half as much as one of 1,000."""
    costs = pipeplan.simulate(
        "1f1b", ranks=2, lengths=[1000, 2000, [500, 500]], reference_length=1000, attention_share=0.25
    ).costs
    assert costs.factors is not None
    assert costs.factors.forward[0].tolist() == pytest.approx([1, 0.75 * 2 + 0.25 * 4, 0.75 + 0.25 / 2])
    share = 2 * 0.25 / 1.25
    assert costs.factors.backward_input[1].tolist() == pytest.approx([1, (1 - share) * 2 + share * 4, 1 - share / 2])
    assert costs.factors.backward_weight[0].tolist() == costs.factors.size[1].tolist() == [1, 2, 1]
    assert costs.memory.factors.tolist() == costs.factors.size.tolist()


@pytest.mark.needs("planning")
def test_the_share_of_attention_of_a_model_grows_with_the_length():
    shares = []
    for length in (4096.0, 32_768.0):
        settings = pipeplan.Settings(lengths=(length, 2 * length), reference_length=length, attention_model="llama3-8b")
        factors = settings.factors(Placement.linear(1))
        assert factors is not None
        shares.append((factors.forward[0, 1] - 2) / 2)
    assert 0.02 < shares[0] < 0.1 < shares[1] < 0.5


@pytest.mark.needs("search", "training")
def test_every_command_takes_them(tmp_path):
    result = pipeplan.simulate("1f1b", **SHAPE)
    assert pipeplan.compare("1f1b", "zbv", **SHAPE)["1f1b"].makespan == result.makespan
    answer = pipeplan.search(evaluations=50, placement="linear", workers=1, **SHAPE)
    assert answer.bound.value <= answer.makespan <= result.makespan
    explanation = pipeplan.explain("1f1b", **SHAPE)
    (sentence,) = (text for text in explanation.sentences if text.startswith("Microbatch"))
    assert sentence == "Microbatch 2 is 2.3 times as long as the median and costs 28.3% of the step."
    reordered = next(what for what in explanation.what_ifs if what.kind == "order")
    assert reordered.makespan <= result.makespan
    result.save(tmp_path / "run.timeline.csv")
    assert pipeplan.diff("1f1b", tmp_path / "run.timeline.csv", **SHAPE).error == 0


@pytest.mark.parametrize(
    "settings", [{"microbatch_factors": FACTORS[:4]}, {"lengths": [100, [50, 20], 300, 10], "attention_share": 0.2}]
)
def test_files_of_costs_hold_them(settings, tmp_path):
    shape: dict[str, Any] = {"ranks": 2, "activation_bytes": 8.0, "p2p_bytes": 1.0, "p2p_bandwidth": 2.0, **settings}
    result = pipeplan.simulate("1f1b", **shape)
    result.save(tmp_path / "saved.costs.json")
    again = pipeplan.simulate("1f1b", config=tmp_path / "saved.costs.json")
    assert again.makespan == pytest.approx(result.makespan)
    assert again.peak_bytes == pytest.approx(result.peak_bytes)
    assert again.microbatches == 4


def test_the_command_line_reads_lengths_from_a_file(tmp_path, capsys):
    (tmp_path / "lengths.txt").write_text("# tokens\n100\n50 50\n\n300, 20\n")
    (tmp_path / "lengths.json").write_text(json.dumps({"lengths": [100, [50, 50], [300, 20]]}))
    makespans = []
    for name in ("lengths.txt", "lengths.json"):
        assert main(["simulate", "1f1b", "-p", "2", "--lengths", str(tmp_path / name), "--json"]) == 0
        makespans.append(json.loads(capsys.readouterr().out)["makespan"])
    expected = pipeplan.simulate("1f1b", ranks=2, lengths=[100, [50, 50], [300, 20]]).makespan
    assert makespans == [expected, expected]
    (tmp_path / "lengths.txt").write_text("100\nmany\n")
    assert main(["simulate", "-p", "2", "--lengths", str(tmp_path / "lengths.txt")]) == 2
    assert "invalid number 'many'" in capsys.readouterr().err
