"""What would change the order of a comparison: it must be what comparing again on the changed settings says."""

import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_test
from hypothesis import strategies as st

import pipeplan
from pipeplan.api.comparing import leads
from pipeplan.api.comparing.compare import Entrants
from pipeplan.api.comparing.comparison import comparison_report
from pipeplan.costs import Settings
from pipeplan.simulation import simulator
from pipeplan.strategies import strategy

SHAPE: dict[str, Any] = {"ranks": 4, "microbatches": 8}


def test_the_transfer_from_which_another_leads_is_where_comparing_again_says_so():
    comparison = pipeplan.compare("zbv", "zb-h1", "zb-h2", "gpipe", **SHAPE, p2p_time=0.1, leads=True)
    (lead,) = (lead for lead in comparison.leads if lead.change == "transfer")
    assert (lead.leader, lead.schedule) == ("zbv", "zb-h2")
    for time, best in ((lead.at * 0.99, "zbv"), (lead.at * 1.01, "zb-h2")):
        assert pipeplan.compare("zbv", "zb-h1", "zb-h2", "gpipe", **SHAPE, p2p_time=time).best.name == best
    assert lead.makespan == pytest.approx(pipeplan.simulate("zb-h2", **SHAPE, p2p_time=lead.at).makespan)


def test_a_lead_that_is_lost_and_won_again_is_lost_where_it_is_lost_first():
    costs: dict[str, Any] = {
        "forward_times": 0.758,
        "backward_times": 1.516,
        "backward_input_times": 0.698,
        "recompute": "all",
    }
    comparison = pipeplan.compare("dualpipev", "zbv", "zb-h2", ranks=3, microbatches=6, **costs, leads=True)
    lead = comparison.leads[0]
    for share in (0.02, 0.1, 0.3, 0.6, 0.95):
        again = pipeplan.compare(
            "dualpipev", "zbv", "zb-h2", ranks=3, microbatches=6, **costs, p2p_time=share * lead.at
        )
        assert again[lead.leader].makespan <= again.best.makespan * (1 + 1e-9)


def test_of_many_that_are_equally_short_the_one_that_leads_with_any_transfer_is_named():
    times: dict[str, Any] = {"forward_times": 1, "backward_input_times": 2, "backward_weight_times": 1}
    lead = pipeplan.compare(**SHAPE, **times, leads=True).leads[0]
    assert (lead.leader, lead.schedule, lead.at) == ("zb-auto", None, 2.0)


def test_where_none_takes_over_it_is_said_how_far_was_looked():
    (lead,) = pipeplan.compare("zb-h2", "gpipe", **SHAPE, leads=True).leads[:1]
    assert (lead.change, lead.leader, lead.schedule) == ("transfer", "zb-h2", None)
    assert pipeplan.compare("zb-h2", "gpipe", **SHAPE, p2p_time=lead.at).best.name == "zb-h2"


def test_the_shortest_under_each_smaller_limit():
    comparison = pipeplan.compare(**SHAPE, leads=True)
    steps = [lead for lead in comparison.leads if lead.change == "memory"]
    assert [(step.at, step.schedule) for step in steps] == [(3.0, "v-half"), (2.0, "v-min")]
    for step in steps:
        again = pipeplan.compare(**SHAPE, memory_limit=f"{step.at}act")
        assert (again.best.name, again.best.makespan) == (step.schedule, step.makespan)


def test_memory_in_bytes_has_limits_in_bytes():
    steps = pipeplan.compare("zbv", "v-min", **SHAPE, activation_bytes="1GiB", static_bytes="2GiB", leads=True).leads[
        1:
    ]
    assert [(step.at, step.schedule) for step in steps] == [(4 * 2**30, "v-min")]


def test_of_equally_short_ones_the_one_that_keeps_the_lead_is_named():
    comparison = pipeplan.compare("gpipe", "1f1b", "eager-1f1b", **SHAPE, leads=True)
    assert len({result.makespan for result in comparison}) == 1
    transfer, memory = comparison.leads[:1], comparison.leads[1:]
    assert transfer[0].leader != "1f1b"
    assert memory == ()


