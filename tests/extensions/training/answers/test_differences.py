import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeplan
from pipeplan.costs import Settings
from pipeplan.extensions.training.diff.diff import diff, diff_timelines
from pipeplan.formats import timeline_json
from pipeplan.foundation.errors import InputError, UnknownNameError
from pipeplan.model import Schedule, Timeline, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate
from tests.extensions.training.traces.traces import traces
from tests.passes.plans import PLANS

PLAN = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1", name="mine")


def run_of(schedule: Schedule, factors: np.ndarray | None = None, **changes) -> Timeline:
    costs = Settings(**{"times_per": "stage", "backward_times": 2.0, "time_unit": "ms", **changes}).costs(
        schedule.placement
    )
    return simulate(schedule, costs, factors=factors).timeline


def test_a_run_that_goes_by_the_plan():
    result = diff_timelines(run_of(PLAN, p2p_time=0.5), run_of(PLAN, p2p_time=0.5))
    assert (result.error, result.from_costs, result.from_waiting) == (0, 0, 0)
    assert result.departure is None
    assert [(kind.kind, kind.stage, kind.ops, kind.planned, kind.measured, kind.effect) for kind in result.kinds] == [
        ("F", 0, 2, 1, 1, 0),
        ("F", 1, 2, 1, 1, 0),
        ("B", 0, 2, 2, 2, 0),
        ("B", 1, 2, 2, 2, 0),
    ]
    document = result.to_dict()
    assert json.loads(json.dumps(document)) == document
    assert (document["schedule"], document["error"], document["kinds"][0]["planned"]) == ("mine", 0, 1)


def test_slower_ops_are_what_costs_explain():
    result = diff_timelines(run_of(PLAN, p2p_time=0.5), run_of(PLAN, forward_times=(1, 1.5), p2p_time=0.5))
    assert result.error == pytest.approx(1.0)
    assert (result.from_costs, result.from_waiting) == pytest.approx((1.0, 0.0))
    slow = next(kind for kind in result.kinds if kind.measured != kind.planned)
    assert (slow.kind, slow.stage, slow.measured) == ("F", 1, 1.5)
    assert slow.effect == pytest.approx(1.0)
    assert result.relative_error == pytest.approx(1 / result.measured.makespan)


def test_gaps_between_ops_are_waiting():
    run = run_of(PLAN)
    shift = np.where(run.schedule.rank == 1, 0.25 * (np.arange(8) - 4), 0.0)
    late = Timeline(PLAN, run.start + shift, run.end + shift, "ms", "measured")
    result = diff_timelines(run, late)
    assert result.from_costs == pytest.approx(0.0)
    assert result.path_gaps > 0


def test_units_are_those_of_the_run():
    plan = run_of(PLAN, time_unit="us", forward_times=1000.0, backward_times=2000.0)
    result = diff_timelines(plan, run_of(PLAN))
    assert (result.planned.unit, result.measured.unit) == ("ms", "ms")
    assert result.error == pytest.approx(0.0)
    assert diff_timelines(run_of(PLAN, time_unit=""), run_of(PLAN)).planned.unit == "ms"
    assert diff_timelines(run_of(PLAN), run_of(PLAN, time_unit="")).measured.unit == "ms"


@pytest.mark.parametrize("factor", [0.001, 1.0, 20.0, 4e5])
def test_a_plan_without_a_unit_takes_the_pace_of_the_run(factor):
    """Whatever 1 stands for, the same is left: what ops take to each other, and what ranks wait."""
    run = run_of(PLAN, forward_times=(30, 45), backward_times=60, p2p_time=7)
    slow = Timeline(PLAN, factor * run.start, factor * run.end, "ms", "measured")
    result = diff("1f1b", slow, ranks=2, microbatches=2)
    assert result.scale == pytest.approx(factor * 390 / 12)
    assert result.change == pytest.approx(diff("1f1b", run, ranks=2, microbatches=2).change)
    assert sum(kind.ops * kind.planned for kind in result.kinds) == pytest.approx(factor * 390)
    assumed, scaled = result.notes
    assert "times are assumed" in assumed
    assert f"1 counts as {result.scale:.4g} ms" in scaled
    assert "than the plan at the run's pace" in result.sentences[0]
    assert result.sentences[-1].startswith("The planned times were assumed")


