"""What pages say beside their timelines."""

import json
from typing import Any

import pytest

import pipeplan
from pipeplan.answers.comparing.comparison import comparison_facts, comparison_report
from pipeplan.drawing.html import report_data
from pipeplan.extensions.training.diff.difference import difference_report


@pytest.fixture(scope="module")
def compared():
    return pipeplan.compare(ranks=4, microbatches=7, memory_limit="5act")


def test_a_row_is_a_result(compared):
    facts = comparison_facts(compared).to_dict()
    assert [row["schedule"] for row in facts["rows"]] == [result.name for result in compared]
    for row, result in zip(facts["rows"], compared, strict=True):
        assert row["makespan"] == result.makespan
        assert row["bubble"] == result.timeline.bubble.idle_over_total
        assert row["peak"] == result.memory.peak_activation.max() == result.memory.peak_activation[row["fullest"]]
        assert (row["bound"], row["fits"]) == (result.bound.value, result.fits)
    assert {row["schedule"] for row in facts["rows"] if row["from_costs"]} == {"zb-auto", "zbv-heuristic"}
    assert {entry["schedule"] for entry in facts["refused"]} == {"dualpipe", "chimera", "bitpipe"}
    assert (facts["memory_unit"], facts["limit"]) == ("activations", 5.0)


def test_notes_leave_out_what_the_table_says(compared):
    assert any("over the memory limit" in warning for warning in compared.warnings)
    assert not any("over the memory limit" in note for note in comparison_facts(compared).to_dict()["notes"])


def test_memory_is_in_bytes_where_it_is_known():
    facts = comparison_facts(
        pipeplan.compare("1f1b", ranks=2, microbatches=4, activation_bytes=100, memory_limit=400)
    ).to_dict()
    assert (facts["memory_unit"], facts["limit"], facts["rows"][0]["peak"]) == ("bytes", 400.0, 200.0)
    assert facts["costs"]["activation"] == 100.0


def test_schedules_of_one_name_can_be_told_apart():
    schedules = [pipeplan.simulate("1f1b", ranks=2, microbatches=4).schedule for _ in range(3)]
    facts = comparison_facts(pipeplan.compare(*schedules)).to_dict()
    assert [row["schedule"] for row in facts["rows"]] == ["1f1b", "1f1b (2)", "1f1b (3)"]


def costs_of(name, forward_times):
    given: dict[str, Any] = {"ranks": 2, "microbatches": 4, "backward_times": 5.0, "p2p_time": 0.5}
    return comparison_facts(pipeplan.compare(name, forward_times=forward_times, **given)).to_dict()["costs"]


@pytest.mark.parametrize("name", ["1f1b", "zbv"])
def test_costs_are_what_a_rank_takes_whatever_the_chunks(name):
    costs = costs_of(name, 3.0)
    assert (costs["forward"], costs["backward"], costs["transfer"], costs["even"]) == (3, 5, 0.5, True)


def test_uneven_costs_are_means():
    uneven = costs_of("1f1b", [2.0, 4.0])
    assert (uneven["forward"], uneven["even"]) == (3, False)


def test_reports_are_json(compared):
    report = comparison_report(compared, compared._views())
    data = json.loads(json.dumps(report_data(report)))
    assert data["kind"] == "comparison"
    assert len(data["views"]) == len(data["facts"]["rows"]) == len(compared)


def test_a_difference_has_the_words_and_numbers_of_the_shell():
    planned = pipeplan.simulate("1f1b", ranks=2, microbatches=3, forward_times=2.0)
    slower = pipeplan.simulate("1f1b", ranks=2, microbatches=3, forward_times=(2.0, 3.0))
    answer = pipeplan.diff(planned.timeline, slower.timeline)
    data = json.loads(json.dumps(report_data(difference_report(answer))))
    facts = data["facts"]
    assert facts["sentences"] == list(answer.sentences)
    ratios = {row["notation"]: row["ratio"] for row in facts["rows"]}
    assert ratios["1F"] == 1.5
    assert facts["rows"][0]["texts"][0] == "forward"
    assert len(data["views"]) == len(facts["ratios"]) == 2
