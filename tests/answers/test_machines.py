"""Machines whose losses between ops are known, and what the losses do to an answer."""

import re
from typing import Any

import pytest

import pipeplan
from pipeplan.model import tolerances
from pipeplan.passes import insert_communication
from pipeplan.simulation import span_bound, step_time


def test_the_machines_are_listed_with_where_they_come_from(capsys):
    answer = pipeplan.machines()
    assert [entry.name for entry in answer] == ["megatron-a100"]
    assert answer.to_dict()["machines"][0] | {"source": ""} == {
        "name": "megatron-a100",
        "title": "A100, Megatron-LM and its zero-bubble fork",
        "time_unit": "ms",
        "op_gap": 0.85,
        "message_time": 0.0,
        "step_time": 0.0,
        "source": "",
    }
    answer.print()
    assert "gap before every op" in capsys.readouterr().out
    assert repr(answer) == "<Machines: megatron-a100>"


def test_a_step_is_longer_than_its_ops():
    result = pipeplan.simulate("1f1b", ranks=2, microbatches=2, op_gap=0.5, step_time=3.0)
    assert result.makespan == 12.0
    assert result.timeline.work.tolist() == [6.0, 6.0]
    assert result.timeline.idle.tolist() == [6.0, 6.0]
    assert step_time(result.timeline, result.costs) == 15.0
    assert result.to_dict()["step"] == {"with_barrier": 15.0, "without_barrier": 15.0}
    assert pipeplan.simulate("1f1b", ranks=2, microbatches=2).to_dict().get("step") is None


UNEVEN: dict[str, Any] = {
    "ranks": 2,
    "microbatches": 4,
    "forward_times": (1, 4),
    "backward_input_times": (3, 2),
    "backward_weight_times": (1, 3),
}


@pytest.mark.needs("search")
@pytest.mark.parametrize(
    ("communication", "lost"),
    [
        ("edge", {"message_time": 0.5}),
        ("contended", {"op_gap": 0.25}),
        ("streams", {"op_gap": 0.5, "message_time": 0.25}),
    ],
)
def test_tables_searches_and_bounds_have_one_definition_of_a_span(communication, lost, capsys):
    settings = UNEVEN | lost | {"communication": communication}
    published = [pipeplan.simulate(name, **settings) for name in ("1f1b", "zb-h1", "zb-h2", "gpipe")]
    for result in published:
        longest = max(result.to_dict()["spans"])
        assert result.timeline.longest_span == longest == step_time(result.timeline, result.costs, barrier=False)
        bound = span_bound(result.schedule.placement, 4, result.costs)
        assert bound.value <= longest * (1 + tolerances.ROUNDING)
        result.print(verbose=True)
        assert float(re.findall(r"longest span +(\S+)", capsys.readouterr().out)[0]) == longest
    answer = pipeplan.search(**settings, objective="span", evaluations=200, workers=1)
    assert answer.search is not None
    assert answer.search.objective.value == answer.timeline.longest_span
    assert answer.search.objective.value <= min(result.timeline.longest_span for result in published) * (
        1 + tolerances.ROUNDING
    )


@pytest.mark.parametrize("communication", ["edge", "contended"])
def test_messages_that_occupy_no_rank_are_in_no_span(communication):
    settings = {**UNEVEN, "p2p_time": 0.5, "op_gap": 0.25, "communication": communication}
    bare = pipeplan.simulate("zb-h2", **settings)
    lowered = pipeplan.simulate(insert_communication(bare.schedule), **settings)
    assert lowered.timeline.spans.tolist() == bare.timeline.spans.tolist()


def test_an_explanation_says_what_is_lost_between_ops():
    answer = pipeplan.explain(
        "1f1b", ranks=4, microbatches=8, machine="megatron-a100", time_unit="ms", forward_times=10.0
    )
    document = answer.to_dict()["explain"]
    # 8 forwards and backwards and the 3 + 3 before and behind them, each with its gap.
    assert document["critical_path"]["overhead"] == pytest.approx(22 * 0.85)
    assert min(document["reasons"]["overhead"]) == pytest.approx(16 * 0.85)
    (without,) = (what for what in document["what_ifs"] if what["change"] == "nothing lost between ops")
    assert without["gain"] == pytest.approx(22 * 0.85)