def test_an_op_out_of_its_order():
    other = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    departure = diff_timelines(run_of(PLAN), run_of(other)).departure
    assert departure is not None
    assert (departure.op, departure.rank, departure.start) == ("1F1", 1, 2.0)
    assert (departure.planned, departure.happened) == ("1B0 runs here", "1F1 ran before it")


def test_a_message_that_comes_after_its_rank_is_free():
    """In the plan 1F1 waits for its rank, in the run for 0F1."""
    gpipe = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    slow = np.array([1, 3.0, 1, 1, 1, 1, 1, 1])
    departure = diff_timelines(run_of(gpipe, forward_times=(1, 2)), run_of(gpipe, slow, forward_times=(1, 2))).departure
    assert departure is not None
    assert (departure.op, departure.rank, departure.start) == ("1F1", 1, 4.0)
    assert departure.planned == "the result of 0F1 arrives before 1F0 ends"
    assert departure.happened == "0F1 ended after 1F0"


def test_a_message_that_is_there_before_its_rank_is_free():
    """In the plan rank 0 waits for the result of 1B0, in the run it is still busy with 0F1."""
    slow = np.ones(len(PLAN))
    slow[1] = 4.0
    departure = diff_timelines(run_of(PLAN), run_of(PLAN, slow)).departure
    assert departure is not None
    assert (departure.op, departure.rank) == ("0B0", 0)
    assert departure.planned == "the rank waits for the result of 1B0"
    assert departure.happened == "it arrived before 0F1 ended"


def test_overlapped_pairs_are_compared_as_pairs():
    pairs = parse_schedule("0F0 (0F1;0B0)OVERLAP_F_B 0B1")
    result = diff_timelines(run_of(pairs), run_of(pairs, np.array([1, 2, 2, 1.0])))
    assert [(kind.kind, kind.ops, kind.planned, kind.measured, kind.effect) for kind in result.kinds] == [
        ("F", 1, 1, 1, 0),
        ("B", 1, 2, 2, 0),
        ("F+B", 1, 3, 6, 3),
    ]


def test_slower_ops_and_slower_messages_in_words():
    """Forwards of stage 1 take 1.5 for 1.0 ms, twice on the critical path; each of two messages 0.25 ms more."""
    result = diff_timelines(run_of(PLAN, p2p_time=0.5), run_of(PLAN, forward_times=(1, 1.5), p2p_time=0.75))
    assert result.change == pytest.approx(0.15)
    assert result.sentences[:4] == (
        "The run took 11.5 ms, 15.0% longer than the planned 10.0 ms: above all forward on stage 1 (+1.0 ms).",
        "Of these 1.5 ms, 1.0 ms (66.7%) come from ops that took longer, and 0.5 ms (33.3%) from ranks that waited more.",
        "The ops that matter most: forward on stage 1 (1.5 for 1.0 ms, alone +1.0 ms).",
        "On the critical path of the run, 1.5 ms lie between ops of different ranks (planned: 1.0 ms) and 0.0 ms between "
        "ops of one rank (planned: none).",
    )
    assert result.sentences[4].startswith("Rank 1 was busy the most beyond its plan, 7.0 ms for 6.0 ms")


def shifted(run: Timeline, start: Any, end: Any = None) -> Timeline:
    return replace(run, start=run.start + start, end=run.end + (start if end is None else end))


