import json
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeplan.costs import Settings
from pipeplan.extensions.training.traces import parse_kineto
from pipeplan.formats import read_schedule_or_timeline
from pipeplan.foundation.errors import FormatError, PipeplanError
from pipeplan.model import Kind, Schedule, Timeline, parse_schedule
from pipeplan.passes import insert_communication
from pipeplan.simulation import simulate
from tests.extensions.training.traces.traces import Event, annotations, rank_trace, traces
from tests.formats.schedules import schedules

PLAN = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1"


def later(events: list[Event]) -> list[Event]:
    """The same events a second later."""
    return [event | {"ts": event["ts"] + 1e6} for event in events]


def run_of(schedule: Schedule, *, forward_times: float = 1.0) -> Timeline:
    """A run whose ranks do one thing after the other, as hosts do."""
    costs = Settings(time_unit="ms", p2p_time=0.5, forward_times=forward_times).costs(schedule.placement)
    if schedule.ranks > 1:
        schedule = insert_communication(schedule)
    return simulate(schedule, costs, communication="blocking").timeline


RUN = run_of(parse_schedule(PLAN))


def test_ops_of_all_ranks_on_one_clock():
    (timeline,) = parse_kineto(traces(RUN))
    assert timeline.schedule == RUN.schedule
    assert (timeline.unit, timeline.source) == ("ms", "measured")
    compute = RUN.schedule.columns.kind <= Kind.W
    np.testing.assert_allclose(timeline.start[compute], RUN.start[compute])
    np.testing.assert_allclose(timeline.end[compute], RUN.end[compute], atol=1e-5)


def test_a_receive_lasts_until_its_op_starts():
    (timeline,) = parse_kineto(traces(RUN))
    received = int(RUN.schedule.where(Kind.RECV_F)[1])
    needs = int(RUN.schedule.where(Kind.F)[3])
    assert RUN.schedule.op(needs).microbatch == RUN.schedule.op(received).microbatch == 1
    assert timeline.end[received] == pytest.approx(RUN.start[needs])


def test_ops_wait_for_their_message_inside_their_annotation():
    plain, waiting = (parse_kineto(traces(RUN, waits=waits))[0] for waits in (0.0, 0.25))
    compute = RUN.schedule.columns.kind <= Kind.W
    np.testing.assert_allclose(waiting.start[compute], plain.start[compute])
    np.testing.assert_allclose(waiting.end[compute], plain.end[compute])


def test_where_a_gpu_works_its_time_counts():
    (timeline,) = parse_kineto(traces(RUN, on_gpu=True))
    compute = RUN.schedule.columns.kind <= Kind.W
    np.testing.assert_allclose(timeline.start[compute], RUN.start[compute])
    np.testing.assert_allclose(timeline.end[compute], RUN.end[compute], atol=1e-5)


def test_base_times_are_the_zero_of_each_trace():
    late = [event | ({"ts": event["ts"] - 2000.0} if "ts" in event else {}) for event in annotations(RUN, 1)]
    shifted = rank_trace(RUN, 1, baseTimeNanoseconds=1790857026002000000, traceEvents=late)
    (timeline,) = parse_kineto({"a": rank_trace(RUN, 0), "b": shifted})
    np.testing.assert_allclose(timeline.start, parse_kineto(traces(RUN))[0].start, atol=1e-9)


def test_a_process_alone_is_rank_0():
    alone = run_of(parse_schedule("0F0 1F0 1B0 0B0"))
    (timeline,) = parse_kineto({"a": rank_trace(alone, 0, distributedInfo=None)})
    assert timeline.schedule == alone.schedule


@given(schedules(slices=1).filter(lambda schedule: schedule.placement.copies == 1), st.floats(0.1, 5))
@settings(max_examples=30, deadline=None)
def test_what_was_run_is_what_is_read(schedule: Schedule, forward: float):
    run = run_of(schedule, forward_times=forward)
    (timeline,) = parse_kineto(traces(run, waits=0.01))
    assert timeline.schedule == run.schedule
    np.testing.assert_allclose(timeline.end.max(), run.makespan, rtol=1e-5)