def test_nothing_is_said_of_one_schedule_of_results_put_together_and_of_too_much_work(monkeypatch):
    assert pipeplan.compare("zbv", **SHAPE, leads=True).leads == ()
    zbv = pipeplan.simulate("zbv", **SHAPE).schedule
    assert pipeplan.compare(zbv, zbv, **SHAPE, leads=True).leads == ()
    monkeypatch.setattr(leads, "MOST_WORK", 10_000)
    assert pipeplan.compare("zbv", "gpipe", **SHAPE, leads=True).leads == ()


def test_schedules_made_from_costs_stand_as_they_are_where_making_them_again_is_too_much_work(monkeypatch):
    monkeypatch.setattr(leads, "MOST_WORK", 20_000)
    (lead,) = (
        lead
        for lead in pipeplan.compare("zb-h2", "1f1b", "zb-auto", **SHAPE, leads=True).leads
        if lead.change == "transfer"
    )
    assert lead.left_out == ("zb-auto",)


def test_no_schedule_here_can_be_shorter_than_the_least_bound():
    comparison = pipeplan.compare("zbv", "zb-h1", **SHAPE, p2p_time=0.1)
    assert comparison.least_bound.name == "zbv"
    assert comparison.least_gap(comparison["zbv"]) == comparison["zbv"].gap
    gap = comparison.least_gap(comparison["zb-h1"])
    assert gap == pytest.approx(comparison["zb-h1"].makespan / comparison["zbv"].bound.value - 1)
    over = pipeplan.compare("gpipe", "v-min", **SHAPE, memory_limit="3act")
    assert over.least_gap(over["gpipe"]) is None


def test_a_gap_too_small_to_show_is_not_none(capsys):
    comparison = pipeplan.compare("zbv", "1f1b", ranks=3, microbatches=6, p2p_time=0.0004)
    comparison.print()
    assert "zbv is less than 0.1% above it" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("communication", ["edge", "contended", "blocking"])
def test_an_order_is_timed_as_it_is_simulated(communication):
    costs: dict[str, Any] = {"p2p_time": 0.1, "message_time": 0.02, "op_gap": 0.05, "communication": communication}
    names = ("1f1b", "zbv", "seq1f1b", "interleaved-1f1b")
    settings = Settings(**SHAPE, **costs)
    entrants = Entrants({name: strategy(name) for name in names}, settings)
    slower = replace(settings, p2p_time=0.7)
    for result in pipeplan.compare(*names, **SHAPE, **costs):
        assert entrants.timed(result, slower) == entrants.again(result, slower).makespan > result.makespan


@given(
    forward=st.decimals("0.5", "2", places=2),
    backward=st.decimals("1", "4", places=2),
    transfer=st.sampled_from([0.0, 0.1, 0.25]),
    ranks=st.integers(2, 4),
)
@settings_of_test(max_examples=12, deadline=None)
def test_a_leader_leads_at_the_transfer_that_is_named(forward, backward, transfer, ranks):
    shape: dict[str, Any] = {"ranks": ranks, "microbatches": 6}
    shape |= {"forward_times": float(forward), "backward_times": float(backward)}
    names = ("1f1b", "zb-h1", "zb-h2", "zbv", "interleaved-1f1b")
    comparison = pipeplan.compare(*names, **shape, p2p_time=transfer, leads=True)
    lead, sentence = comparison.leads[0], comparison.changes[0]
    named = re.match(r"\S+ is fastest for transfers up to ([\d.]+\d)", sentence)
    assert named is not None
    for time in (lead.at, float(named[1])):
        again = pipeplan.compare(*names, **shape, p2p_time=time)
        assert again[lead.leader].makespan <= again.best.makespan * (1 + 1e-9)


def test_a_comparison_simulates_each_schedule_once_and_an_answer_is_shown_without_simulating(monkeypatch, capsys):
    simulations = []

    class Counted(simulator.Simulation):
        def __init__(self, *parts: Any) -> None:
            super().__init__(*parts)
            simulations.append(self)

    monkeypatch.setattr(simulator, "Simulation", Counted)
    comparison = pipeplan.compare(**SHAPE)
    assert len(simulations) == len(comparison)
    for shown in (comparison, pipeplan.compare("zbv", "zb-h2", **SHAPE, leads=True)):
        simulations.clear()
        shown.print()
        shown.to_dict()
        shown.to_frame()
        comparison_report(shown, shown._views())
        assert simulations == []