@pytest.mark.parametrize(
    ("planned", "run", "sentence"),
    [
        (run_of(PLAN, p2p_time=0.5), run_of(PLAN, p2p_time=0.5), "The run took 10 ms, as planned."),
        (
            run_of(PLAN, p2p_time=0.5),
            run_of(PLAN, p2p_time=0.5),
            "The ops ran in the planned order, and waited for what they were planned to wait for.",
        ),
        (
            run_of(PLAN, p2p_time=0.5),
            run_of(PLAN, forward_times=(1, 1.5)),
            "Ops that took longer make the step 1 ms longer; ranks that waited less make it 1 ms shorter.",
        ),
        (
            run_of(PLAN),
            run_of(PLAN, p2p_time=0.5),
            "All of that comes from ranks that waited more than planned.",
        ),
        (run_of(PLAN), shifted(run_of(PLAN), 4), "Its first op starts at 4 ms."),
        (
            run_of(PLAN),
            shifted(run_of(PLAN), np.where(PLAN.rank == 0, 0.75, 0.0)),
            "The clocks of the ranks differ: 1F0 starts 0.75 ms before 0F0, which it needs, has ended",
        ),
        (
            run_of(PLAN),
            run_of(PLAN, forward_times=(1.5, 1.5)),
            "Every rank was busy beyond its plan, 7.0 ms for 6.0 ms",
        ),
    ],
)
def test_a_sentence_says_what_differs(planned, run, sentence):
    assert sentence in " ".join(diff_timelines(planned, run).sentences)


LONG = parse_schedule("0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2")
EIGHT = pipeplan.simulate("1f1b", ranks=4, microbatches=8).schedule
NOISE = np.where(np.random.default_rng(1).random(len(EIGHT)) < 0.15, 1.4, 1.0)
LATE = np.where(np.arange(len(LONG)) == 0, 9.0, 1.0)


@pytest.mark.parametrize(
    ("planned", "run", "headline"),
    [
        (run_of(PLAN), run_of(PLAN), "The run took 9 ms, as planned."),
        (
            run_of(PLAN, p2p_time=0.5),
            run_of(PLAN, forward_times=(1, 1.5)),
            "The run took 10 ms, as planned: forward on stage 1 (+1 ms) is made up for elsewhere.",
        ),
        (
            run_of(PLAN),
            run_of(PLAN, p2p_time=0.5),
            "The run took 10 ms, 11.1% longer than the planned 9 ms: above all waits between ranks (+1 ms).",
        ),
        (
            run_of(PLAN),
            run_of(PLAN, backward_times=1.0),
            "The run took 6 ms, 33.3% shorter than the planned 9 ms: above all backward on stage 1 (-2 ms).",
        ),
        (
            run_of(LONG),
            run_of(LONG, LATE),
            "The run took 20 ms, 66.7% longer than the planned 12 ms: above all single ops such as 0F0 on rank 0 (+8 ms).",
        ),
        (
            run_of(EIGHT),
            run_of(EIGHT, NOISE),
            "The run took 37 ms, 12.1% longer than the planned 33 ms: above all slower ops of many kinds and stages "
            "(+4 ms).",
        ),
    ],
)
def test_the_headline_names_the_largest_part_of_the_difference(planned, run, headline, capsys):
    result = diff_timelines(planned, run)
    assert result.headline == result.sentences[0] == headline
    assert next(iter(result.to_dict().items())) == ("headline", headline)
    result.print()
    assert " ".join(capsys.readouterr().out.split()).startswith(headline)


def test_ten_rows_of_five_columns_are_printed_and_the_rest_with_all_and_verbose(capsys):
    plan = pipeplan.simulate("zb-h1", ranks=4, microbatches=6, time_unit="ms").timeline
    result = diff_timelines(
        plan,
        pipeplan.simulate("zb-h1", ranks=4, microbatches=6, time_unit="ms", forward_times=2, backward_times=2).timeline,
    )
    result.print()
    output = capsys.readouterr().out
    assert output.count(", stage ") == 10
    assert "2 further rows not listed: --all" in output
    assert output.count("forward, stage ") == 4
    assert len(output.splitlines()) <= 25
    assert "All of that comes" not in output
    result.print(all=True, verbose=True)
    output = capsys.readouterr().out
    assert output.count(", stage ") == 12
    assert "All of that comes from ops that took longer than planned." in output
    assert "--verbose" not in output


def test_a_single_late_op_is_named_and_its_kind_is_not():
    long = parse_schedule("0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2")
    factors = np.ones(len(long))
    factors[0] = 9.0
    text = " ".join(diff_timelines(run_of(long), run_of(long, factors)).sentences)
    assert "Single ops took far longer than the others of their kind: 0F0 on rank 0" in text
    assert "The ops that matter most" not in text