def test_bad_traces():
    for given_traces, message in [
        ({}, "needs a trace of every rank, but there is none"),
        ({"a": "", "b": ""}, "a: not a trace of PyTorch's profiler, or truncated: Input data was truncated"),
        ({"a": rank_trace(RUN, 0)[:-200]}, "a: not a trace .*, or truncated: Input data was truncated"),
        ({"a": rank_trace(RUN, 0), "b": rank_trace(RUN, 0)}, "a and b are both of rank 0 and overlap in time"),
        (
            {"a": rank_trace(RUN, 0), "b": rank_trace(RUN, 1, distributedInfo={"rank": 1, "world_size": 8})},
            "a and b are traces of different runs, with 2 and 8 processes",
        ),
        ({"a": rank_trace(RUN, 0)}, "a: 0SEND_F0 implies a stage 1, but the trace of its rank is missing"),
        ({"b": rank_trace(RUN, 1)}, "b: no rank holds stage 0"),
        (
            {"a": rank_trace(RUN, 0), "b": rank_trace(RUN, 1, traceEvents=annotations(RUN, 1)[:-6])},
            "different runs, or of only some ranks: .* waits for an op that is in no trace",
        ),
        (
            {"a": rank_trace(RUN, 0), "b": rank_trace(RUN, 1, baseTimeNanoseconds=1690857026000000000)},
            r"rank 1, op \d .* \(b\) ends .* ms before .* \(a\), whose result it needs, starts: .* different runs",
        ),
        (
            {"a": rank_trace(RUN, 0), "b": rank_trace(RUN, 1, host_name="two", baseTimeNanoseconds=0)},
            "the clocks of one and two differ by at least that, or these are traces of different runs",
        ),
        (
            {"a": rank_trace(RUN, 0, traceEvents=annotations(RUN, 0) + later(annotations(RUN, 0))[-1:])},
            r"a: PP:\w+ occurs 1 time\(s\), but other ops 2 times; record whole steps",
        ),
        (
            {
                "a": rank_trace(RUN, 0, traceEvents=annotations(RUN, 0) + later(annotations(RUN, 0))),
                "b": rank_trace(RUN, 1),
            },
            "different runs or steps, with different numbers of steps: a 2, b 1; pass those of the same steps",
        ),
        (
            {"a": json.dumps({"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "PP:0Q0"}]})},
            "a: annotation 0, 'PP:0Q0': '0Q0' is not an op: .*; annotations must be PP: and an op, such as PP:2F0",
        ),
        (
            {"a": json.dumps({"traceEvents": [{"ph": "X", "cat": "user_annotation", "name": "PP:0F0", "dur": -1}]})},
            "a: PP:0F0 has no finite time or ends before it starts",
        ),
    ]:
        with pytest.raises(FormatError, match=message):
            parse_kineto(given_traces)


def test_a_trace_as_a_file_is_its_step_of_median_length(tmp_path):
    alone = run_of(parse_schedule("0F0 1F0 1B0 0B0"))
    first = annotations(alone, 0)
    steps = [
        event | {"ts": event["ts"] * slow + 1e6 * turn, "dur": event.get("dur", 0) * slow}
        for turn, slow in enumerate((3, 1, 2))
        for event in first
        if "ts" in event
    ]
    path = tmp_path / "trace.json"
    path.write_text(rank_trace(alone, 0, distributedInfo=None, traceEvents=steps))
    timeline = read_schedule_or_timeline(path)
    assert isinstance(timeline, Timeline)
    assert timeline.source == "measured"
    assert timeline.makespan == pytest.approx(2 * alone.makespan)


VALUES = st.one_of(st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=8), st.none(), st.lists(st.integers()))
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "M"]),
        "cat": st.sampled_from(["user_annotation", "gpu_user_annotation", "cpu_op", "cuda_runtime", "kernel"]),
        "name": st.one_of(
            st.sampled_from(
                ["PP:0F0", "PP:0B0", "PP:1F0", "PP:(0F1;0B0)OVERLAP_F_B", "PP:", "Forward 0", "Backward 0"]
            ),
            st.sampled_from(["FSDP::all_gather", "gloo:recv", "c10d::send", "ncclDevKernel_SendRecv"]),
            VALUES,
        ),
        "args": st.one_of(VALUES, st.fixed_dictionaries({"correlation": st.one_of(st.integers(0, 2), VALUES)})),
        "ts": VALUES,
        "dur": VALUES,
        "tid": VALUES,
    },
)


@given(
    st.lists(EVENTS, max_size=6),
    VALUES,
    st.one_of(st.none(), st.dictionaries(st.sampled_from(["rank", "world_size"]), VALUES)),
)
@settings(max_examples=50, deadline=None)
def test_nothing_but_our_errors_comes_out(events, base, info):
    text = json.dumps({"traceEvents": events, "baseTimeNanoseconds": base, "distributedInfo": info})
    with suppress(PipeplanError):
        assert all(isinstance(step, Timeline) for step in parse_kineto({"a": text}))