def test_a_kind_that_is_slower_everywhere_is_said_once():
    plan = pipeplan.simulate("1f1b", ranks=4, microbatches=6, time_unit="ms").timeline
    slower = pipeplan.simulate("1f1b", ranks=4, microbatches=6, time_unit="ms", backward_times=2.5).timeline
    result = diff_timelines(plan, slower)
    assert any(
        "The ops that matter most: backward on every stage (1.25 times its plan, alone +4.5 ms)." in s
        for s in result.sentences
    )
    assert [(kind.kind, kind.least, kind.most) for kind in result.whole_kinds] == [("F", 1, 1), ("B", 1.25, 1.25)]
    assert result.ratio_limit == 1.25


def test_how_to_plan_on_a_run_that_was_measured(tmp_path):
    measured = replace(run_of(PLAN, forward_times=1.5), source="measured")
    (tmp_path / "my run.json").write_text(timeline_json(measured))
    result = diff(run_of(PLAN), tmp_path / "my run.json")
    assert (
        result.sentences[-1]
        == f"To plan on what the run took: pipeplan profile --from '{tmp_path / 'my run.json'}' -o costs.yaml"
    )
    assert "--from RUN" in diff_timelines(run_of(PLAN), measured).sentences[-1]
    far = replace(run_of(PLAN, forward_times=5.0, backward_times=10.0), source="measured")
    assert "hardly those of this model and machine" in diff_timelines(run_of(PLAN), far).sentences[-1]
    assumed = diff("1f1b", measured, ranks=2, microbatches=2)
    assert assumed.sentences[-1].startswith("The planned times were assumed. To plan on")
    assert repr(assumed) == "<Diff of 1f1b: 10.5 ms, 0.0% against the planned 10.5 ms>"


def test_a_name_takes_the_shape_of_the_run():
    run = pipeplan.simulate("interleaved-1f1b", ranks=2, chunks=3, microbatches=4, time_unit="ms").timeline
    result = diff("interleaved-1f1b", run)
    assert result.change == 0
    assert result.notes == ("times are assumed: forward 1, backward 2 (1 for the inputs, 1 for the weights)",)
    with pytest.raises(InputError, match="The plan has 8 microbatches, the run 4 microbatches: pass a schedule"):
        diff("interleaved-1f1b", run, ranks=2, chunks=3, microbatches=8)
    with pytest.raises(
        InputError, match="The plan has 1 rank and 2 stages and 1 microbatch, the run 2 ranks and 6 stages"
    ):
        diff("interleaved-1f1b", run, ranks=1, chunks=2, microbatches=1)
    with pytest.raises(InputError, match="pass the schedule that ran"):
        diff("zb-h1", pipeplan.simulate("1f1b", ranks=2, microbatches=4).timeline)


def test_the_ratio_of_every_op_in_either_order():
    other = parse_schedule("0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    result = diff_timelines(run_of(PLAN), run_of(other, forward_times=(1, 3)))
    np.testing.assert_allclose(result.ratios, [1, 1, 1, 1, 3, 1, 3, 1])
    np.testing.assert_allclose(result.ratios_in_run, [1, 1, 1, 1, 3, 3, 1, 1])


@settings(max_examples=40, deadline=None)
@given(PLANS, st.floats(0, 2), st.integers(0, 2**31), st.booleans())
def test_a_run_with_the_plans_transfers_is_explained_by_its_costs(plan: Schedule, latency: float, seed: int, messages):
    noise = np.random.default_rng(seed).uniform(0.5, 2, len(plan))
    noise[1:][plan.joined[1:]] = noise[:-1][plan.joined[1:]]
    run = run_of(plan, noise, p2p_time=latency)
    lowered = insert_communication(plan) if messages else plan
    result = diff_timelines(run_of(lowered, p2p_time=latency), run)
    assert result.from_waiting == pytest.approx(0.0, abs=1e-6)
    assert result.from_costs == pytest.approx(result.error, abs=1e-6)
    np.testing.assert_allclose(result.resimulated.end, run.end)
    assert sum(kind.ops for kind in result.kinds) == len(plan) - int(plan.joined.sum())


def test_what_is_planned_and_measured_may_be_files(tmp_path):
    run = run_of(insert_communication(PLAN), p2p_time=0.5)
    (tmp_path / "plan.json").write_text(timeline_json(run_of(PLAN)))
    (tmp_path / "run.json").write_text(timeline_json(run))
    (tmp_path / "plan.csv").write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n")
    (tmp_path / "traces").mkdir()
    costs = Settings(times_per="stage", p2p_time=0.5).costs(PLAN.placement)
    met = simulate(insert_communication(PLAN), costs, communication="blocking").timeline
    for name, text in traces(met).items():
        (tmp_path / "traces" / name).write_text(text)
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 2}
    assert diff(tmp_path / "plan.json", tmp_path / "run.json").error == pytest.approx(1.0)
    assert diff(str(tmp_path / "plan.csv"), tmp_path / "run.json").error == pytest.approx(1.0)
    assert diff("1f1b", run, **shape).error == pytest.approx(1.0)
    assert diff(PLAN, tmp_path / "traces").measured.makespan == pytest.approx(met.makespan)
    assert diff(run, run).error == 0
    with pytest.raises(InputError, match="is a schedule without times"):
        diff("1f1b", tmp_path / "plan.csv", **shape)
    with pytest.raises(UnknownNameError):
        diff("1f1c", run)


def test_different_plans():
    longer = parse_schedule("0F0 0F1 0F2 0B0 0B1 0B2\n1F0 1B0 1F1 1B1 1F2 1B2")
    with pytest.raises(
        InputError, match=r"0F2 is only in the run \(and 3 more ops\): these are timelines of different schedules"
    ):
        diff_timelines(run_of(PLAN), run_of(longer))
    with pytest.raises(InputError, match=r"0B0 is only in the plan"):
        diff_timelines(run_of(PLAN), run_of(parse_schedule("0F0 0F1 0I0 0W0 0B1\n1F0 1B0 1F1 1B1")))


def test_a_run_that_was_not_measured():
    run = run_of(PLAN)
    with pytest.raises(InputError, match=r"rank 0, op 0 \(0F0\) takes no time in the run"):
        diff_timelines(run, Timeline(PLAN, run.end.copy(), run.end.copy()))


def test_a_plan_held_against_itself_differs_by_nothing_whatever_its_overhead(tmp_path):
    shape: dict[str, Any] = {"ranks": 2, "microbatches": 4, "time_unit": "ms", "p2p_time": 0.3}
    overheads: list[dict[str, Any]] = [
        {"op_gap": 0.2},
        {"machine": "megatron-a100"},
        {"message_time": 0.4, "step_time": 3.0},
        {"op_gap": 0.2, "message_time": 0.1, "communication": "blocking"},
        {"op_gap": 0.2, "message_time": 0.1, "communication": "streams"},
        {"op_gap": 0.2, "unshard_times": 2.0, "reduce_times": 1.0},
        {"op_gap": 0.2, "parameter_bytes": 2.0},
    ]
    for overhead in overheads:
        for name in ("1f1b", "zbv", "dualpipev"):
            plan = pipeplan.simulate(name, **shape, **overhead)
            path = tmp_path / f"{name}.json"
            path.write_text(timeline_json(plan.timeline))
            for measured in (path, plan):
                for planned in (path, plan.timeline):
                    result = diff(planned, measured)
                    assert (result.error, result.from_costs, result.from_waiting) == (0, 0, 0), (name, overhead)


def test_a_run_that_takes_what_was_planned_is_as_long_as_a_plan_with_overhead(tmp_path):
    """A run is measured from its first start, so the gap before the first op of the plan is no part of its length."""
    for name in ("1f1b", "zbv"):
        plan = pipeplan.simulate(name, ranks=2, microbatches=4, time_unit="ms", op_gap=0.25).timeline
        (tmp_path / "run.json").write_text(
            timeline_json(replace(plan, start=plan.start - 0.25, end=plan.end - 0.25, occupied=None, source="measured"))
        )
        result = diff(name, tmp_path / "run.json", op_gap=0.25, time_unit="ms")
        assert result.error == pytest.approx(0.0)
        assert result.planned_makespan == pytest.approx(plan.makespan - 0.25)
        assert result.notes[-1].startswith("the first op of the plan starts at 250 us; its times count from there")
